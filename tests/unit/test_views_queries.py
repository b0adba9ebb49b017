"""Standing queries in Python: results, steps, the backlog, readers in other threads, failures, and steps as JSON."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue

import pytest

import evergraph as eg
from evergraph.delta import Bag
from evergraph.errors import StateLimit, SyntaxProblem, UnsupportedQuery
from evergraph.sparql.algebra import Query, Select
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Quad, Triple
from evergraph.views.queries import StandingQuery, Step, json_step

A, B, P = NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:p")
ONE = Literal("1", datatype=NamedNode(XSD + "integer"))
OBJECTS = "SELECT ?o { ?s <urn:p> ?o }"


def insert(text: str) -> str:
    return f"INSERT DATA {{ {text} }}"


def delete(text: str) -> str:
    return f"DELETE DATA {{ {text} }}"


def texts(rows: Bag[Row]) -> list[str]:
    return sorted(" ".join(map(str, row)) for row in rows.rows())


@pytest.fixture
def db() -> eg.Database:
    return eg.open()


# --- decisions


def test_decisions_are_told(db: eg.Database) -> None:
    view = db.watch("SELECT ?o (COUNT(*) AS ?n) { ?s <urn:p> ?o } GROUP BY ?o")
    assert view.decisions() == []
    assert "Decisions so far" not in view.explain()
    for start in range(0, 900, 100):
        db.update(insert(" . ".join(f"<urn:s{start + number}> <urn:p> {number % 3}" for number in range(100))))
    assert [one.batch for one in view.decisions()] == list(range(1, 10))
    assert {one.changes for one in view.decisions()} == {100}
    text = view.explain()
    assert text.count("matches of 100 changes") == 5


# --- steps


def test_the_sum_of_the_steps_is_the_result(db: eg.Database) -> None:
    db.update(insert("<urn:a> <urn:p> 1, 2 . <urn:b> <urn:p> 1"))
    view = db.watch(OBJECTS)
    db.update(insert("<urn:b> <urn:p> 3") + ";" + delete("<urn:a> <urn:p> 1"))
    db.update(delete("<urn:b> <urn:p> 3"))
    steps = list(view.changes())
    assert [step.sequence for step in steps] == [1, 2, 3]
    assert [texts(step.added) for step in steps] == [[one("1"), one("1"), one("2")], [one("3")], []]
    assert [texts(step.removed) for step in steps] == [[], [one("1")], [one("3")]]
    total: Bag[Row] = Bag()
    for step in steps:
        total.update(step.added - step.removed)
    assert total == view.result()
    assert view.variables == ("o",)
    assert list(view.changes()) == []


def one(text: str) -> str:
    return str(Literal(text, datatype=NamedNode(XSD + "integer")))


def test_changes_without_an_effect_give_no_step_and_take_a_number(db: eg.Database) -> None:
    view = db.watch(OBJECTS)
    db.update(insert("<urn:a> <urn:q> 1"))
    db.update(insert("<urn:a> <urn:p> 1"))
    db.update(insert("<urn:a> <urn:p> 1"))
    db.update(delete("<urn:a> <urn:p> 1") + ";" + insert("<urn:a> <urn:p> 1"))
    assert [step.sequence for step in view.changes()] == [2]


def test_an_empty_result_at_registration_gives_no_step_but_ask_does(db: eg.Database) -> None:
    assert list(db.watch(OBJECTS).changes()) == []
    (first,) = db.watch("ASK { ?s ?p ?o }").changes()
    assert (first.sequence, texts(first.added)) == (0, [f'"false"^^<{XSD}boolean>'])


def test_steps_put_together_cancel() -> None:
    first = Step(1, Bag([(A,), (B,)]), Bag([(P,)]))
    later = Step(3, Bag([(P,)]), Bag([(A,)]))
    assert first.then(later) == Step(3, Bag([(B,)]), Bag())


@pytest.mark.parametrize("backlog", [0, 2, 3, 7, 100])
def test_a_slow_reader_loses_steps_but_not_their_sum(db: eg.Database, backlog: int) -> None:
    view = db.watch(OBJECTS, backlog=backlog)
    for number in range(20):
        db.update(insert(f"<urn:a> <urn:p> {number}"))
        if number % 3:
            db.update(delete(f"<urn:a> <urn:p> {number - 1}"))
    steps = list(view.changes())
    assert len(steps) == min(max(backlog, 2), db.sequence)
    assert [step.sequence for step in steps] == list(range(db.sequence - len(steps) + 1, db.sequence + 1))
    total: Bag[Row] = Bag()
    for step in steps:
        assert not any(row in step.added for row in step.removed)
        total.update(step.added - step.removed)
    assert total == view.result()


def test_queries_come_and_go(db: eg.Database) -> None:
    first, second = db.watch(OBJECTS), db.watch("SELECT ?s { ?s <urn:p> ?o }")
    db.update(insert("<urn:a> <urn:p> 1"))
    db.unwatch(first)
    db.update(insert("<urn:b> <urn:p> 2"))
    assert [step.sequence for step in first.changes(wait=True)] == [1]
    assert [step.sequence for step in second.changes()] == [1, 2]
    third = db.watch(OBJECTS)
    assert [(step.sequence, texts(step.added)) for step in third.changes()] == [(2, [one("1"), one("2")])]
    db.unwatch(first)  # has been done


def test_explain(db: eg.Database) -> None:
    view = db.watch("PREFIX x: <urn:> SELECT DISTINCT ?o { ?s x:p ?o }")
    db.update(insert("<urn:a> <urn:p> 1, 2 . <urn:b> <urn:p> 2"))
    text = view.explain()
    assert "?s x:p ?o" in text
    assert "needs old state" in text
    assert "now: 4 entries" in text  # two counts and two rows


# --- errors


def test_errors_in_the_text(db: eg.Database) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        db.watch("SELECT * {\n ?s ?p }")
    assert (caught.value.line, caught.value.column) == (2, 8)
    with pytest.raises(UnsupportedQuery, match="RAND"):
        db.watch("SELECT (RAND() AS ?r) {}")
    with pytest.raises(UnsupportedQuery, match="SERVICE"):
        db.watch("SELECT * { SERVICE <urn:x> { ?s ?p ?o } }")
    db.update(insert("<urn:a> <urn:p> 1"))


def test_a_query_over_its_limit_fails_alone(db: eg.Database) -> None:
    greedy, modest = db.watch("SELECT DISTINCT ?o { ?s <urn:p> ?o }", limit=6), db.watch(OBJECTS)
    db.update(insert("<urn:a> <urn:p> 1, 2, 3"))
    db.update(insert("<urn:a> <urn:p> 4"))
    db.update(insert("<urn:a> <urn:p> 5"))
    steps = greedy.changes()
    assert next(steps).sequence == 1
    with pytest.raises(StateLimit, match="more than 6 entries"):
        next(steps)
    with pytest.raises(StateLimit):
        greedy.result()
    assert len(modest.result()) == 5
    db.unwatch(greedy)


# --- readers in other threads


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def ended(thread: threading.Thread) -> bool:
    thread.join(10)
    return not thread.is_alive()


def test_a_waiting_reader_gets_steps_as_they_come_and_ends_with_the_query(db: eg.Database) -> None:
    view = db.watch(OBJECTS)
    seen: SimpleQueue[int] = SimpleQueue()

    def read() -> None:
        for step in view.changes(wait=True):
            seen.put(step.sequence)

    reader = in_thread(read)
    for number in range(1, 6):
        db.update(insert(f"<urn:a> <urn:p> {number}"))
        assert seen.get(timeout=10) == number
    db.unwatch(view)
    assert ended(reader)


def test_steps_that_came_before_the_end_are_read(db: eg.Database) -> None:
    view = db.watch(OBJECTS)
    db.update(insert("<urn:a> <urn:p> 1"))
    view.close()
    assert [step.sequence for step in view.changes(wait=True)] == [1]


def test_a_reader_waits_no_longer_than_it_wants(db: eg.Database) -> None:
    view = db.watch(OBJECTS)
    start = time.monotonic()
    assert list(view.changes(wait=True, timeout=0.05)) == []
    assert 0.04 < time.monotonic() - start < 5


def test_closing_the_database_ends_waiting_readers() -> None:
    with eg.open() as db:
        view = db.watch(OBJECTS)
        reader = in_thread(lambda: [None for _ in view.changes(wait=True)].clear())
    assert ended(reader)


def test_a_failure_wakes_waiting_readers(db: eg.Database) -> None:
    view = db.watch("SELECT DISTINCT ?o { ?s <urn:p> ?o }", limit=1)
    failures: SimpleQueue[StateLimit] = SimpleQueue()

    def read() -> None:
        try:
            list(view.changes(wait=True))
        except StateLimit as error:
            failures.put(error)

    reader = in_thread(read)
    db.update(insert("<urn:a> <urn:p> 1, 2"))
    assert ended(reader)
    assert failures.get(timeout=10).condition == "STATE_LIMIT"


def test_several_readers_share_the_steps(db: eg.Database) -> None:
    """Each step goes to one reader, and none is lost."""
    view = db.watch(OBJECTS)
    seen: SimpleQueue[int] = SimpleQueue()

    def read() -> None:
        for step in view.changes(wait=True):
            seen.put(step.sequence)

    readers = [in_thread(read) for _ in range(4)]
    for number in range(50):
        db.update(insert(f"<urn:a> <urn:p> {number}"))
    view.close()
    assert all(map(ended, readers))
    assert sorted(seen.get(timeout=1) for _ in range(50)) == list(range(1, 51))
    assert seen.empty()


@pytest.fixture
def restless() -> Iterator[None]:
    """Let threads take turns often, so that what can go wrong between them does."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless")
