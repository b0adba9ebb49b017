"""What the tokens of a WHERE clause tell: graphs, what is matched in any case, and whether it can be run again."""

import pytest

from evergraph.gate.operations import Modify, Rest
from evergraph.gate.patterns import core, fixed_graphs, is_repeatable, only_in_graphs
from evergraph.gate.request import parse_update
from evergraph.gate.templates import read_template
from evergraph.gate.tokens import tokenize
from evergraph.terms import NamedNode

A, B = NamedNode("urn:a"), NamedNode("urn:b")


@pytest.mark.parametrize(
    ("pattern", "graphs", "only"),
    [
        ("{ GRAPH :a { ?s ?p ?o } }", {A}, True),
        ("{ GRAPH :a { ?s ?p ?o } . GRAPH <urn:b> { { ?s ?p ?o } UNION { ?s ?p 1 } } }", {A, B}, True),
        ("{ GRAPH :a { ?s ?p ?o } GRAPH ?g { ?s ?p ?o } }", None, True),
        ("{ GRAPH :a { ?s ?p ?o GRAPH ?g { ?s ?p ?o } } }", None, True),
        ("{ ?s ?p ?o . GRAPH :a { ?s ?p ?o } }", {A}, False),
        ("{ GRAPH :a { ?s ?p ?o } ?s ?p ?o }", {A}, False),
        ("{ { ?s ?p ?o } GRAPH :a { ?s ?p ?o } }", {A}, False),
        ("{ GRAPH :a { ?s ?p ?o } { ?s ?p ?o } }", {A}, False),
        ("{ GRAPH :a { ?s ?p ?o } OPTIONAL { ?s ?p ?o } }", {A}, False),
        ("{ GRAPH :a { ?s ?p ?o } FILTER EXISTS { ?s ?p ?o } }", {A}, False),
        ("{ GRAPH :a { ?s ?p 'GRAPH ?g' } } # GRAPH ?h", {A}, True),
        ("{ }", set(), True),
        ("{ GRAPH :a { ?s ?p ?o } OPTIONAL { GRAPH :b { ?s ?p ?o } } }", {A, B}, True),
        ("{ GRAPH :a { ?s ?p ?o } FILTER(?o > 1 && EXISTS { GRAPH :b { ?s ?p ?o } }) }", {A, B}, True),
        ("{ GRAPH :a { ?s ?p ?o } FILTER(?o > 1 && EXISTS { ?s ?p ?o }) }", {A}, False),
        ("{ GRAPH :a { ?s ?p ?o } FILTER regex(?o, 'x') BIND((?o + 1) AS ?x) VALUES (?x) { (1) } }", {A}, True),
        ("{ GRAPH :a { ?s ?p ?o } (1 2) :p ?o }", {A}, False),
        ("{ GRAPH :a { ?s ?p ?o } [] :p ?o }", {A}, False),
        ("{ { GRAPH :a { ?s ?p ?o } } UNION { GRAPH :b { ?s ?p ?o } } }", {A, B}, True),
        ("{ { SELECT ?s { GRAPH :a { ?s ?p ?o } } } }", {A}, False),
    ],
)
def test_graphs_of_a_pattern(pattern: str, graphs: set[NamedNode] | None, only: bool) -> None:
    tokens = list(tokenize(pattern))
    assert fixed_graphs("PREFIX : <urn:>\n", tokens) == graphs
    assert only_in_graphs(tokens) == only


