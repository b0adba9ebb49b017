"""Garbage collection without long pauses.

The collector of Python looks at every container that is alive, which takes a second for some ten million of them. What
the engine keeps has no cycles and lives long: it is frozen, which spares it from the collector; it is still freed when
it goes. Large loads are frozen when they are done, and whatever survives a slow full collection is frozen then, so that
the next one has only to look at what is new. Where frozen rows go and new ones come, Python sees no growth and puts off
its collections, until one has half a million rows to look at: so new rows are swept in time, a few thousand at once.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

LARGE = 50_000
"""From how many changes on a batch is a load."""

MANY = 2_000
"""After how many new rows they are swept."""

_SLOW = 0.01


class Freezer:
    """A callback of the collector that freezes what is left after a full collection of more than 10 ms."""

    def __init__(self) -> None:
        self._begin = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """Take the time."""
        if info["generation"] < 2:
            return
        if phase == "start":
            self._begin = perf_counter()
        elif perf_counter() - self._begin > _SLOW:
            gc.freeze()


def watch_collector() -> None:
    """Let full collections freeze what they leave, if they do not so already.

    For processes that do little else than maintain views: garbage in cycles that is frozen while it lives is never
    collected, which an application may not want.
    """
    if not any(isinstance(one, Freezer) for one in gc.callbacks):
        gc.callbacks.append(Freezer())


def sweep() -> None:
    """Let the collector look at what is new: rows, which hold no containers, it then leaves alone for good."""
    if gc.isenabled():
        gc.collect(0)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep the collector from running over what comes for a short time: many rows, none of them in cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def loading(changes: int) -> Iterator[None]:
    """Keep the collector from running during a load, and freeze what was loaded."""
    if changes < LARGE or not gc.isenabled():
        yield
        return
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
