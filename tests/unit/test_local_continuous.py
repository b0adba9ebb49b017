"""Maintainers of basic graph patterns without a store, class by class."""

from random import Random

import pytest
from tests.support.patterns import bgp, quad, quads

from evergraph.delta import Bag, Delta, Request
from evergraph.engines.local.continuous import ContinuousPattern, PatternMaintainer, StateSize
from evergraph.engines.local.continuous.encodings import CountedIds
from evergraph.errors import UsageError
from evergraph.plan.continuous import PartClass, PatternClass, decompose
from evergraph.sparql.algebra import BGP, TriplePattern
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.evaluate import Evaluator
from evergraph.sparql.expressions import Environment, Row
from evergraph.terms import DEFAULT_GRAPH, NamedNode, Quad, Variable


def short(bag: Bag[Row]) -> dict[str, int]:
    """Write rows with the last part of their names."""
    return {" ".join(str(term).strip("<>").rsplit("/", 1)[-1] for term in row): weight for row, weight in bag.items()}


def loaded(text: str, data: str) -> ContinuousPattern:
    pattern = ContinuousPattern(bgp(text))
    pattern.apply(Request(added=frozenset(quads(data))))
    return pattern


class TestGround:
    def test_the_answer_comes_with_the_last_triple_and_goes_with_the_first(self) -> None:
        pattern = ContinuousPattern(bgp(":a :p :b . :b :p :c"))
        assert short(pattern.insert(quad(":b :p :c"))) == {}
        assert short(pattern.insert(quad(":a :p :b"))) == {"": 1}
        assert short(pattern.insert(quad(":a :p :b"))) == {}
        assert pattern.result() == Bag([()])
        assert short(pattern.delete(quad(":b :p :c"))) == {"": -1}
        assert short(pattern.delete(quad(":b :p :c"))) == {}
        assert short(pattern.delete(quad(":a :p :b"))) == {}

    def test_one_bit_for_each_triple_and_nothing_for_others(self) -> None:
        pattern = loaded(":a :p :b . :b :p :c", ":b :p :d . :c :p :a . :a :q :b . :a { :a :p :b }")
        assert pattern.state().entries == 2
        assert pattern.state().bytes < 64
        assert len(pattern) == 0

    def test_the_empty_pattern_has_its_answer_from_the_start(self) -> None:
        pattern = ContinuousPattern(bgp(""))
        assert pattern.result() == Bag([()])
        assert short(pattern.insert(quad(":a :p :b"))) == {}
        assert pattern.state() == StateSize(0, 0)

    def test_a_pattern_that_nothing_can_match(self) -> None:
        literal = quad(":a :p 'l'").object
        pattern = ContinuousPattern(BGP((TriplePattern(literal, literal, literal, literal),)))
        pattern.insert(quad(":a :p 'l'"))
        assert len(pattern) == 0


class TestSimpleStar:
    def test_bits_of_each_candidate(self) -> None:
        pattern = ContinuousPattern(bgp("?x a :City ; :in :Greece . :Corfu :near ?x"))
        assert short(pattern.insert(quad(":Parga a :City"))) == {}
        assert short(pattern.insert(quad(":Rome a :City"))) == {}
        assert pattern.state().entries == 2
        assert short(pattern.insert(quad(":Corfu :near :Parga"))) == {}
        assert short(pattern.insert(quad(":Parga :in :Greece"))) == {"Parga": 1}
        assert pattern.state().entries == 2
        assert short(pattern.delete(quad(":Parga a :City"))) == {"Parga": -1}
        assert short(pattern.delete(quad(":Parga a :City"))) == {}
        assert short(pattern.insert(quad(":Parga a :City"))) == {"Parga": 1}

    def test_a_candidate_without_bits_is_forgotten(self) -> None:
        pattern = loaded("?x :p :a ; :q :b", ":x :p :a ; :q :b . :y :p :a")
        assert pattern.state().entries == 2
        for text in (":x :p :a", ":y :p :a", ":y :q :b", ":x :q :b"):
            pattern.delete(quad(text))
        assert pattern.state().entries == 0

    def test_one_triple_may_be_an_instance_of_two_patterns_for_two_values(self) -> None:
        pattern = ContinuousPattern(bgp("?x :p :a . :b :p ?x"))
        assert short(pattern.insert(quad(":b :p :a"))) == {}
        assert pattern.state().entries == 2
        assert short(pattern.insert(quad(":a :p :a"))) == {"a": 1}
        assert short(pattern.insert(quad(":b :p :b"))) == {"b": 1}
        assert short(pattern.delete(quad(":b :p :a"))) == {"a": -1, "b": -1}

    def test_one_triple_may_set_two_bits_of_one_value(self) -> None:
        pattern = ContinuousPattern(bgp("?x :p :a . :a :p ?x"))
        assert short(pattern.insert(quad(":a :p :a"))) == {"a": 1}
        assert short(pattern.delete(quad(":a :p :a"))) == {"a": -1}
        assert pattern.state().entries == 0

    def test_a_variable_twice_in_a_triple(self) -> None:
        pattern = ContinuousPattern(bgp("?x :p ?x"))
        assert short(pattern.insert(quad(":a :p :b"))) == {}
        assert short(pattern.insert(quad(":a :p :a"))) == {"a": 1}
        assert pattern.state().entries == 1

    def test_a_predicate_as_centre(self) -> None:
        pattern = loaded(":a ?p :b . ?p a :Link", ":a :q :b . :a :r :b")
        assert short(pattern.insert(quad(":q a :Link"))) == {"q": 1}

    def test_a_graph_as_centre_is_never_the_default_graph(self) -> None:
        pattern = ContinuousPattern(bgp("GRAPH ?g { :a :p :b }"))
        assert short(pattern.insert(quad(":a :p :b"))) == {}
        assert short(pattern.insert(quad(":g { :a :p :b }"))) == {"g": 1}

    def test_literals_are_the_same_if_they_are_written_the_same(self) -> None:
        pattern = ContinuousPattern(bgp("?x :p 1"))
        assert short(pattern.insert(quad(":a :p '01'^^<http://www.w3.org/2001/XMLSchema#integer>"))) == {}
        assert short(pattern.insert(quad(":a :p '1'"))) == {}
        assert short(pattern.insert(quad(":a :p 1"))) == {"a": 1}


