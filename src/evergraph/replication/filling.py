"""The first dataset of a replication: from dumps, or from an endpoint in pages. Only what can matter is kept."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from evergraph.delta import Request
from evergraph.errors import DataError
from evergraph.files import is_address
from evergraph.gate.endpoint import Endpoint
from evergraph.rdfio import rdf_ending, read_quads
from evergraph.sources.folders import visible_files
from evergraph.sparql.algebra import PatternTerm
from evergraph.terms import BlankNode, NamedNode, Quad, Term, Variable, skolemise_quad, term_text
from evergraph.views.replicas import Interest, Replicas
from evergraph.views.replicas.candidates import Candidate, candidates

_AT_ONCE = 50_000
PAGE = 10_000


def fill(replicas: Replicas, places: Iterable[str], *, page: int = PAGE) -> None:
    """Take in the first dataset."""
    for place in places:
        quads = pages(place, replicas.interests, page) if is_address(place) else dump(Path(place))
        while chunk := frozenset(islice(quads, _AT_ONCE)):
            replicas.apply(Request(added=chunk))


def dump(path: Path) -> Iterator[Quad]:
    """Read a dump: a file, or a folder of files. Labels of blank nodes are kept, because changes use them."""
    files = sorted(one for one in visible_files(path, recursive=True) if rdf_ending(one)) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{path}: there are no RDF files in this folder", hint="check the path and the file endings")
    for file in files:
        yield from read_quads(file, rename_blank_nodes=False)


def pages(address: str, interests: Iterable[Interest], page: int = PAGE) -> Iterator[Quad]:
    """Ask an endpoint for all triples that can matter, pattern by pattern and page by page.

    A page that is not full is not the last one, because servers have limits of their own; an empty one is. Blank nodes
    become IRIs (``urn:skolem:``), as their names mean nothing outside of one answer.
    """
    wanted = dict.fromkeys(one for interest in interests for one in candidates(interest))
    with closing(Endpoint(address, address)) as endpoint:
        for one in wanted:
            yield from _matches(endpoint, one, page)


def _matches(endpoint: Endpoint, one: Candidate, page: int) -> Iterator[Quad]:
    names = list(dict.fromkeys(term for term in one.terms if isinstance(term, Variable)))
    pattern = " ".join(str(term) if isinstance(term, Variable) else term_text(term) for term in one.terms)
    columns = " ".join(map(str, names))
    start = 0
    while True:
        rest = f"ORDER BY {columns} LIMIT {page} OFFSET {start}" if names else ""
        rows = endpoint.select(f"SELECT {columns or '(1 AS ?one)'} WHERE {{ {pattern} }} {rest}")
        for row in rows:
            values: dict[PatternTerm, Term | None] = dict(zip(names, row, strict=False))
            subject, predicate, object_ = (values[term] if isinstance(term, Variable) else term for term in one.terms)
            assert isinstance(subject, NamedNode | BlankNode)
            assert isinstance(predicate, NamedNode)
            assert object_ is not None
            yield skolemise_quad(Quad(subject, predicate, object_))
        if not rows or not names:
            return
        start += len(rows)
