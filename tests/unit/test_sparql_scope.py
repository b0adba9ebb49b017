"""What patterns bind and mention."""

import pytest

from evergraph.sparql.algebra import Project
from evergraph.sparql.parser import parse_query
from evergraph.sparql.rewrite import correlate, rename
from evergraph.sparql.scope import assigned, mentioned, variables
from evergraph.terms import NamedNode, Variable


@pytest.mark.parametrize(
    ("group", "certain", "possible"),
    [
        ("{ ?a :p ?b }", "ab", "ab"),
        ("{ ?a :p* ?b }", "ab", "ab"),
        ("{ ?a :p ?b OPTIONAL { ?b :q ?c } }", "ab", "abc"),
        ("{ { ?a :p ?b } UNION { ?b :q ?c } }", "b", "abc"),
        ("{ ?a :p ?b MINUS { ?b :q ?c } }", "ab", "ab"),
        ("{ ?a :p ?b BIND(?a AS ?c) }", "abc", "abc"),
        ("{ ?a :p ?b BIND(?a + 1 AS ?c) }", "ab", "abc"),
        ("{ VALUES (?a ?b) { (1 2) (UNDEF 3) } }", "b", "ab"),
        ("{ GRAPH ?g { ?a :p ?b } }", "abg", "abg"),
        ("{ GRAPH ?g { SELECT (MAX(?a) AS ?m) { ?a :p ?b } } }", "g", "gm"),
        ("{ SELECT ?a ?c { ?a :p ?b } }", "a", "ac"),
        ("{ SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b } GROUP BY ?a }", "an", "an"),
        ("{ ?a :p ?b FILTER(?c = 1) }", "ab", "ab"),
        ("{ SERVICE SILENT :s { ?a :p ?b } }", "", "ab"),
    ],
)
def test_variables(group: str, certain: str, possible: str) -> None:
    pattern = parse_query(f"PREFIX : <urn:> SELECT * {group}").pattern
    assert isinstance(pattern, Project)
    scope = variables(pattern.operand)
    assert scope.certain == set(map(Variable, certain))
    assert scope.possible == set(map(Variable, possible))


def test_mentioned_and_assigned() -> None:
    text = "SELECT ?a { ?a <urn:p> ?b FILTER(?c = 1 && EXISTS { ?d <urn:p> ?e }) BIND(?f AS ?h) }"
    pattern = parse_query(text).pattern
    assert mentioned(pattern) == set(map(Variable, "abcdefh"))
    assert assigned(pattern) == {Variable("h")}


def test_rename_reaches_everything() -> None:
    where = "{ ?a ?b ?c GRAPH ?a { ?c <urn:p>* ?b } VALUES ?b { 1 } FILTER(BOUND(?a)) }"
    text = f"SELECT ?a (MAX(?b) AS ?m) {where} GROUP BY ?a"
    pattern = parse_query(text).pattern
    names = {variable: Variable(variable.value + "x") for variable in map(Variable, "abcm")}
    renamed = rename(pattern, names)
    assert not mentioned(renamed) & names.keys()
    assert rename(renamed, {new: old for old, new in names.items()}) == pattern


def test_correlation_touches_only_what_is_mentioned() -> None:
    pattern = parse_query("SELECT ?a { ?a <urn:p> ?b }").pattern
    assert correlate(pattern, {Variable("z"): NamedNode("urn:x")}) == pattern
