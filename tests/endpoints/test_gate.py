"""The gate in front of real servers: what it reports is what happened there, and what the request asked for."""

from pathlib import Path

import pytest
from tests.support import servers
from tests.support.datasets import replay
from tests.support.remote import PROLOGUE, connect, empty_database, refuse, rows, run, stored, unskolemised, update
from tests.support.servers import Server

import evergraph as eg
from evergraph.delta import Request
from evergraph.errors import BlankNodeRefused, EndpointError, UpdateFailed, UsageError
from evergraph.terms import DEFAULT_GRAPH, SKOLEM_PREFIX, GraphName, Literal, NamedNode, Quad

pytestmark = pytest.mark.server


# --- the example of the paper

RENAME = """
DELETE { GRAPH ?g { ?a foaf:name "Pietro" } }
INSERT { GRAPH ?g { ?a foaf:name "Mario" } }
WHERE { GRAPH ?g { ?a foaf:name "Pietro" } }
"""


def test_rename_in_every_graph(db: eg.Database, server: Server) -> None:
    update(db, server, 'INSERT DATA { GRAPH :g1 { :a foaf:name "Pietro" } GRAPH :g2 { :b foaf:name "Pietro" } }')
    assert rows(update(db, server, RENAME)) == [
        '+ :a foaf:name "Mario" :g1',
        '+ :b foaf:name "Mario" :g2',
        '- :a foaf:name "Pietro" :g1',
        '- :b foaf:name "Pietro" :g2',
    ]
    assert not update(db, server, RENAME)


def test_a_person_with_both_names(db: eg.Database, server: Server) -> None:
    update(db, server, 'INSERT DATA { GRAPH :g { :a foaf:name "Pietro", "Mario" } }')
    assert rows(update(db, server, RENAME)) == ['- :a foaf:name "Pietro" :g']


# --- every operation


def test_data(db: eg.Database, server: Server) -> None:
    assert rows(update(db, server, "INSERT DATA { :a :p :b . GRAPH :g { :a :p :b, 1 } }")) == [
        '+ :a :p "1"^^integer :g',
        "+ :a :p :b",
        "+ :a :p :b :g",
    ]
    assert rows(update(db, server, "INSERT DATA { :a :p :b, :c . GRAPH :g { :a :p :b } }")) == ["+ :a :p :c"]
    assert rows(update(db, server, "DELETE DATA { :a :p :b, :d . GRAPH :h { :a :p :b } }")) == ["- :a :p :b"]
    assert rows(update(db, server, "DELETE DATA { GRAPH :g { :a :p :b, 1 } }")) == [
        '- :a :p "1"^^integer :g',
        "- :a :p :b :g",
    ]
    assert rows(update(db, server, "INSERT DATA { :a :p :b } ; DELETE DATA { :a :p :b }")) == []
    assert rows(update(db, server, "DELETE DATA { :a :p :c } ; INSERT DATA { :a :p :c }")) == []


def test_modify(db: eg.Database, server: Server) -> None:
    update(db, server, "INSERT DATA { :a :p 1, 2 . :b :p 2 . GRAPH :g { :a :q :b } }")
    assert rows(update(db, server, "DELETE { ?s :p ?o } INSERT { ?s :p 2 } WHERE { ?s :p ?o }")) == [
        '- :a :p "1"^^integer'
    ]
    assert rows(update(db, server, "INSERT { ?s :r ?never . 1 :r ?s . ?s ?o ?s . ?s :r ?s } WHERE { ?s :p ?o }")) == [
        "+ :a :r :a",
        "+ :b :r :b",
    ]
    assert rows(update(db, server, "DELETE WHERE { ?s :r ?o }")) == ["- :a :r :a", "- :b :r :b"]
    assert rows(update(db, server, "DELETE WHERE { ?s :p ?n . GRAPH ?g { ?s :q ?o } }")) == [
        '- :a :p "2"^^integer',
        "- :a :q :b :g",
    ]
    assert rows(update(db, server, "INSERT { :x :y :z } WHERE {}")) == ["+ :x :y :z"]
    assert rows(update(db, server, "DELETE { :x :y :z } WHERE { :no :such :thing }")) == []


