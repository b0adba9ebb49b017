"""Evaluation from scratch: what random queries seldom meet, and what must stay as it was decided."""

import pytest
from pyoxigraph import RdfFormat, parse

from evergraph.errors import UnsupportedQuery
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.parser import parse_query
from evergraph.sparql.results import Solutions, evaluate_query
from evergraph.terms import Triple

PROLOGUE = "PREFIX : <urn:> "


def rows(data: str, query: str) -> list[str]:
    """Evaluate a SELECT; a row is the text of its values, ``-`` for none; rows without an order are sorted."""
    result = evaluate_query(parse_query(PROLOGUE + query), Dataset(parse(PROLOGUE + data, RdfFormat.TRIG)))
    assert isinstance(result, Solutions)
    written = [
        " ".join("-" if term is None else getattr(term, "value", "?").removeprefix("urn:") for term in row)
        for row in result.sequence or result.bag.rows()
    ]
    return written if result.sequence is not None else sorted(written)


class TestJoins:
    def test_unbound_is_not_a_value(self) -> None:
        query = "SELECT ?x ?y { VALUES (?x ?y) { (1 UNDEF) (UNDEF 2) } VALUES (?x ?y) { (1 2) (UNDEF 3) } }"
        assert rows("", query) == ["1 2", "1 2", "1 3"]

    def test_terms_join_by_their_exact_form(self) -> None:
        assert rows(":a :p 1 . :b :q 01 .", "SELECT ?v { :a :p ?v . :b :q ?v }") == []
        assert rows(":a :p 1 . :b :q 01 .", "SELECT ?v ?w { :a :p ?v . :b :q ?w FILTER(?v = ?w) }") == ["1 01"]

    def test_minus_needs_a_shared_variable_in_the_solution(self) -> None:
        assert rows(":a :p :b .", "SELECT ?x { ?x :p ?y MINUS { :a :p :b } }") == ["a"]
        assert rows(":a :p :b .", "SELECT ?x { ?x :p ?y MINUS { ?x :p :b } }") == []
        assert rows(":a :p :b .", "SELECT ?x { ?x :p ?y MINUS { OPTIONAL { ?x :q ?z } } }") == ["a"]

    def test_optional_keeps_what_finds_no_partner(self) -> None:
        data = ":a :p 1 . :b :p 2 . :a :q 5 . :b :q 1 ."
        assert rows(data, "SELECT ?x ?v { ?x :p ?w OPTIONAL { ?x :q ?v FILTER(?v > ?w) } }") == ["a 5", "b -"]


class TestPaths:
    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            (":a :p* ?x", ["a", "b", "c"]),
            (":a :p+ ?x", ["b", "c"]),
            (":a :p? ?x", ["a", "b"]),
            ("?x :p* :c", ["a", "b", "c"]),
            (":absent :p* ?x", ["absent"]),
            (":absent :p+ ?x", []),
            ("?x :p? :absent", ["absent"]),
            (":a (:p|:p) ?x", ["b", "b"]),
            (":a (:p/:p) ?x", ["c"]),
            (":c ^:p ?x", ["b"]),
            (":b !(:q|^:q) ?x", ["a", "c"]),
        ],
    )
    def test_operators(self, path: str, expected: list[str]) -> None:
        assert rows(":a :p :b . :b :p :c .", f"SELECT ?x {{ {path} }}") == expected

    def test_cycles_end(self) -> None:
        assert rows(":a :p :b . :b :p :a .", "SELECT ?x ?y { ?x :p+ ?y }") == ["a a", "a b", "b a", "b b"]
        assert rows(":a :p :b . :b :p :a .", "SELECT ?x { ?x :p+ ?x }") == ["a", "b"]

    def test_sequences_keep_duplicates_and_closures_do_not(self) -> None:
        diamond = ":a :p :b, :c . :b :p :d . :c :p :d ."
        assert rows(diamond, "SELECT ?x { :a :p/:p ?x }") == ["d", "d"]
        assert rows(diamond, "SELECT ?x { :a (:p/:p)+ ?x }") == ["d"]

    def test_there_is_no_path_outside_of_a_graph(self) -> None:
        assert rows(":g { :a :p :b }", "SELECT ?g ?x { GRAPH ?g { :absent :p* ?x } }") == ["g absent"]
        assert rows(":g { :a :p :b }", "SELECT ?x { GRAPH :h { :absent :p* ?x } }") == []


