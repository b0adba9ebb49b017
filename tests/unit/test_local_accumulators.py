"""What aggregates remember: enough to take any value back, and no more than is there."""

import random

import pytest

from evergraph.delta import Bag, Delta
from evergraph.engines.local.engine import LocalEngine
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.parser import parse_query
from evergraph.terms import XSD, Literal, NamedNode, Quad
from evergraph.views.queries import result_rows


def number(value: int) -> Quad:
    literal = Literal(str(value), datatype=NamedNode(XSD + "integer"))
    return Quad(NamedNode("urn:s"), NamedNode("urn:p"), literal)


@pytest.mark.parametrize("aggregate", ["MIN(?o)", "MAX(?o)", "SAMPLE(?o)", "COUNT(DISTINCT ?o)", "SUM(?o)"])
@pytest.mark.parametrize("start", [0, 5_000])
def test_values_that_have_gone_are_forgotten(aggregate: str, start: int) -> None:
    """The extreme value stays while others come and go: the worst case for a heap that drops them late."""
    engine = LocalEngine()
    view = engine.register(f"SELECT ({aggregate} AS ?x) {{ ?s <urn:p> ?o }}")
    engine.apply(Delta(inserted=frozenset([number(start)])))
    for value in range(1, 1_000):
        engine.apply(Delta(inserted=frozenset([number(value)])))
        engine.apply(Delta(deleted=frozenset([number(value)])))
    assert view.size() < 50


@pytest.mark.parametrize("seed", range(5))
def test_extremes_are_right_while_values_come_and_go(seed: int) -> None:
    engine, chance, there = LocalEngine(), random.Random(seed), set[Quad]()
    query = parse_query("SELECT (MIN(?o) AS ?min) (MAX(?o) AS ?max) (SAMPLE(?o) AS ?any) { ?s <urn:p> ?o }")
    view = engine.register(query)
    for _ in range(300):
        came = {number(chance.randrange(200)) for _ in range(chance.randrange(4))} - there
        went = set(chance.sample(sorted(there, key=str), min(len(there), chance.randrange(5))))
        engine.apply(Delta(frozenset(came), frozenset(went)))
        there = there - went | came
        assert view.result() - result_rows(query, Dataset(there)) == Bag()
