"""What SPARQL servers do differently, where it matters to the gate. docs/endpoints.md tells the whole story."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evergraph.errors import UpdateFailed
from evergraph.gate.stored_form import stored_quads
from evergraph.terms import XSD, Literal, NamedNode, Quad

_STRING = XSD + "string"
_INTEGERS = frozenset(
    XSD + name
    for name in (
        *("integer", "int", "long", "short", "byte", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
    )
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The ways of one kind of server; the defaults are those of SPARQL 1.1."""

    name: str
    read_rows: int = 256
    """How many quads one request checks."""
    connections: int = 4
    """How many requests check at the same time. (On Virtuoso, checks that meet new terms deadlock each other.)"""
    long_value: int = 4_096
    """How many characters a term may have to be checked together with others."""
    write_quads: int = 10_000
    """How many quads one operation writes."""
    write_operations: int = 1_000
    """How many operations one request holds."""
    write_bytes: int = 8 * 2**20
    """How long one request is."""
    posts_forms: bool = False
    """Whether requests must come as forms. (Virtuoso never answers a query that is posted as it is.)"""
    has_default_graph: bool = True
    """Whether there is a graph without a name; where not, the default graph must be mapped to a named one."""
    graph_per_operation: bool = False
    """Whether DELETE DATA must name one graph only. (Virtuoso leaves literals behind if there are several.)"""
    system_graphs: frozenset[NamedNode] = frozenset()
    """Graphs that belong to the server, not to the dataset."""
    stored_form: Callable[[set[Quad]], set[Quad]] = lambda quads: quads
    """Writes quads as the server would give them back."""
    spellings: Callable[[Quad], tuple[str, ...]] = lambda quad: (str(quad.object),)
    """Lists the ways in which the server may hold the object of a quad."""


def _virtuoso_form(quads: set[Quad]) -> set[Quad]:
    return {_virtuoso_quad(quad) for quad in quads}


def _virtuoso_quad(quad: Quad) -> Quad:
    value = quad.object
    if not isinstance(value, Literal) or value.language is not None:
        return quad
    if value.value.lower() == "nan":
        raise UpdateFailed(f"Virtuoso damages its index when it stores a NaN: {quad}", hint="leave the value out")
    if value.datatype.value not in _INTEGERS:
        return quad
    try:
        canonical = str(int(value.value))
    except ValueError:
        return quad  # not a number; Virtuoso will refuse it and say so
    if canonical == value.value:
        return quad
    return Quad(quad.subject, quad.predicate, Literal(canonical, datatype=value.datatype), quad.graph_name)


def _virtuoso_spellings(quad: Quad) -> tuple[str, ...]:
    """Virtuoso takes ``"x"`` and ``"x"^^xsd:string`` for two terms, which in RDF are one."""
    value = quad.object
    if isinstance(value, Literal) and value.language is None and value.datatype.value == _STRING:
        return str(value), f"{value}^^<{_STRING}>"
    return (str(value),)


GENERIC = Dialect("SPARQL 1.1")
OXIGRAPH = Dialect("Oxigraph", stored_form=stored_quads)
FUSEKI = Dialect("Apache Jena Fuseki")
VIRTUOSO = Dialect(
    "Virtuoso",
    read_rows=128,
    connections=1,
    long_value=1_000,
    write_quads=1_000,
    write_operations=50,
    write_bytes=4 * 2**20,
    posts_forms=True,
    has_default_graph=False,
    graph_per_operation=True,
    system_graphs=frozenset(
        map(
            NamedNode,
            (
                "http://www.openlinksw.com/schemas/virtrdf#",
                "http://www.w3.org/ns/ldp#",
                "http://www.w3.org/2002/07/owl#",
                "http://localhost:8890/DAV/",
                "http://localhost:8890/sparql",
                "urn:activitystreams-owl:map",
                "urn:core:services:sparql",
            ),
        )
    ),
    stored_form=_virtuoso_form,
    spellings=_virtuoso_spellings,
)


def recognise(headers: Mapping[str, str]) -> Dialect:
    """Tell the kind of server by the headers of any of its answers."""
    server = headers.get("server", "").lower()
    if "virtuoso" in server:
        return VIRTUOSO
    if "oxigraph" in server:
        return OXIGRAPH
    if "fuseki-request-id" in headers or "fuseki" in server:
        return FUSEKI
    return GENERIC