def test_results_are_whole_while_updates_run(db: eg.Database) -> None:
    """Each update replaces all rows by as many others; no reader ever sees some of both."""
    size = 2_000
    view = db.watch(OBJECTS)
    done = threading.Event()
    problems: SimpleQueue[str] = SimpleQueue()

    def quads(turn: int) -> frozenset[Quad]:
        return frozenset(Quad(A, P, Literal(f"{turn} {number}")) for number in range(size))

    def read() -> None:
        while not done.is_set():
            try:
                found = len(view.result())
            except RuntimeError as error:
                problems.put(str(error))
                return
            if found not in (0, size):
                problems.put(f"{found} rows")

    readers = [in_thread(read) for _ in range(2)]
    for turn in range(25):
        db.apply(eg.Request(removed=quads(turn - 1), added=quads(turn)))
    done.set()
    assert all(map(ended, readers))
    assert problems.empty(), problems.get()


# --- the guard, without a database


class Fixed:
    """A result that does not change: the smallest thing that a standing query can stand on."""

    def __init__(self, text: str, rows: Bag[Row]) -> None:
        self.query: Query = parse_query(text)
        assert isinstance(self.query, Select)
        self.variables = self.query.variables
        self.plan = eg.open().watch(text)._maintained.plan
        self.failed: eg.EvergraphError | None = None
        self._rows = rows

    def result(self) -> Bag[Row]:
        return self._rows

    def size(self) -> int:
        return len(self._rows)


