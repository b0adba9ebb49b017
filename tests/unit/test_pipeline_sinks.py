"""Sinks in files: a batch that is written again, in full or after a part of it, ends where writing it once ends."""

from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession
from tests.support.pipelines import replayed, table_rows

from evergraph.engines.spark.rows import QUAD, table_of
from evergraph.errors import DataError, StoreError
from evergraph.pipeline.outcomes import Outcome, small_outcome
from evergraph.pipeline.sinks.base import AppendedFile, PathSink, SinkWriter
from evergraph.pipeline.sinks.graphs import ChangesetsWriter, PatchFileWriter, PatchFolderWriter, patch_writer
from evergraph.pipeline.sinks.rows import JsonLinesWriter, SnapshotWriter, TableWriter
from evergraph.sparql.algebra import Select
from evergraph.sparql.parser import parse_query
from evergraph.terms import Literal, NamedNode, Quad, Variable

NO_SPARK = cast(SparkSession, None)
QUERY = parse_query("CONSTRUCT WHERE { ?s ?p ?o }")


def quad(number: int, graph: str = "") -> Quad:
    where = {"graph_name": NamedNode(graph)} if graph else {}
    return Quad(NamedNode(f"urn:s{number}"), NamedNode("urn:p"), Literal(f"line\nbreak {number}"), **where)


def outcome(*rows: tuple[Quad, int]) -> Outcome:
    return small_outcome(table_of(rows), QUAD)


FIRST = outcome((quad(1), 1), (quad(2), 1))
SECOND = outcome((quad(2), -1), (quad(3), 1))
END = {quad(1), quad(3)}


def writers(folder: Path) -> dict[str, SinkWriter]:
    return {
        "changesets": ChangesetsWriter(folder / "changesets", folder, compress=True),
        "folder": PatchFolderWriter(folder / "folder", folder),
        "file.rdfp": PatchFileWriter(folder / "file.rdfp", folder / "ledger", folder),
        "table": TableWriter(folder / "table", QUAD, "app", NO_SPARK, distinct=True),
    }


@pytest.mark.parametrize("kind", ["changesets", "folder", "file.rdfp", "table"])
def test_a_batch_may_be_written_again(tmp_path: Path, kind: str) -> None:
    writer = writers(tmp_path)[kind]
    writer.check()
    writer.begin()
    writer.write(FIRST, 0, 0)
    for _ in range(2):
        writers(tmp_path)[kind].write(SECOND, 1, 5)
        if kind == "table":
            assert sorted(row[0] for row in table_rows(tmp_path / kind, QUAD)) == ["<urn:s1>", "<urn:s3>"]
        else:
            assert replayed(tmp_path / kind) == END
    with pytest.raises(DataError, match="is there already, and not from this pipeline"):
        writers(tmp_path)[kind].check()
    writer.begin()
    writer.write(SECOND, 3, 3)
    if kind != "table":
        assert b"urn:s1" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_changesets_are_named_by_their_sequence(tmp_path: Path) -> None:
    writer = ChangesetsWriter(tmp_path / "out", tmp_path, compress=False)
    writer.begin()
    writer.write(outcome((quad(1, "urn:g"), 1)), 1, 12)
    writer.write(outcome((quad(1, "urn:g"), -1), (quad(2), 1)), 2, 20)
    writer.write(outcome((quad(2), -1)), 3, 21)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "000012.added.nq",
        "000020.added.nq",
        "000020.removed.nq",
        "000021.removed.nt",
    ]


def test_the_name_tells_a_patch_file_from_a_folder(tmp_path: Path) -> None:
    assert isinstance(patch_writer(tmp_path / "a.rdfp", tmp_path / "l", tmp_path), PatchFileWriter)
    assert isinstance(patch_writer(tmp_path / "a", tmp_path / "l", tmp_path), PatchFolderWriter)


class TestAppendedFile:
    def test_what_was_cut_off_is_written_again(self, tmp_path: Path) -> None:
        file = AppendedFile(tmp_path / "file", tmp_path / "ledger")
        file.begin()
        file.append(1, [b"one\n"])

        def broken() -> list[bytes]:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            file.append(
                2, (piece for pieces in ([b"tw"], broken) for piece in (pieces() if callable(pieces) else pieces))
            )
        with (tmp_path / "file").open("ab") as out:
            out.write(b"torn")
        again = AppendedFile(tmp_path / "file", tmp_path / "ledger")
        again.append(2, [b"two\n"])
        again.append(3, [b"three\n"])
        assert (tmp_path / "file").read_text() == "one\ntwo\nthree\n"

    def test_a_file_that_others_cut_is_an_error(self, tmp_path: Path) -> None:
        file = AppendedFile(tmp_path / "file", tmp_path / "ledger")
        file.begin()
        file.append(1, [b"one\n"])
        file.append(2, [b"two\n"])
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="shorter than what was written"):
            file.append(3, [b"three\n"])


def test_json_lines(tmp_path: Path) -> None:
    variables = (Variable("subject"), Variable("predicate"), Variable("object"))
    writer = JsonLinesWriter(tmp_path / "out", tmp_path / "ledger", tmp_path, QUERY, variables)
    triples = [small_outcome(one.rows.select([*QUAD[:3], "weight"]), QUAD[:3]) for one in (FIRST, SECOND) if one.rows]
    empty = small_outcome(table_of([]).select([*QUAD[:3], "weight"]), QUAD[:3])
    writer.begin()
    for batch, one in enumerate([empty, triples[0], empty, triples[1]]):
        writer.write(one, batch, batch)
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[0] == '{"sequence":0,"added":[],"removed":[]}'
    assert [line[:14] for line in lines] == ['{"sequence":0,', '{"sequence":1,', '{"sequence":3,']


def test_a_snapshot_is_written_at_the_end(tmp_path: Path) -> None:
    query = parse_query("SELECT ?s { ?s ?p ?o }")
    assert isinstance(query, Select)
    bag = small_outcome(table_of([(quad(1), 2)]).select(["subject", "weight"]), ("subject",))
    writer = SnapshotWriter(tmp_path / "a" / "out", tmp_path / "ledger", tmp_path, None, (), lambda: FIRST)
    writer.begin()
    writer.write(FIRST, 1, 1)
    assert not (tmp_path / "a" / "out").exists()
    writer.finish(1)
    assert len((tmp_path / "a" / "out").read_text().splitlines()) == 2
    (tmp_path / "a" / "out").write_text("")
    writer.finish(1)
    assert not (tmp_path / "a" / "out").read_text(), "it is that of the batch already"
    writer.finish(2)
    assert (tmp_path / "a" / "out").read_text()
    rows = SnapshotWriter(tmp_path / "rows", tmp_path / "other", tmp_path, query, ("s",), lambda: bag)
    rows.finish(1)
    assert (tmp_path / "rows").read_text() == '{"s":{"type":"uri","value":"urn:s1"}}\n' * 2


def test_a_sink_takes_an_empty_folder(tmp_path: Path) -> None:
    PathSink(tmp_path).check()
    PathSink(tmp_path / "none").check()
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError):
        PathSink(tmp_path).check()