class TestGraphs:
    data = ":a :p 1 . :g { :a :p 2 . :a :p 3 } :h { :a :p 3 }"

    def test_names(self) -> None:
        assert rows(self.data, "SELECT ?g { GRAPH ?g {} }") == ["g", "h"]
        assert rows(self.data, "SELECT * { GRAPH :absent { VALUES ?x { 1 } } }") == []

    def test_counts_graph_by_graph(self) -> None:
        query = "SELECT ?g ?n { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s :q ?o } } }"
        assert rows(self.data, query) == ["g 0", "h 0"]
        assert rows(self.data, "SELECT ?g ?n { GRAPH ?g { { SELECT (SUM(?o) AS ?n) { ?s :p ?o } } } }") == [
            "g 5",
            "h 3",
        ]

    def test_slices_graph_by_graph(self) -> None:
        assert rows(self.data, "SELECT ?g ?o { GRAPH ?g { SELECT ?o { ?s :p ?o } LIMIT 1 } }") == ["g 2", "h 3"]

    def test_the_name_is_not_bound_within(self) -> None:
        assert rows(self.data, "SELECT ?g { GRAPH ?g { ?s :p ?o FILTER(BOUND(?g)) } }") == []
        assert rows(self.data, "SELECT ?g { GRAPH ?g { ?s :p ?o } FILTER(BOUND(?g)) }") == ["g", "g", "h"]

    def test_a_merge_is_a_set(self) -> None:
        assert rows(self.data, "SELECT ?o FROM :g FROM :h { ?s :p ?o }") == ["2", "3"]
        assert rows(self.data, "SELECT ?g FROM NAMED :g { GRAPH ?g { ?s :p ?o } }") == ["g", "g"]
        assert rows(self.data, "SELECT ?o FROM NAMED :g { ?s :p ?o }") == []


class TestExists:
    """The holes in the definition of EXISTS, and how they are closed."""

    def test_a_blank_node_is_itself(self) -> None:
        data = "_:x :p :a . :b :q :c ."
        assert rows(data, "SELECT ?o { ?s :p ?o FILTER EXISTS { ?s :q ?z } }") == []

    def test_filters_in_nested_groups_see_the_solution(self) -> None:
        data = ":a :p 1 . :a :q 1 . :b :p 2 . :b :q 3 ."
        query = "SELECT ?x { ?x :p ?v FILTER EXISTS { { ?x :q ?w FILTER(?w = ?v) } } }"
        assert rows(data, query) == ["a"]

    def test_minus_shares_the_variables_that_it_names(self) -> None:
        data = ":a :p 1 . :b :q 2 ."
        inner = "EXISTS { ?x :p ?v MINUS { ?y :q ?w } }"
        assert rows(data, f"SELECT ?x {{ ?x :p ?v FILTER {inner} }}") == ["a"]
        assert rows(data, "SELECT ?x { ?x :p ?v FILTER EXISTS { ?x :p ?w MINUS { ?x :p ?v } } }") == []

    def test_what_the_pattern_assigns_must_be_the_given_value(self) -> None:
        data = ":a :p 1 . :b :p 2 ."
        assert rows(data, "SELECT ?x { ?x :p ?v FILTER EXISTS { BIND(1 AS ?v) } }") == ["a"]
        assert rows(data, "SELECT ?x { ?x :p ?v FILTER EXISTS { VALUES ?v { 2 } } }") == ["b"]

    def test_hidden_variables_of_a_sub_select_are_others(self) -> None:
        data = ":a :p 1 . :b :p 2 ."
        assert rows(data, "SELECT ?x { ?x :p ?v FILTER EXISTS { SELECT ?y { ?y :p ?v FILTER(?v = 2) } } }") == [
            "a",
            "b",
        ]
        assert rows(data, "SELECT ?x { ?x :p ?v FILTER EXISTS { SELECT ?v { ?y :p ?v FILTER(?v = 2) } } }") == ["b"]

    def test_the_active_graph(self) -> None:
        data = ":a :q 1 . :g { :a :p 1 . :a :q 2 } :h { :a :p 1 }"
        assert rows(data, "SELECT ?g { GRAPH ?g { ?x :p ?v FILTER EXISTS { ?x :q ?w } } }") == ["g"]
        assert rows(data, "SELECT ?g { GRAPH ?g { ?x :p ?v } FILTER EXISTS { ?x :q ?w } }") == ["g", "h"]
        assert rows(data, "SELECT ?g { GRAPH ?g { } FILTER EXISTS { GRAPH ?g { ?x :q ?w } } }") == ["g"]


