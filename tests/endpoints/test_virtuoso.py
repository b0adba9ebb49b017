"""Where Virtuoso goes its own way: no default graph, literals by value, literals that it does not keep."""

from collections.abc import Callable

import pytest
from pyoxigraph import QuerySolutions
from tests.support.remote import PROLOGUE, VIRTUOSO_DEFAULT, empty_database, refuse, rows, run, stored, update
from tests.support.servers import Server, reset

import evergraph as eg
from evergraph.errors import UpdateFailed
from evergraph.gate.endpoint import Endpoint
from evergraph.terms import XSD

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(started: Callable[[str], Server]) -> Server:
    return started("virtuoso")


def test_without_a_default_graph(server: Server) -> None:
    with empty_database(server, default_graph=None) as db:
        assert "--default-graph" in refuse(db, server, UpdateFailed, "INSERT DATA { :a :p :b }")
        update(db, server, "INSERT DATA { GRAPH :g { :a :p :b } }")


def test_the_stand_in_is_no_named_graph(db: eg.Database, server: Server) -> None:
    update(db, server, "INSERT DATA { :a :p :b }")
    assert not update(db, server, "INSERT { ?s :q ?o } WHERE { GRAPH ?g { ?s ?p ?o } }")
    assert not update(db, server, "CLEAR NAMED")
    refuse(db, server, UpdateFailed, f"CLEAR GRAPH <{VIRTUOSO_DEFAULT}>")


@pytest.mark.parametrize(
    ("stored_as", "others"),
    [
        ('"1"^^integer', ["01", "1.0", "1e0", "true", '"1"^^xsd:byte', '"1"^^xsd:float', '"+1"^^xsd:long']),
        ('"1"^^int', ["1", "1.0"]),
        ('"1"^^boolean', ["true", "1", "1.00"]),
        ('"0"^^boolean', ["false", "0", "-0.0", "0e0"]),
        ('"2.5"^^decimal', ["2.50", "2.5e0", '"2.5"^^xsd:float']),
        ('"0.1"^^double', ["0.1", "1e-1"]),
        ('"48.85661014"^^double', ["48.85661014", "4885661014e-8"]),
        ('"1234567.5"^^double', ["1234567.5"]),
        ('"1e+21"^^double', ["1e21", "1.0e+21"]),
        ('"48.85661"^^float', ['"48.856610"^^xsd:float', '"48.85660934"^^xsd:float']),
        ('"2020-01-01T00:00:00Z"^^dateTime', ['"2020-01-01T02:00:00+02:00"^^xsd:dateTime']),
        ('"2020-01-01T00:00:00.500Z"^^dateTime', ['"2020-01-01T00:00:00.5+00:00"^^xsd:dateTime']),
        ('"2020-01-01"^^date', ['"2020-01-01T00:00:00"^^xsd:dateTime', '"2020"^^xsd:gYear']),
        ('"-550"^^gYear', ['"-0550"^^xsd:gYear', '"-0550-01-01"^^xsd:date']),
    ],
)
def test_equal_values_are_one(db: eg.Database, server: Server, stored_as: str, others: list[str]) -> None:
    """The delta names what is stored, whatever the request calls it."""
    first = stored_as.replace("^^", "^^xsd:")
    for other in [first, *others]:
        change = db.update(f"{PROLOGUE} INSERT DATA {{ :a :p {first}, 77, :x . :b :p {first} }}")
        assert f"+ :a :p {stored_as}" in rows(change)
        assert frozenset(db.quads()) == change.inserted
        assert not db.update(f"{PROLOGUE} INSERT DATA {{ :a :p {other} }}")
        assert not db.update(f"{PROLOGUE} DELETE DATA {{ :a :p {other} }} ; INSERT DATA {{ :a :p {other} }}")
        assert rows(db.update(f"{PROLOGUE} DELETE DATA {{ :a :p {other}, 78 }}")) == [f"- :a :p {stored_as}"]
        assert rows(db.update(f"{PROLOGUE} DELETE {{ :b ?p ?o }} WHERE {{ :b ?p ?o }}")) == [f"- :b :p {stored_as}"]
        assert len(db.update("CLEAR ALL").deleted) == 2
        assert not stored(server)


def test_of_equal_values_in_one_operation_one_is_stored(db: eg.Database, server: Server) -> None:
    assert len(update(db, server, "INSERT DATA { :a :p 1, 1.0, true . :b :p 1 }").inserted) == 2
    assert len(update(db, server, "DELETE DATA { :a :p 1, 1.0, true . :b :p 1 }").deleted) == 2


