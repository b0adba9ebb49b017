"""A SPARQL Update request, from text to operations.

The syntax of every operation is judged first, so that what comes after may assume that it is right. A request is taken
apart because Oxigraph (0.5) knows a prologue only at the very beginning, while SPARQL allows one before each
operation.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate

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
    QuadTemplate,
    Template,
    Where,
)
from evergraph.gate.own import OWN
from evergraph.gate.syntax import NEVER_RUN, Judge, is_sparql
from evergraph.gate.templates import (
    VARIABLE,
    as_template,
    compares_no_objects,
    is_matched,
    read_quads,
    read_template,
)
from evergraph.gate.tokens import Kind, Token, tokenize
from evergraph.terms import DEFAULT_GRAPH, GraphName, NamedNode, Quad, Variable


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
    if shortcut := _plain_data(text, base) or (base is None and _plain_modify(text)):
        return (shortcut,)
    return tuple(_Parser(text, base, where).steps())


_DEEPEST = 200
_IRI = r"<[^<>\"{}|^`\\\x00-\x20]*>"
_S = r"[ \t\r\n]"
_PLAIN_DATA = re.compile(
    rf"((?:{_S}*PREFIX{_S}+[A-Za-z]?\w*:{_S}*{_IRI})*){_S}*(INSERT|DELETE){_S}+DATA{_S}*"
    rf"(?:(\{{[^{{}}]*\}})|\{{{_S}*(GRAPH{_S}*{_IRI}{_S}*\{{[^{{}}]*\}}){_S}*\}}){_S}*+;?{_S}*+",
    re.IGNORECASE,
)


def _plain_data(text: str, base: str | None) -> Step | None:
    """Read the commonest request of all without tokens: one DATA operation on one graph.

    Between one pair of braces that holds no other brace, the triples of SPARQL and of TriG are written alike. A text
    that TriG refuses goes the long way, which finds out whether SPARQL refuses it too.
    """
    match = _PLAIN_DATA.fullmatch(text)
    if not match:
        return None
    prologue, keyword, default, named = match.groups()
    insert = keyword.upper() == "INSERT"
    if not insert and ("_:" in text or "[" in text or "(" in text):
        return None
    if text.count("[") + text.count("(") > _DEEPEST and _may_be_deep(text):
        return None
    try:
        quads = frozenset(
            parse(
                f"{prologue}\n{default or named}",
                format=RdfFormat.TRIG,
                base_iri=base,
                rename_blank_nodes=insert,
            )
        )
    except (SyntaxError, ValueError):
        return None
    is_nameless = "_:" in text or "[" in text or "(" in text  # a blank node would be another one each time
    original = None if base or is_nameless else Original(text, None, is_data=True)
    operation = InsertData(quads, original) if insert else DeleteData(quads, original)
    return Step(operation, 1, _line(text, match.start(2)))


_NAME = r"(?:[A-Za-z][\w\-]*+)?:\w[\w\-]*+"
_STRING = rf"\"[^\"\\\r\n]*+\"(?!\")(?:@[A-Za-z]++(?:-[A-Za-z0-9]++)*+|\^\^(?:{_IRI}|{_NAME}))?+"
_VARIABLE = r"[?$]\w++"
_RESOURCE = rf"(?:{_IRI}|{_VARIABLE}|{_NAME})"
_TRIPLES = rf"(?:{_S}|[.;,]|{_RESOURCE}|{_STRING}|a(?![\w\-:]))*+"
_GAP = rf"(?:{_S}++|(?=[<?$]))"
_VARIABLES = re.compile(rf"{_IRI}|\"[^\"]*+\"|({_VARIABLE})", re.ASCII)
_BETWEEN = NamedNode(OWN + "between")
_MARK = f"{_BETWEEN} {_BETWEEN}"


def _quads(name: str) -> str:
    """Write the expression for triples in braces, in a graph or not."""
    inside = rf"GRAPH{_GAP}(?P<{name}_graph>{_RESOURCE}){_S}*+\{{(?P<{name}_inside>{_TRIPLES})\}}{_S}*+"
    return rf"\{{(?:(?P<{name}>{_TRIPLES})|{_S}*+{inside})\}}{_S}*+"


_PLAIN_MODIFY = re.compile(
    rf"(?P<prologue>(?:{_S}*+PREFIX{_S}++[A-Za-z]?\w*+:{_S}*+{_IRI})*+){_S}*+(?P<start>)"
    rf"(?:DELETE{_S}++(?P<short>WHERE{_S}*+)|(?:WITH{_GAP}(?P<with>{_IRI}|{_NAME}){_S}*+)?+(?=DELETE|INSERT)"
    rf"(?:DELETE{_S}*+{_quads('delete')})?+(?:INSERT{_S}*+{_quads('insert')})?+WHERE{_S}*+)"
    rf"(?P<pattern>{_quads('where')});?{_S}*+",
    re.IGNORECASE | re.ASCII,
)


def _plain_modify(text: str) -> Step | None:
    """Read the commonest of the other requests without tokens: one DELETE, INSERT and WHERE, of one graph each.

    They hold nothing but IRIs, names, variables and short strings. What stands between the braces then are triples,
    which SPARQL and TriG write alike once variables are IRIs. All of them are parsed at once. A text that TriG refuses
    goes the long way, which finds out whether SPARQL refuses it too.
    """
    match = _PLAIN_MODIFY.fullmatch(text)
    if not match:
        return None
    found, graph = match.groupdict(), match["with"]
    blocks = [_block(found, name, graph) for name in ("delete", "insert", "where")]
    same = bool(match["short"]) or blocks[0] == blocks[2]
    between = f"{{ {_MARK} {graph or '<urn:g>'} }}"
    trig = _VARIABLES.sub(_variable, between.join(["", *blocks[1:]] if same else blocks))
    try:
        quads = list(parse(f"{match['prologue']}\n{trig}", format=RdfFormat.TRIG))
    except (SyntaxError, ValueError):
        return None
    first, second = (place for place, quad in enumerate(quads) if quad.subject == _BETWEEN)
    insert, pattern = as_template(quads[first + 1 : second]), as_template(quads[second + 1 :])
    delete = pattern if same else as_template(quads[:first])
    with_graph = quads[first].object if graph else None
    assert with_graph is None or isinstance(with_graph, NamedNode)
    only = pattern[0] if len(pattern) == 1 and _has_different_variables(pattern[0]) else None
    where = Where(f"{match['prologue']}\n", match["pattern"], with_graph, only=only)
    matched = bool(delete) and is_matched(delete, pattern)
    names = {quad.graph for quad in (*delete, *insert, *pattern)}
    graphs = frozenset(name for name in names if isinstance(name, NamedNode))
    original = None if graph else Original(text, graphs if len(graphs) == len(names) else None)
    operation = Modify(delete, insert, where, matched, matched and compares_no_objects(pattern), original)
    return Step(operation, 1, _line(text, match.start("start")))


def _variable(seen: re.Match[str]) -> str:
    return f"<{VARIABLE}{seen[1][1:]}>" if seen[1] else seen[0]


def _block(found: dict[str, str | None], name: str, graph: str | None) -> str:
    """Write one of the parts of a request as TriG."""
    if (inside := found[f"{name}_inside"]) is not None:
        return f"GRAPH {found[f'{name}_graph']} {{{inside}}}"
    return f"GRAPH {graph} {{{found[name] or ''}}}" if graph else f"{{{found[name] or ''}}}"


def _has_different_variables(quad: QuadTemplate) -> bool:
    names = [slot.value for slot in quad.slots() if isinstance(slot, Variable)]
    return len(names) == len(set(names))


def _may_be_deep(text: str) -> bool:
    """Tell whether brackets could nest too deeply, those in strings counted too."""
    steps = (1 if bracket in "[(" else -1 for bracket in re.findall(r"[\[\]()]", text))
    return max(accumulate(steps)) > _DEEPEST


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
    """Find the bracket that nests too deeply: Oxigraph reads by recursion, and the stack of the process is finite."""
    depth = 0
    for token in tokens:
        if token.kind is Kind.MARK:
            depth += (token.text in "{([") - (token.text in "})]")
            if depth > _DEEPEST:
                return token
    return None


class _Parser:
    def __init__(self, text: str, base: str | None, where: str) -> None:
        self._text = text
        self._tokens = list(tokenize(text))
        self._judge = Judge(text, self._tokens, where)
        self._closing, self._separators = _brackets(self._tokens)
        if (deep := _too_deep(self._tokens)) is not None:
            raise self._problem(f"this is nested more than {_DEEPEST} levels deep", deep.start)
        self._next = 0
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
        return Modify(template, (), where, matched, matched and compares_no_objects(template))

    def _modify(self) -> Modify:
        with_graph = self._iri() if self._accept("WITH") else None
        delete = self._template(with_graph) if self._accept("DELETE") else ()
        insert = self._template(with_graph) if self._accept("INSERT") else ()
        using, using_named = self._using()
        self._expect("WHERE")
        first, end = self._group()
        where = Where(self._prologue, self._braced(first, end), with_graph, using, using_named)
        if not delete or using is not None:
            return Modify(delete, insert, where)
        pattern = self._plain_pattern(first, end, with_graph)
        matched = is_matched(delete, pattern)
        return Modify(delete, insert, where, matched, matched and compares_no_objects(pattern))

    def _plain_pattern(self, first: int, end: int, graph: NamedNode | None) -> Template:
        """Read a WHERE clause that is nothing but quads; empty for any other."""
        try:
            return read_template(self._prologue, self._tokens[first:end], graph=graph)
        except SyntaxError:
            return ()

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
