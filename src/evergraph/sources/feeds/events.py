"""The RDF change events of Wikidata as a feed: a file that may grow.

An offset has the bytes of the file that were read (decompressed, if it is compressed), and its lines. While the file is
followed, what its end cuts off is left for later; a compressed one counts when it is whole.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evergraph.errors import DataError
from evergraph.files import is_gzip, open_input
from evergraph.sources.feeds.listing import is_whole
from evergraph.sources.feeds.model import ADDED, FORGOTTEN, REMOVED, Limit, Offset, Piece, Settings
from evergraph.sources.wikidata import ABOUT, Event, Forgotten, scan_events
from evergraph.terms import Quad


@dataclass(frozen=True, slots=True)
class EventPiece:
    """Some events of a file, numbered from ``first``."""

    file: Path
    start: int
    line: int
    stop: int
    first: int

    @property
    def size(self) -> int:
        """The bytes to read."""
        return self.stop - self.start

    def rows(self) -> Iterator[tuple[int, int, Quad]]:
        """Parse the events."""
        for sequence, event in enumerate(scan_events(self.file, self.start, self.line, self.stop), self.first):
            if event.forgets:
                name = Forgotten(event.entity).name
                yield sequence, FORGOTTEN, Quad(name, ABOUT, name)
            request = event.request()
            for quad in request.removed:
                yield sequence, REMOVED, quad
            for quad in request.added:
                yield sequence, ADDED, quad


class EventFeed:
    """The events of a file."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self._path = path
        self._settings = settings
        self._frozen: int | None = None
        self._exhausted: tuple[int, int] | None = None

    def start(self) -> Offset:
        """Return the offset before the first change."""
        return {"sequence": 0, "place": "", "present": 0, "digest": "", "bytes": 0, "lines": 0, "clears": 0}

    def freeze(self) -> None:
        """Keep to what the file holds now."""
        self._frozen = self._path.stat().st_size

    def latest(self, start: Offset, limit: Limit) -> Offset:
        """Return the end of the next batch."""
        size = self._path.stat().st_size if self._frozen is None else self._frozen
        begin = int(start["bytes"])
        if self._exhausted == (size, begin):
            return start
        if self._settings.follow and is_gzip(self._path) and not is_whole(self._path, self._settings.settle):
            return start
        if not is_gzip(self._path) and size < begin:
            raise DataError(
                f"{self._path}: {begin} bytes of it have been read, and now it has {size}",
                hint="let a file of events only grow; begin anew for another one",
            )
        events = scan_events(
            self._path,
            begin,
            int(start["lines"]),
            None if is_gzip(self._path) else size,
            grows=self._settings.follow,
        )
        end = _advanced(start, events, limit)
        if end == start:
            self._exhausted = (size, begin)
            return start
        return {**end, "digest": _checksum(self._path, begin, int(end["bytes"]))}

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        """Return the part of the file that a batch consists of."""
        begin, stop = int(start["bytes"]), int(end["bytes"])
        if self._settings.begun == end["sequence"] and _checksum(self._path, begin, stop) != end["digest"]:
            raise DataError(
                f"{self._path} is not what it was when the batch was begun",
                hint="put the file back as it was: a part of the batch has been written already",
            )
        return [EventPiece(self._path, begin, int(start["lines"]), stop, int(start["sequence"]) + 1)]


def _advanced(start: Offset, events: Iterator[Event], limit: Limit) -> Offset:
    """Go on as far as a batch may; something wrong after its first event is for the next batch to tell."""
    end = start
    try:
        for changes, event in enumerate(events, 1):
            if changes > 1 and (event.end - int(start["bytes"]) > limit.bytes or event.forgets):
                break
            end = {
                "sequence": int(start["sequence"]) + changes,
                "place": f"line {event.line}",
                "present": 1,
                "digest": "",
                "bytes": event.end,
                "lines": event.pieces[-1][0],
                "clears": int(event.forgets) if changes == 1 else end["clears"],
            }
            if changes == limit.changes:
                break
    except DataError:
        if end == start:
            raise
    return end


def _checksum(path: Path, begin: int, end: int) -> str:
    total = 0
    with open_input(path, begin) as stream:
        while begin < end and (chunk := stream.read(min(end - begin, 1 << 20))):
            begin += len(chunk)
            total = zlib.crc32(chunk, total)
    return f"{total:08x}"
