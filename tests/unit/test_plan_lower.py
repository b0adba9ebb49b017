"""Which delta operators a query becomes."""

import pytest

from evergraph.plan import nodes
from evergraph.plan.lower import Lowering
from evergraph.plan.nodes import Plan
from evergraph.plan.optimize import MAX_PATTERNS, optimize
from evergraph.plan.rebuild import children
from evergraph.sparql.algebra import TRUE
from evergraph.sparql.parser import parse_query
from evergraph.terms import NamedNode, Variable

PREFIX = "PREFIX : <http://example.org/> "


def plan_of(text: str) -> Plan:
    query = parse_query(PREFIX + text)
    return optimize(Lowering(query.dataset).lower(query.pattern))


def all_nodes(plan: Plan) -> list[Plan]:
    return [plan, *(one for child in children(plan) for one in all_nodes(child))]


def kinds(text: str) -> list[str]:
    return [type(one).__name__ for one in all_nodes(plan_of(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * { ?s :p ?o ; :q ?x }", ["BGP"]),
        ("SELECT ?s { ?s :p ?o . ?o :q ?x }", ["BGP"]),
        ("SELECT * { { ?s :p ?o FILTER(?o > 1) } ?s :q ?x }", ["Filter", "BGP"]),
        ("SELECT * { ?s :p ?o . ?x :q ?y }", ["Join", "BGP", "BGP"]),
        ("SELECT * { ?s :p ?o . :a :q :b }", ["BGP"]),
        ("SELECT * { ?s :p ?o MINUS { ?x :q ?y } }", ["BGP"]),
        ("SELECT * { ?s :p ?o MINUS { ?s :q ?y } }", ["Minus", "BGP", "BGP"]),
        ("SELECT DISTINCT ?s { ?s :p ?o }", ["Distinct", "BGP"]),
        ("SELECT (COUNT(*) AS ?n) { ?s :p ?o }", ["Project", "Extend", "Group", "BGP"]),
        ("SELECT * { ?s :p+ :a }", ["Path", "BGP"]),
        ("SELECT ?s { ?s :p ?o } ORDER BY ?o LIMIT 3", ["Slice", "BGP"]),
        ("SELECT ?s { ?s :p ?o } ORDER BY ?o", ["BGP"]),
    ],
)
def test_operators(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("{ ?o :q ?x }", nodes.SemiJoin),
        ("{ ?o :q ?x FILTER(?x > ?s) }", nodes.SemiJoin),
        ("{ ?o :q ?x OPTIONAL { ?s :r ?y } }", nodes.SemiJoin),
        ("{ SELECT ?o { ?o :q ?x } LIMIT 1 }", nodes.SemiJoin),
        ("{ { ?o :q ?x FILTER(?x > ?s) } UNION { ?o :r ?x } }", nodes.Correlate),
        ("{ ?o :q ?x MINUS { ?s :r ?x } }", nodes.Correlate),
        ("{ ?o :q* ?x }", nodes.Correlate),
        ("{ SELECT ?o { ?o :q ?x } OFFSET 1 }", nodes.Correlate),
    ],
)
def test_exists_is_a_join_where_that_is_exact(body: str, kind: type) -> None:
    found = [
        one for one in all_nodes(plan_of(f"SELECT * {{ ?s :p ?o FILTER EXISTS {body} }}")) if isinstance(one, kind)
    ]
    assert len(found) == 1
    if isinstance(found[0], nodes.Correlate):
        assert found[0].reason


def test_exists_in_an_expression_is_a_mark() -> None:
    assert "MarkJoin" in kinds("SELECT * { ?s :p ?o FILTER(?o = 1 || EXISTS { ?s :q ?x }) }")


def test_the_condition_of_a_join_goes_where_it_is_decided() -> None:
    plan = plan_of("SELECT * { ?s :p ?o OPTIONAL { ?s :q ?x FILTER(?x > 1) } }")
    assert isinstance(plan, nodes.LeftJoin)
    assert plan.condition == TRUE
    assert isinstance(plan.right, nodes.Filter)
    plan = plan_of("SELECT * { ?s :p ?o OPTIONAL { ?s :q ?x FILTER(?x > ?o) } }")
    assert isinstance(plan, nodes.LeftJoin)
    assert plan.condition != TRUE


def test_a_filter_stays_above_what_may_bind_its_variable_later() -> None:
    plan = plan_of("SELECT * { { ?s :p ?o OPTIONAL { ?s :q ?x } } { ?s :r ?x } FILTER(?x > 1) }")
    assert isinstance(plan, nodes.Join)
    assert isinstance(plan.right, nodes.Filter)
    assert isinstance(plan.left, nodes.LeftJoin)


def test_unused_columns_are_not_made() -> None:
    plan = plan_of("SELECT ?s { ?s :p ?o OPTIONAL { ?s :q ?x . ?x :r ?y } }")
    assert all(Variable("y") not in one.variables for one in all_nodes(plan))


def test_datasets() -> None:
    a, b = NamedNode("http://example.org/a"), NamedNode("http://example.org/b")

    def context(text: str) -> nodes.Context:
        [leaf] = [one for one in all_nodes(plan_of(text)) if isinstance(one, nodes.BGP)]
        return leaf.patterns[0].context

    assert context("SELECT * FROM :a { ?s ?p ?o }") == a
    assert context("SELECT * FROM :a FROM :b { ?s ?p ?o }") == nodes.Merge((a, b))
    assert context("SELECT * FROM NAMED :a { GRAPH ?g { ?s ?p ?o } }") == nodes.EachGraph(Variable("g"), frozenset({a}))
    assert plan_of("SELECT * FROM NAMED :a { GRAPH :b { ?s ?p ?o } }") == nodes.Values(
        tuple(Variable(name) for name in "spo"), ()
    )


def test_a_long_pattern_becomes_a_join() -> None:
    chain = " . ".join(f"?v{n} :p ?v{n + 1}" for n in range(MAX_PATTERNS + 1))
    assert kinds(f"SELECT * {{ {chain} }}").count("BGP") == 2