def test_equal_values_in_two_operations_are_refused(db: eg.Database, server: Server) -> None:
    assert "for one" in refuse(db, server, UpdateFailed, "INSERT DATA { :a :p 1 } ; INSERT DATA { :a :p 1.0 }")


@pytest.mark.parametrize(
    "literal",
    [
        *(
            '"NaN"^^xsd:double',
            '"NaN"^^xsd:float',
            '"10:00:00"^^xsd:time',
            '"PT1H"^^xsd:duration',
            '"one"^^xsd:integer',
        ),
        *('"maybe"^^xsd:boolean', "9223372036854775808", "0.12345678901234567", "1.1234567890123457e0"),
        *(
            '"1e-20"^^xsd:float',
            '"POINT(1 2)"^^<http://www.opengis.net/ont/geosparql#wktLiteral>',
            '""^^xsd:integer',
        ),
        '"<a/>"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral>',
    ],
)
def test_what_it_would_not_keep_is_refused(db: eg.Database, server: Server, literal: str) -> None:
    message = refuse(db, server, UpdateFailed, f"INSERT DATA {{ :a :p :b . GRAPH :g {{ :a :p {literal} }} }}")
    assert "Virtuoso cannot hold this exactly" in message


def test_a_value_that_is_too_long_for_a_request(db: eg.Database, server: Server) -> None:
    message = refuse(db, server, UpdateFailed, f'INSERT DATA {{ :a :p :b . GRAPH :g {{ :a :p "{"😀" * 800_000}" }} }}')
    assert "too long for Virtuoso" in message


def test_the_graphs_of_the_server_itself_are_no_part_of_the_dataset(server: Server) -> None:
    with empty_database(server, default_graph=None) as db:
        update(db, server, "INSERT DATA { GRAPH :g { :a :p :b } GRAPH :h { :a :p :b } }")
        assert len(update(db, server, "DELETE { GRAPH :h { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o } }").deleted) == 1
        assert len(update(db, server, "DELETE WHERE { GRAPH ?g { ?s ?p ?o } }").deleted) == 1
        settings = "ASK { GRAPH <http://www.openlinksw.com/schemas/virtrdf#> { ?s ?p ?o } }"
        assert bool(db.query(settings))


PLAIN, TYPED = '"x"', f'"x"^^<{XSD}string>'


@pytest.mark.parametrize("spellings", [[PLAIN], [TYPED], [PLAIN, TYPED]])
def test_strings_in_two_spellings(db: eg.Database, server: Server, spellings: list[str]) -> None:
    """With and without xsd:string it is one quad: found under either name, and gone at once if it is there twice."""
    for literal in spellings:
        run(server, f"INSERT DATA {{ GRAPH <http://example.org/g> {{ <urn:a> <urn:p> {literal} }} }}")
    assert len(stored(server)) == 1
    for literal in (PLAIN, TYPED):
        assert not update(db, server, f"INSERT DATA {{ GRAPH :g {{ <urn:a> <urn:p> {literal} }} }}")
    assert len(update(db, server, f"DELETE DATA {{ GRAPH :g {{ <urn:a> <urn:p> {TYPED} }} }}").deleted) == 1


def test_a_value_is_respelled_and_that_is_taken_back(db: eg.Database, server: Server) -> None:
    """Over an operation that must see the deletion, a value can be replaced by an equal one, and the reverse."""
    respell = "DELETE DATA { :a :p 1 } ; INSERT { :seen :n ?n } WHERE { :a :n ?n } ; INSERT DATA { :a :p 1.0 }"
    update(db, server, "INSERT DATA { :a :p 1 ; :n 7 }")
    written = f"{respell} ; INSERT {{ :seen :m ?n }} WHERE {{ :a :n ?n }}"
    refuse(db, server, UpdateFailed, f"{written} ; CLEAR GRAPH :none")
    assert rows(update(db, server, respell)) == [
        '+ :a :p "1"^^decimal',
        '+ :seen :n "7"^^integer',
        '- :a :p "1"^^integer',
    ]


def test_matches_that_are_none(db: eg.Database, server: Server) -> None:
    """Virtuoso forgets that ?y stands twice; what it matches that way is not there, and not reported as deleted."""
    update(db, server, "INSERT DATA { GRAPH :g1 { :b :p :c . :d :p :d } GRAPH :g2 { :c :p :a } }")
    change = update(db, server, "DELETE WHERE { GRAPH ?g { ?y ?p ?y } GRAPH :g1 { ?x ?p ?o } }")
    assert "- :d :p :d :g1" in rows(change)


