"""Whatever ends a process that writes a table, the table is a version of it that somebody committed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evergraph.engines.spark.tables import QuadTable, WeightedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_APPEND = """
import sys
import pyarrow as pa
from evergraph.engines.spark.tables import WeightedTable
table = WeightedTable(sys.argv[1])
print("go", flush=True)
for batch in range((table.committed("p") or 0) + 1, 100_000):
    rows = {"x": [str(batch)], "weight": pa.array([1], pa.int64())}
    assert table.append(pa.table(rows), app="p", batch=batch)
"""
_COMPACT = """
import sys
import pyarrow as pa
from evergraph.engines.spark.session import open_session
from evergraph.engines.spark.tables import WeightedTable
table, spark = WeightedTable(sys.argv[1]), open_session("local[1]", memory="512m")
print("go", flush=True)
for batch in range((table.committed("p") or 0) + 1, 100_000):
    rows = {"x": [str(batch)], "weight": pa.array([1], pa.int64())}
    assert table.append(pa.table(rows), app="p", batch=batch)
    assert table.compact(spark, whole=True)
"""
_LOAD = """
import sys
from evergraph.engines.spark.session import open_session
from evergraph.engines.spark.tables import QuadTable
table, spark = QuadTable(sys.argv[1]), open_session("local[1]", memory="512m")
print("go", flush=True)
table.load(spark, [sys.argv[2]])
"""

_NO_SPACE = """
import resource, signal, sys
import pyarrow as pa
from evergraph.engines.spark.snapshots import TableError
from evergraph.engines.spark.tables import WeightedTable
table = WeightedTable(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
rows = {"x": [str(n * 7919 % 100_003) for n in range(9999)], "weight": pa.array([1] * 9999, pa.int64())}
try:
    table.append(pa.table(rows), app="p", batch=1)
except TableError as error:
    print(error.condition, error.hint)
"""


def kill_after(seconds: float, code: str, *arguments: Path) -> None:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"go\n"
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)


def test_appends(tmp_path: Path) -> None:
    table = WeightedTable.create(tmp_path / "t", ("x",))
    chance = random.Random(7)
    for _ in range(2):
        kill_after(chance.uniform(0.05, 0.3), _APPEND, table.path)
        files = table.snapshot()
        assert files.tail_rows == len(files.tail) == (table.committed("p") or 0)
    table.vacuum(older_than_hours=0)
    left = {str(path.relative_to(table.path)) for path in (table.path / "data").rglob("*.parquet")}
    assert left == {file.path for file in table.snapshot().tail}


def test_no_space(tmp_path: Path) -> None:
    table = WeightedTable.create(tmp_path / "t", ("x",))
    command = [sys.executable, "-c", _NO_SPACE, str(table.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("TABLE free space")
    assert (table.version, table.committed("p")) == (0, None)
    assert not [path for path in (table.path / "data").rglob("*") if path.is_file()]


def test_compactions(spark: "SparkSession", tmp_path: Path) -> None:
    table = WeightedTable.create(tmp_path / "t", ("x",))
    kill_after(4, _COMPACT, table.path)
    last = table.committed("p") or 0
    assert {(row["x"], row["weight"]) for row in table.read(spark).collect()} == {(str(n + 1), 1) for n in range(last)}
    assert table.compact(spark, whole=True) in (True, False)
    table.vacuum(older_than_hours=0)
    assert table.read(spark).count() == last


def test_loads(spark: "SparkSession", tmp_path: Path) -> None:
    dump = tmp_path / "dump.nt"
    dump.write_text("".join(f'<urn:{n}> <urn:p> "{n}" .\n' for n in range(150_000)))
    table = QuadTable.make(tmp_path / "t")
    kill_after(3, _LOAD, table.path, dump)
    if table.committed("evergraph.loading") is None:
        assert table.read(spark).count() == 0
        table.load(spark, [dump])
    assert table.read(spark).count() == 150_000
    table.vacuum(older_than_hours=0)
    assert table.read(spark).count() == 150_000


@pytest.fixture(autouse=True)
def _posix() -> None:
    if os.name == "nt":
        pytest.skip("needs process groups")
