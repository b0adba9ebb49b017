"""RDF Patch as a feed: the transactions of a file, or of the files of a folder in the order of their names.

An offset has a file and the number of bytes of it that were read (decompressed, if it is compressed). While a source is
followed, the last file may grow, and what its end cuts off is left for later; a file without ``TX``, which is one
change as a whole, counts when a later file is there or it has not changed for the time to settle. A compressed file
counts when it is whole.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evergraph.errors import DataError, EvergraphError
from evergraph.files import is_gzip, open_input
from evergraph.patch import RawPatch, Tail, scan_patches
from evergraph.sources.feeds.listing import Listing, is_settled, is_whole
from evergraph.sources.feeds.model import ADDED, REMOVED, Limit, Offset, Piece, Settings
from evergraph.sources.folders import listed
from evergraph.sources.patches import is_patch
from evergraph.terms import NamedNode, Quad


@dataclass(slots=True)
class Slice:
    """Scans a part of a file, from a place between two transactions; knows what it has seen so far."""

    file: Path
    start: int = 0
    stop: int | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)
    tail: Tail = "error"
    checksum: int = 0
    at_end: bool = False

    def scan(self) -> Iterator[tuple[RawPatch, int]]:
        """Iterate over the transactions, each with the place in the file where it ends."""
        try:
            yield from self._scan()
        except EvergraphError as error:
            raise self.told_from_the_start(error) from None

    def told_from_the_start(self, error: EvergraphError) -> EvergraphError:
        """Return the error that reading from the start of the file gives, which knows the right line."""
        if self.start:
            try:
                for raw, _ in Slice(self.file, stop=self.stop, tail=self.tail).scan():
                    raw.parse()
            except EvergraphError as better:
                return better
        return error

    def _scan(self) -> Iterator[tuple[RawPatch, int]]:
        prelude = [f'PA "{name}" {NamedNode(iri)} .\n'.encode() for name, iri in self.prefixes.items()]
        shift = self.start - sum(map(len, prelude))
        with open_input(self.file, self.start) as stream:
            for raw in scan_patches(self._lines(prelude, stream), str(self.file), tail=self.tail):
                yield raw, raw.end + shift

    def _lines(self, prelude: list[bytes], stream: Iterable[bytes]) -> Iterator[bytes]:
        yield from prelude
        place = self.start
        for line in stream:
            if self.stop is not None and place >= self.stop:
                return
            place += len(line)
            self.checksum = zlib.crc32(line, self.checksum)
            yield line
        self.at_end = True


@dataclass(frozen=True, slots=True)
class PatchPiece:
    """Some transactions of one file, numbered from ``first``."""

    file: Path
    start: int
    stop: int
    first: int
    prefixes: Mapping[str, str]

    @property
    def size(self) -> int:
        """The bytes to read."""
        return self.stop - self.start

    def rows(self) -> Iterator[tuple[int, int, Quad]]:
        """Parse the transactions."""
        piece = Slice(self.file, self.start, self.stop, self.prefixes)
        for sequence, (raw, _) in enumerate(piece.scan(), self.first):
            try:
                request = raw.parse().request
            except EvergraphError as error:
                raise piece.told_from_the_start(error) from None
            for quad in request.removed:
                yield sequence, REMOVED, quad
            for quad in request.added:
                yield sequence, ADDED, quad


class PatchFeed:
    """The transactions of patch files."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self._path = path
        self._settings = settings
        self._listing = Listing(path, recursive=False) if path.is_dir() else None
        self._frozen: dict[Path, int] | None = None
        self._exhausted: dict[Path, tuple[int, int]] = {}

    def start(self) -> Offset:
        """Return the offset before the first change."""
        return {"sequence": 0, "place": "", "present": 0, "digest": "", "bytes": 0, "prefixes": "{}"}

    def freeze(self) -> None:
        """Keep to the files that are there now, and to what they hold."""
        self._frozen = self._sizes()

    def _sizes(self) -> dict[Path, int]:
        if self._frozen is not None:
            return self._frozen
        files = [path for path in self._listing.files() if is_patch(path)] if self._listing else [self._path]
        return {path: path.stat().st_size for path in sorted(files)}

    def latest(self, start: Offset, limit: Limit) -> Offset:
        """Return the end of the next batch."""
        sizes = self._sizes()
        self._refuse_late(sizes, start)
        files = [file for file in sizes if file.name >= str(start["place"])]
        end, changes, total = start, 0, 0
        for file in files:
            if self._settings.follow and is_gzip(file) and not is_whole(file, self._settings.settle):
                return end
            for step in self._steps(file, sizes[file], end, later=file is not files[-1]):
                total += step.length
                if changes and total > limit.bytes:
                    return end
                end = _after(end, step, sizes)
                changes += 1
                if changes == limit.changes:
                    return end
        return end

    def _steps(self, file: Path, size: int, start: Offset, *, later: bool) -> Iterator["_Step"]:
        """Scan a file on from an offset: its transactions, one by one."""
        began = start["place"] == file.name
        place = int(start["bytes"]) if began else 0
        if (not is_gzip(file) and place == size) or self._exhausted.get(file) == (size, place):
            return
        if size < place and not is_gzip(file):
            raise DataError(
                f"{file}: {place} bytes of it have been read, and now it has {size}",
                hint="let patches only grow; begin a new file instead of a change to an old one",
            )
        open_end = self._settings.follow and not later
        stop = None if is_gzip(file) else size
        piece = Slice(file, place, stop, _prefixes(start) if began else {}, "ignore" if open_end else "error")
        for raw, end in piece.scan():
            if piece.at_end:  # without a transaction
                if place:
                    _refuse_loose_rows(file)
                if open_end and not is_settled(file, self._settings.settle):
                    return
            yield _Step(file, end, end - place, f"{piece.checksum:08x}", raw.prefixes_after())
            place = end
        self._exhausted[file] = (size, place)

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        """Return the parts of files that a batch consists of."""
        first = int(start["sequence"]) + 1
        files = [file for file in self._sizes() if str(start["place"]) <= file.name <= str(end["place"])]
        begun = self._settings.begun == end["sequence"]
        if len(files) == 1 and not begun:
            return [PatchPiece(files[0], _bytes(start, files[0]), int(end["bytes"]), first, _prefixes(start))]
        pieces: list[Piece] = []
        for file in files:
            prefixes = _prefixes(start) if file.name == start["place"] else {}
            last = file.name == end["place"]
            piece = Slice(file, _bytes(start, file), int(end["bytes"]) if last else None, prefixes)
            ends = [end for _, end in piece.scan()] if piece.start != piece.stop else []
            if last and begun and f"{piece.checksum:08x}" != end["digest"]:
                raise DataError(
                    f"{file} is not what it was when the batch was begun",
                    hint="put the file back as it was: a part of the batch has been written already",
                )
            if ends:
                pieces.append(PatchPiece(file, piece.start, ends[-1], first, piece.prefixes))
            first += len(ends)
        if first - 1 != end["sequence"]:
            raise DataError(
                f"{self._path}: {first - 1} changes up to {end['place']} where there were {end['sequence']}",
                hint="let patches only grow, and files arrive in the order of their names",
            )
        return pieces

    def _refuse_late(self, sizes: dict[Path, int], start: Offset) -> None:
        done = [file for file in sizes if file.name <= str(start["place"])]
        if len(done) > int(start["present"]):
            newest = max(done, key=lambda file: file.stat().st_mtime)
            raise DataError(
                f"{self._path}: {listed([newest])} came late: everything up to {start['place']} has been read already",
                hint="give the file a later name, or begin anew with an empty state",
            )


@dataclass(frozen=True, slots=True)
class _Step:
    """One transaction more: where it ends, and what holds there."""

    file: Path
    end: int
    length: int
    checksum: str
    prefixes: Mapping[str, str]


def _after(end: Offset, step: _Step, sizes: dict[Path, int]) -> Offset:
    return {
        "sequence": int(end["sequence"]) + 1,
        "place": step.file.name,
        "present": sum(1 for file in sizes if file.name <= step.file.name),
        "digest": step.checksum,
        "bytes": step.end,
        "prefixes": json.dumps(step.prefixes),
    }


def _bytes(start: Offset, file: Path) -> int:
    return int(start["bytes"]) if start["place"] == file.name else 0


def _refuse_loose_rows(file: Path) -> None:
    """Rows after the last transaction are an error, which reading from the start words best."""
    for _ in Slice(file).scan():
        pass
    raise DataError(f"{file}: rows outside of a transaction", hint="put them between TX and TC")


def _prefixes(offset: Offset) -> dict[str, str]:
    found: dict[str, str] = json.loads(str(offset["prefixes"]))
    return found
