import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evergraph.engines.spark.rows import quad_of, row_of
from evergraph.engines.spark.snapshots import TableError
from evergraph.engines.spark.tables import QuadTable
from evergraph.errors import DataError, SyntaxProblem
from evergraph.rdfio import read_quads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINE = '<urn:s{0}> <urn:p> "value {0}" .\n'


def content(table: QuadTable, spark: "SparkSession") -> set[tuple[str, ...]]:
    rows = table.read(spark).collect()
    found = {tuple(row)[:4] for row in rows}
    assert len(found) == len(rows)
    assert {row[4] for row in rows} <= {1}
    return found


def test_files_of_all_kinds_become_one_set(spark: "SparkSession", tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "sub").mkdir(parents=True)
    (data / "a.nt").write_text('<urn:a> <urn:p> "x" .\n# comment\n\n<urn:a>  <urn:p> "\\u00E9"@DE .\n')
    (data / "b.nq.gz").write_bytes(gzip.compress(b'<urn:a> <urn:p> "x" .\n<urn:a> <urn:p> "x" <urn:g> .\n'))
    (data / "sub/c.ttl").write_text('@prefix : <urn:> . :a :p "x", 1 .')
    (data / "sub/d.trig").write_text("<urn:g> { <urn:a> <urn:p> <rel> }")
    table = QuadTable.make(tmp_path / "t")
    loaded = table.load(spark, [data])
    expected = set()
    for file in ("a.nt", "b.nq.gz", "sub/c.ttl", "sub/d.trig"):
        expected |= {row_of(quad) for quad in read_quads(data / file, base_iri=(data / file).as_uri())}
    assert content(table, spark) == expected
    assert (loaded.quads, loaded.rejected, loaded.rejected_file, loaded.files) == (len(expected), 0, None, 4)
    assert table.statistics(spark).rows == len(expected)
    with pytest.raises(TableError):
        table.load(spark, [data])


def test_blank_nodes_belong_to_their_file(spark: "SparkSession", tmp_path: Path) -> None:
    for name in ("a.nt", "b.nt"):
        (tmp_path / name).write_text("_:n <urn:p> _:n .\n")
    (tmp_path / "c.ttl").write_text("_:n <urn:p> _:n .\n")
    scoped, kept = QuadTable.make(tmp_path / "scoped"), QuadTable.make(tmp_path / "kept")
    paths = [tmp_path / name for name in ("a.nt", "b.nt", "c.ttl")]
    scoped.load(spark, paths)
    kept.load(spark, paths, keep_labels=True)
    rows = content(scoped, spark)
    assert len(rows) == 3
    assert all(row[0] == row[2] for row in rows)
    assert {quad_of(row) for row in content(kept, spark)} == {*read_quads(tmp_path / "a.nt", rename_blank_nodes=False)}


def test_damaged_lines_are_set_aside_with_their_numbers(spark: "SparkSession", tmp_path: Path) -> None:
    lines = [LINE.format(place) for place in range(260_000)]
    damaged = {0: "nonsense\n", 170_001: '<urn:s> <urn:p> "unclosed .\n', 259_999: "<urn:s> <urn:p>"}
    for place, line in damaged.items():
        lines[place] = line
    (tmp_path / "a.nt").write_text("".join(lines))
    (tmp_path / "b.nt.gz").write_bytes(gzip.compress(b"<urn:a> <urn:b> <urn:c> .\n<urn:a> \xff .\n"))
    table = QuadTable.make(tmp_path / "t")
    loaded = table.load(spark, [tmp_path / "a.nt", tmp_path / "b.nt.gz"])
    assert loaded.rejected == 4
    assert loaded.quads == 260_000 - 3 + 1
    assert loaded.rejected_file is not None
    records = [json.loads(line) for line in loaded.rejected_file.read_text().splitlines()]
    assert [(Path(one["file"]).name, one["line"], one["text"]) for one in records] == [
        *(("a.nt", place + 1, line.rstrip("\n")) for place, line in damaged.items()),
        ("b.nt.gz", 2, "<urn:a> \\xff ."),
    ]
    assert all(one["reason"] for one in records)
    strict = QuadTable.make(tmp_path / "strict")
    lines[0] = LINE.format(0)
    (tmp_path / "a.nt").write_text("".join(lines[:259_999]))
    with pytest.raises(SyntaxProblem) as caught:
        strict.load(spark, [tmp_path / "a.nt"], on_error="fail")
    assert (Path(caught.value.where).name, caught.value.line) == ("a.nt", 170_002)
    assert strict.version == 0


@pytest.mark.parametrize("name", ["cut.nt.gz", "cut.ttl.gz", "broken.ttl"])
def test_a_damaged_file_fails_by_name_and_leaves_nothing(spark: "SparkSession", tmp_path: Path, name: str) -> None:
    text = "".join(LINE.format(place) for place in range(1000)).encode()
    (tmp_path / "good.nt").write_bytes(text)
    (tmp_path / name).write_bytes(gzip.compress(text)[:-20] if name.endswith(".gz") else b"<urn:a> <urn:b> .")
    table = QuadTable.make(tmp_path / "t")
    with pytest.raises((DataError, SyntaxProblem), match=name.replace(".", r"\.")):
        table.load(spark, [tmp_path / "good.nt", tmp_path / name])
    assert (table.version, table.read(spark).count()) == (0, 0)
    assert not [path for path in (tmp_path / "t/data").rglob("*") if path.is_file()]
    assert table.load(spark, [tmp_path / "good.nt"]).quads == 1000


def test_no_quads_are_a_load_too(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "empty.nt").write_text("# nothing\n")
    table = QuadTable.make(tmp_path / "t")
    assert table.load(spark, [tmp_path / "empty.nt"]).quads == 0
    assert table.read(spark).count() == 0
