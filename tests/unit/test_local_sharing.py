"""What shared views promise besides right results: they come and go, fail alone, and leave nothing behind."""

from collections.abc import Iterator

import pytest
from pyoxigraph import RdfFormat, parse
from tests.support.histories import leave_out_small_ids

from evergraph.delta import Bag, Delta
from evergraph.engines.local import engine as engine_module
from evergraph.engines.local.engine import LocalEngine, View
from evergraph.engines.local.shared import SharedView
from evergraph.engines.local.store import Store
from evergraph.errors import EvergraphError, StateLimit, UsageError
from evergraph.terms import GraphName, Literal, NamedNode, Quad, Term

PREFIX = "PREFIX : <http://example.org/> "


def quads(text: str) -> frozenset[Quad]:
    return frozenset(parse(f"@prefix : <http://example.org/> . {text}", RdfFormat.TRIG))


def city(engine: LocalEngine, name: str) -> View:
    return engine.register(PREFIX + f"SELECT ?s ?a {{ ?s a :Person ; :city :{name} ; :age ?a }}")


def cities(engine: LocalEngine, *names: str) -> list[View]:
    return [city(engine, name) for name in names]


PEOPLE = ":x a :Person ; :city :c1 ; :age 1 . :y a :Person ; :city :c2 ; :age 2 . "


def test_the_first_query_is_on_its_own_and_the_others_share() -> None:
    engine = LocalEngine()
    one, two, three = cities(engine, "c1", "c2", "c3")
    assert not isinstance(one, SharedView)
    assert isinstance(two, SharedView)
    assert isinstance(three, SharedView)
    assert two.circuit is three.circuit
    changed = {view for view, _ in engine.apply(Delta(quads(PEOPLE)))}
    assert changed == {one, two}
    assert [len(view.result()) for view in (one, two, three)] == [1, 1, 0]


def test_identical_queries_have_the_same_rows() -> None:
    engine = LocalEngine()
    views = cities(engine, "c1", "c2", "c2", "c2")
    changes = engine.apply(Delta(quads(PEOPLE)))
    assert {view for view, _ in changes} == set(views)
    assert views[1].result() == views[3].result()
    engine.remove(views[1])
    assert len(engine.apply(Delta(deleted=quads(":y :age 2 .")))) == 2
    assert len(views[3].result()) == 0


def test_identical_queries_share_whatever_they_are() -> None:
    engine = LocalEngine()
    text = PREFIX + "SELECT ?s { ?s :city ?c } ORDER BY ?s LIMIT 1"
    views = [engine.register(text) for _ in range(3)]
    assert len(engine.apply(Delta(quads(PEOPLE)))) == 3
    assert [len(view.result()) for view in views] == [1, 1, 1]


def test_queries_keep_their_own_names() -> None:
    engine = LocalEngine()
    city(engine, "c1")
    other = engine.register(PREFIX + "SELECT ?who ?age { ?who a :Person ; :city :c2 ; :age ?age }")
    assert isinstance(other, SharedView)
    assert [variable.value for variable in other.variables] == ["who", "age"]
    assert {variable.value for variable in other.plan.variables} == {"who", "age"}


def test_nothing_is_left_of_removed_views() -> None:
    present = quads(PEOPLE)
    engine = LocalEngine(source=lambda: present)
    views = cities(engine, "c1", "c2", "c1", "c3", "c2")
    assert [len(view.result()) for view in views] == [1, 1, 1, 0, 1]
    assert engine.size() == 6
    for view in views[:3]:
        engine.remove(view)
    assert engine.size() == 5
    for view in views[3:]:
        engine.remove(view)
    assert engine.is_empty()
    assert not engine._sharing._families
    assert not engine._sharing._shared


def test_only_wanted_quads_are_kept() -> None:
    engine = LocalEngine()
    cities(engine, "c1", "c2")
    engine.apply(Delta(quads(":x :city :c1 , :c3 . :y :city :c2 , :c4 . :z :city :c5 .")))
    assert engine.size() == 2


def test_a_query_that_cannot_be_loaded_leaves_the_others_alone() -> None:
    engine = LocalEngine()
    one, two = cities(engine, "c1", "c2")
    engine.apply(Delta(quads(PEOPLE)))
    with pytest.raises(UsageError, match="not kept"):
        city(engine, "c3")
    engine.apply(Delta(quads(":z a :Person ; :city :c2 , :c3 ; :age 3 .")))
    assert [len(view.result()) for view in (one, two)] == [1, 2]
    engine.remove(one)
    engine.remove(two)
    assert engine.is_empty()


