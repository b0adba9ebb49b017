"""A SPARQL Update request, from text to operations.

The syntax of every operation is judged first, so that what comes after may assume that it is right. A request is taken
apart because Oxigraph (0.5) knows a prologue only at the very beginning, while SPARQL allows one before each
operation.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyoxigraph import RdfFormat, parse

from evergraph.errors import SyntaxProblem, UsageError
from evergraph.gate.operations import (
    Add,
    Clear,
    Copy,
    Create,
    DeleteData,
    Drop,
    Graphs,
    InsertData,
    Load,
    Modify,
    Move,
    Operation,
    Original,
    Rest,
    Template,
    TripleTemplate,
    Where,
)
from evergraph.gate.patterns import core, fixed_graphs, is_repeatable, only_in_graphs
from evergraph.gate.plain import DEEPEST, plain_data, plain_modify
from evergraph.gate.syntax import NEVER_RUN, Judge, is_sparql
from evergraph.gate.templates import (
    compares_no_objects,
    is_matched,
    read_quads,
    read_template,
)
from evergraph.gate.tokens import Kind, Token, tokenize
from evergraph.terms import DEFAULT_GRAPH, BlankNode, GraphName, NamedNode, Quad


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a request with its number, counted from 1, and the line that it begins on."""

    operation: Operation
    number: int
    line: int

    def __str__(self) -> str:
        return f"operation {self.number} ({type(self.operation).__name__}, line {self.line})"


def parse_update(text: str, *, base: str | None = None, where: str = "") -> tuple[Step, ...]:
    """Parse an update request. ``base`` resolves relative IRIs; ``where`` names the text in error messages.

    :raises SyntaxProblem: with line and column, if the text is not SPARQL 1.1 Update.
    """
    if shortcut := plain_data(text, base) or (plain_modify(text) if base is None else None):
        operation, start = shortcut
        return (Step(operation, 1, _line(text, start)),)
    return tuple(_Parser(text, base, where).steps())


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _brackets(tokens: list[Token]) -> tuple[dict[int, int], list[int]]:
    """Find the closing brace of every opening one, and the semicolons outside of braces."""
    closing: dict[int, int] = {}
    separators: list[int] = []
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token.kind is not Kind.MARK:
            continue
        if token.text == "{":
            opened.append(place)
        elif token.text == "}" and opened:
            closing[opened.pop()] = place
        elif token.text == ";" and not opened:
            separators.append(place)
    return closing, separators


def _too_deep(tokens: list[Token]) -> Token | None:
    """Find the bracket that nests too deeply."""
    depth = 0
    for token in tokens:
        if token.kind is Kind.MARK:
            depth += (token.text in "{([") - (token.text in "})]")
            if depth > DEEPEST:
                return token
    return None


