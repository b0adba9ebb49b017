"""Classes of basic graph patterns, and their decomposition."""

import pytest
from tests.support.patterns import bgp

from evergraph.plan.continuous import PartClass, PatternClass, classify, decompose, describe, star_centres
from evergraph.sparql.algebra import BGP


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", PatternClass.GROUND),
        (":a :p :b", PatternClass.GROUND),
        (":a :p :b . :b :p 1", PatternClass.GROUND),
        ("?x :p :a", PatternClass.SIMPLE_STAR),
        ("?x :p :a . :b :q ?x . ?x :p 'text'@en", PatternClass.SIMPLE_STAR),
        ("?x :p ?x", PatternClass.SIMPLE_STAR),
        (":a ?p :b . ?p :q :c", PatternClass.SIMPLE_STAR),
        ("GRAPH ?g { :a :p :b }", PatternClass.SIMPLE_STAR),
        ("?x :p :a . :b :p :c", PatternClass.LOOSELY_CONNECTED),
        (":a :p ?x . :a :p ?y", PatternClass.LOOSELY_CONNECTED),
        ("?x :p :a . ?y :p :a . :a :p :b", PatternClass.LOOSELY_CONNECTED),
        ("GRAPH ?g { :a :p :b } ?x :p :a", PatternClass.LOOSELY_CONNECTED),
        ("?x :p ?y", PatternClass.CONNECTED_VARIABLE),
        ("?x ?p :a", PatternClass.CONNECTED_VARIABLE),
        ("[] :p ?y", PatternClass.CONNECTED_VARIABLE),
        ("GRAPH ?g { ?x :p :b }", PatternClass.CONNECTED_VARIABLE),
        ("GRAPH ?g { ?x :p :b . ?y :p :b }", PatternClass.CONNECTED_VARIABLE),
        ("?x ?p :a . :b ?p ?y", PatternClass.CONNECTED_VARIABLE),
        ("?x :p ?y . ?y :p ?z . ?z :p ?x . ?x :q :a", PatternClass.CONNECTED_VARIABLE),
        ("?x :p ?y . :a :p :b", PatternClass.ANY),
        ("?x :p ?y . ?z :p :a", PatternClass.ANY),
        ("?x :p ?y . ?z :p ?w", PatternClass.ANY),
    ],
)
def test_class(text: str, expected: PatternClass) -> None:
    assert classify(bgp(text)) is expected


def parts(pattern: BGP) -> list[tuple[str, list[str], int]]:
    return [
        (part.kind.value, [variable.value for variable in part.variables], len(part.triples))
        for part in decompose(pattern).parts
    ]


def test_example_1_of_the_paper_has_a_connected_part_a_star_and_a_ground_part() -> None:
    pattern = bgp("?X :p ?Y . ?Y :q ?Z . ?X :r :a . :a :p :b . :b :q ?W . ?W :r 'l' . ?Z :r :b")
    assert parts(pattern) == [
        ("ground", [], 1),
        ("connected variables", ["X", "Y", "Z"], 4),
        ("simple star", ["W"], 2),
    ]
    assert classify(pattern) is PatternClass.ANY


def test_example_2_of_the_paper_is_loosely_connected() -> None:
    pattern = bgp("?X :p :a . :a :q ?Y . :a :p :b . :b :r ?Z . ?Z :p 'l' . ?X :q :c")
    assert parts(pattern) == [
        ("ground", [], 1),
        ("simple star", ["X"], 2),
        ("simple star", ["Y"], 1),
        ("simple star", ["Z"], 2),
    ]
    assert classify(pattern) is PatternClass.LOOSELY_CONNECTED


def test_a_triple_pattern_that_occurs_twice_counts_once() -> None:
    assert parts(bgp("?x :p ?y . ?x :p ?y . :a :p :b . :a :p :b")) == [
        ("ground", [], 1),
        ("connected variables", ["x", "y"], 1),
    ]


def test_a_graph_variable_links_what_is_in_the_graph() -> None:
    assert parts(bgp("GRAPH ?g { ?x :p :a } GRAPH ?h { ?y :p :a }")) == [
        ("connected variables", ["g", "x"], 1),
        ("connected variables", ["h", "y"], 1),
    ]


def test_late_links_join_parts_that_were_apart() -> None:
    assert parts(bgp("?a :p ?b . ?c :p ?d . ?e :p :x . ?b :p ?c . ?e :q ?a")) == [
        ("connected variables", ["a", "b", "c", "d", "e"], 5)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("?x :p ?y . ?z :q ?x", ["?x"]),
        ("?x :p ?y", ["?x", "?y"]),
        (":a :p ?x . ?y :p :a", ["<http://example.org/a>"]),
        ("?x :p ?y . ?y :p ?z . ?z :p ?x", []),
        ("", []),
    ],
)
def test_centres_of_generalised_stars(text: str, expected: list[str]) -> None:
    assert list(map(str, star_centres(bgp(text)))) == expected


def test_every_part_says_what_bounds_its_state() -> None:
    bounds = {part.kind: part.bound for part in decompose(bgp(":a :p :b . ?x :p :a . ?y :p ?z")).parts}
    assert set(bounds) == set(PartClass)
    assert "bit" in bounds[PartClass.GROUND] and "centre" in bounds[PartClass.STAR]


def test_triple_patterns_are_written_with_their_graph() -> None:
    pattern = bgp("?x :p 1 . GRAPH ?g { ?x :p ?y }")
    assert [describe(triple) for triple in pattern.triples] == [
        '?x <http://example.org/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        "GRAPH ?g { ?x <http://example.org/p> ?y }",
    ]