def test_graph_operations(db: eg.Database, server: Server) -> None:
    update(db, server, "INSERT DATA { :d :p 1 . GRAPH :g { :a :p 1, 2 } GRAPH :h { :a :p 2, 3 } }")
    assert rows(update(db, server, "ADD :g TO :h")) == ['+ :a :p "1"^^integer :h']
    assert rows(update(db, server, "COPY :g TO :h")) == ['- :a :p "3"^^integer :h']
    assert rows(update(db, server, "COPY DEFAULT TO :h")) == [
        '+ :d :p "1"^^integer :h',
        '- :a :p "1"^^integer :h',
        '- :a :p "2"^^integer :h',
    ]
    assert rows(update(db, server, "MOVE :g TO DEFAULT")) == [
        '+ :a :p "1"^^integer',
        '+ :a :p "2"^^integer',
        '- :a :p "1"^^integer :g',
        '- :a :p "2"^^integer :g',
        '- :d :p "1"^^integer',
    ]
    assert rows(update(db, server, "MOVE :h TO :h ; COPY DEFAULT TO DEFAULT ; ADD SILENT :none TO :h")) == []
    assert rows(update(db, server, "CLEAR GRAPH :h")) == ['- :d :p "1"^^integer :h']
    assert rows(update(db, server, "CREATE GRAPH :new")) == []
    refuse(db, server, UpdateFailed, "CLEAR GRAPH :none")
    refuse(db, server, UpdateFailed, "INSERT DATA { :a :p :new } ; ADD :none TO :h")
    update(db, server, "INSERT DATA { GRAPH :h { :a :p 1 } }")
    assert "exists already" in refuse(db, server, UpdateFailed, "CREATE GRAPH :h")
    assert rows(update(db, server, "CREATE SILENT GRAPH :h ; DROP SILENT GRAPH :none")) == []


@pytest.mark.parametrize("keyword", ["CLEAR", "DROP"])
def test_all_default_and_named(db: eg.Database, server: Server, keyword: str) -> None:
    fill = 'INSERT DATA { :d :p 1, "x"@en . GRAPH :g { :a :p 1, "x"@en, "y"^^:t } GRAPH :h { :a :p "z" } }'
    update(db, server, fill)
    assert len(update(db, server, f"{keyword} DEFAULT").deleted) == 2
    update(db, server, fill)
    assert len(update(db, server, f"{keyword} NAMED").deleted) == 4
    update(db, server, fill)
    assert len(update(db, server, f"{keyword} ALL").deleted) == 6
    assert not stored(server)
    assert not update(db, server, f"{keyword} ALL")


def test_load(db: eg.Database, server: Server, tmp_path: Path) -> None:
    document = tmp_path / "data.ttl"
    document.write_text('<http://example.org/a> <http://example.org/p> "x"@en, 1, [] .')
    change = update(db, server, f"LOAD <{document.as_uri()}> INTO GRAPH :g")
    assert len(change.inserted) == 3
    assert not any("_:" in str(quad) for quad in change.inserted)
    refuse(db, server, UpdateFailed, f"INSERT DATA {{ :a :p :b }} ; LOAD <{document.as_uri()}x>")
    assert not update(db, server, f"LOAD SILENT <{document.as_uri()}x>")


# --- several operations, and the dataset of a WHERE clause


def test_later_operations_see_earlier_ones(db: eg.Database, server: Server) -> None:
    assert rows(
        update(
            db,
            server,
            """INSERT DATA { :a :p :b . GRAPH :g { :a :p 1 } } ;
               INSERT { ?s :copy ?o } WHERE { ?s :p ?o } ;
               DELETE { ?s :p ?o } WHERE { ?s :p ?o } ;
               INSERT { GRAPH ?g { ?s :seen ?c } } WHERE { GRAPH ?g { ?s :p ?n } ?s :copy ?c } ;
               CLEAR DEFAULT ;
               INSERT DATA { :a :p :b }""",
        )
    ) == ['+ :a :p "1"^^integer :g', "+ :a :p :b", "+ :a :seen :b :g"]


