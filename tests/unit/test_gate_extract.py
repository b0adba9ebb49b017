"""What each operation changes, on examples that people argue about; the random ones are in tests/properties."""

import pytest

import evergraph as eg
from evergraph.errors import UpdateFailed
from evergraph.terms import sorted_quads

PREFIXES = "PREFIX : <http://example.org/> PREFIX foaf: <http://xmlns.com/foaf/0.1/>\n"
RENAME = """
    DELETE { GRAPH ?g { ?a foaf:name "Pietro" } }
    INSERT { GRAPH ?g { ?a foaf:name "Mario" } }
    WHERE  { GRAPH ?g { ?a foaf:name "Pietro" } }"""


def effect(data: str, request: str) -> list[str]:
    """Run a request on some data; tell the change as rows of a patch, with short names."""
    db = eg.open()
    db.update(f"{PREFIXES} INSERT DATA {{ {data} }}")
    change = db.update(PREFIXES + request)
    rows = [f"- {quad}" for quad in sorted_quads(change.deleted)]
    rows += [f"+ {quad}" for quad in sorted_quads(change.inserted)]
    return [row.replace("<http://example.org/", "<").replace("<http://xmlns.com/foaf/0.1/", "<") for row in rows]


def test_rename_in_every_graph() -> None:
    """Listing 3 of the paper: nobody is renamed in the default graph, and a name counts per graph."""
    data = """:x foaf:name "Pietro" .
        GRAPH :g { :x foaf:name "Pietro" . :y foaf:name "Pietro" , "P." } GRAPH :h { :x foaf:name "Pietro" }"""
    assert effect(data, RENAME) == [
        '- <x> <name> "Pietro" <g>',
        '- <x> <name> "Pietro" <h>',
        '- <y> <name> "Pietro" <g>',
        '+ <x> <name> "Mario" <g>',
        '+ <x> <name> "Mario" <h>',
        '+ <y> <name> "Mario" <g>',
    ]


def test_rename_of_a_person_with_both_names() -> None:
    assert effect('GRAPH :g { :x foaf:name "Pietro" , "Mario" }', RENAME) == ['- <x> <name> "Pietro" <g>']


@pytest.mark.parametrize(
    ("data", "request_", "expected"),
    [
        (":a :p :b", "INSERT DATA { :a :p :b , :c }", ["+ <a> <p> <c>"]),
        (":a :p :b", "DELETE DATA { :a :p :b , :c }", ["- <a> <p> <b>"]),
        (":a :p :b", "DELETE { :a :p ?x } INSERT { :a :p ?x , :c } WHERE { :a :p ?x }", ["+ <a> <p> <c>"]),
        (":a :p :b", "DELETE { :a :p :c } INSERT { :a :p :c } WHERE {}", ["+ <a> <p> <c>"]),
        (":a :p 1", "DELETE DATA { :a :p 01 }; INSERT DATA { :a :p '+1'^^<http://www.w3.org/2001/XMLSchema#int> }", []),
        (":a :p 1", "DELETE { :a :p ?x } INSERT { :a :p 01 } WHERE { :a :p ?x }", []),
        (":a :p :b", "INSERT DATA { :a :p :c }; DELETE DATA { :a :p :c }", []),
        (":a :p :b", "DELETE DATA { :a :p :b }; INSERT DATA { :a :p :b }", []),
        (":a :p :b", "DELETE WHERE { ?s ?p ?o }; INSERT { :a :q :c } WHERE { :a :p :b }", ["- <a> <p> <b>"]),
        (":a :p :b", "INSERT { :c :q ?o } WHERE { :a :p ?o }; DELETE WHERE { :a :p ?x . :c :q ?x }", ["- <a> <p> <b>"]),
        ("GRAPH :g { :a :p 1 } GRAPH :h { :a :p 2 }", "MOVE :g TO :h", ["- 2 <h>", "- 1 <g>", "+ 1 <h>"]),
        ("GRAPH :g { :a :p 1 } GRAPH :h { :a :p 1 , 2 }", "MOVE :g TO :h", ["- 2 <h>", "- 1 <g>"]),
        ("GRAPH :g { :a :p 1 } GRAPH :h { :a :p 2 }", "COPY :g TO :h", ["- 2 <h>", "+ 1 <h>"]),
        ("GRAPH :g { :a :p 1 } GRAPH :h { :a :p 2 }", "ADD :g TO :h", ["+ 1 <h>"]),
        (":a :p 1", "COPY DEFAULT TO :g; MOVE DEFAULT TO :h", ["- 1", "+ 1 <g>", "+ 1 <h>"]),
        ("GRAPH :g { :a :p 1 }", "MOVE :g TO :g; COPY :g TO :g; ADD :g TO :g; MOVE DEFAULT TO DEFAULT", []),
        (":a :p 1 GRAPH :g { :a :p 1 } GRAPH :h { :a :p 2 }", "CLEAR NAMED", ["- 1 <g>", "- 2 <h>"]),
        (":a :p 1 GRAPH :g { :a :p 1 }", "DROP DEFAULT", ["- 1"]),
        (":a :p 1 GRAPH :g { :a :p 1 }", "DROP ALL", ["- 1", "- 1 <g>"]),
    ],
)  # fmt: skip
def test_operations(data: str, request_: str, expected: list[str]) -> None:
    short = [
        row.replace("<a> <p> ", "").replace('"^^<http://www.w3.org/2001/XMLSchema#integer>', "").replace('"', "")
        if "XMLSchema" in row
        else row
        for row in effect(data, request_)
    ]
    assert sorted(short) == sorted(expected)


@pytest.mark.parametrize(
    "operation", ["CLEAR GRAPH :g", "DROP GRAPH :g", "ADD :g TO :h", "COPY :g TO :h", "MOVE :g TO :h"]
)
def test_a_graph_that_does_not_exist(operation: str) -> None:
    data = "GRAPH :h { :a :p 1 }"
    with pytest.raises(UpdateFailed, match=r"the graph <http://example.org/g> does not exist"):
        effect(data, operation)
    keyword, rest = operation.split(" ", 1)
    assert effect(data, f"{keyword} SILENT {rest}") == []


def test_graphs_that_exist_though_they_are_empty() -> None:
    names = "INSERT { ?g a :Graph } WHERE { GRAPH ?g {} }"
    assert effect("", f"CREATE GRAPH :g; {names}")[0].startswith("+ <g>")
    assert effect("GRAPH :g { :a :p 1 }", f"DROP GRAPH :g; {names}")[1:] == []
    assert effect("GRAPH :g { :a :p 1 }", f"CLEAR GRAPH :g; {names}; CLEAR GRAPH :g")[1].startswith("+ <g>")
    assert effect("GRAPH :g { :a :p 1 }", f"CREATE GRAPH :h; COPY :h TO :g; {names}")[1].startswith("+ <h>")
    with pytest.raises(UpdateFailed, match="exists already"):
        effect("", "CREATE GRAPH :g; CREATE GRAPH :g")
    assert effect("", "CREATE GRAPH :g; CREATE SILENT GRAPH :g; DROP GRAPH :g; CREATE GRAPH :g") == []