class TestLooselyConnected:
    TEXT = "?x :p :a . :a :q ?y . :a :p :b"

    def test_every_part_must_have_an_answer(self) -> None:
        pattern = ContinuousPattern(bgp(self.TEXT))
        assert short(pattern.insert(quad(":x1 :p :a"))) == {}
        assert short(pattern.insert(quad(":a :q :y1"))) == {}
        assert short(pattern.insert(quad(":a :p :b"))) == {"x1 y1": 1}
        assert short(pattern.insert(quad(":x2 :p :a"))) == {"x2 y1": 1}
        assert short(pattern.insert(quad(":a :q :y2"))) == {"x1 y2": 1, "x2 y2": 1}
        assert short(pattern.delete(quad(":a :p :b"))) == {"x1 y1": -1, "x2 y1": -1, "x1 y2": -1, "x2 y2": -1}
        assert len(pattern) == 0

    def test_a_batch_that_changes_several_parts_reports_no_row_that_comes_and_goes(self) -> None:
        pattern = loaded(self.TEXT, ":x1 :p :a . :a :q :y1 ; :p :b")
        change = Request(frozenset(quads(":a :q :y1")), frozenset(quads(":x2 :p :a . :a :q :y2")))
        assert short(pattern.apply(change)) == {"x1 y1": -1, "x1 y2": 1, "x2 y2": 1}

    def test_equal_stars_are_kept_once(self) -> None:
        pattern = loaded("?x :p :a . ?y :p :a . ?z :p :a", ":x1 :p :a . :x2 :p :a")
        assert pattern.state().entries == 2
        assert len(pattern) == 8
        assert short(pattern.delete(quad(":x2 :p :a"))).keys() == {
            *("x1 x1 x2", "x1 x2 x1", "x1 x2 x2", "x2 x1 x1", "x2 x1 x2", "x2 x2 x1", "x2 x2 x2")
        }

    def test_a_large_product_is_never_held(self) -> None:
        pattern = ContinuousPattern(bgp("?x :p :a . ?y :q :a . ?z :r :a . :a :p :b"))
        names = [NamedNode(f"http://example.org/{n}") for n in range(1_000)]
        predicates = [NamedNode(f"http://example.org/{name}") for name in "pqr"]
        node = NamedNode("http://example.org/a")
        change = pattern.stream(Request(added=frozenset(Quad(n, p, node) for n in names for p in predicates)))
        assert not change and not list(change.added())
        change = pattern.stream(Request(added=frozenset([quad(":a :p :b")])))
        assert (change.added_count, change.removed_count) == (1_000_000_000, 0)
        assert len({row for row, _ in zip(change.added(), range(100), strict=False)}) == 100
        assert pattern.state().entries == 3_001

    def test_a_change_is_read_before_the_next(self) -> None:
        pattern = ContinuousPattern(bgp(self.TEXT))
        change = pattern.stream(Request(added=frozenset(quads(":x1 :p :a . :a :q :y1 ; :p :b"))))
        pattern.stream(Request())
        with pytest.raises(UsageError, match="read it at once"):
            list(change.added())

    def test_a_change_whose_terms_may_be_forgotten_is_not_read(self) -> None:
        pattern = loaded("?x :p ?y", ":a :p :b . :c :p :d")
        change = pattern.stream(Request(removed=frozenset(quads(":a :p :b . :c :p :d"))))
        rows = change.removed()
        assert len(next(rows)) == 2
        pattern.insert(quad(":e :q :f"))
        with pytest.raises(UsageError):
            list(change.removed())
        with pytest.raises(UsageError):
            next(rows)