def test_a_failure_takes_back_what_earlier_operations_wrote(db: eg.Database, server: Server) -> None:
    update(db, server, "INSERT DATA { :a :p :old }")
    message = refuse(
        db,
        server,
        UpdateFailed,
        """DELETE DATA { :a :p :old } ; INSERT DATA { :a :p :new } ;
           INSERT { ?s :copy ?o } WHERE { ?s :p ?o } ;
           CLEAR GRAPH :none""",
    )
    assert "operation 4 (Clear, line 7)" in message
    assert rows(update(db, server, "INSERT DATA { :a :p :old, :new }")) == ["+ :a :p :new"]


@pytest.mark.parametrize(
    ("clauses", "where", "expected"),
    [
        ("", "?s :p ?o", [":d"]),
        ("", "GRAPH ?g { ?s :p ?o }", [":one", ":two"]),
        ("", "GRAPH :g2 { ?s :p ?o }", [":two"]),
        ("WITH :g1", "?s :p ?o", [":one"]),
        ("WITH :g1", "GRAPH :g2 { ?s :p ?o }", [":two"]),
        ("WITH :g1", "GRAPH ?g { ?s :p ?o } ?any :p 1", [":one", ":two"]),
        ("USING :g2", "?s :p ?o", [":two"]),
        ("USING :g1 USING :g2", "?s :p ?o", [":one", ":two"]),
        ("USING :g1", "GRAPH ?g { ?s :p ?o }", []),
        ("USING NAMED :g1", "GRAPH ?g { ?s :p ?o }", [":one"]),
        ("USING :g2 USING NAMED :g1", "?s :p ?o . GRAPH ?g { ?x :p ?n }", [":two"]),
        ("WITH :g1 USING :g2", "?s :p ?o", [":two"]),
    ],
)
def test_the_dataset_of_a_where_clause(
    db: eg.Database, server: Server, clauses: str, where: str, expected: list[str]
) -> None:
    update(db, server, "INSERT DATA { :d :p 1 . GRAPH :g1 { :one :p 1 } GRAPH :g2 { :two :p 2 } }")
    with_clause = clauses.split(" USING")[0] if clauses.startswith("WITH") else ""
    using = clauses.removeprefix(with_clause)
    change = update(
        db, server, f"{with_clause} INSERT {{ GRAPH :out {{ ?s :found :it }} }} {using} WHERE {{ {where} }}"
    )
    assert rows(change) == [f"+ {name} :found :it :out" for name in expected]


def test_with_names_the_graph_of_templates(db: eg.Database, server: Server) -> None:
    update(db, server, "INSERT DATA { GRAPH :g { :a :p 1 } GRAPH :h { :a :p 2 } }")
    assert rows(update(db, server, "WITH :g DELETE { ?s :p ?o } INSERT { ?s :q ?o } WHERE { ?s :p ?o }")) == [
        '+ :a :q "1"^^integer :g',
        '- :a :p "1"^^integer :g',
    ]


# --- terms

LITERALS = [
    *('"x"', '"x"@en', '"x"@en-GB', '"x"@de', '"y"^^:own', '""', '""@en', '"nan"', "'GRAPH } # {'"),
    *('"naïve Ω 漢字 😀"', '"naïve Ω 漢字 😀"@fr', '"tab\\t, newline\\n, return\\r, quote\\", backslash\\\\"'),
    *("7", "-7", "2.5", '"8"^^xsd:int', '"2020-02-29"^^xsd:date', '"2020-01-01T00:00:00Z"^^xsd:dateTime'),
    *(
        '"1999"^^xsd:gYear',
        '"4142"^^xsd:hexBinary',
        '"http://a/"^^xsd:anyURI',
        '"x"^^xsd:token',
        '"not a date"^^xsd:date',
    ),
]


