import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from evergraph.engines.spark.rows import QUAD, WEIGHT, arrow_schema
from evergraph.engines.spark.snapshots import CommitConflict, NoTable, NoVersion, TableError, commit, open_delta
from evergraph.engines.spark.tables import COMPACTION, QuadTable, TableVersionUnknown, WeightedTable
from evergraph.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = dict[tuple[str | None, ...], int]


def table_of(rows: Rows, columns: tuple[str, ...]) -> pa.Table:
    content = [{**dict(zip(columns, row, strict=True)), WEIGHT: weight} for row, weight in rows.items()]
    return pa.Table.from_pylist(content, schema=arrow_schema(columns))


def rows_of(frame: "DataFrame") -> Rows:
    found = frame.collect()
    rows = {tuple(row)[:-1]: row[-1] for row in found}
    assert len(rows) == len(found)
    return rows


def quad(name: str) -> tuple[str, ...]:
    return (f"<urn:{name}>", "<urn:p>", f'"{name}"', "")


def test_every_version_can_be_read_again(spark: "SparkSession", tmp_path: Path) -> None:
    table = QuadTable.make(tmp_path / "t")
    assert rows_of(table.read(spark)) == {}
    a, b, c = quad("a"), quad("b"), quad("c")
    assert table.append(table_of({a: 1, b: 1}, QUAD), app="x", batch=0)
    assert table.compact(spark)
    assert table.append(table_of({a: -1, c: 1}, QUAD), app="x", batch=1)
    assert table.append(table_of({a: 1}, QUAD), app="x", batch=2)
    assert table.compact(spark, whole=True)
    contents = [rows_of(table.read(spark, version)) for version in range(table.version + 1)]
    assert contents == [{}, *[{a: 1, b: 1}] * 2, {b: 1, c: 1}, *[{a: 1, b: 1, c: 1}] * 2]
    assert not table.snapshot().tail
    assert table.vacuum(older_than_hours=0)
    assert rows_of(table.read(spark)) == contents[-1]
    with pytest.raises(NoVersion):
        table.read(spark, 3)
    with pytest.raises(NoVersion):
        table.read(spark, 99)


def test_a_batch_counts_once(tmp_path: Path) -> None:
    table = WeightedTable.create(tmp_path / "t", ("x",))
    rows = table_of({("a",): 1}, ("x",))
    assert table.committed("app") is None
    assert table.append(rows, app="app", batch=3)
    assert not table.append(rows, app="app", batch=3)
    assert not table.append(rows, app="app", batch=2)
    assert table.append(rows, app="other", batch=0)
    assert table.append(rows.slice(0, 0), app="app", batch=4)
    assert (table.committed("app"), table.committed("other"), table.snapshot().tail_rows) == (4, 0, 2)


def test_writers_of_different_names_do_not_hinder_each_other(tmp_path: Path) -> None:
    table = WeightedTable.create(tmp_path / "t", ("x",))
    rows = table_of({("a",): 1}, ("x",))

    def write(app: str) -> list[bool]:
        own = WeightedTable(table.path)
        return [own.append(rows, app=app, batch=batch) for batch in range(15)]

    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(write, ["a", "b", "c"]))
    assert all(map(all, done))
    assert table.snapshot().tail_rows == 45


def test_of_two_compactions_at_once_one_counts(spark: "SparkSession", tmp_path: Path) -> None:
    table = WeightedTable.create(tmp_path / "t", ("x",))
    table.append(table_of({("a",): 1}, ("x",)), app="x", batch=0)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: WeightedTable(table.path).compact(spark), range(2)))
    assert rows_of(table.read(spark)) == {("a",): 1}
    opened = [open_delta(table.path) for _ in range(2)]
    commit(opened[0], [], app=COMPACTION, batch=9)
    with pytest.raises(CommitConflict):
        commit(opened[1], [], app=COMPACTION, batch=9)


def test_a_first_change_may_take_away(spark: "SparkSession", tmp_path: Path) -> None:
    table = WeightedTable.create(tmp_path / "t", ("x",))
    change = spark.createDataFrame(table_of({("a",): -1, ("b",): 1}, ("x",)))
    table.append(change, app="x", batch=0, large=True)
    table.append(table_of({("a",): 2}, ("x",)), app="x", batch=1)
    assert rows_of(table.read(spark)) == {("a",): 1, ("b",): 1}


