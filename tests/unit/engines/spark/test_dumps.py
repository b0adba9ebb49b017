import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import TempPathFactory

from evergraph.engines.spark.dumps import Piece, cut, find_files
from evergraph.errors import DataError


@given(st.lists(st.binary(max_size=5).map(lambda text: text.replace(b"\n", b"")), max_size=8), st.data())
def test_pieces_have_every_line_once(
    tmp_path_factory: TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    file = tmp_path_factory.getbasetemp() / "pieces.nt"
    content = b"\n".join(lines)
    file.write_bytes(content)
    inner = data.draw(st.lists(st.integers(0, len(content)), max_size=3))
    places = sorted({0, len(content), *inner})
    pieces = [Piece(str(file), n, a, b) for n, (a, b) in enumerate(pairwise(places))]
    assert b"".join(block for piece in pieces for block in piece.blocks()) == content


def test_large_files_are_cut_and_small_ones_share_a_task(tmp_path: Path) -> None:
    large, *small = [tmp_path / name for name in ("a.nt", "b.nt", "c.nt.gz", "d.ttl")]
    large.write_bytes(b"<urn:a> <urn:b> <urn:c> .\n" * 600_000)
    small[0].write_bytes(b"")
    small[1].write_bytes(gzip.compress(b""))
    small[2].write_bytes(b"")
    tasks = cut(find_files([tmp_path]), cores=2)
    assert len(tasks) > 2
    pieces = [piece for task in tasks for piece in task]
    assert [piece.file for piece in pieces[-3:]] == [str(path) for path in small]
    assert sum((piece.end or 0) - piece.begin for piece in pieces if piece.file == str(large)) == large.stat().st_size


def test_files_folders_and_patterns_name_each_file_once(tmp_path: Path) -> None:
    for name in ("b.nt", "x/a.nq.gz", "x/.hidden.nt", "x/readme.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    wanted = [str(tmp_path / "b.nt"), str(tmp_path / "x/a.nq.gz")]
    assert find_files([tmp_path]) == wanted
    assert find_files([tmp_path / "*.nt", tmp_path / "x", tmp_path / "b.nt"]) == wanted


@pytest.mark.parametrize("name", ["none.nt", "empty", "readme.txt", "*.nq"])
def test_what_names_no_rdf_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "readme.txt").write_text("")
    with pytest.raises(DataError):
        find_files([tmp_path / name])


def test_labels_are_the_same_each_time_and_differ_by_file() -> None:
    assert Piece("/a.nt").scope == Piece("/a.nt", 3, 5, 9).scope != Piece("/b.nt").scope
