import gzip
import io
import sys
from pathlib import Path

import pytest

from evergraph.delta import Request
from evergraph.errors import DataError, SyntaxProblem
from evergraph.files import open_output
from evergraph.patch import transaction, write_transaction
from evergraph.sources import PatchSource, open_source
from evergraph.terms import Literal, NamedNode, Quad


def change(text: str) -> Request:
    return Request(added=frozenset({Quad(NamedNode("urn:s"), NamedNode("urn:p"), Literal(text))}))


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.rdfp"
    path.write_bytes(transaction(change("a")) + transaction(change("b")))
    read = list(open_source(path).changes())
    assert [(step.sequence, step.request, step.where) for step in read] == [
        (1, change("a"), f"{path}:1"),
        (2, change("b"), f"{path}:4"),
    ]


def test_a_folder_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "2.rdfp").write_bytes(b'A <urn:s> <urn:p> "c" .\n')
    (tmp_path / "1.patch").write_bytes(transaction(change("a")) + transaction(change("b")))
    (tmp_path / "3.rdfpatch.gz").write_bytes(gzip.compress(transaction(change("d"))))
    (tmp_path / "README.md").write_text("not a patch")
    source = open_source(tmp_path)
    assert [step.request for step in source.changes()] == [change(name) for name in "abcd"]
    assert [(step.sequence, step.request) for step in source.changes(after=1)] == [
        (2, change("b")),
        (3, change("c")),
        (4, change("d")),
    ]


def test_compressed_patches_are_written_and_read(tmp_path: Path) -> None:
    with open_output(tmp_path / "x.rdfp.gz") as out:
        write_transaction(out, change("a"))
    assert [step.request for step in open_source(tmp_path / "x.rdfp.gz").changes()] == [change("a")]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(transaction(change("a")))))
    assert [(step.request, step.where) for step in open_source("-").changes()] == [(change("a"), "standard input:1")]


def test_skipped_changes_are_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "x.rdfp").write_bytes(b"TX .\nA broken\nTC .\n" + transaction(change("b")))
    source = open_source(tmp_path / "x.rdfp")
    assert [step.request for step in source.changes(after=1)] == [change("b")]
    with pytest.raises(SyntaxProblem, match=r"x\.rdfp:2:3: "):
        list(source.changes())


def test_a_truncated_file(tmp_path: Path) -> None:
    (tmp_path / "x.rdfp").write_bytes(transaction(change("a")) + b"TX .\nA <urn")
    with pytest.raises(DataError, match=r"x\.rdfp:4: the patch ends"):
        list(open_source(tmp_path / "x.rdfp").changes())
    assert len(list(PatchSource((tmp_path / "x.rdfp",), tail="ignore").changes())) == 1


def test_truncated_gzip(tmp_path: Path) -> None:
    (tmp_path / "x.rdfp.gz").write_bytes(gzip.compress(transaction(change("a")) * 1000)[:-10])
    with pytest.raises(DataError, match=r"x\.rdfp\.gz: damaged gzip"):
        list(open_source(tmp_path).changes())