def test_bags_count_and_know_nulls(spark: "SparkSession", tmp_path: Path) -> None:
    table = WeightedTable.create(tmp_path / "t", ("x", "y"))
    table.append(table_of({("a", None): 3, (None, None): 1}, ("x", "y")), app="x", batch=0)
    table.compact(spark)
    table.append(table_of({("a", None): -1, (None, None): -1, ("b", "c"): 2}, ("x", "y")), app="x", batch=1)
    wanted = {("a", None): 2, ("b", "c"): 2}
    assert rows_of(table.read(spark)) == wanted
    assert table.compact(spark, whole=True)
    assert rows_of(table.read(spark)) == wanted


def test_large_changes_are_written_by_spark(spark: "SparkSession", tmp_path: Path) -> None:
    table = QuadTable.make(tmp_path / "t")
    first = table_of({quad("a"): 1, quad("b"): 1}, QUAD)
    assert table.append(spark.createDataFrame(first), app="x", batch=0, large=True)
    assert table.snapshot().buckets == 1
    change = table_of({quad("a"): -1, quad("c"): 1}, QUAD)
    assert table.append(spark.createDataFrame(change), app="x", batch=1, large=True)
    assert rows_of(table.read(spark)) == {quad("b"): 1, quad("c"): 1}
    assert not table.append(spark.createDataFrame(change), app="x", batch=1)


def test_a_tail_too_long_for_the_driver_counts_too(spark: "SparkSession", tmp_path: Path) -> None:
    table = QuadTable.make(tmp_path / "t")
    table.append(table_of({quad("a"): 1, quad("b"): 1}, QUAD), app="x", batch=0)
    table.compact(spark)
    many = spark.range(60_000).selectExpr(
        "'<urn:s>' AS subject",
        "'<urn:p>' AS predicate",
        "concat('\"', id, '\"') AS object",
        "'' AS graph",
        "1L AS weight",
    )
    table.append(many, app="x", batch=1)
    table.append(table_of({quad("a"): -1}, QUAD), app="x", batch=2)
    assert table.should_compact()
    assert table.read(spark).count() == 60_001
    assert table.compact(spark)
    assert (table.read(spark).count(), table.snapshot().tail) == (60_001, ())
    assert not table.should_compact()


def test_compaction_leaves_other_buckets_and_newer_batches(spark: "SparkSession", tmp_path: Path) -> None:
    table = QuadTable.make(tmp_path / "t")
    rows: Rows = {quad(f"n{place}"): 1 for place in range(200)}
    actions = table._write_base(spark.createDataFrame(table_of(rows, QUAD)), 8)
    commit(open_delta(table.path), actions, app="first", batch=0)
    before = table.snapshot()
    assert before.buckets == 8
    table.append(table_of({quad("n7"): -1}, QUAD), app="x", batch=0)
    assert table.compact(spark, whole=True)
    after = table.snapshot()
    assert len(set(before.base) - set(after.base)) == 1
    assert rows_of(table.read(spark)) == {row: 1 for row in rows if row != quad("n7")}


def test_a_short_tail_of_many_files_becomes_one(spark: "SparkSession", tmp_path: Path) -> None:
    table = QuadTable.make(tmp_path / "t")
    table.append(table_of({quad("a"): 1}, QUAD), app="x", batch=0)
    table.compact(spark)
    for batch in range(1, 4):
        table.append(table_of({quad(str(batch)): 1}, QUAD), app="x", batch=batch)
    assert table.compact(spark)
    assert len(table.snapshot().tail) == 1
    assert not table.compact(spark)
    assert table.read(spark).count() == 4


def test_tables_without_columns_count(spark: "SparkSession", tmp_path: Path) -> None:
    table = WeightedTable.create(tmp_path / "t", ())
    table.append(table_of({(): 2}, ()), app="x", batch=0)
    table.compact(spark)
    table.append(table_of({(): -1}, ()), app="x", batch=1)
    assert rows_of(table.read(spark)) == {(): 1}


