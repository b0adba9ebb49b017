"""Text to algebra: errors, terms, scopes."""

import pytest

from evergraph.errors import SyntaxProblem, UnsupportedQuery
from evergraph.sparql.algebra import (
    BGP,
    UNIT,
    Alternative,
    And,
    Ask,
    Bound,
    Compare,
    Comparison,
    Construct,
    DatasetClause,
    Describe,
    Distinct,
    Extend,
    Filter,
    Graph,
    GraphNames,
    Group,
    Inverse,
    Join,
    LeftJoin,
    Minus,
    OneOrMore,
    OrderBy,
    Path,
    Pattern,
    Project,
    Select,
    Service,
    Slice,
    TriplePattern,
    Union,
    Values,
    ZeroOrMore,
)
from evergraph.sparql.parser import parse_query
from evergraph.terms import DEFAULT_GRAPH, XSD, Literal, NamedNode, Variable

P, Q = NamedNode("urn:p"), NamedNode("urn:q")
A, B, C, G = map(Variable, "abcg")


def where(text: str) -> Pattern:
    """Parse a group, and return it without the projection around it."""
    query = parse_query(f"PREFIX : <urn:> SELECT * {text}")
    assert isinstance(query.pattern, Project)
    return query.pattern.operand


def triple(subject: Variable, predicate: NamedNode, object_: Variable, graph: object = DEFAULT_GRAPH) -> TriplePattern:
    assert graph is DEFAULT_GRAPH or isinstance(graph, Variable | NamedNode)
    return TriplePattern(subject, predicate, object_, graph)


AB = BGP((triple(A, P, B),))
BC = BGP((triple(B, Q, C),))


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "line", "column"),
        [
            ("SELECT * {\n ?s ?p }", 2, 8),
            ("SELECT * { ?s :p ?o }", 1, 15),
            ("SELECT ?x { BIND(1 AS ?x) ", 1, 27),
            ("SELECT * { ?s <urn:p> 'a\\q' }", 1, 23),
            ("SELECT * {\n\n ?s ~ ?o }", 3, 5),
            ("", 1, 1),
        ],
    )
    def test_names_line_and_column(self, text: str, line: int, column: int) -> None:
        with pytest.raises(SyntaxProblem) as caught:
            parse_query(text)
        assert (caught.value.line, caught.value.column) == (line, column)

    @pytest.mark.parametrize(
        "text",
        [
            "SELECT * { ?s <relative> ?o }",
            "SELECT (COUNT(?x) AS ?n) ?x { ?x ?p ?o }",
            "SELECT * { ?x ?p ?o BIND(1 AS ?x) }",
            "INSERT DATA { <urn:a> <urn:b> <urn:c> }",
        ],
    )
    def test_refuses_what_is_no_query(self, text: str) -> None:
        with pytest.raises(SyntaxProblem):
            parse_query(text)

    def test_refuses_what_is_only_sparql_1_2(self) -> None:
        with pytest.raises(SyntaxProblem) as caught:
            parse_query("SELECT * {\n  << ?s ?p ?o >> ?q ?r }")
        assert caught.value.line == 2

    def test_refuses_what_is_nested_beyond_reason(self) -> None:
        with pytest.raises(UnsupportedQuery):
            parse_query("ASK { FILTER(" + "(" * 5_000 + "1" + ")" * 5_000 + ") }")

    def test_names_a_base_that_is_none(self) -> None:
        with pytest.raises(SyntaxProblem, match="base IRI"):
            parse_query("ASK {}", base="not an IRI")

    def test_fetches_nothing(self) -> None:
        query = parse_query("ASK { SERVICE SILENT <http://127.0.0.1:9/> { ?a <urn:p> ?b } }")
        assert query == Ask(Project(Service(NamedNode("http://127.0.0.1:9/"), AB, silent=True), (A, B)))

    def test_reads_large_queries_at_once(self) -> None:
        many = " . ".join(f"?s <urn:p{n}> ?o{n}" for n in range(1_000))
        query = parse_query(f"SELECT ?s {{ {many} FILTER({'(' * 50}?s{')' * 50} = <urn:x>) }}")
        assert isinstance(query.pattern, Project)