@pytest.mark.parametrize("guard", [None, nullcontext(), threading.Lock()])
def test_any_engine_can_stand_behind_a_standing_query(guard: AbstractContextManager[object] | None) -> None:
    view = StandingQuery(Fixed(OBJECTS, Bag([(A,)])), 7, backlog=10, guard=guard)
    assert [(step.sequence, texts(step.added)) for step in view.changes()] == [(7, ["<urn:a>"])]
    assert "now: 1 entry" in view.explain()


# --- steps as JSON


def document(text: str, step: Step) -> object:
    query = parse_query(text)
    variables = query.variables if isinstance(query, Select) else ()
    return json.loads(json.dumps(json_step(query, step, variables)))


def solutions(*bindings: dict[str, object]) -> dict[str, object]:
    return {"head": {"vars": ["s", "o"]}, "results": {"bindings": list(bindings)}}


def test_select_as_json() -> None:
    name = Literal("x", language="en")
    rows: Bag[Row] = Bag([(B, name), (A, None), (B, name), (BlankNode("b"), ONE)])
    label: dict[str, object] = {
        "s": {"type": "uri", "value": "urn:b"},
        "o": {"type": "literal", "value": "x", "xml:lang": "en"},
    }
    number: dict[str, object] = {"type": "literal", "value": "1", "datatype": XSD + "integer"}
    assert document("SELECT ?s ?o { ?s ?p ?o }", Step(4, rows, Bag([(A, Literal("y"))]))) == {
        "sequence": 4,
        "added": solutions(
            {"s": {"type": "uri", "value": "urn:a"}}, label, label, {"s": {"type": "bnode", "value": "b"}, "o": number}
        ),
        "removed": solutions({"s": {"type": "uri", "value": "urn:a"}, "o": {"type": "literal", "value": "y"}}),
    }


def test_triple_terms_as_json() -> None:
    step = Step(1, Bag([(A, Triple(A, P, B))]), Bag())
    member = {name: {"type": "uri", "value": f"urn:{name[0]}"} for name in ("subject", "predicate", "object")}
    member["subject"]["value"], member["object"]["value"] = "urn:a", "urn:b"
    found = document("SELECT ?s ?o { ?s ?p ?o }", step)
    assert isinstance(found, dict)
    assert found["added"]["results"]["bindings"][0]["o"] == {"type": "triple", "value": member}


def test_ask_as_json() -> None:
    true, false = (Literal(text, datatype=NamedNode(XSD + "boolean")) for text in ("true", "false"))
    text = "ASK { ?s ?p ?o }"
    assert document(text, Step(0, Bag([(false,)]), Bag())) == {
        "sequence": 0,
        "added": {"head": {}, "boolean": False},
        "removed": None,
    }
    assert document(text, Step(1, Bag([(true,)]), Bag([(false,)]))) == {
        "sequence": 1,
        "added": {"head": {}, "boolean": True},
        "removed": {"head": {}, "boolean": False},
    }


@pytest.mark.parametrize("text", ["CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", "DESCRIBE <urn:a>"])
def test_graphs_as_json(text: str) -> None:
    label = Literal('say "x"\n', language="en")
    step = Step(2, Bag([(B, P, label), (A, P, B), (A, P, Triple(A, P, B))]), Bag([(BlankNode("b"), P, A)]))
    assert document(text, step) == {
        "sequence": 2,
        "added": [
            "<urn:a> <urn:p> <<( <urn:a> <urn:p> <urn:b> )>> .",
            "<urn:a> <urn:p> <urn:b> .",
            '<urn:b> <urn:p> "say \\"x\\"\\n"@en .',
        ],
        "removed": ["_:b <urn:p> <urn:a> ."],
    }
