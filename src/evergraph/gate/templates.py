"""Templates of quads: read from SPARQL text, filled in with solutions."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any

from pyoxigraph import RdfFormat, parse, serialize

from evergraph.gate.operations import Modify, QuadTemplate, Rest, Row, Slot, Template, TripleTemplate
from evergraph.gate.own import OWN
from evergraph.gate.tokens import Kind, Token
from evergraph.terms import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    Term,
    Triple,
    Variable,
)

VARIABLE = OWN + "variable:"
"""What IRIs begin with that stand for variables."""
_ESCAPED = {'"': r"\"", "\r": r"\r", "\n": r"\n"}
_LEFT_OUT = NamedNode(OWN + "left-out")


def read_quads(
    prologue: str, tokens: Sequence[Token], *, graph: NamedNode | None = None, fresh_blank_nodes: bool = False
) -> list[Quad]:
    """Parse the tokens between the braces of a template or of DATA, variables standing as special IRIs.

    The quads of SPARQL are TriG but for some liberties: variables, graph blocks among triples without a full stop
    between them, literals as subjects, collections that stand alone. They are removed here, and the TriG parser, which
    keeps lexical forms, does the rest. Triples outside GRAPH go to ``graph``.
    """
    opening = f"GRAPH {graph} {{" if graph else "{"
    text = [prologue, "\n", opening]
    lone_collections = _lone_collections(tokens)
    depth, in_graph, position = 0, False, 0
    while position < len(tokens):
        token = tokens[position]
        literal = _literal_length(tokens, position) if _starts_subject(tokens, position) else 0
        position += 1
        if depth == 0 and token.is_word("GRAPH"):
            text.append("} GRAPH ")
            in_graph = True
        elif literal:
            text.append(f"{_LEFT_OUT} ")
            position += literal - 1
        elif position - 1 in lone_collections:
            text.append(f") {_LEFT_OUT} {_LEFT_OUT} ")
        elif in_graph and depth == 1 and token.is_mark("}"):
            text.append("} " + opening)
            depth, in_graph = 0, False
            position += position < len(tokens) and tokens[position].is_mark(".")
        else:
            text.append(_trig(token))
            depth += token.is_mark("{") - token.is_mark("}")
    text.append("}")
    quads = parse("".join(text), format=RdfFormat.TRIG, rename_blank_nodes=fresh_blank_nodes)
    return [quad for quad in quads if _LEFT_OUT not in (quad.subject, quad.predicate)]


def _starts_subject(tokens: Sequence[Token], position: int) -> bool:
    return position == 0 or tokens[position - 1].is_mark("{", "}", ".")


def _literal_length(tokens: Sequence[Token], position: int) -> int:
    """Count the tokens of the literal at a position; 0 if there is none."""
    token, *rest = tokens[position : position + 2]
    follower = rest[0] if rest else None
    if token.is_mark("+", "-"):
        return 2
    if token.kind is Kind.NUMBER or token.is_word("TRUE", "FALSE"):
        return 1
    if token.kind is not Kind.STRING:
        return 0
    if follower and follower.kind is Kind.TAG:
        return 2
    return 4 if follower and follower.is_mark("^") else 1


def _lone_collections(tokens: Sequence[Token]) -> set[int]:
    """Find the ends of the collections that are a statement of their own."""
    starts: list[int] = []
    ends: set[int] = set()
    if not any(token.text == "(" for token in tokens):
        return ends
    for position, token in enumerate(tokens):
        if token.is_mark("("):
            starts.append(position)
        elif token.is_mark(")"):
            after = tokens[position + 1] if position + 1 < len(tokens) else None
            alone = after is None or after.is_mark(".", "}") or after.is_word("GRAPH")
            if _starts_subject(tokens, starts.pop()) and alone:
                ends.add(position)
    return ends


def _trig(token: Token) -> str:
    if token.kind is Kind.VARIABLE:
        return f"<{VARIABLE}{token.text[1:]}> "
    if token.kind is Kind.STRING and token.text.startswith(('"""', "'''")):
        # Oxigraph (0.5) does not know long strings inside of triple terms.
        return '"' + re.sub(r'\\.|["\r\n]', lambda found: _ESCAPED.get(found[0], found[0]), token.text[3:-3]) + '"'
    # What follows a string or a mark may belong to it: "x"@en, "1"^^xsd:int, -1.
    return token.text if token.kind in (Kind.STRING, Kind.MARK) else token.text + " "


def read_template(prologue: str, tokens: Sequence[Token], *, graph: NamedNode | None = None) -> Template:
    """Parse the tokens between the braces of a template."""
    return as_template(read_quads(prologue, tokens, graph=graph))


def as_template(quads: Iterable[Quad]) -> Template:
    """Turn quads in which IRIs stand for variables into a template."""
    return tuple(
        QuadTemplate(_slot(quad.subject), _slot(quad.predicate), _slot(quad.object), _slot(quad.graph_name))
        for quad in quads
    )