class TestTerms:
    @pytest.mark.parametrize(
        ("text", "literal"),
        [
            ("-01", Literal("-01", datatype=NamedNode(XSD + "integer"))),
            ("+1.50", Literal("+1.50", datatype=NamedNode(XSD + "decimal"))),
            ("-1e0", Literal("-1e0", datatype=NamedNode(XSD + "double"))),
            ("TRUE", Literal("true", datatype=NamedNode(XSD + "boolean"))),
            ("'''a'b\\n'''", Literal("a'b\n")),
            ('"\\u00e9abcd"', Literal("éabcd")),
            ('"\\\\u0041"', Literal("\\u0041")),
            ("'x'@EN-us", Literal("x", language="en-us")),
            ("'x'^^:t", Literal("x", datatype=NamedNode("urn:t"))),
        ],
    )
    def test_literals_keep_their_form(self, text: str, literal: Literal) -> None:
        assert where(f"{{ ?a :p {text} }}") == BGP((TriplePattern(A, P, literal, DEFAULT_GRAPH),))

    def test_prefixes_base_and_escapes(self) -> None:
        query = parse_query(
            "BASE <http://x.org/a/> PREFIX e: <b#> BASE <http://y.org/> ASK { <../c> e:d\\,e%41 <\\u0061> }",
        )
        assert query.pattern == Project(
            BGP(
                (
                    TriplePattern(
                        NamedNode("http://y.org/c"),
                        NamedNode("http://x.org/a/b#d,e%41"),
                        NamedNode("http://y.org/a"),
                        DEFAULT_GRAPH,
                    ),
                )
            ),
            (),
        )

    def test_blank_nodes_are_variables_that_star_does_not_select(self) -> None:
        query = parse_query("SELECT * { _:x <urn:p> ?b . _:x <urn:q> [ <urn:p> (1) ] }")
        assert isinstance(query, Select)
        assert query.variables == (B,)
        assert isinstance(query.pattern, Project)
        assert isinstance(query.pattern.operand, BGP)
        assert len(query.pattern.operand.triples) == 5
        first, second = query.pattern.operand.triples[:2]
        assert first.subject == second.subject
        assert isinstance(first.subject, Variable)


class TestGroups:
    def test_filter_of_an_optional_group_sees_both_sides(self) -> None:
        same = Compare(Comparison.EQUAL, A, C)
        assert where("{ ?a :p ?b OPTIONAL { ?b :q ?c FILTER(?a = ?c) } }") == LeftJoin(AB, BC, same)

    def test_filter_of_a_group_within_an_optional_group_does_not(self) -> None:
        same = Compare(Comparison.EQUAL, A, C)
        assert where("{ ?a :p ?b OPTIONAL { { ?b :q ?c FILTER(?a = ?c) } } }") == LeftJoin(AB, Filter(same, BC))

    def test_filters_of_a_group_apply_at_its_end(self) -> None:
        assert where("{ FILTER(BOUND(?a)) ?a :p ?b FILTER(BOUND(?c)) ?b :q ?c }") == Filter(
            And((Bound(A), Bound(C))), BGP(AB.triples + BC.triples)
        )

    def test_triples_around_other_elements_stay_apart(self) -> None:
        assert where("{ ?a :p ?b MINUS { ?b :q ?c } ?b :q ?c }") == Join(Minus(AB, BC), BC)

    def test_union_is_flat(self) -> None:
        assert where("{ { ?a :p ?b } UNION { ?b :q ?c } UNION { } }") == Union((AB, BC, UNIT))

    def test_bind_and_values(self) -> None:
        assert where("{ VALUES (?a ?b) { (:p UNDEF) } BIND(?a AS ?c) }") == Extend(Values((A, B), ((P, None),)), C, A)


class TestPaths:
    def test_sequences_inverses_and_alternatives_are_joins_and_unions(self) -> None:
        middle = Variable("_·1")
        assert where("{ ?a :p/^:q ?b }") == BGP((triple(A, P, middle), triple(B, Q, middle)))
        assert where("{ ?a :p|:q ?b }") == Union((AB, BGP((triple(A, Q, B),))))

    def test_closures_stay(self) -> None:
        assert where("{ ?a (:p|^:q)* ?b }") == Path(A, ZeroOrMore(Alternative((P, Inverse(Q)))), B, DEFAULT_GRAPH)

    def test_negated_sets_are_filters(self) -> None:
        predicate = Variable("_·1")
        assert where("{ ?a !:p ?b }") == Filter(
            Compare(Comparison.NOT_EQUAL, predicate, P), BGP((TriplePattern(A, predicate, B, DEFAULT_GRAPH),))
        )
        both = where("{ ?a !(:p|^:q) ?b }")
        assert isinstance(both, Union)
        assert len(both.operands) == 2


