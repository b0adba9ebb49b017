"""The optimiser: it chooses the cheaper way, measured by a clock that counts calls instead of time."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType

import pytest

from evergraph.delta import Delta
from evergraph.engines.local.engine import LocalEngine
from evergraph.engines.local.optimizer import Optimizer, Way
from evergraph.engines.local.views import View
from evergraph.errors import StateLimit
from evergraph.terms import Literal, NamedNode, Quad

NS = "http://example.org/"
PREFIX = f"PREFIX : <{NS}> "
TYPE, AGE, CITY, KNOWS = (NamedNode(NS + name) for name in ("type", "age", "city", "knows"))

QUERIES = {
    "star": "SELECT * { ?s :type :Person ; :age ?a ; :city ?c }",
    "path": "SELECT * { ?a :knows ?b . ?b :knows ?d . ?d :city ?c }",
    "optional": "SELECT * { ?s :city ?c OPTIONAL { ?s :knows ?k . ?k :age ?a } }",
    "distinct": "SELECT DISTINCT ?c ?d { ?s :city ?c . ?s :knows ?k . ?k :city ?d }",
    "group": "SELECT ?c (COUNT(*) AS ?n) (SUM(?a) AS ?sum) { ?s :city ?c ; :age ?a } GROUP BY ?c",
    "not exists": "SELECT * { ?s :city ?c FILTER NOT EXISTS { ?s :knows ?k . ?k :city ?c } }",
    "hub": "SELECT ?a ?b { ?a :city ?c . ?b :city ?c }",
    "constant": "SELECT * { ?s :city :city1 ; :age ?a }",
}


class Counter:
    """A clock that counts calls of functions, as if each took 100 ns."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def _count(self, _frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            self.now += 100

    @contextmanager
    def running(self) -> Iterator[None]:
        sys.setprofile(self._count)
        try:
            yield
        finally:
            sys.setprofile(None)


def person(number: int) -> NamedNode:
    return NamedNode(f"{NS}person{number}")


def data(persons: int, random: Random) -> list[Quad]:
    quads = []
    for number in range(persons):
        one = person(number)
        quads.append(Quad(one, TYPE, NamedNode(NS + "Person")))
        quads.append(Quad(one, AGE, Literal(random.randrange(100))))
        quads.append(Quad(one, CITY, NamedNode(f"{NS}city{random.randrange(20)}")))
        quads += [Quad(one, KNOWS, person(other)) for other in random.sample(range(persons), 3)]
    return quads


def costs(query: str, way: Way | None, deltas: list[Delta]) -> tuple[list[int], View]:
    """Return what each change costs, in calls, if it is forced to go one way or if the optimiser is free."""
    clock = Counter()
    engine = LocalEngine(optimizer=Optimizer(clock=clock, force=lambda: way))
    view = engine.register(PREFIX + query)
    spent = []
    for delta in deltas:
        begin = clock.now
        with clock.running():
            engine.apply(delta)
        spent.append(clock.now - begin)
    return spent, view


def history(persons: int, sizes: tuple[int, ...]) -> list[Delta]:
    random = Random(1)
    quads = data(persons, random)
    deltas = [Delta(inserted=frozenset(quads))]
    for size in sizes:
        chosen = frozenset(random.sample(quads, min(size, len(quads))))
        deltas += [Delta(deleted=chosen), Delta(inserted=chosen)]
    return deltas


@pytest.mark.parametrize("name", QUERIES)
def test_the_choice_is_never_much_worse_than_the_better_way(name: str) -> None:
    deltas = history(300, (64, 64, 300, 1000, 1700, 64, 300))
    ways: tuple[Way | None, ...] = ("incremental", "direct", None)
    incremental, direct, free = (costs(QUERIES[name], way, deltas) for way in ways)
    assert incremental[1].result() == direct[1].result() == free[1].result()
    better = [min(pair) for pair in zip(incremental[0], direct[0], strict=True)]
    ratios = [chosen / least for chosen, least in zip(free[0], better, strict=True)]
    assert max(ratios) <= 2, list(zip(map(len, deltas), ratios, strict=True))
    assert sum(free[0]) <= 1.25 * sum(better)


def test_both_ways_are_chosen_and_recorded() -> None:
    _, view = costs(QUERIES["path"], None, history(300, (64, 1700)))
    decisions = view.decisions()
    assert [one.chosen for one in decisions] == ["direct", "incremental", "incremental", "direct", "direct"]
    for one in decisions:
        assert (one.estimated_direct < one.estimated_incremental) == (one.chosen == "direct")
        assert one.measured > 0
    assert decisions[-1].batch == 5
    assert 1600 < decisions[-1].matching < 2400
    assert "matches of 1,700 changes" in str(decisions[-1])