def _slot(term: Term | DefaultGraph) -> Slot:
    if isinstance(term, NamedNode) and term.value.startswith(VARIABLE):
        return Variable(term.value.removeprefix(VARIABLE))
    if isinstance(term, Triple):
        return TripleTemplate(_slot(term.subject), _slot(term.predicate), _slot(term.object))
    return term


def is_matched(template: Template, pattern: Template) -> bool:
    """Tell whether every instance of a template is one of the pattern, term by term, in a graph with a name.

    Constant literals are left out, because some stores match them by value, and so is the default graph, because some
    take the union of all graphs for it.
    """
    return set(template) <= set(pattern) and not any(
        isinstance(quad.object, Literal | Triple | TripleTemplate) or isinstance(quad.graph, DefaultGraph)
        for quad in template
    )


def compares_no_objects(pattern: Template) -> bool:
    """Tell whether what a pattern matches does not depend on which literals a server takes for equal.

    No quad names a variable twice, and a variable that stands as an object stands nowhere else.
    """
    variables = [[slot.value for slot in quad.slots() if isinstance(slot, Variable)] for quad in pattern]
    counts = Counter(chain.from_iterable(variables))
    return all(len(names) == len(set(names)) for names in variables) and all(
        isinstance(quad.object, NamedNode) or (isinstance(quad.object, Variable) and counts[quad.object.value] == 1)
        for quad in pattern
    )


def made_alone(operation: Modify) -> Iterator[QuadTemplate]:
    """List the templates of an operation that alone make the quads of their graph and predicate, with any subject.

    Only of operations with a WHERE clause that means the same wherever it stands.
    """
    quads = operation.delete + operation.insert
    if operation.original is None or operation.original.rest is Rest.OTHER:
        return
    for quad in quads:
        rivals = [
            other
            for other in quads
            if other is not quad
            and (isinstance(other.predicate, Variable) or other.predicate == quad.predicate)
            and (isinstance(other.graph, Variable) or other.graph == quad.graph)
        ]
        fixed = isinstance(quad.predicate, NamedNode) and isinstance(quad.graph, NamedNode)
        if fixed and isinstance(quad.subject, Variable) and not rivals:
            yield quad


def fill(template: Template, variables: Sequence[str], rows: Iterable[Row]) -> set[Quad]:
    """Instantiate a template with every solution.

    Triples with an unbound variable, a subject that is no resource, or a predicate that is no IRI are left out. Blank
    nodes are fresh for each solution and shared within it.
    https://www.w3.org/TR/sparql11-update/#deleteInsert, https://www.w3.org/TR/sparql11-query/#construct
    """
    rows = rows if isinstance(rows, list) else list(rows)
    return fill_columns(
        template, {name: [row[place] for row in rows] for place, name in enumerate(variables)}, len(rows)
    )


Columns = dict[str, list[Any]]
"""Solutions by variable: the values of each, None where unbound."""


def fill_columns(template: Template, columns: Columns, count: int) -> set[Quad]:
    """Instantiate a template with so many solutions."""
    plain: list[QuadTemplate] = []
    other: list[QuadTemplate] = []
    for quad in template:
        (plain if all(type(slot) in _PLAIN for slot in quad.slots()) else other).append(quad)
    quads: set[Quad] = set()
    if other:
        index = {name: place for place, name in enumerate(columns)}
        rows = zip(*columns.values(), strict=True) if columns else repeat((), count)
        quads.update(_instances([_quad_maker(quad, index) for quad in other], rows))
    texts: list[str] = []
    for quad in plain:
        _fill_plainly(quad, columns, count, quads, texts)
    if texts:
        quads.update(parse("".join(texts), format=RdfFormat.N_QUADS, lenient=True))
    return quads


_PLAIN = frozenset({Variable, NamedNode, Literal, DefaultGraph})


def _fill_plainly(template: QuadTemplate, columns: Columns, count: int, quads: set[Quad], texts: list[str]) -> None:
    """Instantiate a template without blank nodes. Quads with literals come as texts to be parsed.

    pyoxigraph (0.5) takes eight times as long to make a quad with a literal as one without, and twice as long as for
    parsing it.
    """
    terms = [columns[slot.value] if isinstance(slot, Variable) else repeat(slot, count) for slot in template.slots()]
    texts_of = [
        columns[slot.value] if isinstance(slot, Variable) else repeat(_text(slot), count)
        for slot in (template.predicate, template.graph)
    ]
    for subject, predicate, value, graph, predicate_text, graph_text in zip(*terms, *texts_of, strict=True):
        if value is None or type(predicate) is not NamedNode or type(subject) not in _NODES:
            continue
        if type(graph) not in _GRAPHS:
            continue
        if type(value) is Literal:
            texts.append(f"{subject} {predicate_text} {value} {graph_text} .\n")
        else:
            quads.add(Quad(subject, predicate, value, graph))


def _text(slot: Slot) -> str:
    return "" if isinstance(slot, DefaultGraph) else str(slot)


