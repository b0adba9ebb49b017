"""RDF files cut into pieces that Spark's tasks read by themselves.

Plain N-Triples and N-Quads files are cut at byte positions: a piece has the lines that begin in it. Compressed files
and documents in other syntaxes are one piece each. Small pieces share a task. A task reads its files directly, so
nothing passes through the driver, every piece knows its file, and a damaged gzip file is told by name.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from glob import glob
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from pyoxigraph import RdfFormat

from evergraph.errors import DataError
from evergraph.files import AnyPath, is_gzip, open_input
from evergraph.rdfio import format_for_path, rdf_ending
from evergraph.sources.folders import visible_files

LINE_FORMATS = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
"""Syntaxes of one statement in a line."""

_PIECE = 64 << 20
_SMALLEST_PIECE = 4 << 20
_BLOCK = 4 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Piece:
    """The lines of a file that begin at a byte from ``begin`` on and before ``end``; the whole file where that is None.

    ``number`` counts the pieces of one file, from 0.
    """

    file: str
    number: int = 0
    begin: int = 0
    end: int | None = None

    @property
    def format(self) -> RdfFormat:
        """The syntax of the file."""
        return format_for_path(self.file)

    @property
    def scope(self) -> str:
        """What makes labels of blank nodes unique to the file: the same each time that it is read."""
        return f"f{sha256(self.file.encode()).hexdigest()[:16]}x"

    def blocks(self) -> Iterator[bytes]:
        """Read the piece in blocks of whole lines; a line without its end is only ever the last of the file."""
        with open_input(self.file) if self.end is None else Path(self.file).open("rb") as stream:
            if self.begin:
                stream.seek(self.begin - 1)
                skipped = len(stream.readline()) - 1  # the line that began before, and belongs to the piece before
                position = self.begin + skipped
            else:
                position = 0
            yield from self._lines_from(stream, position)

    def _lines_from(self, stream: BinaryIO, position: int) -> Iterator[bytes]:
        first = not position
        while self.end is None or position < self.end:
            wanted = _BLOCK if self.end is None else min(_BLOCK, self.end - position)
            block = stream.read(wanted)
            if not block.endswith(b"\n"):
                block += stream.readline()
            if not block:
                return
            position += len(block)
            yield block.removeprefix(_BOM) if first else block
            first = False


def find_files(paths: Iterable[AnyPath]) -> list[str]:
    """List the RDF files that paths, folders (at any depth) and patterns name, each once, in the order of names."""
    found: set[Path] = set()
    for path in paths:
        found.update(_files_of(Path(path)))
    return [str(path) for path in sorted(found)]


def cut(files: Iterable[str], *, cores: int) -> list[list[Piece]]:
    """Cut files into the work of tasks, so that all cores have some and no task is very small."""
    sizes = {file: Path(file).stat().st_size for file in files}
    piece = max(_SMALLEST_PIECE, min(_PIECE, sum(sizes.values()) // (3 * cores) + 1))
    tasks: list[list[Piece]] = []
    room = 0
    for file, size in sizes.items():
        for one, weight in _pieces(file, size, piece):
            if not tasks or weight > room:
                tasks.append([])
                room = piece
            tasks[-1].append(one)
            room -= weight
    return tasks


def estimated_rows(files: Iterable[str]) -> int:
    """Guess the number of statements from the sizes of the files."""
    return sum(Path(file).stat().st_size // (12 if is_gzip(file) else 120) for file in files)


def _pieces(file: str, size: int, piece: int) -> Iterator[tuple[Piece, int]]:
    if is_gzip(file) or format_for_path(file) not in LINE_FORMATS:
        yield Piece(file), (10 if is_gzip(file) else 1) * size
        return
    count = max(1, -(-size // piece))
    for number in range(count):
        begin, end = (size * place // count for place in (number, number + 1))
        yield Piece(file, number, begin, end), end - begin


def _files_of(path: Path) -> list[Path]:
    if path.is_dir():
        files = [file.absolute() for file in visible_files(path, recursive=True) if rdf_ending(file)]
        if not files:
            raise DataError(
                f"{path}: there are no RDF files in this folder", hint="check the path and the file endings"
            )
        return files
    if path.exists():
        format_for_path(path)
        return [path.absolute()]
    matches = [Path(match) for match in glob(str(path), recursive=True)]  # noqa: PTH207
    if not matches:
        raise DataError(f"{path}: no such file", hint="check the path")
    return [file for match in matches for file in _files_of(match)]