class TestConnected:
    PATH = "?a :knows ?b . ?b :knows ?c"

    def test_a_path(self) -> None:
        pattern = ContinuousPattern(bgp(self.PATH))
        assert short(pattern.insert(quad(":x :knows :y"))) == {}
        assert short(pattern.insert(quad(":y :knows :z"))) == {"x y z": 1}
        assert short(pattern.insert(quad(":y :knows :z"))) == {}
        assert short(pattern.insert(quad(":y :knows :w"))) == {"x y w": 1}
        assert short(pattern.delete(quad(":x :knows :y"))) == {"x y z": -1, "x y w": -1}
        assert short(pattern.delete(quad(":x :knows :y"))) == {}
        assert pattern.state().entries == 2

    def test_a_triple_that_joins_with_itself(self) -> None:
        pattern = ContinuousPattern(bgp(self.PATH))
        assert short(pattern.insert(quad(":x :knows :x"))) == {"x x x": 1}
        assert short(pattern.insert(quad(":x :knows :y"))) == {"x x y": 1}
        assert short(pattern.delete(quad(":x :knows :x"))) == {"x x x": -1, "x x y": -1}

    def test_a_quad_is_one_entry_however_many_patterns_it_matches(self) -> None:
        pattern = loaded("?x ?p ?y . ?y :knows ?z . ?u :knows ?w", ":x :knows :y . :y :knows :x")
        assert pattern.state().entries == 2
        assert short(pattern.delete(quad(":y :knows :x"))) == {
            **{f"knows {u} {v} x y x": -1 for u, v in [("x", "y"), ("y", "x")]},
            **{f"knows {u} {v} y x y": -1 for u, v in [("x", "y"), ("y", "x")]},
        }

    def test_quads_that_match_nothing_are_not_kept(self) -> None:
        pattern = loaded("?x :p ?y . ?y :q :a", ":x :r :y . :x :q :b . :g { :x :p :y }")
        assert pattern.state().entries == 0
        pattern.apply(Delta())
        assert isinstance(pattern._encoding, CountedIds)
        assert len(pattern._encoding) == 4  # :p, :q, :a and the default graph

    def test_terms_are_forgotten_with_the_last_quad(self) -> None:
        pattern = loaded(self.PATH, ":x :knows :y . :y :knows :z")
        for text in (":x :knows :y", ":y :knows :z"):
            pattern.delete(quad(text))
        pattern.apply(Delta())
        assert isinstance(pattern._encoding, CountedIds)
        assert len(pattern._encoding) == 2
        assert short(pattern.apply(Request(added=frozenset(quads(":u :knows :v . :v :knows :w"))))) == {"u v w": 1}

    def test_triangles_are_found_by_intersection(self) -> None:
        pattern = ContinuousPattern(bgp("?a :p ?b . ?b :p ?c . ?c :p ?a"))
        pattern.apply(Request(added=frozenset(quads(":x :p :y, :z . :y :p :z, :u . :u :p :x"))))
        assert short(pattern.insert(quad(":z :p :x"))) == {"x y z": 1, "y z x": 1, "z x y": 1}
        assert short(pattern.delete(quad(":y :p :u"))) == {"x y u": -1, "y u x": -1, "u x y": -1}

    def test_a_hub_costs_what_the_smaller_side_of_a_join_costs(self) -> None:
        pattern = ContinuousPattern(bgp("?a :p ?hub . ?hub :q ?b . ?b :r :x"))
        pattern.apply(Request(added=frozenset(quads(" . ".join(f":hub :q :b{n}" for n in range(500))))))
        pattern.apply(Request(added=frozenset(quads(" . ".join(f":b{n} :r :x" for n in range(495, 1_000))))))
        assert short(pattern.insert(quad(":a :p :hub"))) == {f"a b{n} hub": 1 for n in range(495, 500)}
        for n in range(498):
            pattern.delete(quad(f":hub :q :b{n}"))
        assert short(pattern.result()) == {f"a b{n} hub": 1 for n in (498, 499)}
        assert pattern.state().entries == 2 + 505 + 1

    def test_branches_are_followed_once_and_multiplied(self) -> None:
        pattern = ContinuousPattern(bgp("?a :p ?m . ?m :q ?b . ?b :r ?c . ?m :q ?d . ?d :s ?e . ?m :t ?f"))
        pattern.apply(Request(added=frozenset(quads(":m :q :n, :o ; :t :f, :g . :n :r :x, :y . :o :s :z"))))
        delta = pattern.insert(quad(":a :p :m"))
        assert short(delta) == {f"a n {c} o z {f} m": 1 for c in "xy" for f in "fg"}
        assert short(pattern.delete(quad(":m :q :o"))) == {f"a n {c} o z {f} m": -1 for c in "xy" for f in "fg"}

    def test_a_branch_without_solutions_ends_the_join_early(self) -> None:
        pattern = ContinuousPattern(bgp("?a :p ?m . ?x :q ?m . ?x :r ?y . ?m :s ?b . ?b :t ?c"))
        many = "".join(f":x{n} :q :m ; :r :y . " for n in range(2_000)) + "".join(
            f":m :s :b{n} . " for n in range(2_000)
        )
        pattern.apply(Request(added=frozenset(quads(many.strip()))))
        assert short(pattern.insert(quad(":a :p :m"))) == {}  # four million steps if the branches were nested

    def test_variables_for_graph_predicate_and_node_at_once(self) -> None:
        pattern = ContinuousPattern(bgp("GRAPH ?x { ?x ?x ?y }"))
        assert short(pattern.insert(quad(":a { :a :a :b }"))) == {"a b": 1}
        assert short(pattern.insert(quad(":b { :a :a :b }"))) == {}
        assert pattern.state().entries == 1

    def test_long_patterns_go_beyond_what_python_nests(self) -> None:
        chain = " . ".join(f"?v{n:02} :p ?v{n + 1:02} ; :q ?w{n:02}" for n in range(40))
        pattern = ContinuousPattern(bgp(chain))
        links = [quad(f":n{n} :p :n{n + 1}") for n in range(41)] + [quad(f":n{n} :q :m") for n in range(42)]
        Random(1).shuffle(links)
        assert sum(len(pattern.insert(link)) for link in links) == 2
        assert len(pattern.result()) == len(pattern) == 2
        assert sum(len(pattern.delete(link)) for link in links) == 2
        assert pattern.state().entries == 0


