"""Changesets on a server as a feed; see `evergraph.sources.http` for what is there.

An offset has the place of the last change that was read; what is before it is not looked at again. Listings are read
by one process, folder by folder as far as a batch needs them; the files are fetched by the tasks that parse them. If
damaged changes are to be set aside, that process fetches each of them before.
"""

import json
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from evergraph.errors import DataError, SourceUnavailable
from evergraph.sources.feeds.files import WEIGHTS
from evergraph.sources.feeds.model import Limit, Offset, Piece, Settings, damage_found, set_aside
from evergraph.sources.http import HttpChangesets, RemoteChangeset
from evergraph.terms import Quad

_MOST = 100
"""How many changes a batch may have: nobody knows how large they are before they are fetched."""
_USUAL = 64 * 1024


@dataclass(frozen=True, slots=True)
class RemotePiece:
    """The files of one change."""

    sequence: int
    url: str
    files: Mapping[str, str]
    pause: float
    size: int = _USUAL

    def rows(self) -> Iterator[tuple[int, int, Quad]]:
        """Fetch and parse the files."""
        with HttpChangesets(self.url, pause=self.pause) as source:
            changeset = RemoteChangeset(source, ((), 0), self.files)
            for kind in self.files:
                for quad in changeset.quads(kind):
                    yield self.sequence, WEIGHTS[kind], quad


class HttpFeed:
    """The changes of a tree of changesets on a server."""

    def __init__(self, url: str, settings: Settings) -> None:
        self._settings = settings
        self._source = HttpChangesets(url, pause=settings.pause)
        self._frozen = False
        self._known: dict[int, RemoteChangeset] = {}
        """The changes of batches that may be asked for, by their numbers."""
        self._ahead: Iterator[RemoteChangeset] | None = None
        self._next: RemoteChangeset | None = None
        """What the look ahead has seen and no batch has; both are None when it has come to the end."""
        self._at: Offset | None = None
        """Where the look ahead is; None if it broke off, and has to begin again."""
        self._broken = False
        self._looked = float("-inf")

    def start(self) -> Offset:
        """Return the offset before the first change."""
        return {"sequence": 0, "place": "", "present": 0, "digest": "", "clears": 0}

    def freeze(self) -> None:
        """From now on, end where the listings end."""
        self._frozen = True

    def latest(self, start: Offset, limit: Limit) -> Offset:
        """Return the end of the next batch."""
        if self._at != start:
            self._look(start)
        elif self._ahead is None and self._next is None:
            if self._frozen or time.monotonic() - self._looked < self._settings.poll:
                return start
            self._look(start)
        self._known = {number: one for number, one in self._known.items() if number > int(start["sequence"])}
        end = start
        damaged: dict[int, str] = {}
        first, most = int(start["sequence"]) + 1, min(limit.changes, _MOST)
        for sequence in range(first, first + most):
            found = self._peek(begun=sequence > first)
            if found is None or (found.clears and sequence > first):
                break
            problem = self._damage(found, begun=sequence > first)
            if problem is None:
                break
            self._known[sequence], self._next = found, None
            if problem:
                damaged[sequence] = problem
            end = self._after(first, sequence, damaged)
        self._at = None if self._broken else end
        return end

    def _after(self, first: int, last: int, damaged: Mapping[int, str]) -> Offset:
        """Return the offset after the changes of a batch."""
        whole = [self._known[number] for number in range(first, last + 1) if number not in damaged]
        end: Offset = {
            "sequence": last,
            "place": self._known[last].name,
            "present": 0,
            "digest": _digest(whole),
            "clears": int(self._known[first].clears and first not in damaged),
        }
        return {**end, "damaged": json.dumps(damaged)} if self._settings.skip_damaged else end

    def _damage(self, found: RemoteChangeset, *, begun: bool) -> str | None:
        """Tell what is wrong with a change that is to be set aside, empty if it is to be read; None: ask later."""
        try:
            return damage_found(found.check) if self._settings.skip_damaged else ""
        except SourceUnavailable:
            if not begun:
                raise
            return None

    def _peek(self, *, begun: bool) -> RemoteChangeset | None:
        """Look at the next change; what the server does after a batch has begun is for the next one to tell."""
        if self._next is None and self._ahead is not None:
            try:
                self._next = next(self._ahead, None)
            except SourceUnavailable:
                self._ahead, self._at, self._broken = None, None, True
                if not begun:
                    raise
                return None
            if self._next is None:
                self._ahead = None
        return self._next

    def _look(self, start: Offset) -> None:
        self._ahead, self._next = self._source.pending(str(start["place"])), None
        self._at, self._broken, self._looked = start, False, time.monotonic()

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        """Return the changes of a batch, without those that are set aside."""
        first, last = int(start["sequence"]) + 1, int(end["sequence"])
        if any(number not in self._known for number in range(first, last + 1)):
            self._known = dict(zip(range(first, last + 1), self._source.pending(str(start["place"])), strict=False))
        batch = {number: self._known[number] for number in range(first, last + 1) if number in self._known}
        aside = set_aside(end)
        whole = {number: one for number, one in batch.items() if number not in aside}
        if (
            len(batch) <= last - first
            or batch[last].name != end["place"]
            or [number for number, one in whole.items() if one.clears] != ([first] if end["clears"] else [])
            or (self._settings.begun == last and _digest(whole.values()) != end["digest"])
        ):
            raise DataError(
                f"{self._source.url}: the files of changes {first} to {last} are not those that there were before",
                hint="let changes arrive in the order of their names, and whole; keep them until they have been read",
            )
        return [
            RemotePiece(number, self._source.url, dict(one.files), self._settings.pause)
            for number, one in whole.items()
        ]


def _digest(changesets: Iterable[RemoteChangeset]) -> str:
    """Sum up the addresses of files; what is in them is not looked at twice."""
    names = sorted(url for one in changesets for url in one.files.values())
    return f"{zlib.crc32(chr(0).join(names).encode()):08x}"
