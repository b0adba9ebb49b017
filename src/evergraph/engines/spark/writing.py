"""Writing the Parquet files of a table with Spark: sorted, in buckets, never through the driver.

Files go to a folder of their own under the table. They count only when a commit names them, so a job that fails, or
a driver that dies, leaves the table as it was, and files that `vacuum` removes.
"""

import re
import shutil
import uuid
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from evergraph.engines.spark.loading import data_problem
from evergraph.engines.spark.rows import WEIGHT
from evergraph.engines.spark.snapshots import BUCKET, TableError, added_file

DATA = "data"
"""The folder in a table that holds its files; nothing else is in there."""

ROWS_PER_BUCKET = 500_000
MOST_BUCKETS = 4096
_PARQUET = {
    "compression": "zstd",
    "parquet.compression.codec.zstd.level": "1",  # of sorted rows, no larger than at 3, and faster
    "parquet.block.size": str(8 << 20),
}
MOST_BOUNDS = 15
_VALUE_BITS, _SECOND_BITS = 16, 40
_PLACE = "_place"
_PART = re.compile(r"part-(\d+)-.*\.parquet")


def buckets_for(rows: int) -> int:
    """Choose the number of buckets for so many rows: a power of two."""
    wanted = max(1, -(-rows // ROWS_PER_BUCKET))
    return int(min(MOST_BUCKETS, 1 << (wanted - 1).bit_length()))


def bucket_of(key: str | None, buckets: int) -> Column:
    """Tell the bucket of a row by its key column; tables without columns have one bucket."""
    if key is None or buckets == 1:
        return sf.lit(0)
    return sf.pmod(sf.xxhash64(sf.col(key)), sf.lit(buckets)).cast("int")


def place_of(first: str, second: str, bounds: Sequence[str]) -> Column:
    """Tell where a row goes within its file, by a number: first the range of its first value, as bounds divide them,
    then that value, then the second one.

    Spark sorts by the first eight bytes of the first column, and compares whole texts where these are equal. Those of
    IRIs always are; numbers are sorted without comparing anything. Readers look for few values of the first column,
    and know of each part of a file its least and its greatest value: ranges keep these close.
    """
    value = sf.xxhash64(first).bitwiseAND(sf.lit((1 << _VALUE_BITS) - 1 << _SECOND_BITS))
    numbers = [sf.shiftleft(_range_of(sf.col(first), bounds, 0).cast("long"), _VALUE_BITS + _SECOND_BITS), value]
    return reduce(Column.bitwiseOR, numbers, sf.shiftrightunsigned(sf.xxhash64(second), 64 - _SECOND_BITS))


def _range_of(column: Column, bounds: Sequence[str], before: int) -> Column:
    """Count the bounds that a value has reached, by halving."""
    if not bounds:
        return sf.lit(before)
    middle = len(bounds) // 2
    above = _range_of(column, bounds[middle + 1 :], before + middle + 1)
    return sf.when(column >= bounds[middle], above).otherwise(_range_of(column, bounds[:middle], before))


def new_folder(root: Path) -> Path:
    """Name a folder for the files of one piece of work."""
    return root / DATA / uuid.uuid4().hex


def write_tail(frame: DataFrame, root: Path, columns: Sequence[str]) -> list[AddAction]:
    """Write the rows of a large change as they are."""
    folder = new_folder(root)
    _write(frame.select(*columns, WEIGHT), folder)
    return [added_file(root, path, columns) for path in _written(folder)]


def write_base(
    frame: DataFrame,
    root: Path,
    columns: Sequence[str],
    *,
    key: str | None,
    order: Sequence[str],
    buckets: int,
    touched: Sequence[int] | None = None,
    bounds: Sequence[str] | None = None,
    new: bool = True,
) -> list[AddAction]:
    """Write consolidated rows as base files, one per bucket, sorted inside.

    ``touched`` names the buckets that the rows fall into, where they are few. If there are ``bounds``, rows are sorted
    by `place_of` their first two columns in the order, which takes less time.
    """
    chosen = list(range(buckets)) if touched is None or 2 * len(touched) > buckets else sorted(touched)
    place = bucket_of(key, buckets)
    if len(chosen) < buckets:
        place = (sf.array_position(sf.array(*map(sf.lit, chosen)), place) - 1).cast("int")
    rows = frame.select(*columns, WEIGHT)
    if len(chosen) == 1:
        rows = rows.coalesce(1)
    else:
        rows = rows.withColumn(BUCKET, place).repartitionById(len(chosen), BUCKET).drop(BUCKET)
    if bounds is not None:
        rows = rows.withColumn(_PLACE, place_of(order[0], order[1], bounds)).sortWithinPartitions(_PLACE).drop(_PLACE)
    elif order:
        rows = rows.sortWithinPartitions(*order)
    return _write_buckets(rows, root, columns, buckets, chosen, new)


def write_set(
    frame: DataFrame,
    root: Path,
    columns: Sequence[str],
    *,
    key: str,
    order: Sequence[str],
    buckets: int,
    bounds: Sequence[str] = (),
) -> list[AddAction]:
    """Write the rows of a frame as base files, each once, with the weight 1: one shuffle, and one sort for both ends.

    ``bounds``, sorted, divide the values of the first column of the order into ranges.

    Spark aggregates texts (here: the maximum of one that is part of the key) by sorting. The sort is the one that the
    files need anyway, and equal rows fall together in it; by hashing, they would first be found and then sorted.
    """
    *first, last = order
    placed = frame.withColumns({_PLACE: place_of(order[0], order[1], bounds), BUCKET: bucket_of(key, buckets)})
    groups = placed.repartitionById(buckets, BUCKET).groupBy(_PLACE, BUCKET, *order)
    once = groups.agg(sf.max(last).alias("_last")).sortWithinPartitions(_PLACE, BUCKET, *first)
    rows = once.select(
        *[sf.col("_last" if name == last else name).alias(name) for name in columns],
        sf.lit(1).cast("long").alias(WEIGHT),
    )
    return _write_buckets(rows, root, columns, buckets, range(buckets), new=True)


def _write_buckets(
    rows: DataFrame, root: Path, columns: Sequence[str], buckets: int, chosen: Sequence[int], new: bool
) -> list[AddAction]:
    """Write a frame whose n-th partition is the n-th of the chosen buckets."""
    folder = new_folder(root)
    _write(rows, folder)
    actions = []
    for path in _written(folder):
        found = _PART.fullmatch(path.name)
        assert found is not None
        actions.append(added_file(root, path, columns, buckets, chosen[int(found[1])], new=new))
    return actions


def discard(root: Path, actions: Sequence[AddAction]) -> None:
    """Remove files that nobody will commit; what cannot be removed now is left to `vacuum`."""
    for folder in {(root / action.path).parent for action in actions}:
        shutil.rmtree(folder, ignore_errors=True)


def reason_of(error: BaseException) -> str:
    """Take the line of an error of Spark that tells what happened; the rest is the way to it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [
        line for line in lines if line.startswith(("Caused by:", "evergraph.", "OSError", "java.io.IOException"))
    ]
    return (telling[-1] if telling else lines[0] if lines else type(error).__name__)[:500]


def _write(frame: DataFrame, folder: Path) -> None:
    writer = frame.write.options(**_PARQUET)
    try:
        writer.parquet(folder.as_uri())
    except (PySparkException, Py4JError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        problem = data_problem(error)
        if problem:
            raise problem from None
        raise TableError(
            f"Spark could not write {folder}: {reason_of(error)}",
            hint="the table is as it was; free space or memory, then repeat",
        ) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _written(folder: Path) -> list[Path]:
    """List the files of a finished job; an empty frame leaves one without rows, which nobody needs."""
    return sorted(path for path in folder.glob("part-*.parquet") if pq.read_metadata(path).num_rows)
