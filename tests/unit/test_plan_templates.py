"""Which queries have the same template, and which constants can be its parameters."""

import pytest

from evergraph.engines.local.shared import plan_of
from evergraph.plan.parameters import liftable, table_pattern
from evergraph.plan.templates import canonical, placeholder, with_constants
from evergraph.sparql.algebra import Query
from evergraph.sparql.parser import parse_query
from evergraph.terms import Literal, NamedNode, Term, Variable

PREFIX = "PREFIX : <http://example.org/> "


def iri(name: str) -> NamedNode:
    return NamedNode(f"http://example.org/{name}")


def template(text: str) -> tuple[Query, tuple[Term, ...]]:
    found = canonical(parse_query(PREFIX + text))
    assert found is not None
    return found


def lifted(text: str) -> list[Term]:
    found = canonical(parse_query(PREFIX + text))
    assert found is not None
    skeleton, constants = found
    return [constants[number] for number in liftable(plan_of(skeleton)[0], len(constants))]


def test_names_and_constants_make_no_difference() -> None:
    one, constants = template("SELECT ?s ?a { ?s :city :rome ; :age ?a }")
    other, others = template("SELECT ?x ?y { ?x :city 'Oslo' ; :age ?y }")
    assert one == other
    assert (constants, others) == ((iri("rome"),), (Literal("Oslo"),))


@pytest.mark.parametrize(
    "other",
    [
        "SELECT ?a ?s { ?s :city :rome ; :age ?a }",
        "SELECT ?s ?a { ?s :town :rome ; :age ?a }",
        "SELECT ?s ?a { ?s :city :rome ; :age ?s . ?a :p ?a }",
        "SELECT DISTINCT ?s ?a { ?s :city :rome ; :age ?a }",
        "SELECT ?s ?a { :rome :city ?s . ?s :age ?a }",
        "SELECT ?s ?a { ?s :city :rome ; :age ?a FILTER (?a > 1) }",
        "SELECT ?s ?a FROM :g { ?s :city :rome ; :age ?a }",
    ],
)
def test_all_else_does(other: str) -> None:
    assert template("SELECT ?s ?a { ?s :city :rome ; :age ?a }")[0] != template(other)[0]


def test_a_constant_that_occurs_twice_is_one_parameter() -> None:
    twice, constants = template("SELECT * { :a :p ?x . ?x :q :a }")
    assert constants == (iri("a"),)
    assert twice != template("SELECT * { :a :p ?x . ?x :q :b }")[0]


def test_constants_stay_in_other_places() -> None:
    _, constants = template("SELECT * { ?x a :C ; :p :a . :b :q* ?x . GRAPH :g { ?x :r ?y } FILTER (?y != :d) }")
    assert constants == (iri("a"),)


def test_constants_can_be_put_back() -> None:
    query = parse_query(PREFIX + "SELECT ?v0 { ?v0 :p :a FILTER NOT EXISTS { :b :q ?v0 } }")
    found = canonical(query)
    assert found is not None
    skeleton, constants = found
    assert with_constants(skeleton, {placeholder(number): one for number, one in enumerate(constants)}) == query


@pytest.mark.parametrize(
    "text",
    ["SELECT (NOW() AS ?n) { ?s :p :a }", "CONSTRUCT { ?s :q :b } WHERE { ?s :p :a }", "DESCRIBE ?s { ?s :p :a }"],
)
def test_what_has_no_template(text: str) -> None:
    assert canonical(parse_query(PREFIX + text)) is None


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("SELECT * { ?x :p :a . ?x :q :b }", "ab"),
        ("SELECT * { ?x :p :a , :b , :c , :d }", "abc"),
        ("SELECT ?x { ?x :p :a OPTIONAL { ?x :q :a } }", "a"),
        ("SELECT ?x { ?x :p :a OPTIONAL { ?x :q :b } }", "a"),
        ("SELECT ?x { ?x :p ?y OPTIONAL { ?x :q :b } }", ""),
        ("SELECT ?x { ?x :p :a MINUS { ?x :q :a } }", "a"),
        ("SELECT ?x { ?x :p :a OPTIONAL { ?x :q ?y } MINUS { ?y :q :a } }", ""),
        ("SELECT ?x { { ?x :p :a } UNION { ?x :q :a } }", "a"),
        ("SELECT ?x { { ?x :p :a } UNION { ?x :q :b } }", ""),
        ("SELECT ?x { ?x :p :a FILTER NOT EXISTS { ?x :q :a } }", "a"),
        ("SELECT ?y (COUNT(*) AS ?n) { ?x :p :a ; :q ?y } GROUP BY ?y", "a"),
        ("SELECT (COUNT(*) AS ?n) { ?x :p :a ; :q ?y }", ""),
        ("SELECT ?x { ?x :p :a } LIMIT 3", ""),
        ("SELECT ?x { ?x :p :a . { SELECT ?x { ?x :q :b } LIMIT 3 } }", "a"),
        ("SELECT ?x ?y { ?x :p :a . ?y :q :b }", "a"),
        ("SELECT ?x { ?x :p :a . ?x :q+ ?y }", "a"),
        ("SELECT ?x { GRAPH ?g { ?x :p :a OPTIONAL { ?x :q ?y } } }", "a"),
        ("SELECT ?x { GRAPH ?g { ?x :q* ?y OPTIONAL { ?y :p :a } } }", ""),
        ("ASK { :a :p :b }", "ab"),
    ],
)
def test_which_constants_can_be_parameters(text: str, parameters: str) -> None:
    assert lifted(text) == [iri(name) for name in parameters]


def test_a_table_has_room_for_three() -> None:
    variables = tuple(map(Variable, "abcd"))
    assert table_pattern(iri("t"), variables[:3]).variables() == frozenset(variables[:3])
    with pytest.raises(ValueError, match="no room"):
        table_pattern(iri("t"), variables)
