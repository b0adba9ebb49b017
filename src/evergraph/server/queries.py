"""Threads for queries: so many at a time, and none that takes too long stands in the way of others.

The store cannot be told to stop before its next row. So a query whose time is over loses its turn to the next one that
waits, and its thread, which gets what processor time nobody else wants, ends when the store comes back to it. If there
are too many of those, they keep their turns, so that the broker refuses queries rather than drown in them.
"""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import get_native_id
from typing import Any

from evergraph.server.threads import start_thread

_LOWEST = 19


class Ticket:
    """A query that waits, runs, or has been left behind."""

    __slots__ = ("future", "has_turn", "is_late", "thread", "work")

    def __init__(self, work: Callable[[], Any], future: "asyncio.Future[Any]") -> None:
        self.work = work
        self.future = future
        self.has_turn = False
        self.is_late = False
        self.thread = 0


class Queries:
    """Runs queries; everything but the queries themselves is on one event loop."""

    def __init__(self, at_once: int, left_behind: int) -> None:
        self._turns = at_once
        self._room = left_behind
        self._waiting: deque[Ticket] = deque()
        self.late = 0
        """Queries that were left behind, and still run."""

    @property
    def waiting(self) -> int:
        """How many queries have not begun."""
        return len(self._waiting)

    def submit(self, work: Callable[[], Any]) -> Ticket:
        """Run something in a thread of its own, as soon as there is a turn."""
        one = Ticket(work, asyncio.get_running_loop().create_future())
        self._waiting.append(one)
        self._next()
        return one

    def leave(self, one: Ticket) -> None:
        """Give up a query: one that waits never begins, one that runs loses its turn."""
        if one in self._waiting:
            self._waiting.remove(one)
            one.future.cancel()
            return
        if one.future.done():
            return
        one.is_late = True
        self.late += 1
        _lower(one.thread)
        if self.late <= self._room:
            self._release(one)

    def close(self) -> None:
        """Begin nothing more. What runs does not keep the process from ending."""
        self._turns = 0
        for one in self._waiting:
            one.future.cancel()
        self._waiting.clear()

    def _next(self) -> None:
        while self._turns > 0 and self._waiting:
            self._turns -= 1
            self._start(self._waiting.popleft())

    def _start(self, one: Ticket) -> None:
        one.has_turn = True
        loop = asyncio.get_running_loop()
        start_thread(lambda: self._run(one, loop), "evergraph-query")

    def _release(self, one: Ticket) -> None:
        if one.has_turn:
            one.has_turn = False
            self._turns += 1
            self._next()

    def _run(self, one: Ticket, loop: asyncio.AbstractEventLoop) -> None:
        """Run a query; in its thread."""
        one.thread = get_native_id()
        result: Any = None
        failure: Exception | None = None
        try:
            result = one.work()
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            failure = error
        with suppress(RuntimeError):  # the loop may be gone when a late query ends
            loop.call_soon_threadsafe(self._done, one, result, failure)

    def _done(self, one: Ticket, result: Any, failure: Exception | None) -> None:
        self.late -= one.is_late
        if not one.future.done():
            if failure is None:
                one.future.set_result(result)
            else:
                one.future.set_exception(failure)
                one.future.exception()  # it counts as seen, even if nobody waits any more
        self._release(one)


def _lower(thread: int) -> None:
    """Let a thread have only what processor time nobody else wants. Only Linux has priorities of threads."""
    if thread and sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, _LOWEST)