def bindings(pattern: QuadTemplate, variables: Iterable[str], matches: Sequence[Quad]) -> Columns:
    """Turn quads that match a pattern of different variables into solutions."""
    names = {
        slot.value: name
        for slot, name in zip(pattern.slots(), ("subject", "predicate", "object", "graph_name"), strict=True)
        if isinstance(slot, Variable)
    }
    return {
        name: list(map(attrgetter(names[name]), matches)) if name in names else [None] * len(matches)
        for name in variables
    }


def rewritten(template: Template, pattern: QuadTemplate, matches: Sequence[Quad]) -> set[Quad] | None:
    """Instantiate a template with quads that match a pattern of different variables, by rewriting their lines.

    pyoxigraph (0.5) takes longer to hand out the literal of a quad than to write and to parse the whole quad. None if
    the quads are few, or the template does more than put constants and their terms into places that these fit.
    """
    if len(matches) < _FEW or isinstance(pattern.graph, Variable):
        return None
    lines = [_line_of(quad, pattern) for quad in template]
    if None in lines:
        return None
    document = serialize(matches, format=RdfFormat.N_QUADS)
    assert document is not None
    end = len(f" {_text(pattern.graph)} .".replace("  ", " ").encode())
    rows = [line[:-end].split(b" ", 2) for line in document.split(b"\n")[:-1]]
    texts = []
    for line, places in filter(None, lines):
        terms = zip(*([row[place] for row in rows] for place in places), strict=True) if places else repeat((), 1)
        texts += [line % some for some in terms]
    return set(parse(b"".join(texts), format=RdfFormat.N_QUADS, lenient=True))


_FEW = 16
_FITTING = ({0}, {1}, {0, 1, 2}, set[int]())
"""Which terms of a triple fit into the places of a quad, whatever they are."""


def _line_of(template: QuadTemplate, pattern: QuadTemplate) -> tuple[bytes, list[int]] | None:
    """Write a template as a line with room for terms of a match, and say which; None if one may not fit."""
    known = {slot: place for place, slot in enumerate(pattern.slots()[:3]) if isinstance(slot, Variable)}
    words, places = [], []
    for slot, fitting in zip(template.slots(), _FITTING, strict=True):
        if isinstance(slot, Variable) and known.get(slot) in fitting:
            words.append("%b")
            places.append(known[slot])
        elif isinstance(slot, NamedNode | DefaultGraph):
            words.append(_text(slot).replace("%", "%%"))
        else:
            return None
    return f"{' '.join(words)} .\n".encode(), places


def has_literals(template: Template) -> bool:
    """Tell whether a template has constants that a store may write in another way."""
    return any(isinstance(quad.object, Literal | Triple | TripleTemplate) for quad in template)


_Fresh = dict[BlankNode, BlankNode]
_NODES = frozenset({NamedNode, BlankNode})
_GRAPHS = _NODES | {DefaultGraph}


def _instances(makers: list[Callable[[Row, _Fresh], Quad | None]], rows: Iterable[Row]) -> Iterator[Quad]:
    for row in rows:
        fresh: _Fresh = {}
        for make in makers:
            quad = make(row, fresh)
            if quad is not None:
                yield quad


def _quad_maker(template: QuadTemplate, index: dict[str, int]) -> Callable[[Row, _Fresh], Quad | None]:
    subject_of, predicate_of = _slot_maker(template.subject, index), _slot_maker(template.predicate, index)
    object_of, graph_of = _slot_maker(template.object, index), _slot_maker(template.graph, index)

    def make(row: Row, fresh: _Fresh) -> Quad | None:
        subject, predicate, value = subject_of(row, fresh), predicate_of(row, fresh), object_of(row, fresh)
        graph = graph_of(row, fresh)
        if value is not None and type(predicate) is NamedNode and type(subject) in _NODES and type(graph) in _GRAPHS:
            return Quad(subject, predicate, value, graph)  # type: ignore[arg-type]
        return None

    return make


def _slot_maker(slot: Slot, index: dict[str, int]) -> Callable[[Row, _Fresh], Term | DefaultGraph | None]:
    match slot:
        case Variable():
            position = index[slot.value]
            return lambda row, fresh: row[position]
        case BlankNode():
            return lambda row, fresh: fresh.setdefault(slot, BlankNode())
        case TripleTemplate():
            return _triple_maker(slot, index)
        case _:
            return lambda row, fresh: slot


def _triple_maker(slot: TripleTemplate, index: dict[str, int]) -> Callable[[Row, _Fresh], Triple | None]:
    makers = [_slot_maker(part, index) for part in (slot.subject, slot.predicate, slot.object)]

    def make(row: Row, fresh: _Fresh) -> Triple | None:
        subject, predicate, value = (maker(row, fresh) for maker in makers)
        if value is None or isinstance(value, DefaultGraph):
            return None
        if isinstance(predicate, NamedNode) and isinstance(subject, NamedNode | BlankNode):
            return Triple(subject, predicate, value)
        return None

    return make