class _Parser:
    def __init__(self, text: str, base: str | None, where: str) -> None:
        self._text = text
        self._tokens = list(tokenize(text))
        self._judge = Judge(text, self._tokens, where)
        self._closing, self._separators = _brackets(self._tokens)
        if (deep := _too_deep(self._tokens)) is not None:
            raise self._problem(f"this is nested more than {DEEPEST} levels deep", deep.start)
        self._next = 0
        self._base = base
        self._prologue = f"BASE <{base}>\n" if base else ""
        self._blank_labels: set[str] = set()
        if base and not is_sparql(self._prologue):
            raise UsageError(f"the base {base!r} is not an absolute IRI")

    # --- the tokens

    def _peek(self, ahead: int = 0) -> Token:
        place = self._next + ahead
        if place < len(self._tokens):
            return self._tokens[place]
        return Token(Kind.MARK, "", len(self._text), len(self._text))

    def _take(self) -> Token:
        token = self._peek()
        self._next += 1
        return token

    def _accept(self, *words: str) -> bool:
        if self._peek().is_word(*words):
            self._next += 1
            return True
        return False

    def _expect(self, *words: str) -> None:
        if not self._accept(*words):
            raise self._problem(f"expected {' or '.join(words)}", self._peek().start)

    def _group(self) -> tuple[int, int]:
        """Take a group in braces; return the places of its first and one past its last token, braces excluded."""
        opening = self._peek()
        if not opening.is_mark("{"):
            raise self._problem("expected {", opening.start)
        closing = self._closing.get(self._next)
        if closing is None:
            raise self._problem("this { is never closed", opening.start)
        first, self._next = self._next + 1, closing + 1
        return first, closing

    def _problem(self, message: str, offset: int) -> SyntaxProblem:
        return self._judge.problem(message, offset)

    # --- the request

    def steps(self) -> Iterator[Step]:
        number = 0
        while True:
            self._read_prologue()
            if self._next >= len(self._tokens):
                return
            number += 1
            start = self._peek().start
            self._judge.check(self._prologue + NEVER_RUN, start, self._operation_end())
            first = self._next
            operation = self._operation()
            if isinstance(operation, InsertData):
                self._check_blank_labels(first)
            yield Step(operation, number, _line(self._text, start))
            if self._next < len(self._tokens) and not self._take().is_mark(";"):
                raise self._problem("expected ; or the end of the request", self._tokens[self._next - 1].start)

    def _read_prologue(self) -> None:
        while self._peek().is_word("PREFIX", "BASE", "VERSION"):
            length = 3 if self._peek().is_word("PREFIX") else 2
            declaration = self._tokens[self._next : self._next + length]
            self._next += length
            self._judge.check(self._prologue, declaration[0].start, declaration[-1].end)
            self._prologue += " ".join(token.text for token in declaration) + "\n"

    def _operation_end(self) -> int:
        place = next((place for place in self._separators if place >= self._next), None)
        return len(self._text) if place is None else self._tokens[place].start

    def _check_blank_labels(self, first: int) -> None:
        """Refuse a label of an earlier INSERT DATA: https://www.w3.org/TR/sparql11-query/#grammarBNodes."""
        tokens = [token for token in self._tokens[first : self._next] if token.text.startswith("_:")]
        for token in tokens:
            if token.text in self._blank_labels:
                raise self._problem(f"the blank node {token.text} stands in an earlier INSERT DATA too", token.start)
        self._blank_labels.update(token.text for token in tokens)

    # --- one operation

    def _operation(self) -> Operation:
        token = self._peek()
        read: dict[str, Callable[[], Operation]] = {
            "INSERT": self._insert,
            "DELETE": self._delete,
            "WITH": self._modify,
            "LOAD": self._load,
            "CLEAR": self._clear,
            "DROP": self._drop,
            "CREATE": self._create,
            "ADD": self._add,
            "COPY": self._copy,
            "MOVE": self._move,
        }
        reader = read.get(token.text.upper())
        if token.kind is not Kind.WORD or reader is None:
            raise self._problem("expected an operation", token.start)
        return reader()

    def _insert(self) -> Operation:
        if not self._peek(1).is_word("DATA"):
            return self._modify()
        self._next += 2
        return InsertData(self._data())

    def _delete(self) -> Operation:
        if self._peek(1).is_word("WHERE"):
            return self._delete_where()
        if not self._peek(1).is_word("DATA"):
            return self._modify()
        self._next += 2
        return DeleteData(self._data())

    def _data(self) -> frozenset[Quad]:
        first, end = self._group()
        with self._strict(first):
            return frozenset(read_quads(self._prologue, self._tokens[first:end], fresh_blank_nodes=True))

    def _delete_where(self) -> Modify:
        self._next += 2
        first, end = self._group()
        with self._strict(first):
            template = read_template(self._prologue, self._tokens[first:end])
        where = Where(self._prologue, self._braced(first, end))
        matched = bool(template) and is_matched(template, template)
        plainly = matched and compares_no_objects(template)
        operation = Modify(template, (), where, matched, plainly)
        return self._with_original(operation, self._tokens[first:end], Rest.NOTHING if template else Rest.OTHER)

    def _modify(self) -> Modify:
        with_graph = self._iri() if self._accept("WITH") else None
        delete = self._template(with_graph) if self._accept("DELETE") else ()
        insert = self._template(with_graph) if self._accept("INSERT") else ()
        using, using_named = self._using()
        self._expect("WHERE")
        first, end = self._group()
        where = Where(self._prologue, self._braced(first, end), with_graph, using, using_named)
        if using is not None:
            return Modify(delete, insert, where)
        tokens = self._tokens[first:end]
        inside = core(tokens)
        pattern = self._quads(inside.tokens, with_graph)
        matched = bool(delete) and is_matched(delete, pattern)
        rest = inside.rest(pattern)
        plainly = matched and rest is not Rest.OTHER and compares_no_objects(pattern)
        operation = Modify(delete, insert, where, matched, plainly)
        return operation if with_graph else self._with_original(operation, tokens, rest)

    def _quads(self, tokens: list[Token], graph: NamedNode | None) -> Template:
        """Read a pattern that is nothing but quads; empty for any other."""
        try:
            return read_template(self._prologue, tokens, graph=graph)
        except SyntaxError:
            return ()

    def _with_original(self, operation: Modify, pattern: list[Token], rest: Rest) -> Modify:
        """Add the text of the request, if it is one operation that does the same each time on the same data."""
        is_one = all(place == len(self._tokens) - 1 for place in self._separators)
        quads = operation.delete + operation.insert
        makes_nodes = any(isinstance(slot, BlankNode | TripleTemplate) for quad in quads for slot in quad.slots())
        if self._base or not is_one or makes_nodes or not is_repeatable(pattern):
            return operation
        written = {quad.graph for quad in quads}
        named = frozenset(name for name in written if isinstance(name, NamedNode))
        read = fixed_graphs(self._prologue, pattern) if only_in_graphs(pattern) else None
        graphs = None if read is None or len(named) < len(written) else read | named
        plainly = operation.matches_plainly or not operation.delete
        return replace(operation, original=Original(self._text, graphs, rest=rest, deletes_plainly=plainly))

    def _template(self, graph: NamedNode | None) -> Template:
        first, end = self._group()
        with self._strict(first):
            return read_template(self._prologue, self._tokens[first:end], graph=graph)

    @contextmanager
    def _strict(self, first: int) -> Iterator[None]:
        """Refuse triples that Oxigraph lets pass and the grammar does not: without a full stop between them."""
        try:
            yield
        except SyntaxError as error:
            reason = re.sub(r"^Parser error .*?: ", "", str(error.msg))
            raise self._problem(
                f"the triples that begin here are not SPARQL: {reason}", self._tokens[first].start
            ) from None

    def _using(self) -> tuple[tuple[NamedNode, ...] | None, tuple[NamedNode, ...] | None]:
        default: list[NamedNode] = []
        named: list[NamedNode] = []
        while self._accept("USING"):
            (named if self._accept("NAMED") else default).append(self._iri())
        return (tuple(default), tuple(named)) if default or named else (None, None)

    def _braced(self, first: int, end: int) -> str:
        return self._text[self._tokens[first - 1].start : self._tokens[end].end]

    def _load(self) -> Load:
        silent = self._begin("LOAD")
        source = self._iri()
        if not self._accept("INTO"):
            return Load(source, DEFAULT_GRAPH, silent)
        self._expect("GRAPH")
        return Load(source, self._iri(), silent)

    def _clear(self) -> Clear:
        silent = self._begin("CLEAR")
        return Clear(self._target(), silent)

    def _drop(self) -> Drop:
        silent = self._begin("DROP")
        return Drop(self._target(), silent)

    def _create(self) -> Create:
        silent = self._begin("CREATE")
        self._expect("GRAPH")
        return Create(self._iri(), silent)

    def _add(self) -> Add:
        silent = self._begin("ADD")
        return Add(*self._source_and_destination(), silent)

    def _copy(self) -> Copy:
        silent = self._begin("COPY")
        return Copy(*self._source_and_destination(), silent)

    def _move(self) -> Move:
        silent = self._begin("MOVE")
        return Move(*self._source_and_destination(), silent)

    def _begin(self, keyword: str) -> bool:
        self._expect(keyword)
        return self._accept("SILENT")

    def _target(self) -> GraphName | Graphs:
        if self._accept("NAMED"):
            return Graphs.NAMED
        if self._accept("ALL"):
            return Graphs.ALL
        return self._graph_or_default()

    def _source_and_destination(self) -> tuple[GraphName, GraphName]:
        source = self._graph_or_default()
        self._expect("TO")
        return source, self._graph_or_default()

    def _graph_or_default(self) -> GraphName:
        if self._accept("DEFAULT"):
            return DEFAULT_GRAPH
        self._accept("GRAPH")
        return self._iri()

    def _iri(self) -> NamedNode:
        token = self._take()
        if token.kind not in (Kind.IRI, Kind.NAME):
            raise self._problem("expected an IRI", token.start)
        (quad,) = parse(f"{self._prologue} <urn:s> <urn:p> {token.text} .", format=RdfFormat.TURTLE)
        assert isinstance(quad.object, NamedNode)
        return quad.object
