from pathlib import Path

import pytest

from evergraph.delta import Request
from evergraph.errors import DataError, SyntaxProblem
from evergraph.rdfio import write_quads
from evergraph.sources import open_source
from evergraph.terms import BlankNode, Literal, NamedNode, Quad


def quads(text: str) -> frozenset[Quad]:
    return frozenset(Quad(NamedNode("urn:s"), NamedNode("urn:p"), Literal(letter)) for letter in text)


def test_changes_are_differences_in_the_order_of_names(tmp_path: Path) -> None:
    write_quads(tmp_path / "2024-02.nt.gz", quads("bc"))
    write_quads(tmp_path / "2024-01.nt", quads("ab"))
    write_quads(tmp_path / "2024-03.nq", quads("bc"))
    (tmp_path / "notes.txt").write_text("")
    read = list(open_source(tmp_path).changes())
    assert [step.request for step in read] == [
        Request(added=quads("ab")),
        Request(removed=quads("a"), added=quads("c")),
        Request(),
    ]
    assert [step.sequence for step in read] == [1, 2, 3]
    assert read[1].where == str(tmp_path / "2024-02.nt.gz")


def test_skipping_reads_only_the_version_before(tmp_path: Path) -> None:
    (tmp_path / "1.nt").write_text("broken")
    write_quads(tmp_path / "2.nt", quads("a"))
    write_quads(tmp_path / "3.nt", quads("ab"))
    source = open_source(tmp_path)
    assert [(step.sequence, step.request) for step in source.changes(after=2)] == [(3, Request(added=quads("b")))]
    assert list(source.changes(after=3)) == []
    with pytest.raises(SyntaxProblem, match=r"1\.nt:1:1"):
        list(source.changes())


def test_an_empty_version_removes_everything(tmp_path: Path) -> None:
    write_quads(tmp_path / "1.nt", quads("ab"))
    (tmp_path / "2.nt").write_bytes(b"")
    assert [step.request for step in open_source(tmp_path).changes(after=1)] == [Request(removed=quads("ab"))]


def test_blank_nodes_are_the_same_where_their_labels_are(tmp_path: Path) -> None:
    same = Quad(BlankNode("x"), NamedNode("urn:p"), Literal("same"))
    write_quads(tmp_path / "1.nt", [same])
    write_quads(tmp_path / "2.nt", [same, Quad(BlankNode("y"), NamedNode("urn:p"), Literal("same"))])
    [change] = open_source(tmp_path).changes(after=1)
    assert (change.request.removed, len(change.request.added)) == (frozenset(), 1)


def test_other_syntaxes_are_refused(tmp_path: Path) -> None:
    write_quads(tmp_path / "1.nt", quads("a"))
    write_quads(tmp_path / "2.ttl", quads("b"))
    with pytest.raises(DataError, match=r"other syntaxes .*2\.ttl"):
        open_source(tmp_path)


def test_the_same_version_twice_is_refused(tmp_path: Path) -> None:
    write_quads(tmp_path / "1.nt", quads("a"))
    write_quads(tmp_path / "1.nt.gz", quads("a"))
    with pytest.raises(DataError, match="twice"):
        open_source(tmp_path)