@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_comes_and_goes(db: eg.Database, server: Server, literal: str) -> None:
    data = f"{{ GRAPH :g {{ :a :p {literal} . :b :p {literal} }} GRAPH :h {{ :a :p {literal}, :other }} }}"
    assert len(update(db, server, f"INSERT DATA {data}").inserted) == 4
    assert not update(db, server, f"INSERT DATA {data}")
    assert len(update(db, server, f"DELETE DATA {{ GRAPH :g {{ :a :p {literal} }} }}").deleted) == 1
    assert len(update(db, server, "DELETE WHERE { GRAPH ?g { :b :p ?o } }").deleted) == 1
    assert len(update(db, server, f"DELETE DATA {data}").deleted) == 2
    assert not stored(server)


def test_many_literals_together(db: eg.Database, server: Server) -> None:
    objects = ", ".join(LITERALS)
    data = f"{{ :d :p {objects} . GRAPH :g {{ :a :p {objects} }} GRAPH :h {{ :a :p {objects} . :b :q {objects} }} }}"
    assert len(update(db, server, f"INSERT DATA {data}").inserted) == 4 * len(LITERALS)
    assert not update(db, server, f"INSERT DATA {data}")
    update(db, server, "MOVE :g TO :i")
    update(
        db, server, "DELETE { GRAPH :h { ?s ?p ?o } } INSERT { GRAPH :j { ?s ?p ?o } } WHERE { GRAPH :h { ?s ?p ?o } }"
    )
    assert len(update(db, server, "DROP ALL").deleted) == 4 * len(LITERALS)
    assert not stored(server)


@pytest.mark.parametrize("length", [900, 1_100, 5_000, 30_000])
def test_long_literals(db: eg.Database, server: Server, length: int) -> None:
    literals = [f'"{letter * length}"{suffix}' for letter in "xé😀" for suffix in ("", "@en", "^^:own")]
    literal = ", ".join(literals)
    data = f'{{ GRAPH :g {{ :a :p {literal}, "short" }} GRAPH :h {{ :a :p {literal} }} }}'
    assert len(db.update(f"{PROLOGUE} INSERT DATA {data}").inserted) == 19
    assert not db.update(f"{PROLOGUE} INSERT DATA {data}")
    assert len(db.update(f"{PROLOGUE} DELETE DATA {data}").deleted) == 19
    assert not stored(server)


def test_more_quads_than_any_request_may_hold(db: eg.Database, server: Server, tmp_path: Path) -> None:
    graphs: list[GraphName] = [DEFAULT_GRAPH, *(NamedNode(f"http://example.org/g{number}") for number in range(60))]

    def quad(number: int, graph: GraphName) -> Quad:
        value = Literal(f"value {number}", language="en") if number % 8 else Literal(number)
        return Quad(NamedNode(f"http://example.org/s{number % 700}"), NamedNode("http://example.org/p"), value, graph)

    several = {quad(number, graphs[1]) for number in range(5_200)} | {
        quad(number, DEFAULT_GRAPH) for number in range(300)
    }
    many = several | {quad(number, graph) for number, graph in enumerate(graphs)}
    assert db.apply(Request(added=frozenset(several))).inserted == several
    assert db.apply(Request(added=frozenset(many))).inserted == many - several
    assert stored(server) == many
    assert not db.apply(Request(added=frozenset(many)))
    change = db.update(f"{PROLOGUE} DELETE {{ GRAPH ?g {{ ?s ?p ?o }} }} WHERE {{ GRAPH ?g {{ ?s ?p ?o }} }}")
    assert change.deleted == {quad for quad in many if quad.graph_name != DEFAULT_GRAPH}
    assert db.update("CLEAR ALL").deleted == many - change.deleted
    assert not stored(server)


