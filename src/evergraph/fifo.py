"""A lock that serves in the order of asking."""

from collections import deque
from threading import Lock
from types import TracebackType


class FifoLock:
    """Mutual exclusion, first come, first served. Python's own lock promises no order.

    Take it where no interrupt can come between (`evergraph.interrupts`): one inside of the lock itself would lose it.
    """

    def __init__(self) -> None:
        self._mutex = Lock()
        self._turns: deque[Lock] = deque()
        self._held = False

    def __enter__(self) -> None:
        with self._mutex:
            if not self._held:
                self._held = True
                return
            turn = Lock()
            turn.acquire()
            self._turns.append(turn)
        turn.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._mutex:
            if self._turns:
                self._turns.popleft().release()
            else:
                self._held = False
