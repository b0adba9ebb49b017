"""Reading of RDF Patch, as a stream.

Reading has two steps. `scan_patches` cuts a stream into changes, which is cheap; `RawPatch.parse` gives the rows of one
to the N-Quads parser, all at once, which is not. Who skips changes does not pay for the second step.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from typing import Literal as Choice
from typing import NoReturn, TypeAlias

from evergraph.errors import DataError, SyntaxProblem
from evergraph.patch.rows import Patch, RawPatch, one_quad
from evergraph.rdfio import syntax_problem
from evergraph.terms import DEFAULT_GRAPH, Literal, NamedNode, Term

Tail: TypeAlias = Choice["error", "ignore"]
"""What to do about a file that ends in the middle of a transaction."""

_PLAIN_ROWS = frozenset({b"A ", b"D "})
_KEYWORD = re.compile(r"\s*([A-Za-z]+)(?![\w:-])")
_WORD = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^\s"<>:.][^\s"<>:]*):?(?=\s)')
_END = re.compile(r"\s*\.\s*(#.*)?$", re.DOTALL)
_NOTHING = re.compile(r"\s*(#|$)")
_STATEMENT = "<s:s> <p:p>"


def read_patches(stream: Iterable[bytes], where: str, *, tail: Tail = "error") -> Iterator[Patch]:
    """Read the changes of a patch; see `scan_patches`."""
    return (raw.parse() for raw in scan_patches(stream, where, tail=tail))


def scan_patches(stream: Iterable[bytes], where: str, *, tail: Tail = "error") -> Iterator[RawPatch]:
    """Cut the lines of a patch into its changes; memory holds one at a time.

    Each ``TX … TC`` is one change, an aborted one (``TA``) is none, and a file without ``TX`` is one as a whole, unless
    it is empty. A row is one line. Prefixes (``PA``, ``PD``) may stand anywhere; they serve the rows after them.

    With ``tail="ignore"`` a transaction that the end of the file cuts off counts as never written, and so does a last
    line without its line break: this is what a crash of the writer leaves.
    """
    scanner = _Scanner(where, tail)
    for line in stream:
        scanner.end += len(line)
        if line[:2] in _PLAIN_ROWS and scanner.takes_rows:
            block = scanner.block
            block.lines.append(b" " + line[1:])
            block.operations.append(line[0])
        elif (done := scanner.feed(line)) is not None:
            yield done
    if (rest := scanner.finish()) is not None:
        yield rest


class _Scanner:
    """The place in a patch: outside of transactions, or in one."""

    __slots__ = ("block", "end", "inside", "tail", "takes_rows", "where")

    def __init__(self, where: str, tail: Tail) -> None:
        self.where = where
        self.tail = tail
        self.block = RawPatch(where, 1, 1)
        self.end = 0
        self.inside = False
        self.takes_rows = True

    @property
    def number(self) -> int:
        """The number of the line at hand."""
        return self.block.first_line + len(self.block.lines)

    def feed(self, line: bytes) -> RawPatch | None:
        """Take any line but a plain row in its place; return the change that it completes."""
        text = line.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
        keyword = _KEYWORD.match(text)
        torn = self.tail == "ignore" and not line.endswith(b"\n")
        match keyword and keyword[1]:
            case _ if torn or _NOTHING.match(text):
                self.block.skip_line()
            case "A" | "D" as operation:
                self._row(operation, text)
            case "H":
                self._header(text)
            case "PA" | "PD" as operation:
                self._prefix(operation, text)
            case "TX":
                self._begin(text)
            case "TC" | "TA" as operation:
                return self._close(operation, text)
            case _:
                self._fail("a row begins with one of H, TX, PA, PD, A, D, TC, TA")
        return None

    def finish(self) -> RawPatch | None:
        """Take the end of the file; return the change that it completes."""
        transactional = self.inside or not self.takes_rows
        if self.inside or (transactional and self.block.header):
            if self.tail == "ignore":
                return None
            raise DataError(
                f"{self.where}:{self.block.line}: the patch ends in the middle of the transaction that begins here",
                hint="fetch the rest of the file, or end the transaction with 'TC .' or 'TA .'",
            )
        self.block.end = self.end
        complete = self.block.has_rows or (self.tail == "error" and (self.block.header or self.block.directives))
        return self.block if complete and not transactional else None

    def _row(self, operation: str, text: str) -> None:
        if not self.takes_rows:
            self._fail("a row outside of a transaction, in a file that has transactions")
        self.block.add_row(operation, text.replace(operation, " ", 1).encode(errors="surrogateescape"))

    def _header(self, text: str) -> None:
        if self.inside or self.block.has_rows:
            self._fail("H rows must stand before the transaction")
        name, value = self._word_and_term(text, text.index("H") + 1)
        self.block.header[name] = value
        self.block.skip_line()

    def _prefix(self, operation: str, text: str) -> None:
        start = text.index(operation) + 2
        if operation == "PD":
            prefix, end = self._word(text, start)
            self._expect_end(prefix, text, end)
            self.block.declare(prefix, None)
        else:
            prefix, term = self._word_and_term(text, start)
            self.block.declare(prefix, self._iri(term))

    def _begin(self, text: str) -> None:
        self._expect_end("TX", text)
        if self.inside:
            self._fail("TX in a transaction")
        if self.block.has_rows:
            self._fail("TX after rows outside of a transaction")
        before, self.block = self.block, RawPatch(self.where, self.number, self.number + 1)
        self.block.header, self.block.prefixes = before.header, before.prefixes_after()
        self.inside = self.takes_rows = True

    def _close(self, operation: str, text: str) -> RawPatch | None:
        self._expect_end(operation, text)
        if not self.inside:
            self._fail(f"{operation} without TX")
        committed = operation == "TC"
        self.inside = self.takes_rows = False
        closed, self.block = self.block, RawPatch(self.where, self.number + 1, self.number + 1)
        self.block.prefixes = closed.prefixes_after() if committed else closed.prefixes
        closed.end = self.end
        return closed if committed else None

    def _word_and_term(self, text: str, start: int) -> tuple[str, Term]:
        word, end = self._word(text, start)
        return word, self._term(text[end:], end + 1)

    def _word(self, text: str, start: int) -> tuple[str, int]:
        found = _WORD.match(text, start)
        if found is None:
            self._fail("a word or a string must follow", column=start + 1)
        if not found[1].startswith('"'):
            return found[1], found.end()
        word = self._term(f"{found[1]} .", found.start(1) + 1)
        assert isinstance(word, Literal)
        return word.value, found.end()

    def _term(self, text: str, column: int) -> Term:
        try:
            quad = one_quad(_STATEMENT + text.rstrip())
        except SyntaxError as error:
            shift = column - len(_STATEMENT)
            raise syntax_problem(error, self.where, line=self.number, column=shift) from None
        if quad.graph_name != DEFAULT_GRAPH:
            self._fail("one term too many", column=column)
        return quad.object

    def _iri(self, term: Term) -> str:
        try:
            return NamedNode(term.value if isinstance(term, NamedNode | Literal) else "").value
        except ValueError as error:
            self._fail(f"a prefix must stand for an IRI: {error}")

    def _expect_end(self, word: str, text: str, start: int | None = None) -> None:
        end = text.index(word) + len(word) if start is None else start
        if not _END.match(text, end):
            self._fail(f"a dot must follow {word}", column=end + 1)

    def _fail(self, reason: str, *, column: int = 1) -> NoReturn:
        raise SyntaxProblem(reason, where=self.where, line=self.number, column=column)
