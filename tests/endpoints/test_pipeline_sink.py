"""Endpoints as sinks of pipelines: batches are told exactly, and telling one again changes nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers import Server

import evergraph as eg
from evergraph.engines.spark.rows import QUAD, table_of
from evergraph.pipeline.outcomes import Outcome, small_outcome
from evergraph.pipeline.sinks.endpoints import EndpointWriter
from evergraph.terms import BlankNode, DefaultGraph, Literal, NamedNode, Quad

pytestmark = pytest.mark.server
GRAPH = NamedNode("urn:sink")


def quad(number: int, graph: NamedNode | DefaultGraph | None = None) -> Quad:
    return Quad(NamedNode(f"urn:s{number}"), NamedNode("urn:p"), Literal(f"é \"{number}'"), graph or DefaultGraph())


def outcome(*rows: tuple[Quad, int], triples: bool = False) -> Outcome:
    table = table_of(rows)
    columns = QUAD[:3] if triples else QUAD
    return small_outcome(table.select([*columns, "weight"]), columns)


@pytest.fixture
def writer(server: Server, tmp_path: Path) -> Iterator[EndpointWriter]:
    writer = EndpointWriter(server.query_url, server.update_url, GRAPH, tmp_path)
    yield writer
    writer.close()


def content(db: eg.Database) -> set[Quad]:
    return {quad for quad in db.quads() if quad.graph_name in (GRAPH, NamedNode("urn:named"))}


def test_batches_are_told_and_may_be_told_again(db: eg.Database, writer: EndpointWriter) -> None:
    first = outcome((quad(1), 1), (quad(2), 1), triples=True)
    second = outcome((quad(2), -1), (quad(3), 1), triples=True)
    writer.write(first, 0, 0)
    assert content(db) == {quad(1, GRAPH), quad(2, GRAPH)}
    for _ in range(2):
        writer.write(second, 1, 1)
        assert content(db) == {quad(1, GRAPH), quad(3, GRAPH)}


def test_quads_keep_their_graphs_and_blank_nodes_get_names(db: eg.Database, writer: EndpointWriter) -> None:
    named = quad(1, NamedNode("urn:named"))
    blank = Quad(BlankNode("b1"), NamedNode("urn:p"), NamedNode("urn:o"))
    writer.write(outcome((named, 1), (blank, 1)), 0, 0)
    assert content(db) == {named, Quad(NamedNode("urn:skolem:b1"), NamedNode("urn:p"), NamedNode("urn:o"), GRAPH)}
    writer.write(outcome((blank, -1)), 1, 1)
    assert content(db) == {named}
