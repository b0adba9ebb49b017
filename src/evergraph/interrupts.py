"""Pieces of work that Ctrl-C must not cut in two."""

import _signal  # type: ignore[import-not-found] # its wrappers look enums up, which costs more than all the rest here
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import TypeAlias

_SIGNALS = tuple(int(getattr(signal, name)) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, name))
_Handlers: TypeAlias = "dict[int, Callable[[int, FrameType | None], object]]"
LetIn: TypeAlias = Callable[[], AbstractContextManager[None]]


@contextmanager
def uninterrupted() -> Iterator[LetIn]:
    """Let handlers of signals wait until the block is over; they may raise, as that of Ctrl-C does.

    Gives a context in which they are let in: there the work may end at any point. Python runs handlers in the main
    thread, between any two steps of it; in other threads there is nothing to do.
    """
    if current_thread() is not main_thread():
        yield _nothing
        return
    waiting: list[int] = []
    handlers: _Handlers = {}

    def keep_out() -> None:
        for one in handlers:
            _signal.signal(one, lambda number, frame: waiting.append(number))

    def release() -> None:
        _restore(list(handlers.items()))
        while waiting:
            signal.raise_signal(waiting.pop())

    @contextmanager
    def let_in() -> Iterator[None]:
        try:
            release()
            yield
        finally:
            keep_out()

    for one in _SIGNALS:
        handler = _signal.getsignal(one)
        if callable(handler):
            handlers[one] = handler
    try:
        keep_out()
        yield let_in
    finally:
        release()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _restore(handlers: "list[tuple[int, Callable[[int, FrameType | None], object]]]") -> None:
    """Restore all handlers, even if one that is back raises at once."""
    if handlers:
        try:
            _signal.signal(*handlers[0])
        finally:
            _restore(handlers[1:])
