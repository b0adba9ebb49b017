"""A real server with a database in front of it, and a way to read the server that owes nothing to the gate."""

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import httpx
import pytest
from pyoxigraph import QueryResultsFormat, QuerySolutions, parse_query_results
from tests.support import servers
from tests.support.datasets import difference
from tests.support.servers import Server

import evergraph as eg
from evergraph.delta import Change
from evergraph.terms import DEFAULT_GRAPH, SKOLEM_PREFIX, XSD, BlankNode, NamedNode, Quad, Term, Triple

PROLOGUE = """
PREFIX : <http://example.org/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
VIRTUOSO_DEFAULT = "http://example.org/default"
_VIRTUOSO_OWN = "<http://www.openlinksw.com/schemas/virtrdf#>"


def connect(server: Server, **options: Any) -> eg.Database:
    """Connect, with a stand-in for the default graph where the server has none."""
    stand_in = VIRTUOSO_DEFAULT if server.name == "virtuoso" else None
    return eg.connect(server.query_url, server.update_url, **({"default_graph": stand_in} | options))


@contextmanager
def empty_database(server: Server, **options: Any) -> Iterator[eg.Database]:
    """Connect to a server after emptying it."""
    servers.reset(server)
    with connect(server, **options) as db:
        yield db


def run(server: Server, update: str) -> None:
    """Send an update behind the back of the database."""
    _client().post(server.update_url, data={"update": update}).raise_for_status()


_NODE_ID, _LABEL = b'"type": "bnode", "value": "nodeID://', b'"type": "bnode", "value": "'


@functools.cache
def _client() -> httpx.Client:
    """One client for all, because making one takes longer than many requests. It ignores proxies."""
    return httpx.Client(trust_env=False, timeout=60, headers={"Connection": "close"})


def stored(server: Server) -> frozenset[Quad]:
    """Read everything that the server holds."""
    query = "SELECT ?g ?s ?p ?o { { GRAPH ?g { ?s ?p ?o } } UNION { ?s ?p ?o } }"
    if server.name == "virtuoso":  # its default graph is the union of all
        query = f"SELECT ?g ?s ?p ?o {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(?g != {_VIRTUOSO_OWN}) }}"
    answer = _client().post(
        server.query_url, data={"query": query}, headers={"Accept": "application/sparql-results+json"}
    )
    answer.raise_for_status()
    content = answer.content.replace(b'"type": "typed-literal"', b'"type": "literal"').replace(_NODE_ID, _LABEL)
    found = cast(QuerySolutions, parse_query_results(content, QueryResultsFormat.JSON))
    return frozenset(_quad(*row) for row in found)


def _quad(graph: Term | None, subject: Term, predicate: Term, value: Term) -> Quad:
    name = graph if isinstance(graph, NamedNode) and graph.value != VIRTUOSO_DEFAULT else DEFAULT_GRAPH
    return Quad(cast(NamedNode, subject), cast(NamedNode, predicate), value, name)


def unskolemised(quads: Iterable[Quad]) -> set[Quad]:
    """Turn the IRIs that stand for blank nodes into blank nodes, so that their names do not count."""
    return {
        Quad(cast(NamedNode, _blank(quad.subject)), quad.predicate, _blank(quad.object), quad.graph_name)
        for quad in quads
    }


def _blank(term: Term) -> Term:
    if isinstance(term, Triple):
        return Triple(cast(NamedNode, _blank(term.subject)), term.predicate, _blank(term.object))
    if isinstance(term, NamedNode) and term.value.startswith(SKOLEM_PREFIX):
        return BlankNode(term.value.removeprefix(SKOLEM_PREFIX))
    return term


def update(db: eg.Database, server: Server, text: str) -> Change:
    """Run an update and see that the report is the difference that it made."""
    before, sequence = stored(server), db.sequence
    change = db.update(PROLOGUE + text)
    assert change.delta == difference(before, stored(server))
    assert change.sequence == sequence + 1
    return change


def refuse(db: eg.Database, server: Server, error: type[eg.EvergraphError], text: str) -> str:
    """Run an update that must fail, and see that it changed nothing."""
    before, sequence = stored(server), db.sequence
    with pytest.raises(error) as caught:
        db.update(PROLOGUE + text)
    assert (stored(server), db.sequence) == (before, sequence)
    return str(caught.value)


def rows(change: Change) -> list[str]:
    """Show a change in few letters."""
    marked = [f"- {quad}" for quad in change.deleted] + [f"+ {quad}" for quad in change.inserted]
    short = (
        row.replace("<http://example.org/", ":").replace("<http://xmlns.com/foaf/0.1/", "foaf:").replace(f"<{XSD}", "")
        for row in marked
    )
    return sorted(row.replace(">", "") for row in short)