def shared_costs(way: Way | None, deltas: list[Delta]) -> tuple[list[int], list[View]]:
    """Return what each change costs for queries that differ in a constant, all but the first of which share a plan."""
    clock = Counter()
    engine = LocalEngine(optimizer=Optimizer(clock=clock, force=lambda: way))
    text = "SELECT ?s ?k ?a {{ ?s :city :city{} ; :knows ?k OPTIONAL {{ ?k :age ?a }} }}"
    views = [engine.register(PREFIX + text.format(number)) for number in range(20)]
    spent = []
    for delta in deltas:
        begin = clock.now
        with clock.running():
            engine.apply(delta)
        spent.append(clock.now - begin)
    return spent, views


def test_views_that_share_a_plan_go_both_ways() -> None:
    deltas = history(300, (64, 300, 1700, 64))
    ways: tuple[Way | None, ...] = ("incremental", "direct", None)
    incremental, direct, free = (shared_costs(way, deltas) for way in ways)
    for one, two, three in zip(incremental[1], direct[1], free[1], strict=True):
        assert one.result() == two.result() == three.result()
        assert one.result()
    assert {one.chosen for one in direct[1][1].decisions()} == {"direct"}
    assert [one.chosen for one in free[1][1].decisions()[-2:]] == ["incremental", "incremental"]
    assert "direct" in {one.chosen for one in free[1][1].decisions()}
    better = [min(pair) for pair in zip(incremental[0], direct[0], strict=True)]
    assert sum(free[0]) <= 1.25 * sum(better)


def test_what_would_be_chosen_is_told() -> None:
    _, view = costs(QUERIES["group"], None, history(300, (64,)))
    forecasts = view.forecasts()
    assert [one.changes for one in forecasts] == [100, 1_000, 10_000, 100_000, 1_000_000]
    assert forecasts[0].chosen == "incremental"
    assert "direct" in {one.chosen for one in forecasts}
    assert forecasts[0].direct < forecasts[-1].direct
    assert str(forecasts[0]).startswith("100 changes: incremental (incremental ")
    assert not LocalEngine().register(PREFIX + QUERIES["star"]).forecasts()


def test_few_changes_are_not_deliberated() -> None:
    _, view = costs(QUERIES["star"], "direct", history(300, (1, 10, 63)))
    assert len(view.decisions()) == 1


def test_the_list_of_decisions_is_bounded() -> None:
    _, view = costs(QUERIES["star"], None, history(30, (64,) * 50))
    assert len(view.decisions()) == 64
    assert view.decisions()[-1].batch == 101


def test_a_direct_evaluation_keeps_the_indexes() -> None:
    random = Random(1)
    quads = data(100, random)
    present = frozenset[Quad]()
    reads = []

    def source() -> frozenset[Quad]:
        reads.append(len(present))
        return present

    engine = LocalEngine(source, optimizer=Optimizer(force=lambda: "direct"))
    view = engine.register(PREFIX + QUERIES["path"])
    engine.apply(Delta(inserted=frozenset(quads)))
    before = {key: dict(one.indexes) for key, one in engine._store.relations.items()}
    size = engine.size()
    reads.clear()
    engine.apply(Delta(deleted=frozenset(quads[:200])))
    assert view.decisions()[-1].chosen == "direct"
    assert not reads
    for key, indexes in before.items():
        for columns, index in indexes.items():
            assert engine._store.relations[key].indexes[columns] is index
    assert 0 < engine.size() < size


def test_a_view_that_is_not_concerned_is_left_alone() -> None:
    engine = LocalEngine(optimizer=Optimizer(force=lambda: "direct"))
    other = engine.register(PREFIX + "SELECT * { ?s :other ?o }")
    circuit = other.circuit
    engine.register(PREFIX + QUERIES["star"])
    engine.apply(Delta(inserted=frozenset(data(100, Random(1)))))
    assert other.circuit is circuit
    assert not other.decisions()


def test_the_limit_holds_for_direct_evaluation() -> None:
    engine = LocalEngine(optimizer=Optimizer(force=lambda: "direct"))
    greedy = engine.register(PREFIX + QUERIES["hub"], limit=100)
    modest = engine.register(PREFIX + QUERIES["star"])
    engine.apply(Delta(inserted=frozenset(data(100, Random(1)))))
    assert isinstance(greedy.failed, StateLimit)
    assert len(modest.result()) == 100
