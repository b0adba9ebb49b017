"""What operators remember: enough to take anything back, no more than is there, and no more than the limit."""

import random

import pytest

from evergraph.delta import Bag, Delta
from evergraph.engines.local.engine import LocalEngine
from evergraph.errors import StateLimit
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


STATEFUL = {
    "not exists": "SELECT * { ?a <urn:p> ?b FILTER NOT EXISTS { ?b <urn:q> ?c } }",
    "exists as a value": "SELECT * { ?a <urn:p> ?b BIND (EXISTS { ?b <urn:q> ?c } AS ?e) }",
    "minus": "SELECT * { ?a <urn:p> ?b MINUS { ?a <urn:q> ?c } }",
    "optional": "SELECT * { ?a <urn:p> ?b OPTIONAL { ?a <urn:q> ?c } }",
    "distinct": "SELECT DISTINCT ?b { ?a <urn:p> ?b }",
    "groups": "SELECT ?b (COUNT(*) AS ?n) { ?a <urn:p> ?b } GROUP BY ?b",
    "values of a group": "SELECT (GROUP_CONCAT(?b) AS ?all) { ?a <urn:p> ?b }",
    "distinct values of a group": "SELECT (COUNT(DISTINCT ?b) AS ?n) { ?a <urn:p> ?b }",
    "rows of a group": "SELECT (COUNT(DISTINCT *) AS ?n) { ?a <urn:p> ?b }",
    "slice": "SELECT ?b { ?a <urn:p> ?b } LIMIT 1",
    "plan for each binding": "SELECT * { ?a <urn:p> ?b FILTER EXISTS { SELECT * { ?o <urn:q> ?b } OFFSET 2 } }",
}


@pytest.mark.parametrize("text", STATEFUL.values(), ids=STATEFUL.keys())
def test_whatever_keeps_rows_keeps_to_the_limit(text: str) -> None:
    engine = LocalEngine()
    view, free = engine.register(text, limit=50), engine.register(text)
    for value in range(100):
        engine.apply(Delta(inserted=frozenset([number(value)])))
        assert view.failed or view.circuit.size() == free.circuit.size()
    assert isinstance(view.failed, StateLimit)
    engine.apply(Delta(deleted=frozenset(number(value) for value in range(100))))
    assert free.circuit.size() <= 2
