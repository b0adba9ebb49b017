"""Shares: the changes over the quads of each value of a centre, added up, are the change over all quads."""

from random import Random

import pytest
from tests.support.histories import random_deltas
from tests.support.random_queries import PROLOGUE, RandomQueries

from evergraph.delta import Bag, Delta
from evergraph.engines.spark.islands import local_changes
from evergraph.engines.spark.rows import row_of
from evergraph.engines.spark.vicinity import matcher
from evergraph.engines.spark.views import SparkView
from evergraph.errors import UnsupportedQuery
from evergraph.plan.centres import ANY, Places, places_of
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.terms import Quad

SHARES = 3


def key_of(quad: Quad, places: Places) -> str:
    row = row_of(quad)
    return row[places[ANY] if ANY in places else places[row[1]]]


def divided(view: SparkView, quads: frozenset[Quad]) -> list[frozenset[Quad]]:
    """Divide the quads that a view looks at by the value of its centre."""
    assert view.centre is not None
    places = places_of(view.centre.patterns)
    assert places is not None
    tests = [matcher(pattern) for pattern in view.patterns]
    parts: list[set[Quad]] = [set() for _ in range(SHARES)]
    for quad in quads:
        if any(test(row_of(quad)) for test in tests):
            parts[hash(key_of(quad, places)) % SHARES].add(quad)
    return [frozenset(part) for part in parts]


def check_shares(seed: int, text: str | None = None) -> bool:
    """Compare the change of a random query with the sum of its shares, along a history; False if it has no centre."""
    source = RandomQueries(Random(seed))
    pool = source.dataset(most=40)
    view = SparkView("view", parse_query(text or source.query()))
    try:
        if view.centre is None:
            return False
    except UnsupportedQuery:
        return False
    queries = [(view.query, view.environment)]
    present: frozenset[Quad] = frozenset()
    for delta in random_deltas(Random(seed + 1), pool, 6):
        expected = local_changes(queries, list(present), delta)[0]
        total: Bag[Row] = Bag()
        parts = [divided(view, quads) for quads in (present, delta.inserted, delta.deleted)]
        seen: list[Bag[Row]] = []
        for old, inserted, deleted in zip(*parts, strict=True):
            (change,) = local_changes(queries, list(old), Delta(inserted, deleted))
            total = total + change
            seen.append(change)
        assert total == expected, f"seed {seed}: {text or view.query}"
        if view.centre.is_held:
            rows = [row for change in seen for row, _ in change.items()]
            assert len(rows) == len(set(rows)), f"seed {seed}: {view.query}"
        present = (present - delta.deleted) | delta.inserted
    return True


QUERIES = {
    "star": "SELECT * { ?s :p ?a ; :q ?b }",
    "centre as object and subject": "SELECT ?a ?b { ?a :p ?s . ?s :q ?b }",
    "optional": "SELECT * { ?s :p ?a OPTIONAL { ?s :q ?b FILTER(?a = ?b) } }",
    "not exists": "SELECT ?s { ?s :p ?a FILTER NOT EXISTS { ?s :q ?a } }",
    "minus": "SELECT ?s { ?s :p ?a MINUS { ?s :q ?b } }",
    "groups": "SELECT ?s (COUNT(?a) AS ?n) (SAMPLE(?a) AS ?one) { ?s :p ?a } GROUP BY ?s",
    "groups by object": "SELECT ?a (COUNT(*) AS ?n) { ?s :p ?a } GROUP BY ?a",
    "distinct": "SELECT DISTINCT ?s ?b { ?s :p ?a ; :q ?b }",
    "construct": "CONSTRUCT { ?s :r ?a . ?s :t ?b } WHERE { ?s :p ?a OPTIONAL { ?s :q ?b } }",
    "values": "SELECT * { ?s :p ?a VALUES ?a { 1 2 } }",
    "union": "SELECT ?s ?a { { ?s :p ?a } UNION { ?a :q ?s } }",
    "same variable": "SELECT * { ?s :p ?s ; :q ?a }",
    "any predicate": "SELECT * { ?s ?p ?a ; ?q ?b }",
    "graph": "SELECT * { GRAPH ?g { ?s :p ?a ; :q ?b } }",
    "sub-select": "SELECT * { ?s :q ?b { SELECT ?s (MAX(?a) AS ?m) { ?s :p ?a } GROUP BY ?s } }",
}
WITHOUT = {
    "path": "SELECT * { ?a :p ?b . ?b :p ?c }",
    "product": "SELECT * { ?a :p ?b . ?c :q ?d }",
    "limit": "SELECT ?s { ?s :p ?a } LIMIT 1",
    "ask": "ASK { ?s :p ?a }",
    "count": "SELECT (COUNT(*) AS ?n) { ?s :p ?a }",
    "distinct without it": "SELECT DISTINCT ?b { ?s :p ?a ; :q ?b }",
    "distinct over what only some hold": "SELECT DISTINCT ?s ?b { { ?s :p ?a } UNION { SELECT ?b { ?s :q ?b } } }",
    "hidden": "SELECT * { ?s :p ?a { SELECT ?c { ?s :q ?c } } }",
    "two places": "SELECT * { ?s :p ?a . ?b :p ?s }",
    "closure": "SELECT * { ?s :p+ ?a }",
}


@pytest.mark.parametrize("name", QUERIES)
def test_shares(name: str) -> None:
    assert all(check_shares(seed, PROLOGUE + QUERIES[name]) for seed in range(10))


@pytest.mark.parametrize("name", WITHOUT)
def test_no_centre(name: str) -> None:
    assert SparkView("view", parse_query(PROLOGUE + WITHOUT[name])).centre is None


@pytest.mark.parametrize(
    "seeds", [range(800), pytest.param(range(1_000, 21_000), marks=pytest.mark.long)], ids=["some", "many"]
)
def test_random_queries(seeds: range) -> None:
    checked = sum(check_shares(seed) for seed in seeds)
    assert checked > len(seeds) // 30
