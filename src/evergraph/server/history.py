"""The last changes of something, kept in memory for those who follow it closely."""

from collections import deque

from evergraph.delta import Change

CHANGES = 4_096
QUADS = 200_000
"""How many changes are kept, and how many quads they may have together; the newest change is kept in any case."""


class History:
    """All changes after one of them, which moves on as changes are added."""

    __slots__ = ("_changes", "_quads", "since")

    def __init__(self, since: int) -> None:
        self.since = since
        """All changes after this one are known."""
        self._changes: deque[Change] = deque()
        self._quads = 0

    def add(self, change: Change) -> None:
        """Keep a change, and forget the oldest ones if they have become too many."""
        self._changes.append(change)
        self._quads += len(change.delta)
        while len(self._changes) > CHANGES or (self._quads > QUADS and len(self._changes) > 1):
            oldest = self._changes.popleft()
            self._quads -= len(oldest.delta)
            self.since = oldest.sequence

    def after(self, sequence: int) -> list[Change] | None:
        """Return the changes after one, in their order; None if they are not all known."""
        if sequence < self.since:
            return None
        found = []
        for change in reversed(self._changes):
            if change.sequence <= sequence:
                break
            found.append(change)
        return found[::-1]
