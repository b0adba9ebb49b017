"""What the local engine promises besides right results: isolation, limits, refusals, little state."""

import pytest
from pyoxigraph import RdfFormat, parse

from evergraph.delta import Bag, Delta, Request
from evergraph.engines.local.engine import LocalEngine
from evergraph.errors import StateLimit, SyntaxProblem, UnsupportedQuery, UsageError
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.parser import parse_query
from evergraph.terms import Literal, Quad
from evergraph.views.queries import result_rows

PREFIX = "PREFIX : <http://example.org/> "


def quads(text: str) -> frozenset[Quad]:
    return frozenset(parse(f"@prefix : <http://example.org/> . {text}", RdfFormat.TRIG))


def insert(engine: LocalEngine, text: str) -> int:
    return len(engine.apply(Delta(inserted=quads(text))))


def delete(engine: LocalEngine, text: str) -> int:
    return len(engine.apply(Delta(deleted=quads(text))))


def test_a_change_is_reported_to_the_views_that_it_changes() -> None:
    engine = LocalEngine()
    one = engine.register(PREFIX + "SELECT ?s { ?s :p ?o }")
    two = engine.register(PREFIX + "SELECT ?s { ?s :q ?o }")
    [(view, rows)] = engine.apply(Delta(inserted=quads(":a :p :b, :c .")))
    assert view is one
    assert [weight for _, weight in view.added(rows).items()] == [2]
    assert not len(view.removed(rows))
    assert len(two.result()) == 0


def test_a_change_that_cancels_out_is_not_reported() -> None:
    engine = LocalEngine()
    engine.register(PREFIX + "SELECT DISTINCT ?s { ?s :p ?o }")
    assert insert(engine, ":a :p :b .") == 1
    assert not engine.apply(Delta(inserted=quads(":a :p :c ."), deleted=quads(":a :p :b .")))


def test_the_same_triple_in_several_patterns() -> None:
    engine = LocalEngine()
    view = engine.register(PREFIX + "SELECT * { ?a :p ?b . ?b :p ?c . ?a :p ?b }")
    insert(engine, ":x :p :x .")
    assert [weight for _, weight in view.result().items()] == [1]
    delete(engine, ":x :p :x .")
    assert len(view.result()) == 0


def test_inexact_messages_change_nothing() -> None:
    engine = LocalEngine()
    view = engine.register(PREFIX + "SELECT ?s { ?s :p ?o }")
    asked = Request(added=quads(":a :p :b . :a :unused :b ."), removed=quads(":c :p :d ."))
    assert len(engine.apply_request(asked)) == 1
    assert not engine.apply_request(asked)
    assert len(view.result()) == 1


def test_a_quad_that_is_removed_and_added_stays() -> None:
    engine = LocalEngine()
    engine.register(PREFIX + "ASK { ?s :p ?o }")
    insert(engine, ":a :p :b .")
    assert not engine.apply_request(Request(added=quads(":a :p :b ."), removed=quads(":a :p :b .")))


def test_late_registration_needs_a_source() -> None:
    engine = LocalEngine()
    insert(engine, ":a :p :b .")
    with pytest.raises(UsageError, match="not kept"):
        engine.register(PREFIX + "SELECT ?s { ?s :p ?o }")
    assert engine.is_empty()
    present = quads(":a :p :b . :a :q :c .")
    engine = LocalEngine(source=lambda: present)
    assert len(engine.register(PREFIX + "SELECT * { ?s :p ?o ; :q ?x }").result()) == 1


def test_late_registration_uses_what_others_keep() -> None:
    engine = LocalEngine()
    engine.register(PREFIX + "SELECT * { ?s ?p ?o }")
    insert(engine, ":a :p :b . :b :q :c .")
    assert len(engine.register(PREFIX + "SELECT * { ?s :p/:q ?o }").result()) == 1


def test_only_quads_that_a_view_can_use_are_kept() -> None:
    engine = LocalEngine()
    view = engine.register(PREFIX + "SELECT ?s { ?s :p :b }")
    insert(engine, ":a :p :b . :a :p :c . :a :q :b . GRAPH :g { :a :p :b }")
    assert engine.size() == 1
    engine.remove(view)
    assert engine.is_empty()


