"""The normal form of views, row by row of the paper's table, and the resources that updates affect by patterns."""

from random import Random

import pytest
from tests.support.link_histories import TEMPLATE, iri, random_delta, random_quad

from evergraph.delta import Delta
from evergraph.errors import UnsupportedQuery
from evergraph.linking.catalogue import catalogue
from evergraph.sparql.algebra import Path, Select, TriplePattern
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Environment
from evergraph.sparql.parser import parse_query
from evergraph.terms import Literal, Quad
from evergraph.views.linksets import CatalogueView
from evergraph.views.linksets.affected import affected, predicate_patterns
from evergraph.views.queries import result_rows

PREFIX = "PREFIX : <http://example.org/> SELECT ?x ?y WHERE "
TABLE = (
    ("^e", "{ ?x ^:e ?y }", "{ ?y :e ?x }", 1),
    ("e1/e2", "{ ?x :e/:f ?y }", "{ ?x :e ?o . ?o :f ?y }", 2),
    ("e1|e2", "{ ?x :e|:f ?y }", "{ { ?x :e ?y } UNION { ?x :f ?y } }", 2),
    ("e{n}", "{ ?x :e/:e/:e ?y }", "{ ?x :e ?a . ?a :e ?b . ?b :e ?y }", 3),  # n edges; the paper prints n + 1
    ("e+", "{ ?x :e+ ?y }", "{ { ?x :e ?y } UNION { ?x :e ?o . ?o :e+ ?y } }", 1),
    ("e*", "{ ?x :g ?z . ?x :e* ?y }", "{ { ?x :g ?z BIND(?x AS ?y) } UNION { ?x :g ?z . ?x :e+ ?y } }", 2),
    ("e?", "{ ?x :g ?z . ?x :e? ?y }", "{ { ?x :g ?z BIND(?x AS ?y) } UNION { ?x :g ?z ; :e ?y } }", 2),
    (
        "the worked example",
        "{ ?x ^:director/(:actress|:actor) ?y }",
        "{ ?o :director ?x . { ?o :actress ?y } UNION { ?o :actor ?y } }",
        3,
    ),
)


def random_graph(random: Random) -> set[Quad]:
    nodes = [iri(name) for name in "abcde"]
    names = ("e", "f", "g", "director", "actress", "actor")
    return {
        Quad(random.choice(nodes), iri(random.choice(names)), random.choice(nodes))
        for _ in range(random.randint(0, 16))
    }


@pytest.mark.parametrize(("row", "path", "simple", "patterns"), TABLE, ids=[row[0] for row in TABLE])
def test_both_forms_mean_the_same(row: str, path: str, simple: str, patterns: int) -> None:
    one, other = parse_query(PREFIX + path), parse_query(PREFIX + simple)
    for seed in range(40):
        data = Dataset(random_graph(Random(seed)))
        # Closures count a pair once, however many ways lead there: sets are compared.
        assert set(result_rows(one, data, Environment())) == set(result_rows(other, data, Environment())), row
    assert isinstance(one, Select)
    found = list(predicate_patterns(one.pattern))
    assert len(found) == patterns
    assert all(isinstance(pattern, TriplePattern) for pattern in found)
    if row in ("^e", "e1/e2", "e1|e2", "e{n}", "the worked example"):
        assert Path.__name__ not in repr(one.pattern)


MONOTONIC = (
    "{ ?x a :Thing ; :p0 ?a ; :p1 ?b ; :p2 ?c }",
    "{ ?x a :Thing { ?x :p0|:p1 ?a } UNION { ?x ^:of/:p2 ?c } UNION { ?x :p1 ?b } }",
    "{ ?x a :Thing . ?x :of+/:p0 ?a BIND(1 AS ?b) BIND(2 AS ?c) }",
)


@pytest.mark.parametrize("where", MONOTONIC)
def test_patterns_find_all_that_are_affected(where: str) -> None:
    view = catalogue(parse_query(TEMPLATE + where))
    larger = 0
    for seed in range(40):
        random = Random(seed)
        state = {random_quad(random, "s", ["exact"] * 3) for _ in range(30)}
        exact = CatalogueView(view)
        exact.take(Delta(inserted=frozenset(state)))
        for _ in range(3):
            before = Dataset(state)
            delta = random_delta(random, "s", ["exact"] * 3, state)
            wide, narrow = affected(view, delta, before, Dataset(state)), exact.take(delta)
            assert narrow.removed <= wide.removed
            assert narrow.added <= wide.added
            larger += wide != narrow
    assert larger or where == MONOTONIC[0]  # a value that is deleted while another way to it stays


def test_the_worked_example() -> None:
    """The name of Tim Burton is deleted: R⁻ = {Tim_Burton}."""
    text = "PREFIX : <http://example.org/> CONSTRUCT { ?x a :Director ; :name ?n } WHERE { ?x a :Director ; :name ?n }"
    view = catalogue(parse_query(text))
    kind = parse_query("SELECT * { ?x a ?y }")
    assert isinstance(kind, Select)
    rdf_type = next(predicate_patterns(kind.pattern)).predicate
    tim, jane = iri("Tim_Burton"), iri("Jane")
    name = Quad(tim, iri("name"), Literal("Tim Burton"))
    before = {Quad(one, rdf_type, iri("Director")) for one in (tim, jane)} | {  # type: ignore[arg-type]
        name,
        Quad(jane, iri("name"), Literal("Jane")),
    }
    delta = Delta(deleted=frozenset({name}))
    found = affected(view, delta, Dataset(before), Dataset(before - {name}))
    assert found.removed == {str(tim)}
    assert not found.added


def test_negation_is_left_to_exact_changes() -> None:
    with pytest.raises(UnsupportedQuery, match="not monotonic"):
        list(predicate_patterns(parse_query("SELECT * { ?x ?p ?y MINUS { ?x ?q 1 } }").pattern))