class TestModifiers:
    data = ":a :p 2 . :b :p 1 . :c :p 2 . :d :p 1 ."

    def test_ties_are_broken_by_the_columns(self) -> None:
        assert rows(self.data, "SELECT ?x { ?x :p ?v } ORDER BY DESC(?v)") == ["a", "c", "b", "d"]
        assert rows(self.data, "SELECT ?x { ?x :p ?v } ORDER BY DESC(?v) LIMIT 2 OFFSET 1") == ["c", "b"]
        assert rows(self.data, "SELECT ?v { ?x :p ?v } LIMIT 3") == ["1", "1", "2"]

    def test_distinct_keeps_the_first(self) -> None:
        assert rows(self.data, "SELECT DISTINCT ?v { ?x :p ?v } ORDER BY ?x") == ["2", "1"]
        assert rows(self.data, "SELECT REDUCED ?v { ?x :p ?v }") == ["1", "1", "2", "2"]

    def test_groups(self) -> None:
        assert rows(self.data, "SELECT ?v (COUNT(*) AS ?n) { ?x :p ?v } GROUP BY ?v") == ["1 2", "2 2"]
        assert rows(self.data, "SELECT (COUNT(*) AS ?n) { ?x :q ?v }") == ["0"]
        assert rows(self.data, "SELECT (COUNT(*) AS ?n) { ?x :q ?v } GROUP BY ?v") == []
        assert rows(self.data, "SELECT ?k (MAX(?x) AS ?m) { ?x :p ?v } GROUP BY (?v * 2 AS ?k)") == ["2 d", "4 c"]
        assert rows(self.data, "SELECT ?v { ?x :p ?v } GROUP BY ?v HAVING (MIN(?x) = :a)") == ["2"]
        assert rows(self.data, "SELECT (COUNT(DISTINCT *) AS ?n) { ?x :p [] }") == ["4"]
        assert rows(self.data, "SELECT ?v { ?x :p ?v } GROUP BY ?v ORDER BY ?x") == ["2", "1"]

    def test_equal_solutions_get_different_random_values(self) -> None:
        found = rows("", "SELECT ?r { { } UNION { } BIND(STRUUID() AS ?r) }")
        assert len(set(found)) == 2


def test_service_is_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="SERVICE"):
        rows("", "SELECT * { SERVICE <urn:x> { ?a ?b ?c } }")


def test_construct_makes_the_same_blank_nodes_again() -> None:
    query = parse_query(PROLOGUE + "CONSTRUCT { ?x :made _:n . _:n :of ?v . ?v :p ?x } { ?x :p ?v }")
    dataset = Dataset(parse(PROLOGUE + ":a :p 1, :b .", RdfFormat.TRIG))
    first, second = evaluate_query(query, dataset), evaluate_query(query, dataset)
    assert first == second
    assert isinstance(first, frozenset)
    assert len(first) == 5
    assert len({triple.subject for triple in first if "of" in str(triple.predicate)}) == 2


def test_describe_follows_blank_nodes() -> None:
    data = ":a :p [ :q [ :r :b ] ] . :b :p 1 . :c :p :a . :g { :a :p 2 }"
    result = evaluate_query(parse_query(PROLOGUE + "DESCRIBE :a"), Dataset(parse(PROLOGUE + data, RdfFormat.TRIG)))
    assert isinstance(result, frozenset)
    assert sorted(triple.predicate.value for triple in result if isinstance(triple, Triple)) == [
        "urn:p",
        "urn:q",
        "urn:r",
    ]
