import pytest
from pyoxigraph import RdfFormat

from evergraph.engines.spark.lines import parse_lines


def rows(text: str | bytes, format: RdfFormat = RdfFormat.N_TRIPLES, scope: str = "") -> list[tuple[str, ...]]:
    parsed = parse_lines(text.encode() if isinstance(text, str) else text, format, scope)
    assert not parsed.damaged
    return [tuple(row.values()) for batch in parsed.rows for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("line", "object_"),
    [
        ('<urn:s> <urn:p> "a b . c" .', '"a b . c"'),
        ('<urn:s> <urn:p> "x"@en-US .', '"x"@en-us'),
        ('<urn:s> <urn:p> "\\u00e9" .', '"é"'),
        ('<urn:s> <urn:p> "x"^^<http://www.w3.org/2001/XMLSchema#string> .', '"x"'),
        (
            '<urn:s> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
            '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        ),
        ('\t<urn:s>  <urn:p>\t"x".# comment', '"x"'),
        ("<urn:s> <urn:p> <<( <urn:a> <urn:b> <urn:c> )>> .", "<<( <urn:a> <urn:b> <urn:c> )>>"),
        ('<urn:s> <urn:p> "\u2028" .', '"\u2028"'),
    ],
)
def test_terms_become_canonical(line: str, object_: str) -> None:
    assert rows(line) == [("<urn:s>", "<urn:p>", object_, "")]


@pytest.mark.parametrize(
    ("rest", "object_", "graph"),
    [
        ('"x"', '"x"', ""),
        ("<urn:o> <urn:g>", "<urn:o>", "<urn:g>"),
        ("<urn:o>", "<urn:o>", ""),
        ('"a <urn:g>"', '"a <urn:g>"', ""),
        ('"a <b"^^<http://x/y>', '"a <b"^^<http://x/y>', ""),
        ('"a _:b"@en _:g', '"a _:b"@en', "_:g"),
        ("<<( <urn:a> <urn:b> _:c )>> <urn:g>", "<<( <urn:a> <urn:b> _:c )>>", "<urn:g>"),
        ("<<( <urn:a> <urn:b> _:c )>>", "<<( <urn:a> <urn:b> _:c )>>", ""),
    ],
)
def test_the_graph_is_found_behind_any_object(rest: str, object_: str, graph: str) -> None:
    assert rows(f"_:s <urn:p> {rest} .\n", RdfFormat.N_QUADS) == [("_:s", "<urn:p>", object_, graph)]


def test_blank_nodes_get_the_scope_everywhere() -> None:
    text = '_:a <urn:p> _:b _:g .\n_:a <urn:p> "_:b" .\n_:a <urn:p> <<( _:a <urn:b> _:c )>> .\n'
    assert rows(text, RdfFormat.N_QUADS, "f1") == [
        ("_:f1a", "<urn:p>", "_:f1b", "_:f1g"),
        ("_:f1a", "<urn:p>", '"_:b"', ""),
        ("_:f1a", "<urn:p>", "<<( _:f1a <urn:b> _:f1c )>>", ""),
    ]


def test_damaged_lines_are_told_by_place_and_the_others_stay() -> None:
    parsed = parse_lines(b'<urn:a> <urn:b> <urn:c> .\n\nnonsense\n<a> <urn:b> "\xff" .\n<urn:a>', RdfFormat.N_TRIPLES)
    assert sum(batch.num_rows for batch in parsed.rows) == 1
    assert parsed.lines == 5
    assert [(one.place, one.text) for one in parsed.damaged] == [
        (2, b"nonsense"),
        (3, b'<a> <urn:b> "\xff" .'),
        (4, b"<urn:a>"),
    ]
    assert all(one.reason for one in parsed.damaged)


@pytest.mark.parametrize("iri", ["http://a b", "no-scheme", "http://a/%zz", "a:b#c#d", "http://a:x/", "urn:{"])
def test_iris_that_are_none_are_damage(iri: str) -> None:
    assert len(parse_lines(f"<urn:s> <urn:p> <{iri}> .".encode(), RdfFormat.N_TRIPLES).damaged) == 1