def test_a_view_over_its_limit_fails_alone() -> None:
    engine = LocalEngine()
    greedy = engine.register(PREFIX + "SELECT * { ?a :p ?b . ?c :q ?d }", limit=10)
    modest = engine.register(PREFIX + "SELECT * { ?a :p ?b }")
    insert(engine, " ".join(f":a :p {n} . :a :q {n} ." for n in range(9)))
    assert isinstance(greedy.failed, StateLimit)
    with pytest.raises(StateLimit, match="more than 10 entries"):
        greedy.result()
    assert len(modest.result()) == 9
    insert(engine, ":b :p 1 .")
    assert len(modest.result()) == 10
    engine.remove(greedy)
    engine.remove(modest)
    assert engine.is_empty()


def test_a_closure_over_its_limit_fails() -> None:
    engine = LocalEngine()
    view = engine.register(PREFIX + "SELECT * { ?a :p+ ?b }", limit=100)
    insert(engine, " ".join(f":n{n} :p :n{n + 1} ." for n in range(50)))
    assert isinstance(view.failed, StateLimit)


@pytest.mark.parametrize("call", ["RAND()", "UUID()", "STRUUID()", "BNODE()"])
def test_volatile_functions_are_refused(call: str) -> None:
    for text in (f"SELECT ({call} AS ?x) {{}}", f"ASK {{ FILTER EXISTS {{ ?s ?p ?o FILTER({call} != 1) }} }}"):
        with pytest.raises(UnsupportedQuery, match="another value each time"):
            LocalEngine().register(text)


def test_service_is_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="SERVICE"):
        LocalEngine().register("SELECT * { SERVICE <http://example.org/> { ?s ?p ?o } }")


def test_an_unknown_function_is_refused_and_leaves_nothing() -> None:
    engine = LocalEngine()
    with pytest.raises(UnsupportedQuery, match="not known"):
        engine.register(PREFIX + "SELECT * { ?s :p ?o FILTER(:f(?o)) }")
    assert engine.is_empty()


def test_a_syntax_error_has_its_place() -> None:
    with pytest.raises(SyntaxProblem) as caught:
        LocalEngine().register("SELECT * {\n ?s ?p }")
    assert caught.value.line == 2


def test_now_is_the_moment_of_registration() -> None:
    engine = LocalEngine()
    view = engine.register(PREFIX + "SELECT ?s (NOW() AS ?now) { ?s :p ?o }")
    insert(engine, ":a :p 1 .")
    insert(engine, ":b :p 1 .")
    assert len({now for _, now in view.result()}) == 1


def test_ask_turns() -> None:
    engine = LocalEngine()
    view = engine.register(PREFIX + "ASK { ?s :p ?o }")
    assert view.result() == Bag([(Literal(False),)])
    [(_, rows)] = engine.apply(Delta(inserted=quads(":a :p :b .")))
    assert view.added(rows) == Bag([(Literal(True),)])
    assert view.removed(rows) == Bag([(Literal(False),)])
    assert insert(engine, ":a :p :c .") == 0


def test_sums_recover_from_errors_and_infinities() -> None:
    engine = LocalEngine()
    view = engine.register(PREFIX + "SELECT (SUM(?o) AS ?sum) (AVG(?o) AS ?avg) { ?s :p ?o }")

    def texts() -> list[str | None]:
        [row] = view.result()
        return [None if one is None else str(getattr(one, "value", one)) for one in row]

    assert texts() == ["0", "0"]
    insert(engine, ":a :p 1 . :b :p 1e300 . :c :p 0.5 . :d :p -1e300 .")
    assert texts()[0] in ("1.5E0", "1.5", "1.5e0")
    insert(engine, ':e :p "x" .')
    assert texts() == [None, None]
    insert(engine, ':f :p "INF"^^<http://www.w3.org/2001/XMLSchema#double> .')
    delete(engine, ':e :p "x" .')
    assert texts()[0] == "INF"
    delete(engine, ':f :p "INF"^^<http://www.w3.org/2001/XMLSchema#double> . :b :p 1e300 . :d :p -1e300 . :c :p 0.5 .')
    assert texts() == ["1", "1"]


def test_descriptions_follow_blank_nodes() -> None:
    engine = LocalEngine()
    view = engine.register(PREFIX + "DESCRIBE ?s { ?s a :Thing }")
    insert(engine, ":a a :Thing . :a :p _:x . _:x :q _:y . _:y :r 1 . :b :p 2 .")
    assert len(view.result()) == 4
    delete(engine, "_:x :q _:y .")
    assert len(view.result()) == 2
    insert(engine, ":b a :Thing .")
    assert len(view.result()) == 4
    delete(engine, ":a a :Thing .")
    assert len(view.result()) == 2


