"""N-Triples and N-Quads lines to rows, fast and exactly as pyoxigraph reads them.

A pattern of RE2 recognises lines that are canonical already: their terms are cut out by Arrow as they are. Every other
line goes through pyoxigraph: escapes, odd white space, upper-case language tags, comments, RDF 1.2, and damage. The
pattern is narrower than the grammar, so what it lets through is well-formed and in canonical form.
"""

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import RdfFormat, parse, serialize

from evergraph.engines.spark.rows import QUAD, row_of
from evergraph.rdfio import syntax_problem
from evergraph.terms import BlankNode, NamedNode, Quad, Term, Triple

_CHARACTER = (
    r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/\x{A0}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFEF}-]|%[0-9A-Fa-f][0-9A-Fa-f])"
)
_AUTHORITY = r"//[A-Za-z0-9._~-]*(?::[0-9]*)?(?:/" + _CHARACTER + "*)?"
_OPAQUE = r"(?:[A-Za-z0-9._~]" + _CHARACTER + "*)?"
_IRI = (
    rf"<[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|{_OPAQUE})"
    rf"(?:\?(?:{_CHARACTER}|\?)*)?(?:#(?:{_CHARACTER}|\?)*)?>"
)
_BLANK = r"_:[A-Za-z0-9][A-Za-z0-9_]*"
# Not those that end in "ing": literals are written without xsd:string, and must not have rdf:langString.
_DATATYPE = (
    r"<http://[A-Za-z0-9._~/-]+#?[A-Za-z0-9._~/-]*"
    r"(?:[A-Za-fh-z0-9]|[A-Za-mo-z0-9]g|[A-Za-hj-z0-9]ng)>"
)
_LITERAL = r'"[^"\\\x00-\x1f\x7f\x{FFFE}\x{FFFF}]*"' rf"(?:@[a-z][a-z][a-z]?(?:-[a-z][a-z])?|\^\^{_DATATYPE})?"
_TRIPLE = rf"(?:{_IRI}|{_BLANK}) {_IRI} (?:{_IRI}|{_BLANK}|{_LITERAL})"
_CANONICAL = {
    RdfFormat.N_TRIPLES: rf"^{_TRIPLE} \.$",
    RdfFormat.N_QUADS: rf"^{_TRIPLE}(?: (?:{_IRI}|{_BLANK}))? \.$",
}
_GRAPH = r'^(?:<[^"<>]*>|_:[^"<>]+)$'
"""A last word that is the name of a graph; that of a literal has a quotation mark, that of a triple term is ``)>>``."""

SCHEMA = pa.schema([(name, pa.string()) for name in QUAD])


@dataclass(frozen=True, slots=True)
class Damaged:
    """A line that is not RDF: its number in the block, from 0, its bytes, and what is wrong."""

    place: int
    text: bytes
    reason: str


@dataclass(slots=True)
class Parsed:
    """What the lines of a block say; ``places`` are the numbers of the lines that rows are from, batch by batch."""

    rows: list[pa.RecordBatch] = field(default_factory=list)
    places: list[pa.Array] = field(default_factory=list)
    damaged: list[Damaged] = field(default_factory=list)
    lines: int = 0


def parse_lines(block: bytes, format: RdfFormat, scope: str = "") -> Parsed:
    """Parse a block of whole lines. ``scope`` goes before the label of every blank node."""
    parsed = Parsed()
    lines = _split(block)
    parsed.lines = len(lines)
    try:
        texts = lines.cast(pa.large_string())
    except pa.ArrowInvalid:  # somewhere in it is not UTF-8
        _parse_slowly(lines, pa.array(range(len(lines)), pa.uint64()), format, scope, parsed)
        return parsed
    canonical = pc.match_substring_regex(texts, _CANONICAL[format])
    fast = texts.filter(canonical)
    if len(fast):
        parsed.rows.append(_cut(fast, format, scope))
        parsed.places.append(pc.indices_nonzero(canonical))
    if len(fast) < len(texts):
        _parse_slowly(lines, pc.indices_nonzero(pc.invert(canonical)), format, scope, parsed)
    return parsed