class TestGraphs:
    def test_a_pattern_carries_its_graph(self) -> None:
        assert where("{ GRAPH :q { ?a :p ?b } }") == BGP((triple(A, P, B, Q),))
        assert where("{ GRAPH ?g { ?a :p ?b } }") == BGP((triple(A, P, B, G),))
        assert where("{ GRAPH ?g { ?a :p+ ?b } }") == Path(A, OneOrMore(P), B, G)

    def test_a_variable_may_be_graph_and_node(self) -> None:
        assert where("{ GRAPH ?a { ?a :p ?b } }") == BGP((triple(A, P, B, A),))

    def test_what_has_no_triples_is_tied_to_the_graph(self) -> None:
        assert where("{ GRAPH ?g {} }") == GraphNames(G)
        assert where("{ GRAPH :q { VALUES ?a { 1 } } }") == Join(
            GraphNames(Q), Values((A,), ((Literal("1", datatype=NamedNode(XSD + "integer")),),))
        )
        assert where("{ GRAPH ?g { OPTIONAL { ?a :p ?b } } }") == LeftJoin(GraphNames(G), BGP((triple(A, P, B, G),)))

    def test_aggregates_and_slices_happen_graph_by_graph(self) -> None:
        count = where("{ GRAPH ?g { SELECT (COUNT(*) AS ?c) { ?a :p ?b } } }")
        assert isinstance(count, Graph)
        assert isinstance(where("{ GRAPH ?g { SELECT ?a { ?a :p ?b } LIMIT 1 } }"), Graph)
        assert isinstance(where("{ GRAPH ?g { SELECT DISTINCT ?a { ?a :p ?b } } }"), Distinct)

    def test_minus_does_not_count_the_graph_as_shared(self) -> None:
        ab = BGP((triple(A, P, B, G),))
        assert where("{ GRAPH ?g { ?a :p ?b MINUS { ?b :q ?c } } }") == Minus(ab, BGP((triple(B, Q, C, G),)))
        assert where("{ GRAPH ?g { ?a :p ?b MINUS { ?x :q ?c } } }") == ab
        assert isinstance(where("{ GRAPH ?g { ?a :p ?b MINUS { OPTIONAL { ?a :q ?c } } } }"), Graph)

    def test_the_dataset_of_a_query(self) -> None:
        query = parse_query("ASK FROM <urn:p> FROM NAMED <urn:q> { }")
        assert query == Ask(Project(UNIT, ()), DatasetClause((P,), (Q,)))


class TestSelect:
    def test_hidden_variables_of_a_sub_select_are_renamed(self) -> None:
        inner = Project(BGP((TriplePattern(A, P, Variable("b·1"), DEFAULT_GRAPH),)), (A,))
        assert where("{ ?a :p ?b { SELECT ?a { ?a :p ?b } } }") == Join(AB, inner)

    def test_modifiers_nest_as_the_recommendation_has_it(self) -> None:
        query = parse_query("SELECT DISTINCT ?a { ?a <urn:p> ?b } ORDER BY DESC(?b) LIMIT 2 OFFSET 1")
        assert isinstance(query.pattern, Slice)
        assert (query.pattern.start, query.pattern.length) == (1, 2)
        assert isinstance(query.pattern.operand, Distinct)
        projection = query.pattern.operand.operand
        assert isinstance(projection, Project)
        assert isinstance(projection.operand, OrderBy)

    def test_equal_aggregates_are_computed_once(self) -> None:
        query = parse_query("SELECT (SUM(?b) AS ?c) { ?a <urn:p> ?b } GROUP BY ?a HAVING (SUM(?b) > 1)")
        assert isinstance(query.pattern, Project)
        assert isinstance(query.pattern.operand, Extend)
        assert isinstance(query.pattern.operand.operand, Filter)
        group = query.pattern.operand.operand.operand
        assert isinstance(group, Group)
        assert group.keys == (A,)
        assert len(group.aggregates) == 1

    def test_star_selects_in_the_order_of_the_text(self) -> None:
        query = parse_query("SELECT * { { SELECT ?c ?a { ?a <urn:p> ?b } } ?b <urn:q> ?g }")
        assert isinstance(query, Select)
        assert query.variables == (C, A, B, G)


def test_construct_and_describe() -> None:
    query = parse_query("CONSTRUCT WHERE { ?a <urn:p> ?b }")
    assert isinstance(query, Construct)
    assert [(one.subject, one.predicate, one.object) for one in query.template] == [(A, P, B)]
    assert query.pattern == Project(AB, (A, B))
    assert parse_query("DESCRIBE <urn:p>") == Describe((P,), Project(UNIT, ()))
    assert parse_query("DESCRIBE * { ?a <urn:p> ?b }") == Describe((A, B), Project(AB, (A, B)))


def test_the_same_text_is_the_same_query() -> None:
    """Nodes without a label are numbered, so that what CONSTRUCT builds is the same in every run."""
    text = "CONSTRUCT { ?s ?p [ ?p (1 [] _:b2) ] . _:b1 ?p [] } WHERE { ?s ?p [ ?p [] ] }"
    query = parse_query(text)
    assert query == parse_query(text)
    assert isinstance(query, Construct)
    assert len({one.subject for one in query.template} | {one.object for one in query.template}) == 11