def test_a_query_that_is_the_first_to_share_and_cannot_be_loaded() -> None:
    engine = LocalEngine()
    one = city(engine, "c1")
    engine.apply(Delta(quads(PEOPLE)))
    with pytest.raises(UsageError, match="not kept"):
        city(engine, "c2")
    assert not engine._sharing._shared
    engine.remove(one)
    assert engine.is_empty()


def test_a_limit_of_its_own_means_a_circuit_of_its_own() -> None:
    engine = LocalEngine()
    cities(engine, "c1", "c2")
    text = PREFIX + "SELECT ?s ?a { ?s a :Person ; :city :c3 ; :age ?a }"
    assert not isinstance(engine.register(text, limit=10), SharedView)


def test_a_part_that_is_too_large_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "DEFAULT_LIMIT", 20)
    engine = LocalEngine()
    views = cities(engine, "c1", "c2", "c3")
    told: list[EvergraphError] = []
    views[1].on_failure = told.append
    ages = " , ".join(map(str, range(25)))
    engine.apply(Delta(quads(f":y a :Person ; :city :c2 ; :age {ages} . :z a :Person ; :city :c3 ; :age 1 .")))
    assert isinstance(views[1].failed, StateLimit)
    assert told == [views[1].failed]
    with pytest.raises(StateLimit):
        views[1].result()
    assert len(views[2].result()) == 1
    for view in views:
        engine.remove(view)
    assert engine.is_empty()


def test_a_circuit_that_fails_takes_its_views_along(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = LocalEngine()
    views = cities(engine, "c1", "c2", "c3")

    def fail() -> None:
        raise ValueError("broken on purpose")

    monkeypatch.setattr(views[1].circuit.root, "pull", fail)
    engine.apply(Delta(quads(PEOPLE)))
    assert [view.failed is not None for view in views] == [False, True, True]
    again = city(engine, "c1")
    assert again.result() == views[0].result()
    for view in (*views, again):
        engine.remove(view)
    assert engine.is_empty()


def test_a_part_is_looked_up_by_its_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    present = quads(PEOPLE + ":z :city :c3 .")
    asked = []

    def lookup(*wanted: Term | GraphName | None) -> Iterator[Quad]:
        asked.append(wanted)
        for quad in present:
            if all(one is None or one == term for one, term in zip(wanted, quad, strict=True)):
                yield quad

    engine = LocalEngine(lookup=lookup)
    cities(engine, "c1", "c2")
    asked.clear()
    city(engine, "c3")
    assert [wanted[2] for wanted in asked] == [NamedNode("http://example.org/c3")]


def test_a_query_that_comes_does_not_make_new_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = LocalEngine()
    cities(engine, "c1", "c2")
    made = []
    monkeypatch.setattr(Store, "_reroute", lambda self, predicate: made.append(predicate))
    cities(engine, *(f"c{number}" for number in range(3, 50)))
    assert not made


def test_asks_share() -> None:
    engine = LocalEngine()
    one, two, three = (engine.register(PREFIX + f"ASK {{ ?s :city :c{number} }}") for number in (1, 2, 3))
    true, false = (Bag([(Literal(value),)]) for value in (True, False))
    assert two.result() == three.result() == false
    changes = engine.apply(Delta(quads(PEOPLE)))
    assert {view: (view.added(rows), view.removed(rows)) for view, rows in changes} == {
        one: (true, false),
        two: (true, false),
    }
    assert not engine.apply(Delta(quads(":z :city :c2 .")))
    assert isinstance(two, SharedView)


def test_terms_that_nothing_holds_are_forgotten() -> None:
    engine = LocalEngine()
    dictionary = engine._store.dictionary
    leave_out_small_ids(dictionary)
    views = cities(engine, "c1", "c2")
    for number in range(100):
        came = quads(f":p{number} a :Person ; :city :c{1 + number % 2} ; :age {number + 1_000} .")
        engine.apply(Delta(came))
        if number != 50:
            engine.apply(Delta(deleted=came))
    known = len(dictionary.ids)
    assert engine.forget_terms() >= 190
    assert len(dictionary.ids) <= known - 190
    terms = len(dictionary.terms)
    assert len(views[0].result()) == 1
    assert len(engine.apply(Delta(quads(":q a :Person ; :city :c1 , :c2 ; :age 7 .")))) == 2
    assert len(dictionary.terms) == terms
    assert [len(view.result()) for view in views] == [2, 1]
