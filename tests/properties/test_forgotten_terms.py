"""Terms are forgotten all the time: no view may notice, whatever its query, nor who reads a change late."""

from collections import deque
from collections.abc import Callable
from random import Random

import pytest
from tests.support.histories import check_exists, check_history, check_many, from_scratch, leave_out_small_ids

from evergraph.delta import Bag, Delta
from evergraph.engines.local import dictionary, expressions
from evergraph.engines.local.dictionary import Dictionary
from evergraph.engines.local.engine import LocalEngine, ViewChange
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.terms import Literal, NamedNode, Quad

BLOCK = 50
CHECKS = [check_history, check_exists, check_many]


@pytest.fixture(autouse=True)
def _high_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Dictionary.__init__

    def start_high(self: Dictionary) -> None:
        begin(self)
        leave_out_small_ids(self)

    monkeypatch.setattr(Dictionary, "__init__", start_high)


@pytest.mark.parametrize("block", range(3))
@pytest.mark.parametrize("check", CHECKS)
def test_all_at_once(check: Callable[[int], None], block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original, forgotten = LocalEngine.apply, []

    def apply(self: LocalEngine, delta: Delta) -> list[ViewChange]:
        forgotten.append(self.forget_terms())
        return original(self, delta)

    monkeypatch.setattr(LocalEngine, "apply", apply)
    for seed in range(10_000 + block * BLOCK, 10_000 + (block + 1) * BLOCK):
        check(seed)
    assert sum(forgotten) > 10


def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for free ids whenever one is given out, in the middle of changes too."""
    monkeypatch.setattr(dictionary, "_AT_LEAST", 1)
    monkeypatch.setattr(dictionary, "_LOOK", 2_000)
    monkeypatch.setattr(dictionary, "_PACE", 1)

    def never_rest(self: Dictionary) -> None:
        self._next, self._room = 0, 1

    monkeypatch.setattr(Dictionary, "_rest", never_rest)


@pytest.mark.parametrize("block", range(3))
@pytest.mark.parametrize("check", CHECKS)
def test_in_the_middle_of_changes(check: Callable[[int], None], block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    look_often(monkeypatch)
    for seed in range(20_000 + block * BLOCK, 20_000 + (block + 1) * BLOCK):
        check(seed)


@pytest.mark.long
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("block", range(40))
def test_long(check: Callable[[int], None], block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    look_often(monkeypatch)
    for seed in range(30_000 + block * BLOCK, 30_000 + (block + 1) * BLOCK):
        check(seed)


QUERIES = (
    "SELECT * { ?s <urn:p> ?o ; <urn:q> ?a }",
    "SELECT ?o { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?a FILTER (?a > 5) } }",
    "SELECT ?s (SUM(?a) AS ?sum) (CONCAT(STR(?s), '!') AS ?name) { ?s <urn:q> ?a } GROUP BY ?s",
    "SELECT ?s ?a { ?s <urn:q> ?a FILTER NOT EXISTS { ?s <urn:p> ?o } } ORDER BY ?a LIMIT 5",
    "CONSTRUCT { ?s <urn:r> [ <urn:has> ?o ] } { ?s <urn:p> ?o }",
    "SELECT DISTINCT ?g { GRAPH ?g { ?s <urn:p>+ ?o } }",
)


def churned(random: Random, number: int) -> Quad:
    """Make a quad with terms that have not been there for long, or never."""
    subject = NamedNode(f"urn:s{number // 3}")
    graphs = [] if random.random() < 0.7 else [NamedNode(f"urn:g{number // 50}")]
    if random.random() < 0.5:
        return Quad(subject, NamedNode("urn:p"), NamedNode(f"urn:s{(number + random.randrange(9)) // 3}"), *graphs)
    return Quad(subject, NamedNode("urn:q"), Literal(number % 1_000), *graphs)


@pytest.mark.parametrize("seed", range(3))
def test_a_long_churn_needs_no_more_ids(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary, "_AT_LEAST", 200)
    monkeypatch.setattr(expressions, "_REMEMBERED", 100)  # values of expressions, by the ids in them
    random, engine, present = Random(seed), LocalEngine(), deque[Quad]()
    queries = [parse_query(text) for text in QUERIES]
    views = [engine.register(query) for query in queries]
    unread: deque[tuple[ViewChange, Bag[Row], Bag[Row]]] = deque()
    ids = engine._store.dictionary
    for number in range(9_000):
        quad = churned(random, number)
        if quad in present:
            continue
        gone = frozenset(present.popleft() for _ in range(len(present) - 99))
        present.append(quad)
        changes = engine.apply(Delta(frozenset([quad]), gone))
        for view, rows in changes:
            unread.append(((view, rows), view.added(rows), view.removed(rows)))
        while len(unread) > 200:
            (view, rows), added, removed = unread.popleft()
            assert (view.added(rows), view.removed(rows)) == (added, removed)
        if number % 1_000 == 999:
            assert len(ids.ids) < 3_000
            for view, query in zip(views, queries, strict=True):
                assert view.result() == from_scratch(query, frozenset(present)), f"after {number}: {query}"
    assert len(ids.terms) - 1_000 < 4_000
    del unread
    changes = []
    engine.forget_terms()
    assert len(ids.ids) < 1_000