def scoped(quad: Quad, scope: str) -> Quad:
    """Put the scope before the labels of the blank nodes of a quad."""
    if not scope:
        return quad
    graph = quad.graph_name
    return Quad(
        _scoped(quad.subject, scope),  # type: ignore[arg-type]
        quad.predicate,
        _scoped(quad.object, scope),
        BlankNode(scope + graph.value) if isinstance(graph, BlankNode) else graph,
    )


def batch_of(quads: list[Quad], scope: str = "") -> pa.RecordBatch:
    """Write quads as a batch of rows."""
    columns = zip(*(row_of(scoped(quad, scope)) for quad in quads), strict=True)
    return pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=SCHEMA)


def _scoped(term: Term, scope: str) -> Term:
    match term:
        case BlankNode():
            return BlankNode(scope + term.value)
        case Triple():
            subject = _scoped(term.subject, scope)
            assert isinstance(subject, BlankNode | NamedNode)
            return Triple(subject, term.predicate, _scoped(term.object, scope))
        case _:
            return term


def _cut(lines: pa.Array, format: RdfFormat, scope: str) -> pa.RecordBatch:
    """Cut canonical lines at their first two spaces; the rest is the object and, in N-Quads, the graph."""
    words = pc.split_pattern(pc.utf8_rtrim(lines, " ."), " ", max_splits=2)
    subject, predicate, object_ = (pc.list_element(words, place) for place in range(3))
    graph = pa.repeat("", len(lines))
    if format == RdfFormat.N_QUADS:
        object_, graph = _cut_graph(object_)
    if scope:
        subject, object_, graph = (_with_scope(terms, scope) for terms in (subject, object_, graph))
    columns = [column.cast(pa.string()) for column in (subject, predicate, object_, graph)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _cut_graph(rest: pa.Array) -> tuple[pa.Array, pa.Array]:
    words = pc.split_pattern(rest, " ", max_splits=1, reverse=True)
    last = pc.list_flatten(words).take(pc.subtract(words.offsets.slice(1), 1))
    named = pc.and_(pc.equal(pc.list_value_length(words), 2), pc.match_substring_regex(last, _GRAPH))
    first = pc.list_element(words, 0)
    return pc.if_else(named, first, rest), pc.if_else(named, last, "")


def _with_scope(terms: pa.Array, scope: str) -> pa.Array:
    blank = pc.starts_with(terms, "_:")
    if not pc.any(blank).as_py():
        return terms
    return pc.if_else(blank, pc.replace_substring(terms, "_:", f"_:{scope}", max_replacements=1), terms)


def _parse_slowly(lines: pa.Array, places: pa.Array, format: RdfFormat, scope: str, parsed: Parsed) -> None:
    """Let pyoxigraph read some lines and write them canonically: all at once if each is a statement."""
    texts = lines.take(places).to_pylist()
    try:
        written = _canonical(b"\n".join(texts), format)
    except SyntaxError:
        written = b""
    if written.count(b"\n") < len(texts):  # comments, empty lines, or damage
        parts, found = [], []
        for place, text in zip(places.to_pylist(), texts, strict=True):
            try:
                part = _canonical(text, format)
            except SyntaxError as error:
                parsed.damaged.append(Damaged(place, text, syntax_problem(error, "").problem))
                continue
            if part:
                parts.append(part)
                found.append(place)
        written, places = b"".join(parts), pa.array(found, pa.uint64())
    if not written:
        return
    parsed.places.append(places)
    if scope and b"<<(" in written:  # blank nodes may be anywhere in a triple term
        parsed.rows.append(batch_of(list(parse(written, format, rename_blank_nodes=False)), scope))
    else:
        parsed.rows.append(_cut(_split(written).cast(pa.large_string()), format, scope))


def _canonical(text: bytes, format: RdfFormat) -> bytes:
    return serialize(parse(text, format, rename_blank_nodes=False), format=format) or b""


def _split(block: bytes) -> pa.Array:
    return pa.array(block.removesuffix(b"\n").split(b"\n"), pa.large_binary())