def test_statistics_are_kept(spark: "SparkSession", tmp_path: Path) -> None:
    table = QuadTable.make(tmp_path / "t")
    table.append(table_of({quad(name): 1 for name in "abc"}, QUAD), app="x", batch=0)
    measured = table.statistics(spark)
    assert measured.rows == 3
    assert (measured.predicates["<urn:p>"].rows, measured.predicates["<urn:p>"].subjects) == (3, 3)
    assert QuadTable(tmp_path / "t").statistics(spark) == measured


def test_statistics_of_a_large_table_follow_from_a_sample(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample of 1,000 quads, which is one file of four: 4,000 subjects, objects that are all different or 50."""
    monkeypatch.setattr("evergraph.engines.spark.writing.ROWS_PER_BUCKET", 500)
    monkeypatch.setattr("evergraph.engines.spark.contents._SAMPLE", 1000)
    dump = tmp_path / "dump.nt"
    lines = (f'<x:s{n}> <x:name> "{n}" .\n<x:s{n}> <x:kind> "{n % 50}" .\n' for n in range(4000))
    dump.write_text("".join(lines))
    table = QuadTable.make(tmp_path / "t")
    table.load(spark, [dump])
    assert len(table.snapshot().base) == 4
    measured = table.statistics(spark)
    name, kind = (measured.predicates[f"<x:{one}>"] for one in ("name", "kind"))
    assert (measured.rows, name.rows, kind.rows) == (8000, 4000, 4000)
    assert all(3000 < count < 5000 for count in (name.subjects, kind.subjects, name.objects))
    assert 40 < kind.objects < 60


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoTable):
        WeightedTable(tmp_path)
    with pytest.raises(NoTable):
        WeightedTable(tmp_path / "none")
    DeltaTable.create(tmp_path / "foreign", pa.schema([("x", pa.string())]))
    with pytest.raises(TableVersionUnknown, match="not one of Evergraph"):
        WeightedTable(tmp_path / "foreign")
    WeightedTable.create(tmp_path / "rows", ("x",))
    with pytest.raises(TableError, match="other rows"):
        QuadTable(tmp_path / "rows")


def test_another_format_is_refused(tmp_path: Path) -> None:
    QuadTable.make(tmp_path / "t")
    log = tmp_path / "t/_delta_log/00000000000000000000.json"
    log.write_text(log.read_text().replace('"evergraph.format":"1"', '"evergraph.format":"99"'))
    with pytest.raises(TableVersionUnknown) as caught:
        WeightedTable(tmp_path / "t")
    assert caught.value.condition == "TABLE_FORMAT"
    assert "99" in str(caught.value)
    assert caught.value.hint


def test_a_table_has_its_folder_for_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(TableError):
        QuadTable.make(tmp_path)
    table = QuadTable.make(tmp_path / "t")
    (tmp_path / "t/notes.txt").write_text("precious")
    orphan = tmp_path / "t/data/unknown/part-1.parquet"
    orphan.parent.mkdir(parents=True)
    orphan.write_text("left by something that died")
    assert table.vacuum(older_than_hours=0) == 1
    assert (tmp_path / "t/notes.txt").exists()
    assert not orphan.exists()


@pytest.mark.parametrize("columns", [("weight",), ("a", "A"), ("a b",), ("_bucket",), ("",)])
def test_names_that_files_cannot_have_are_refused(tmp_path: Path, columns: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        WeightedTable.create(tmp_path / "t", columns)


def test_files_carry_statistics(tmp_path: Path) -> None:
    table = WeightedTable.create(tmp_path / "t", ("x",))
    table.append(table_of({("a",): 1, ("é" * 100,): -2, (None,): 1}, ("x",)), app="x", batch=0)
    (action,) = pa.table(DeltaTable(table.path).get_add_actions(flatten=True)).to_pylist()
    assert (action["num_records"], action["null_count.x"], action["min.x"]) == (3, 1, "a")
    assert action["max.x"] > "é" * 100
    assert (action["min.weight"], action["max.weight"]) == (-2, 1)
    assert json.loads((table.path / "_delta_log/00000000000000000001.json").read_text().splitlines()[0])
