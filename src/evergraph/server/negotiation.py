"""Which format an answer has: that which the client likes best (RFC 9110, section 12.5.1)."""

from collections.abc import Mapping

from pyoxigraph import QueryResultsFormat, RdfFormat

from evergraph.server.problems import PROTOCOL, Problem

RESULTS: Mapping[str, QueryResultsFormat] = {
    "application/sparql-results+json": QueryResultsFormat.JSON,
    "application/json": QueryResultsFormat.JSON,
    "application/sparql-results+xml": QueryResultsFormat.XML,
    "application/xml": QueryResultsFormat.XML,
    "text/csv": QueryResultsFormat.CSV,
    "text/tab-separated-values": QueryResultsFormat.TSV,
}
GRAPHS: Mapping[str, RdfFormat] = {
    "text/turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "text/plain": RdfFormat.N_TRIPLES,
    "application/rdf+xml": RdfFormat.RDF_XML,
    "application/ld+json": RdfFormat.JSON_LD,
    "application/json": RdfFormat.JSON_LD,
}


def choose(accept: str, offered: tuple[str, ...]) -> str | None:
    """Return the media type that an Accept header likes best among those on offer; the first ones on equal terms."""
    if not accept.strip():
        return offered[0]
    ranges = [_range(part) for part in accept.split(",") if part.strip()]
    best, most = None, 0.0
    for kind in offered:
        matching = [(specificity, quality) for name, specificity, quality in ranges if _matches(name, kind)]
        quality = max(matching)[1] if matching else 0.0
        if quality > most:
            best, most = kind, quality
    return best


def chosen(accept: str, offered: tuple[str, ...]) -> str:
    """Return the best media type on offer; raises a `Problem` if the client likes none."""
    found = choose(accept, offered)
    if found is None:
        raise Problem(PROTOCOL, f"none of {', '.join(offered)} is acceptable to the client ({accept})", 406)
    return found


def _range(part: str) -> tuple[str, int, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                quality = min(1.0, max(0.0, float(value)))
            except ValueError:
                quality = 0.0
    return name, 2 - name.count("*"), quality


def _matches(name: str, kind: str) -> bool:
    return name in (kind, "*/*", "*", kind.partition("/")[0] + "/*")
