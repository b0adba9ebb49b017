"""Which IRIs are followed."""

import pytest

from evergraph.sparql.algebra import Select
from evergraph.sparql.parser import parse_query
from evergraph.terms import DEFAULT_GRAPH, Literal, NamedNode, Quad
from evergraph.traversal.iris import F
from evergraph.traversal.links import Links, Rank, Strategy, query_iris, solutions_query

NS = "http://example.org/"
PREFIX = f"PREFIX : <{NS}> "


def named(*names: str) -> list[NamedNode]:
    return [NamedNode(NS + name) for name in names]


@pytest.mark.parametrize(
    ("text", "plain", "words"),
    [
        ("SELECT * { :a :p :b }", "ab", "p"),
        ("SELECT * { ?x a :C ; :p ?y }", "", "Cp"),
        ("SELECT * { ?x :p+ :b . :c (:q|^:r)* ?y }", "bc", "pqr"),
        ("SELECT * { GRAPH :g { ?x :p 1 } GRAPH ?h { } }", "g", "p"),
        ("SELECT * FROM :f FROM NAMED :g { ?x :p ?y }", "fg", "p"),
        ("SELECT * { VALUES ?x { :a UNDEF } ?x :p ?y FILTER (?y = :b || EXISTS { ?y :q :c }) }", "abc", "pq"),
        ("SELECT * { ?x :p ?y OPTIONAL { ?y :q :a } MINUS { :b :q ?y } BIND (:c AS ?z) }", "abc", "pq"),
        ("DESCRIBE :a ?x { ?x :p :b }", "ab", "p"),
        ("CONSTRUCT { :no :no :no } { :a :p ?y }", "a", "p"),
        (f"SELECT * {{ ?x {F} :a }}", "a", ""),
    ],
)
def test_iris_of_a_query(text: str, plain: str, words: str) -> None:
    query = parse_query(PREFIX + text)
    assert set(query_iris(query)) == set(named(*plain))
    wanted = set(query_iris(query, vocabulary=True)) - {NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")}
    assert wanted == set(named(*plain, *words))


A, B, C, P, Q, D = named("a", "b", "c", "p", "q", "d")
TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


def found(text: str, *quads: Quad, strategy: Strategy = Strategy.PATTERNS, vocabulary: bool = False) -> str:
    links = Links(parse_query(PREFIX + text), strategy, vocabulary=vocabulary)
    return "".join(sorted(iri.value.removeprefix(NS) for iri, _, _ in links.in_quads(quads)))


def test_links_that_match_a_pattern() -> None:
    text = "SELECT * { :a :p ?x . ?x :q ?y }"
    assert found(text, Quad(A, P, B, D)) == "b"
    assert found(text, Quad(B, P, A, D)) == ""
    assert found(text, Quad(B, Q, C, D)) == "bc"
    assert found(text, Quad(B, Q, Literal("c"), D)) == "b"
    assert found(text, Quad(A, P, B, DEFAULT_GRAPH)) == "", "a document says it, or it was said before"
    assert found("SELECT * { ?x :p ?x }", Quad(A, P, B, D)) == ""
    assert found("SELECT * { ?x :p ?x }", Quad(A, P, A, D)) == "aa"
    assert found("SELECT * { :a :p+ ?x }", Quad(B, P, C, D)) == "bc"
    assert found("SELECT * { ?x !:p ?y }", Quad(A, Q, B, D)) == "ab"
    assert found("SELECT * { ?x ?p :b }", Quad(A, P, B, D)) == "a"
    assert found("SELECT * { ?x ?p :b }", Quad(A, P, B, D), vocabulary=True) == "ap"
    assert found("SELECT * { ?x a ?c }", Quad(A, TYPE, B, D)) == "a"
    assert found(f"SELECT * {{ ?x {F} ?d }}", Quad(A, P, B, D)) == ""


def test_other_links() -> None:
    quads = (Quad(A, P, B, D), Quad(A, TYPE, C, D))
    assert found("SELECT * { ?x :q ?y }", *quads, strategy=Strategy.ALL) == "aab"
    assert set(found("SELECT * { ?x :q ?y }", *quads, strategy=Strategy.ALL, vocabulary=True)) >= set("abcp")
    assert found("SELECT * { ?x ?p ?y }", *quads, strategy=Strategy.SOLUTIONS) == ""
    links = Links(parse_query("SELECT * { ?x ?p ?y }"), Strategy.SOLUTIONS)
    assert list(links.in_rows([(P, A, Literal("x"))])) == [(A, Rank.SOLUTION)]
    assert list(Links(parse_query("SELECT * { ?x ?p ?y }"), Strategy.QUERY).in_rows([(A,)])) == []


@pytest.mark.parametrize(
    ("text", "row", "wanted"),
    [
        ("SELECT ?s ?p ?o { ?s ?p ?o }", (A, P, B), "ab"),
        ("SELECT ?s ?p ?o { ?s ?p ?o }", (A, TYPE, B), "a"),
        ("SELECT ?s ?c { ?s a ?c }", (A, C), "a"),
        ("SELECT ?s ?c { ?s a ?c . ?c :q ?n }", (A, C), "ac"),
        ("SELECT ?s ?c { ?s a ?c . ?c :q+ ?n }", (A, C), "ac"),
        ("SELECT ?s ?c { ?s a ?c . ?s :q ?c }", (A, C), "ac"),
        ("SELECT ?s ?p { ?s ?p :b . ?p a :q }", (A, P), "ap"),
        ("SELECT ?g { GRAPH ?g { ?s :p ?o } }", (A,), "a"),
        ("SELECT ?v { VALUES ?v { :a } }", (A,), "a"),
        ("CONSTRUCT { ?s :q ?o } { ?s :p ?o }", (A, Q, B), "ab"),
        ("CONSTRUCT { ?s a ?o } { ?s :p ?o }", (A, TYPE, B), "a"),
        ("ASK { ?s :p ?o }", (Literal("true"),), ""),
    ],
)
def test_links_in_rows_but_for_words_of_a_vocabulary(text: str, row: tuple[NamedNode, ...], wanted: str) -> None:
    query = parse_query(PREFIX + text)
    links = Links(query, Strategy.PATTERNS)
    assert "".join(iri.value.removeprefix(NS) for iri, _ in links.in_rows([row])) == wanted
    every = Links(query, Strategy.PATTERNS, vocabulary=True)
    assert [iri for iri, _ in every.in_rows([row])] == [term for term in row if isinstance(term, NamedNode)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?n { :a :p ?x . ?x :q ?n }",
        "SELECT DISTINCT ?n { :a :p ?x . ?x :q ?n } ORDER BY ?n LIMIT 1",
        "SELECT (COUNT(?x) AS ?c) { :a :p ?x . ?x :q ?n }",
        "SELECT ?n (COUNT(?x) + 1 AS ?c) { :a :p ?x . ?x :q ?n } GROUP BY ?n HAVING (COUNT(?x) > 1)",
        "ASK { :a :p ?x . ?x :q ?n }",
        "CONSTRUCT { :a :p ?n } { :a :p ?x . ?x :q ?n }",
    ],
)
def test_solutions_behind_a_result(text: str) -> None:
    query = solutions_query(parse_query(PREFIX + text))
    assert isinstance(query, Select)
    assert [variable.value for variable in query.variables] == ["n", "x"]