def test_matches_that_need_no_check(db: eg.Database, server: Server) -> None:
    """What a plain pattern matches is there: IRIs and strings are taken for granted, values are looked up."""
    values = '<urn:b>, "x", "y"^^xsd:string, "z"@en-GB, 7, 1.5, true, 0.1e0, "2020-01-01"^^xsd:date'
    odd = '"0.30000000000000004"^^xsd:double'
    run(server, f"INSERT DATA {{ GRAPH <http://example.org/g1> {{ <urn:a> <urn:p> {values} ; <urn:q> {odd} }} }}")
    assert len(update(db, server, "DELETE WHERE { GRAPH :g1 { ?s <urn:p> ?o } }").deleted) == 9
    # It comes back as 0.3, which is not what is stored: it stays, and is not reported.
    assert not update(db, server, "DELETE WHERE { GRAPH :g1 { ?s <urn:q> ?o } }")


@pytest.mark.parametrize(
    "request_",
    [
        "DELETE WHERE { GRAPH :g1 { ?s :p ?o ; :q ?v } }",
        "DELETE WHERE { GRAPH :g1 { ?s :p ?o . ?t :q ?o } }",
        "DELETE WHERE { GRAPH :g1 { ?s ?p ?o } GRAPH :g2 { ?t ?p ?v } }",
        "DELETE WHERE { GRAPH ?g { ?s :p ?o . ?t :q ?v } }",
        "DELETE { GRAPH :g1 { ?s :p ?o } } WHERE { GRAPH :g1 { ?s :p ?o . ?o :q ?v } }",
        "DELETE { GRAPH :g1 { ?s :p ?o } } INSERT { GRAPH :g2 { ?s :q ?o } } WHERE { GRAPH :g1 { ?s :p ?o } }",
        "WITH :g1 DELETE { ?s :p ?o } INSERT { ?s :p :new } WHERE { ?s :p ?o . GRAPH :g2 { ?s ?q ?v } }",
    ],
)
def test_what_patterns_match_is_what_goes(db: eg.Database, server: Server, request_: str) -> None:
    data = ':a :p :a, :b, 1, "x", "x"@en ; :q 1.0, "x", :a . :b :p 2.5 ; :q 25e-1, "x"@en, :b . :c :p :b ; :q true, :c'
    update(db, server, f"INSERT DATA {{ GRAPH :g1 {{ {data} }} GRAPH :g2 {{ {data} }} }}")
    assert update(db, server, request_)


TERMS = [
    *(
        '"x"',
        '"x"^^xsd:string',
        '"x"@en',
        '""',
        '""@en',
        r'"\u00e9\U0001f600\n\t\"q\\ \r\u0008"@fr',
        r'"\\u0041 \u2028 .\n"',
    ),
    *("1", "-7", "1.5", "12345678901234.5678", '"1"^^xsd:byte', '"2020-01-01"^^xsd:date', '"-0550"^^xsd:gYear'),
    *(
        '"2020-01-01T00:00:00.5Z"^^xsd:dateTime',
        '"z"^^<urn:t>',
        '"> <urn:x> ."',
        "<urn:>",
        "<urn:a%20b>",
        "<http://x/'>",
    ),
    *("<http://x/é>", "<http://x/a.>", "<http://x/#>", "<http://x/q?a=1&b=(2)>"),
]
ROUNDED = ["true", "1e0", "0.1e0", "1234567.5e0", '"48.85661"^^xsd:float', '"INF"^^xsd:double']


@pytest.mark.parametrize("term", [*TERMS, *ROUNDED])
def test_answers_in_triples_are_those_in_json(server: Server, term: str) -> None:
    """They are read if they are exact, and they are as JSON has them."""
    reset(server)
    run(server, f"INSERT DATA {{ GRAPH <urn:g> {{ <urn:a> <urn:p> {term} . <urn:b> <urn:q> <urn:c> }} }}")
    endpoint = Endpoint(server.query_url, server.update_url)
    query = "SELECT ?o ?none ?s { GRAPH <urn:g> { ?s ?p ?o OPTIONAL { ?o <urn:none> ?none } } }"
    solutions = endpoint.query(query)
    assert isinstance(solutions, QuerySolutions)
    expected = sorted((tuple(row) for row in solutions), key=str)
    exactly = endpoint.select_exactly(query)
    assert (exactly is None) == (term in ROUNDED)
    assert sorted(endpoint.select(query) if exactly is None else exactly, key=str) == expected
    endpoint.close()


