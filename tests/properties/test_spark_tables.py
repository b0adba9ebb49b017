"""A table is the sum of its batches, at every version, however often batches are repeated and tails compacted."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evergraph.engines.spark.rows import WEIGHT, arrow_schema
from evergraph.engines.spark.tables import WeightedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("x", "y")
_texts = st.sampled_from(["", "a", "b", None])
_deltas = st.dictionaries(st.tuples(_texts, _texts), st.integers(-2, 2), max_size=4)
_steps = st.lists(st.one_of(_deltas, st.sampled_from(["compact", "fold", "repeat"])), min_size=1, max_size=6)
Row = tuple[str | None, str | None]


def read(table: WeightedTable, spark: "SparkSession", version: int) -> dict[Row, int]:
    found = table.read(spark, version).collect()
    rows = {(row[0], row[1]): row[2] for row in found}
    assert len(rows) == len(found)
    return rows


def arrow(delta: dict[Row, int]) -> pa.Table:
    rows = [{"x": x, "y": y, WEIGHT: weight} for (x, y), weight in delta.items()]
    return pa.Table.from_pylist(rows, schema=arrow_schema(COLUMNS))


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=_steps, distinct=st.booleans())
def test_a_table_is_the_sum_of_its_batches(spark: "SparkSession", steps: list[object], distinct: bool) -> None:
    with TemporaryDirectory() as folder:
        table = WeightedTable.create(Path(folder, "t"), COLUMNS, distinct=distinct)
        content: Counter[Row] = Counter()
        history = {0: dict(content)}
        batch, last = 0, arrow({})
        for step in steps:
            if isinstance(step, dict):
                # What no exact delta would do: fall below zero, or above one in a set.
                most = 1 if distinct else 9
                delta = {row: weight for row, weight in step.items() if 0 <= content[row] + weight <= most}
                content.update(delta)
                last = arrow(delta)
                assert table.append(last, app="p", batch=(batch := batch + 1))
            elif step == "repeat":
                assert not (batch and table.append(last, app="p", batch=batch))
            else:
                table.compact(spark, whole=step == "fold")
            history[table.version] = {row: weight for row, weight in content.items() if weight}
        for version, wanted in history.items():
            assert read(table, spark, version) == wanted