@pytest.mark.parametrize(
    ("pattern", "kept", "rest"),
    [
        ("?s ?p ?o", "?s ?p ?o", Rest.NOTHING),
        ("?s ?p ?o FILTER(?o > (1 + 2)) ?s :q ?x", "?s ?p ?o . ?s :q ?x", Rest.CONDITIONS),
        ("?s ?p ?o . FILTER regex(?o, 'x') . ?s :q ?x .", "?s ?p ?o . ?s :q ?x .", Rest.CONDITIONS),
        ("?s ?p ?o FILTER(?o > ?x)", "?s ?p ?o .", Rest.OTHER),
        ("FILTER NOT EXISTS { ?s :q ?y { ?y ?z 1 } } ?s ?p ?o", "?s ?p ?o", Rest.OTHER),
        ("FILTER(?s != :a && NOT EXISTS { ?s :q ?y }) ?s ?p ?o", "?s ?p ?o", Rest.OTHER),
        ("OPTIONAL { ?s :q ?y } MINUS { ?s :r ?z } ?s ?p ?o", "?s ?p ?o", Rest.OTHER),
        ("GRAPH ?g { ?s ?p ?o FILTER(?o = 1) } BIND(?o AS ?x)", "GRAPH ?g { ?s ?p ?o . }", Rest.OTHER),
        ("?s ?p ?o VALUES (?s ?y) { (1 2) }", "?s ?p ?o .", Rest.OTHER),
        ("{ ?s ?p ?o } UNION { ?s :q ?o }", "{ ?s ?p ?o } UNION { ?s :q ?o }", Rest.OTHER),
    ],
)
def test_what_every_solution_matches(pattern: str, kept: str, rest: Rest) -> None:
    found = core(list(tokenize(pattern)))
    assert " ".join(token.text for token in found.tokens) == kept
    triples = () if "UNION" in kept else read_template("PREFIX : <urn:>\n", found.tokens)
    assert found.rest(triples) is rest


@pytest.mark.parametrize(
    "pattern",
    [
        *("?s ?p ?o BIND(RAND() AS ?x)", "?s ?p ?o FILTER(rand() < 0.5)", "BIND(NOW() AS ?x)", "BIND(uuid() AS ?x)"),
        *("BIND(STRUUID() AS ?x)", "?s ?p ?o BIND(BNODE() AS ?x)", "{ SELECT ?s { ?s ?p ?o } LIMIT 1 }"),
        *("SERVICE <urn:x> { ?s ?p ?o }", "?s ?p ?o FILTER(<bif:rnd>(10) > 5)", "?s ?p ?o FILTER(bif:rnd (10) > 5)"),
    ],
)
def test_what_may_be_other_the_next_time(pattern: str) -> None:
    assert not is_repeatable(list(tokenize(pattern)))


@pytest.mark.parametrize(
    ("text", "is_original"),
    [
        ("INSERT { ?s :q ?o } WHERE { ?s :p ?o FILTER(?o > 1) }", True),
        ("INSERT { ?s :q ?o } WHERE { ?s :p ?o FILTER(?o > 1) } ;", True),
        ("DELETE WHERE { ?s :p 1 }", True),
        ("INSERT { ?s :q ?o } WHERE { ?s :p ?o FILTER(?o > 1) } ; INSERT DATA { :a :b 1 }", False),
        ("INSERT DATA { :a :b 1 } ; INSERT { ?s :q ?o } WHERE { ?s :p ?o FILTER(?o > 1) }", False),
        ("WITH :g INSERT { ?s :q ?o } WHERE { ?s :p ?o FILTER(?o > 1) }", False),
        ("INSERT { ?s :q ?o } USING :g WHERE { ?s :p ?o FILTER(?o > 1) }", False),
        ("INSERT { ?s :q [] } WHERE { ?s :p ?o FILTER(?o > 1) }", False),
        ("INSERT { ?s :q (?o) } WHERE { ?s :p ?o FILTER(?o > 1) }", False),
        ("INSERT { ?s :q <<( _:x :p ?o )>> } WHERE { ?s :p ?o FILTER(?o > 1) }", False),
        ("INSERT { ?s :q ?o } WHERE { ?s :p ?o FILTER(RAND() > 1) }", False),
    ],
)
def test_requests_that_can_be_written_as_they_came(text: str, is_original: bool) -> None:
    whole = f"PREFIX : <urn:>\n{text}"
    operations = [step.operation for step in parse_update(whole)]
    originals = [one.original for one in operations if isinstance(one, Modify)]
    assert [one and one.text for one in originals] == [whole if is_original else None]
    based = [step.operation for step in parse_update(whole, base="http://e.org/")]
    assert not any(one.original for one in based if isinstance(one, Modify))