# --- blank nodes


def test_new_blank_nodes_become_iris(db: eg.Database, server: Server) -> None:
    change = update(db, server, "INSERT DATA { _:x :p _:y . _:y :p _:x . GRAPH :g { _:x :q [] } }")
    nodes = {
        term.value for quad in change.inserted for term in (quad.subject, quad.object) if isinstance(term, NamedNode)
    }
    assert len(nodes) == 3
    assert all(node.startswith(SKOLEM_PREFIX) for node in nodes)
    change = update(db, server, "INSERT { ?s :made _:new . _:new :by ?s } WHERE { ?s :p ?o }")
    assert len(unskolemised(change.inserted)) == 4
    assert len({quad.subject for quad in change.inserted}) == 4
    assert len(update(db, server, "CLEAR ALL").deleted) == 7


@pytest.mark.parametrize(
    "request_text",
    [
        "DELETE WHERE { GRAPH :g { ?s :p ?o } }",
        "INSERT { GRAPH :h { ?s :p ?o } } WHERE { GRAPH :g { ?s :p ?o } }",
        "INSERT { GRAPH :h { :a :p ?s } } WHERE { GRAPH :g { ?s :p ?o } }",
        "CLEAR GRAPH :g",
        "COPY :g TO :h",
        "MOVE :g TO :h",
        "DROP ALL",
        "INSERT DATA { GRAPH :h { :n :p 1 } }; INSERT { GRAPH :i { ?s :q 1 } } WHERE { GRAPH :h { ?s :p 1 } };DROP ALL",
    ],
)
def test_a_blank_node_of_the_server_is_refused(db: eg.Database, server: Server, request_text: str) -> None:
    run(server, "INSERT { GRAPH <http://example.org/g> { _:x <http://example.org/p> 1 } } WHERE {}")
    run(server, "INSERT DATA { GRAPH <http://example.org/k> { <http://example.org/known> <http://example.org/p> 1 } }")
    assert "cannot name it" in refuse(db, server, BlankNodeRefused, request_text)
    change = update(
        db, server, "INSERT { GRAPH :out { ?k :p ?o } } WHERE { GRAPH :g { ?s :p ?o } GRAPH :k { ?k :p ?o } }"
    )
    assert rows(change) == ['+ :known :p "1"^^integer :out']


# --- the servers


def test_the_log_replays_to_what_the_server_holds(server: Server, tmp_path: Path) -> None:
    with empty_database(server, log=tmp_path) as db:
        update(db, server, 'INSERT DATA { :a :p 1, "x"@en, "y" . GRAPH :g { _:x :p 2.5 } }')
        update(db, server, "DELETE WHERE { :a :p ?o }")
        assert not (tmp_path / ".unsettled").exists()
    with connect(server, log=tmp_path) as db:
        update(db, server, "MOVE :g TO :h")
        assert replay(db.changes()) == stored(server) == frozenset(db.quads())
        assert db.sequence == 3


def test_a_log_is_for_one_process(server: Server, tmp_path: Path) -> None:
    with connect(server, log=tmp_path), pytest.raises(eg.EvergraphError, match="in use by another process"):
        connect(server, log=tmp_path)
    connect(server, log=tmp_path).close()


def test_services_of_two_datasets_are_told_apart(server: Server) -> None:
    """A query service that does not show what the update service was told is no use."""
    servers.reset(server)
    with servers.start("oxigraph") as other:
        expected = pytest.raises(EndpointError, match=r"took a change that .* does not show")
        with eg.connect(other.query_url, server.update_url) as db, expected:
            db.update(f"{PROLOGUE} INSERT DATA {{ GRAPH :g {{ :a :p :b }} }}")
        assert not stored(server)
        assert not stored(other)


def test_a_wrong_default_graph(server: Server) -> None:
    with pytest.raises(UsageError, match="not an absolute IRI"):
        connect(server, default_graph="no iri")