def test_explain_tells_class_decomposition_bounds_and_state() -> None:
    explained = loaded(":a :p :b . ?x :p :a . ?y :q ?z", ":a :p :b . :c :p :a . :d :q :e").explain()
    assert explained.pattern_class is PatternClass.ANY
    assert explained.centres == ()
    assert [part.kind for part in explained.parts] == [PartClass.GROUND, PartClass.STAR, PartClass.CONNECTED]
    assert explained.parts[2].triples == ("?y <http://example.org/q> ?z",)
    assert explained.parts[2].bound == "the quads that match some of its triple patterns"
    assert (explained.answers, explained.state.entries) == (1, 3)
    assert explained.state.bytes > 500


def test_a_maintainer_works_on_the_ids_of_an_engine() -> None:
    ids: dict[object, int] = {DEFAULT_GRAPH: 0}

    def encode(term: object) -> int:
        return ids.setdefault(term, len(ids))

    maintainer = PatternMaintainer(decompose(bgp("?x :p ?y . ?y :q :a")), encode)
    assert maintainer.variables == (Variable("x"), Variable("y"))

    def members(text: str) -> tuple[int, int, int, int]:
        one = quad(text)
        return encode(one.subject), encode(one.predicate), encode(one.object), encode(one.graph_name)

    assert maintainer.insert(members(":x :p :y"))
    assert not maintainer.insert(members(":x :p :y"))
    assert maintainer.changes() == {}
    assert maintainer.insert(members(":y :q :a"))
    x, _, y, _ = members(":x :p :y")
    assert maintainer.changes() == {(x, y): 1}
    assert maintainer.delete(members(":x :p :y"))
    assert list(maintainer.take().items()) == [((x, y), -1)]


def test_the_columns_are_those_of_evaluation_from_scratch() -> None:
    pattern = bgp("?b :p ?a . [] :q ?b . GRAPH ?g { ?z :p 1 }")
    relation = Evaluator(Dataset(quads("")), Environment()).evaluate(pattern)
    assert ContinuousPattern(pattern).variables == relation.columns