def test_a_long_pattern_is_cut() -> None:
    engine = LocalEngine()
    chain = " . ".join(f"?v{n} :p ?v{n + 1}" for n in range(40))
    view = engine.register(PREFIX + f"SELECT * {{ {chain} }}")
    insert(engine, ":a :p :a .")
    assert len(view.result()) == 1
    delete(engine, ":a :p :a .")
    assert len(view.result()) == 0


def test_the_limit_is_for_the_whole_view() -> None:
    engine = LocalEngine()
    text = "SELECT DISTINCT ?s { { ?s :p ?o } OPTIONAL { ?s :q ?x } FILTER NOT EXISTS { ?s :r ?y } }"
    view = engine.register(PREFIX + text, limit=40)
    insert(engine, " ".join(f":s{n} :p 1 ." for n in range(10)))
    assert view.failed is None
    assert view.size() == 40
    insert(engine, ":more :p 1 .")
    assert isinstance(view.failed, StateLimit)


def test_a_large_result_counts() -> None:
    engine = LocalEngine()
    view = engine.register(PREFIX + "SELECT * { ?s :p ?o }", limit=10)
    insert(engine, " ".join(f":s :p {n} ." for n in range(10)))
    assert view.failed is None
    insert(engine, ":s :p 10 .")
    assert isinstance(view.failed, StateLimit)


@pytest.mark.parametrize("pattern", ["?s :p ?a ; :q ?b ; :r ?c", "?a :p ?s . ?s :q ?b . ?s :r ?c"])
def test_a_huge_product_stops_at_the_limit(pattern: str) -> None:
    engine = LocalEngine()
    other = engine.register(PREFIX + "SELECT (COUNT(*) AS ?n) { ?s :q ?o }")
    greedy = engine.register(PREFIX + f"SELECT * {{ {pattern} }}", limit=5_000)
    insert(engine, " ".join(f":s :{p} :o{n} ." for n in range(1000) for p in "qr"))
    assert greedy.failed is None
    insert(engine, ":s :p :o . :o :p :s .")
    assert isinstance(greedy.failed, StateLimit)
    delete(engine, " ".join(f":s :{p} :o{n} ." for n in range(1000) for p in "qr"))
    assert other.result() == Bag([(Literal(0),)])
    with pytest.raises(StateLimit):
        LocalEngine(source=lambda: quads(" ".join(f":s :{p} :o{n} ." for n in range(500) for p in "pqr"))).register(
            PREFIX + "SELECT * { ?s :p ?a ; :q ?b ; :r ?c }", limit=5_000
        )


def test_a_sum_that_no_double_can_hold_is_infinite() -> None:
    engine = LocalEngine()
    view = engine.register(PREFIX + "SELECT (SUM(?o) AS ?sum) { ?s :p ?o }")
    insert(engine, ":a :p 1e308 . :b :p 9e307 .")
    assert [str(row[0]) for row in view.result()] == ['"INF"^^<http://www.w3.org/2001/XMLSchema#double>']
    delete(engine, ":a :p 1e308 .")
    assert [str(row[0]) for row in view.result()] == ['"9.0E307"^^<http://www.w3.org/2001/XMLSchema#double>']


LABELLED = (
    'SELECT ?s (BNODE("x") AS ?r) { ?s ?p ?o }',
    'SELECT ?s ?same { ?s ?p ?o BIND(BNODE("a") AS ?r) BIND(BNODE("a") = ?r AS ?same) }',
    'SELECT ?s (IF(EXISTS { ?s ?p "1" }, BNODE("a"), 1) = ?r AS ?same) { ?s ?p ?o BIND(BNODE("a") AS ?r) }',
    "SELECT ?r (COUNT(*) AS ?n) { ?s ?p ?o OPTIONAL { ?o ?q ?x } BIND(BNODE(STR(?p)) AS ?r) } GROUP BY ?r",
)


@pytest.mark.parametrize("text", LABELLED)
def test_labelled_blank_nodes_are_those_of_a_run_from_scratch(text: str) -> None:
    data = quads(':a :p "1", :b . :b :p :a .')
    engine = LocalEngine()
    view = engine.register(text)
    for quad in data:
        engine.apply(Delta(inserted=frozenset([quad])))
    assert view.result() == result_rows(parse_query(text), Dataset(data), view.environment)


def test_labelled_blank_nodes_in_conditions_are_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="BIND and in SELECT only"):
        LocalEngine().register('SELECT ?s { ?s ?p ?o BIND(BNODE("a") AS ?r) FILTER(BNODE("a") = ?r) }')
