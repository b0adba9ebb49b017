"""One change of an RDF Patch: its lines as they were read, and what they say."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice

from pyoxigraph import RdfFormat, parse

from evergraph.delta import Request
from evergraph.patch.shorthand import Shorthand
from evergraph.rdfio import syntax_problem
from evergraph.terms import Quad, Term

ADD, NO_ROW = b"A\0"


@dataclass(frozen=True, slots=True)
class Patch:
    """One change: what ``TX … TC`` encloses, or a whole file without ``TX``.

    ``header`` has the ``H`` rows since the change before. ``line`` is where the change begins, and ``end`` how many
    bytes of the stream are read when it is over.
    """

    request: Request
    header: Mapping[str, Term]
    line: int
    end: int


class RawPatch:
    """The lines of one change, not yet parsed.

    Every line is kept, with its operation blanked, so that lines and columns of the parser are those of the file.
    """

    __slots__ = ("directives", "end", "first_line", "header", "line", "lines", "operations", "prefixes", "where")

    def __init__(self, where: str, line: int, first_line: int) -> None:
        self.where = where
        self.line = line
        self.first_line = first_line
        self.end = 0
        self.header: dict[str, Term] = {}
        self.prefixes: dict[str, str] = {}
        self.lines: list[bytes] = []
        self.operations = bytearray()
        self.directives: dict[int, tuple[str, str | None]] = {}

    @property
    def has_rows(self) -> bool:
        """Tell whether there is any ``A`` or ``D`` row."""
        return bool(self._rows())

    def add_row(self, operation: str, line: bytes) -> None:
        """Keep a line with an ``A`` or ``D`` row."""
        self.lines.append(line)
        self.operations.append(ord(operation))

    def skip_line(self) -> None:
        """Keep the place of a line that holds no row."""
        self.lines.append(b"\n")
        self.operations.append(NO_ROW)

    def declare(self, prefix: str, iri: str | None) -> None:
        """Keep a line that declares a prefix, or takes one back (None)."""
        self.directives[len(self.lines)] = (prefix, iri)
        self.skip_line()

    def prefixes_after(self) -> dict[str, str]:
        """Return the prefixes that hold after the change."""
        prefixes = dict(self.prefixes)
        for prefix, iri in self.directives.values():
            prefixes.pop(prefix, None)
            if iri is not None:
                prefixes[prefix] = iri
        return prefixes

    def parse(self) -> Patch:
        """Parse the rows. Their order counts: the last row of a quad decides."""
        removed: set[Quad] = set()
        added: set[Quad] = set()
        quads = iter(self._quads())
        for operation, rows in groupby(self._rows()):
            run = set(islice(quads, sum(1 for _ in rows)))
            winner, loser = (added, removed) if operation == ADD else (removed, added)
            winner |= run
            loser -= run
        return Patch(Request(frozenset(removed), frozenset(added)), self.header, self.line, self.end)

    def _rows(self) -> bytearray:
        return self.operations.replace(bytes([NO_ROW]), b"")

    def _quads(self) -> list[Quad]:
        """Parse in bulk; where that fails, row by row, which knows shorthand and finds the faulty row."""
        text = b"".join(self.lines)
        try:
            quads = list(parse(text, RdfFormat.N_QUADS))
        except SyntaxError:
            return list(self._quads_one_by_one())
        # The parser takes one quad a line at most, but a lone carriage return ends a line for it and not for us.
        aligned = text.count(b"\r") == text.count(b"\r\n") and len(quads) == len(self._rows())
        return quads if aligned else list(self._quads_one_by_one())

    def _quads_one_by_one(self) -> Iterator[Quad]:
        shorthand = Shorthand(self.prefixes)
        for index, (operation, line) in enumerate(zip(self.operations, self.lines, strict=True)):
            if index in self.directives:
                shorthand.declare(*self.directives[index])
            elif operation != NO_ROW:
                yield self._parse_row(line, shorthand, self.first_line + index)

    def _parse_row(self, line: bytes, shorthand: Shorthand, number: int) -> Quad:
        row = line.decode(errors="surrogateescape")
        try:
            text = shorthand.expand(row)
        except SyntaxError as error:
            raise syntax_problem(error, self.where, line=number) from None
        try:
            return one_quad(text)
        except SyntaxError as error:
            error.offset = shorthand.original_column(row, error.offset or 1)
            raise syntax_problem(error, self.where, line=number) from None


def one_quad(text: str) -> Quad:
    """Parse a text that must be a single statement of N-Quads."""
    quads: list[Quad] = list(parse(text.encode(errors="surrogateescape"), RdfFormat.N_QUADS))
    if len(quads) != 1:
        raise SyntaxError("a row must have exactly one quad", (None, 1, 1, None))
    return quads[0]
