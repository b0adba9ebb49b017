"""Adding up weights: in Arrow for what is small enough for one process, in Spark for the rest."""

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from evergraph.engines.spark.rows import WEIGHT, arrow_schema, spark_schema
from evergraph.engines.spark.snapshots import DataFile, Snapshot


def net_rows(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Add up the weights of equal rows; what cancels out disappears."""
    schema = arrow_schema(columns)
    rows = rows.select(schema.names).cast(schema)
    if not columns:
        total = pc.sum(rows[WEIGHT]).as_py() or 0
        return pa.table({WEIGHT: pa.array([total] if total else [], pa.int64())}, schema=schema)
    sums = rows.group_by(list(columns), use_threads=False).aggregate([(WEIGHT, "sum")])
    sums = sums.rename_columns({f"{WEIGHT}_sum": WEIGHT}).select(schema.names)
    return sums.filter(pc.not_equal(sums[WEIGHT], 0)).cast(schema)


def net_files(files: Snapshot, some: Sequence[DataFile], columns: Sequence[str]) -> pa.Table:
    """Add up the rows of some files, which must fit into memory."""
    schema = arrow_schema(columns)
    parts = [pq.read_table(path, columns=schema.names, partitioning=None).cast(schema) for path in files.absolute(some)]
    return net_rows(pa.concat_tables(parts), columns) if parts else schema.empty_table()


class NetTail:
    """The net content of a tail; of a tail that grows, only what is new is read."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._paths: frozenset[str] = frozenset()
        self._rows = arrow_schema(columns).empty_table()

    def of(self, files: Snapshot) -> pa.Table:
        """Return the net rows of the tail, which must be small."""
        paths = frozenset(files.absolute(files.tail))
        known = self._rows if self._paths <= paths else arrow_schema(self._columns).empty_table()
        fresh = sorted(paths - self._paths) if self._paths <= paths else sorted(paths)
        if fresh:
            schema = arrow_schema(self._columns)
            parts = [pq.read_table(path, columns=schema.names, partitioning=None).cast(schema) for path in fresh]
            known = net_rows(pa.concat_tables([known, *parts]), self._columns)
        self._paths, self._rows = paths, known
        return known


def consolidated(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Add up the weights of equal rows of a frame; what cancels out disappears."""
    sums = frame.groupBy(*columns).agg(sf.sum(WEIGHT).alias(WEIGHT))
    return sums.where(sf.col(WEIGHT) != 0).select(*columns, WEIGHT)


def base_and_tail(
    spark: SparkSession, base: DataFrame, net: pa.Table, columns: Sequence[str], *, distinct: bool
) -> DataFrame:
    """Apply a small consolidated tail to a base.

    Of a set, what goes is looked for in the base by a broadcast, and what comes is added: one pass over the base that
    filters go through. Of a bag, the rows of the base that the tail names are looked for too, which is a second pass.
    """
    if not distinct:
        tail = spark.createDataFrame(net, spark_schema(columns))
        changed = matching(base, tail, columns, "left_semi").unionByName(tail)
        return matching(base, tail, columns, "left_anti").unionByName(consolidated(changed, columns))
    gone = net.filter(pc.less(net[WEIGHT], 0))
    come = net.filter(pc.greater(net[WEIGHT], 0))
    if gone.num_rows:
        base = matching(base, spark.createDataFrame(gone, spark_schema(columns)), columns, "left_anti")
    if come.num_rows:
        base = base.unionByName(spark.createDataFrame(come, spark_schema(columns)))
    return base


def matching(
    rows: DataFrame, small: DataFrame, columns: Sequence[str], how: str, *, broadcast: bool = True
) -> DataFrame:
    """Keep the rows that are among the small ones (``left_semi``) or are not (``left_anti``); nulls are equal."""
    other = small.select([sf.col(name).alias(f"_{place}") for place, name in enumerate(columns)])
    same: list[Column] = [rows[name].eqNullSafe(other[f"_{place}"]) for place, name in enumerate(columns)]
    return rows.join(sf.broadcast(other) if broadcast else other, reduce(lambda a, b: a & b, same), how)
