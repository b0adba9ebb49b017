import gzip
import io
import sys
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat

from evergraph.errors import DataError, SyntaxProblem, UsageError
from evergraph.rdfio import (
    FORMATS,
    format_for_media_type,
    format_for_path,
    parse_quads,
    read_quads,
    write_quads,
)
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Quad

A, P = NamedNode("http://example.org/a"), NamedNode("http://example.org/p")
QUADS = [
    Quad(A, P, Literal("01", datatype=NamedNode(XSD + "integer"))),
    Quad(A, P, Literal("chat", language="fr")),
    Quad(A, P, Literal('"\n\\é')),
    Quad(BlankNode("b"), P, A),
]
XML = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://example.org/">
<rdf:Description rdf:about="http://example.org/a"><e:p>1</e:p></rdf:Description>
<rdf:Description rdf:about="http://example.org/a"><e:p>2</e:p></rdf:Description>
</rdf:RDF>"""


@pytest.mark.parametrize("compression", ["", ".gz"])
@pytest.mark.parametrize("ending", FORMATS)
def test_every_syntax_reads_back(tmp_path: Path, ending: str, compression: str) -> None:
    path = tmp_path / f"x{ending}{compression}"
    write_quads(path, QUADS)
    assert sorted(map(str, read_quads(path, rename_blank_nodes=False))) == sorted(map(str, QUADS))


@pytest.mark.parametrize("ending", FORMATS)
def test_an_empty_file_holds_nothing(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"x{ending}").write_bytes(b"")
    assert list(read_quads(tmp_path / f"x{ending}")) == []


def test_output_is_sorted(tmp_path: Path) -> None:
    write_quads(tmp_path / "a.nt", QUADS)
    write_quads(tmp_path / "b.nt", reversed(QUADS))
    lines = (tmp_path / "a.nt").read_text("utf-8").splitlines()
    assert lines == sorted(lines)
    assert (tmp_path / "a.nt").read_bytes() == (tmp_path / "b.nt").read_bytes()


def test_blank_nodes_of_two_files_are_different(tmp_path: Path) -> None:
    write_quads(tmp_path / "a.nt", QUADS)
    write_quads(tmp_path / "b.ttl", QUADS)
    [first] = [quad.subject for quad in read_quads(tmp_path / "a.nt") if isinstance(quad.subject, BlankNode)]
    [second] = [quad.subject for quad in read_quads(tmp_path / "b.ttl") if isinstance(quad.subject, BlankNode)]
    assert len({first, second, BlankNode("b")}) == 3


def test_blank_nodes_of_one_file_stay_together() -> None:
    first, second = parse_quads(b"_:x <urn:p> <urn:o> .\n<urn:s> <urn:p> _:x .\n", RdfFormat.N_TRIPLES)
    assert first.subject == second.object


def test_reading_streams(tmp_path: Path) -> None:
    (tmp_path / "x.nt").write_bytes(b"<urn:s> <urn:p> <urn:o> .\n" * 100_000 + b"broken\n")
    quads = read_quads(tmp_path / "x.nt")
    assert next(quads).subject == NamedNode("urn:s")
    with pytest.raises(SyntaxProblem) as caught:
        list(quads)
    assert caught.value.line == 100_001


def test_standard_streams_are_nquads_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"PREFIX : <urn:> :s :p :o .")))
    quads = list(read_quads("-", format=RdfFormat.TURTLE))
    write_quads("-", quads)
    assert out.buffer.getvalue() == b"<urn:s> <urn:p> <urn:o> .\n"


def test_errors_on_standard_input_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"broken")))
    with pytest.raises(SyntaxProblem, match="standard input:1:1: "):
        list(read_quads("-"))


@pytest.mark.parametrize(
    ("name", "content", "line", "column"),
    [
        ("x.nt", b'<urn:s> <urn:p> "a" .\n<urn:s> <urn:p> a .\n', 2, 17),
        ("x.nt", b'<urn:s> <urn:p> "a', 1, 17),
        ("x.nt", '<urn:s> <urn:p> "é😀" <urn:g> .\n'.encode(), 1, 22),
        ("x.nt", b'<urn:s> <urn:p> "\xff" .\n', 1, 18),
        ("x.ttl", b"\n<urn:s> <urn:p> x:y .", 2, 17),
        ("x.trig", b"<urn:g> {\n<urn:s> <urn:p> 1 .", 2, 20),
        ("x.jsonld", b'{\n"@id" 1}', 2, 7),
        ("x.rdf", XML.replace(b"</e:p>", b"</e:q>", 1), 2, 59),
        ("x.rdf", XML[:150], 2, 50),
        ("x.rdf", XML[: XML.rindex(b"<")], 4, 1),
    ],
)
def test_syntax_errors_say_where(tmp_path: Path, name: str, content: bytes, line: int, column: int) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SyntaxProblem) as caught:
        list(read_quads(path))
    problem = caught.value
    assert (problem.where, problem.line) == (str(path), line)
    assert abs(problem.column - column) <= 2, problem  # where in a token it points to is the parser's choice
    assert str(problem).startswith(f"{path}:{line}:")
    assert "Parser error" not in str(problem)


def test_complete_xml_is_fine_and_a_rest_of_it_is_not() -> None:
    assert len(list(parse_quads(XML, RdfFormat.RDF_XML))) == 2
    assert len(list(parse_quads(XML.decode(), RdfFormat.RDF_XML))) == 2
    for cut in range(1, len(XML)):
        with pytest.raises(SyntaxProblem):
            list(parse_quads(XML[:cut], RdfFormat.RDF_XML))


def test_a_byte_order_mark_is_not_data() -> None:
    text = "\ufeff<urn:s> <urn:p> <urn:o> ."
    assert len(list(parse_quads(text, RdfFormat.N_QUADS))) == 1
    assert len(list(parse_quads(text, RdfFormat.TURTLE))) == 1


def test_relative_iris_need_a_base() -> None:
    with pytest.raises(SyntaxProblem, match="give it a base"):
        list(parse_quads("<s> <p> <o> .", RdfFormat.TURTLE))
    [quad] = parse_quads("<s> <p> <o> .", RdfFormat.TURTLE, base_iri="http://example.org/x")
    assert quad.subject == NamedNode("http://example.org/s")


def test_remote_contexts_are_refused_with_a_way_out() -> None:
    with pytest.raises(SyntaxProblem, match="put the @context into the document"):
        list(parse_quads('{"@context": "http://example.org/c", "a": "b"}', RdfFormat.JSON_LD))


def test_truncated_gzip(tmp_path: Path) -> None:
    write_quads(tmp_path / "x.nt.gz", QUADS)
    content = (tmp_path / "x.nt.gz").read_bytes()
    (tmp_path / "x.nt.gz").write_bytes(content[:-9])
    with pytest.raises(DataError, match=r"x\.nt\.gz: damaged gzip file"):
        list(read_quads(tmp_path / "x.nt.gz"))


def test_gzip_members_in_a_row_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "x.nt.gz").write_bytes(
        gzip.compress(b"<a:a> <a:a> <a:a> .\n") + gzip.compress(b"<a:b> <a:a> <a:a> .\n")
    )
    assert len(list(read_quads(tmp_path / "x.nt.gz"))) == 2


@pytest.mark.parametrize("name", ["x", "x.txt", "x.gz", "x.csv.gz", "nt"])
def test_unknown_endings_are_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError) as caught:
        format_for_path(tmp_path / name)
    assert all(ending in caught.value.hint for ending in FORMATS)
    (tmp_path / name).write_bytes(b"<urn:s> <urn:p> <urn:o> .")
    if not name.endswith(".gz"):
        assert len(list(read_quads(tmp_path / name, format=RdfFormat.N_TRIPLES))) == 1


def test_missing_file_and_folder(tmp_path: Path) -> None:
    (tmp_path / "folder.nt").mkdir()
    with pytest.raises(DataError, match="no such file"):
        list(read_quads(tmp_path / "missing.nt"))
    with pytest.raises(DataError, match="a folder"):
        list(read_quads(tmp_path / "folder.nt"))


def test_media_types() -> None:
    assert format_for_media_type("text/turtle; charset=utf-8") == RdfFormat.TURTLE
    assert format_for_media_type("application/rdf+xml") == RdfFormat.RDF_XML
    with pytest.raises(DataError, match="text/turtle"):
        format_for_media_type("text/html")


def test_named_graphs_do_not_fit_into_ntriples(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"named graphs[^$]*\.nq"):
        write_quads(tmp_path / "x.nt", [Quad(A, P, A, A)])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("quad", [Quad(A, NamedNode("http://example.org/1"), A), Quad(A, P, Literal("\0"))])
def test_rdf_xml_is_never_written_wrong(tmp_path: Path, quad: Quad) -> None:
    with pytest.raises(UsageError, match=r"no way to say[^$]*\.nq"):
        write_quads(tmp_path / "x.rdf", [quad])
    assert list(tmp_path.iterdir()) == []
