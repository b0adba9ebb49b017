from pathlib import Path

import pytest

from evergraph.delta import Delta, Request
from evergraph.errors import DataError, SyntaxProblem, UsageError
from evergraph.sources import ChangesetSource, open_source, write_changeset
from evergraph.terms import BlankNode, NamedNode, Quad

S, P = NamedNode("urn:s"), NamedNode("urn:p")


def quad(name: str, graph: str = "") -> Quad:
    return Quad(S, P, NamedNode(f"urn:{name}"), *([NamedNode(f"urn:{graph}")] if graph else []))


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"<urn:s> <urn:p> <urn:{value}> .\n" for value in content.split()), "utf-8")


def objects(folder: Path, after: int = 0) -> list[tuple[int, str, str]]:
    def names(quads: frozenset[Quad]) -> str:
        return " ".join(sorted(str(quad.object)[5:-1] for quad in quads))

    return [
        (change.sequence, names(change.request.removed), names(change.request.added))
        for change in open_source(folder).changes(after)
    ]


def test_order_is_by_path_then_number_and_gaps_are_normal(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "2024/01/09/23/000007.added.nt": "c",
            "2024/01/09/23/000007.removed.nt": "b",
            "2024/01/10/00/000009.removed.nt": "a",
            "2024/01/09/05/000002.added.nt": "a b",
        },
    )
    assert objects(tmp_path) == [(1, "", "a b"), (2, "b", "c"), (3, "a", "")]


def test_numbers_count_beyond_six_digits(tmp_path: Path) -> None:
    write(tmp_path, {"1000000.added.nt": "b", "999999.added.nt": "a"})
    assert objects(tmp_path) == [(1, "", "a"), (2, "", "b")]


def test_skipped_changes_are_not_opened(tmp_path: Path) -> None:
    write(tmp_path, {"000001.added.nt": "a", "000002.added.nt": "b"})
    (tmp_path / "000001.added.nt").write_text("broken")
    assert objects(tmp_path, after=1) == [(2, "", "b")]
    assert objects(tmp_path, after=5) == []
    with pytest.raises(SyntaxProblem, match=r"000001\.added\.nt:1:1"):
        objects(tmp_path)


def test_where_names_the_files(tmp_path: Path) -> None:
    write(tmp_path, {"000001.added.nt": "a", "000001.removed.nt": "b"})
    [change] = open_source(tmp_path).changes()
    assert change.where == f"{tmp_path}/000001.removed.nt, {tmp_path}/000001.added.nt"


def test_blank_nodes_keep_their_labels(tmp_path: Path) -> None:
    (tmp_path / "000001.added.nt").write_text("_:b <urn:p> <urn:o> .\n")
    (tmp_path / "000002.removed.nt").write_text("_:b <urn:p> <urn:o> .\n")
    first, second = open_source(tmp_path).changes()
    assert first.request.added == second.request.removed == {Quad(BlankNode("b"), P, NamedNode("urn:o"))}


def test_other_files_do_not_matter(tmp_path: Path) -> None:
    write(tmp_path, {"000001.added.nt": "a", "lastPublishedFile.txt": "", ".000002.added.nt.1234.tmp": "x"})
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "000003.added.nt").write_text("broken")
    assert objects(tmp_path) == [(1, "", "a")]


def test_clears_are_refused_unless_the_reader_can_do_it(tmp_path: Path) -> None:
    write(tmp_path, {"000001.added.nt": "a", "2024/000002.clear.nt": "x", "2024/000002.added.nt": "b"})
    with pytest.raises(DataError, match=r"not supported: .*000002\.clear\.nt"):
        open_source(tmp_path)
    first, second = open_source(tmp_path, clears=True).changes()
    assert not first.cleared
    assert second.cleared == {NamedNode("urn:s")}
    assert second.where == f"{tmp_path}/2024/000002.clear.nt, {tmp_path}/2024/000002.added.nt"