def test_blank_nodes_and_empty_solutions_in_triples(server: Server) -> None:
    reset(server)
    run(server, "INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:p> <urn:b> } }")
    run(server, "INSERT { GRAPH <urn:g> { _:x <urn:q> <urn:b> } } WHERE { GRAPH <urn:g> { ?s <urn:p> ?o } }")
    endpoint = Endpoint(server.query_url, server.update_url)
    query = "SELECT ?s { GRAPH <urn:g> { ?s <urn:q> ?o } }"
    solutions = endpoint.query(query)
    assert isinstance(solutions, QuerySolutions)
    assert endpoint.select_exactly(query) == [tuple(row) for row in solutions]
    assert endpoint.select_exactly("SELECT ?o { GRAPH <urn:g> { ?s <urn:none> ?o } }") == []
    assert endpoint.select_exactly("SELECT ?n { GRAPH <urn:g> { ?s <urn:p> ?o OPTIONAL { ?o ?o ?n } } }") == [(None,)]
    endpoint.close()


def test_graphs_that_are_named_in_the_pattern(db: eg.Database, server: Server) -> None:
    """They need not be looked up first; those that are no named graphs match nothing all the same."""
    update(db, server, "INSERT DATA { :a :p :b GRAPH :g1 { :a :p :c } GRAPH :g2 { :a :p :d } }")
    assert not update(db, server, f"DELETE WHERE {{ GRAPH <{VIRTUOSO_DEFAULT}> {{ ?s ?p ?o }} }}")
    nowhere = (
        "INSERT { GRAPH :new { ?s ?p ?o } } WHERE { GRAPH <http://www.openlinksw.com/schemas/virtrdf#> { ?s ?p ?o } }"
    )
    assert not update(db, server, nowhere)
    assert (
        len(update(db, server, "INSERT { GRAPH :g3 { ?s ?p ?o } } WHERE { { GRAPH :g1 { ?s ?p ?o } } }").inserted) == 1
    )
    both = "INSERT { GRAPH :g4 { ?s ?q ?v } } WHERE { ?s ?p ?o . GRAPH :g1 { ?s ?p ?c } GRAPH :g2 { ?s ?q ?v } }"
    assert rows(update(db, server, both)) == ["+ :a :p :d :g4"]
    update(
        db,
        server,
        "DELETE { GRAPH :g1 { ?s ?p ?o } } INSERT { GRAPH :g2 { ?s ?p ?o } } WHERE { GRAPH :g1 { ?s ?p ?o } }",
    )


@pytest.mark.parametrize("spellings", [[PLAIN], [TYPED], [PLAIN, TYPED]])
@pytest.mark.parametrize(
    "text",
    [
        "DELETE { GRAPH :g { ?s ?p 'x' } } WHERE { GRAPH :g { ?s ?p ?o } }",
        "DELETE { GRAPH :g { ?s ?p ?o } } WHERE { GRAPH :g { ?s ?p ?o FILTER(?o = 'x') } }",
        "DELETE { GRAPH :g { ?s ?p ?o } } WHERE { GRAPH :g { ?s ?p ?o FILTER(?o != 'y') } }",
        "DELETE { GRAPH :g { ?s ?p ?o } } WHERE { GRAPH :g { ?s ?p ?o . ?t ?p ?o } }",
    ],
)
def test_patterns_over_strings_in_two_spellings(
    db: eg.Database, server: Server, spellings: list[str], text: str
) -> None:
    """Whatever Virtuoso takes for equal: what is reported is what happens to the quad."""
    for literal in spellings:
        run(server, f"INSERT DATA {{ GRAPH <http://example.org/g> {{ <urn:a> <urn:p> {literal} }} }}")
    update(db, server, text)


def test_a_condition_on_nothing(db: eg.Database, server: Server) -> None:
    """To Virtuoso a condition on a variable without a value is a solution, whatever there is beside it."""
    update(db, server, "INSERT DATA { GRAPH :g { :a :p :b } }")
    for triple in (":a :p :b", ":a :p :c"):
        update(db, server, f"DELETE {{ GRAPH :g {{ {triple} }} }} WHERE {{ GRAPH :g {{ {triple} FILTER isIRI(?o) }} }}")


def test_the_stand_in_cannot_be_named(db: eg.Database, server: Server) -> None:
    message = refuse(db, server, UpdateFailed, f"INSERT DATA {{ GRAPH <{VIRTUOSO_DEFAULT}> {{ :a :p :b }} }}")
    assert "serves as the default graph" in message
