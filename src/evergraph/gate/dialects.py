"""What SPARQL servers do differently, where it matters to the gate. docs/endpoints.md tells the whole story."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """The ways of one kind of server.

    ``read_rows`` and ``write_quads`` bound one request; ``write_bytes`` does so for long literals.
    """

    name: str
    read_rows: int = 1_000
    write_quads: int = 10_000
    write_bytes: int = 4 * 2**20
    update_form: str | None = None
    """The form field that takes updates, where a request must come as a form instead of as it is."""
    has_default_graph: bool = True
    """Whether there is a graph without a name; where not, the default graph must be mapped to a named one."""
    normalises_literals: bool = False
    """Whether the server gives literals back in another lexical form or datatype than they were sent."""


GENERIC = Dialect("SPARQL 1.1")
OXIGRAPH = Dialect("Oxigraph", normalises_literals=True)
FUSEKI = Dialect("Apache Jena Fuseki")
VIRTUOSO = Dialect(
    "Virtuoso",
    read_rows=500,
    write_quads=500,
    write_bytes=2**20,
    update_form="query",
    has_default_graph=False,
    normalises_literals=True,
)


def recognise(headers: dict[str, str]) -> Dialect:
    """Tell the kind of server by the headers of any of its answers."""
    server = headers.get("server", "").lower()
    if "virtuoso" in server:
        return VIRTUOSO
    if "oxigraph" in server:
        return OXIGRAPH
    if "fuseki-request-id" in headers or "fuseki" in server:
        return FUSEKI
    return GENERIC
