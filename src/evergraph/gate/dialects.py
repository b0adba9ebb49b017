"""What SPARQL servers do differently, where it matters to the gate. docs/endpoints.md tells the whole story."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from evergraph.gate import virtuoso
from evergraph.gate.operations import Rows
from evergraph.gate.stored_form import stored_quads
from evergraph.terms import NamedNode, Quad, Term, term_text


@dataclass(frozen=True, slots=True)
class ByValue:
    """For servers that take literals with equal values for one object, and keep the spelling that came first."""

    types: frozenset[str]
    """The types of such literals."""
    unpredictable: frozenset[str]
    """Those among them whose spelling the server must be asked for."""
    value_of: Callable[[Term], Hashable]
    """Returns something that is equal for literals that are one object."""
    exact: Callable[[Term | None, Term | None], Term | None]
    """Mends a term of an answer, given its ``STR``: numbers may come rounded."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The ways of one kind of server; the defaults are those of SPARQL 1.1."""

    name: str
    read_rows: int = 256
    """How many quads one request checks."""
    read_subjects: int = 512
    """How many subjects one request asks for. (Virtuoso takes between 2,000 and 5,000.)"""
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
    exact_matches: bool = True
    """Whether matches of any pattern are quads that are there. (Virtuoso may match ``?x ?p ?x`` with two terms.)"""
    open_datasets: bool = False
    """Whether FROM without FROM NAMED, or the reverse, leaves all graphs in reach. (So it does on Virtuoso.)"""
    system_graphs: frozenset[NamedNode] = frozenset()
    """Graphs that belong to the server, not to the dataset."""
    stored_form: Callable[[set[Quad]], set[Quad]] = lambda quads: quads
    """Writes quads as the server would give them back."""
    spellings: Callable[[Quad], tuple[str, ...]] = lambda quad: (term_text(quad.object),)
    """Lists the ways in which the server may hold the object of a quad."""
    plain_rows: Callable[[bytes], Rows | None] | None = None
    """Reads solutions written as N-Triples, for servers that write them much faster; None if some may not be exact."""
    by_value: ByValue | None = None
    """How literals are told apart, if not by their spelling."""


GENERIC = Dialect("SPARQL 1.1")
OXIGRAPH = Dialect("Oxigraph", stored_form=stored_quads)
FUSEKI = Dialect("Apache Jena Fuseki")
VIRTUOSO = Dialect(
    "Virtuoso",
    read_rows=128,
    read_subjects=200,
    connections=1,
    long_value=1_000,
    write_quads=1_000,
    write_operations=50,
    write_bytes=4 * 2**20,
    posts_forms=True,
    has_default_graph=False,
    exact_matches=False,
    open_datasets=True,
    system_graphs=virtuoso.SYSTEM_GRAPHS,
    stored_form=lambda quads: {virtuoso.stored_quad(quad) for quad in quads},
    spellings=virtuoso.spellings,
    plain_rows=virtuoso.plain_rows,
    by_value=ByValue(virtuoso.VALUES, virtuoso.DATES, virtuoso.value_of, virtuoso.exact),
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