def test_what_is_reinserted_is_added_last(tmp_path: Path) -> None:
    write(tmp_path, {"000001.removed.nt": "a b", "000001.added.nt": "c", "000001.reinserted.nt": "b"})
    assert objects(tmp_path) == [(1, "a b", "b c")]


@pytest.mark.parametrize("last", ["2015-06-01-12-000002\n", "2015/06/01/12/000002.added.nt.gz"])
def test_what_is_not_published_yet_is_not_read(tmp_path: Path, last: str) -> None:
    hour = "2015/06/01/12"
    write(tmp_path, {f"{hour}/000001.added.nt": "a", f"{hour}/000002.added.nt": "b", f"{hour}/000003.added.nt": "c"})
    (tmp_path / "lastPublishedFile.txt").write_text(last)
    assert [change.sequence for change in open_source(tmp_path, clears=True).changes()] == [1, 2]
    (tmp_path / "lastPublishedFile.txt").write_text("2015-07-01-00-000000")  # ahead of the files
    assert [change.sequence for change in open_source(tmp_path, clears=True).changes()] == [1, 2, 3]
    (tmp_path / "lastPublishedFile.txt").write_text("nonsense")
    with pytest.raises(DataError, match="'nonsense' is not the place of a changeset"):
        open_source(tmp_path, clears=True)


@pytest.mark.parametrize("name", ["v1.nt", "2024/x.added.nt", "2024/01/000001.add.nt.gz", "000001.added.ttl"])
def test_data_that_is_no_changeset_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"000001.added.nt": "a"})
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("")
    with pytest.raises(DataError, match="no changesets: ") as caught:
        open_source(tmp_path)
    assert name in str(caught.value)


@pytest.mark.parametrize("double", ["000001.added.nq", "000001.added.nt.gz"])
def test_two_files_of_one_kind_are_refused(tmp_path: Path, double: str) -> None:
    write(tmp_path, {"000001.added.nt": "a"})
    (tmp_path / double).write_text("")
    with pytest.raises(DataError, match="two files of one kind"):
        open_source(tmp_path)


def test_writing(tmp_path: Path) -> None:
    delta = Delta(inserted=frozenset({quad("a"), quad("b", "g")}), deleted=frozenset({quad("c")}))
    assert [path.name for path in write_changeset(tmp_path, 12, delta)] == [
        "000012.removed.nt.gz",
        "000012.added.nq.gz",
    ]
    [change] = open_source(tmp_path).changes()
    assert change.request == Request(removed=delta.deleted, added=delta.inserted)


def test_writing_a_number_again_replaces_it(tmp_path: Path) -> None:
    write_changeset(tmp_path, 1, Request(removed=frozenset({quad("a")}), added=frozenset({quad("b", "g")})))
    write_changeset(tmp_path, 2, Request(added=frozenset({quad("c")})))
    write_changeset(tmp_path, 1, Request(added=frozenset({quad("b")})), compress=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000001.added.nt", "000002.added.nt.gz"]


def test_writing_where_it_is_not_possible(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot create the folder"):
        write_changeset(tmp_path / "file", 1, Request(added=frozenset({quad("a")})))
    with pytest.raises(UsageError):
        write_changeset(tmp_path, -1, Request())


def test_the_real_stream_of_nomisma_is_exact(shared: Path) -> None:
    source = open_source(shared / "data" / "nomisma")
    assert isinstance(source, ChangesetSource)
    state: set[Quad] = set()
    added = removed = sequence = 0
    for change in source.changes():
        assert change.sequence == sequence + 1
        sequence = change.sequence
        assert change.request.removed <= state, change.where
        assert change.request.added.isdisjoint(state), change.where
        state -= change.request.removed
        state |= change.request.added
        added += len(change.request.added)
        removed += len(change.request.removed)
    assert (sequence, added, removed, len(state)) == (863, 492_087, 63_308, 428_779)
