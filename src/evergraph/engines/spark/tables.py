"""Tables of weighted rows in Delta Lake, without any jar: what Spark's views, states and quads are kept in.

A table is a bag of rows. Its *base* holds consolidated rows in sorted, hashed buckets; every batch of changes appends
a small file with signed weights to the *tail*; `WeightedTable.compact` folds the tail into the buckets that it
touches. What counts is always base plus tail, so a batch costs what it changes, and compaction changes nothing.
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame, SparkSession

from evergraph.engines.spark import statistics
from evergraph.engines.spark.contents import SMALL, StoredRows, TableVersionUnknown
from evergraph.engines.spark.dumps import estimated_rows
from evergraph.engines.spark.loading import OnError, collect_rejected, read_dump, some_predicates
from evergraph.engines.spark.net import consolidated, net_files, net_rows
from evergraph.engines.spark.rows import QUAD, WEIGHT, spark_schema
from evergraph.engines.spark.snapshots import (
    BUCKET,
    TAIL,
    CommitConflict,
    DataFile,
    Snapshot,
    TableError,
    added_file,
    commit,
    open_delta,
    snapshot,
    write_small,
)
from evergraph.engines.spark.writing import (
    MOST_BOUNDS,
    ROWS_PER_BUCKET,
    bucket_of,
    buckets_for,
    discard,
    new_folder,
    write_base,
    write_set,
    write_tail,
)
from evergraph.files import AnyPath

COMPACTION = "evergraph.compaction"
"""The application transaction of compactions, so that of two at the same time only one is committed."""

LOADING = "evergraph.loading"
"""The application transaction of the first load."""

_MOST_TAIL_FILES = 100
_SLACK = 4


class WeightedTable(StoredRows):
    """A bag of rows of nullable text columns. Open an existing one, or make one with `create`.

    One process writes under one ``app`` name; any number may read, at any version, and compact.
    """

    def append(self, delta: DataFrame | pa.Table, *, app: str, batch: int, large: bool | None = None) -> bool:
        """Commit a change, once for each ``app`` and ``batch``; a batch that was committed before gives False.

        Batches of one name come in rising order. ``large`` says whether a frame is too much for the driver; by default
        this is found out.
        """
        opened = open_delta(self.path)
        last = opened.transaction_version(app)
        if last is not None and batch <= last:
            return False
        actions = self._write(opened, delta, large)
        try:
            commit(opened, actions, app=app, batch=batch)
        except CommitConflict:
            discard(self.path, actions)
            now = self.committed(app)
            if now is not None and now >= batch:
                return False
            raise
        except BaseException:
            # The log decides: a commit that was cut off may have happened.
            if self.committed(app) == last:
                discard(self.path, actions)
            raise
        return True

    def should_compact(self) -> bool:
        """Tell whether the tail has become so long that reading pays for it."""
        files = self.snapshot()
        return len(files.tail) >= _MOST_TAIL_FILES or _is_long(files)

    def compact(self, spark: SparkSession, *, whole: bool = False) -> bool:
        """Fold the tail into the buckets that it touches; False where there was nothing to do, or others did it.

        A short tail of many files only becomes one file, unless ``whole`` is set. The content stays the same, and so
        do the versions before.
        """
        opened = open_delta(self.path)
        files = snapshot(self.path, opened)
        if not files.tail:
            return False
        removed: Sequence[DataFile]
        if whole or not files.base or _is_long(files) or files.tail_rows > SMALL:
            actions, removed = self._folded(spark, files)
        elif len(files.tail) > 1:
            actions, removed = self._write_small(self._net.of(files), new=False), files.tail
        else:
            return False
        number = (opened.transaction_version(COMPACTION) or 0) + 1
        try:
            commit(opened, actions, removed, app=COMPACTION, batch=number)
        except CommitConflict:
            discard(self.path, actions)
            return False
        known = statistics.load(self.path)
        if known is not None and abs(self.snapshot().rows - known.rows) > known.rows // 5:
            self._measure(spark)
        return True

    def compact_here(self) -> bool:
        """Fold everything into a base of one bucket, in this process: for tables whose changes fit into memory.

        Where the base is too large for that, only the files of the tail become one. False where there was nothing to
        do, or others did it.
        """
        opened = open_delta(self.path)
        files = snapshot(self.path, opened)
        whole = files.buckets <= 1 and files.rows <= _SLACK * ROWS_PER_BUCKET
        replaced = [*files.base, *files.tail] if whole else [*files.tail]
        if not files.tail or (len(files.tail) == 1 and not whole):
            return False
        net = net_files(files, replaced, self.columns)
        actions = []
        if net.num_rows:
            path = new_folder(self.path) / "part-0.parquet"
            write_small(path, net.sort_by([(name, "ascending") for name in self.order]))
            actions = [added_file(self.path, path, self.columns, int(whole), 0, new=False)]
        number = (opened.transaction_version(COMPACTION) or 0) + 1
        try:
            commit(opened, actions, replaced, app=COMPACTION, batch=number)
        except CommitConflict:
            discard(self.path, actions)
            return False
        return True

    def _write(self, opened: DeltaTable, delta: DataFrame | pa.Table, large: bool | None) -> list[AddAction]:
        if isinstance(delta, DataFrame):
            if not large:
                rows = delta.select(*self.columns, WEIGHT).limit(SMALL + 1).toArrow()
                if rows.num_rows <= SMALL:
                    return self._write_small(net_rows(rows, self.columns))
            if snapshot(self.path, opened).rows:
                return write_tail(delta, self.path, self.columns)
            return self._write_first(delta)
        return self._write_small(net_rows(delta, self.columns))

    def _write_small(self, net: pa.Table, *, new: bool = True) -> list[AddAction]:
        if not net.num_rows:
            return []
        path = new_folder(self.path) / "part-0.parquet"
        write_small(path, net)
        return [added_file(self.path, path, self.columns, new=new)]

    def _write_first(self, rows: DataFrame) -> list[AddAction]:
        """Write the first rows of a table as its base; how many they are is only known to Spark."""
        actions = self._write_base(consolidated(rows, self.columns), buckets_for(rows.count()))
        if any(json.loads(action.stats)["minValues"][WEIGHT] < 0 for action in actions):
            for action in actions:  # a change that takes away what was never there: not what a base holds
                action.partition_values = dict(TAIL)
        return actions

    def _write_base(
        self, rows: DataFrame, buckets: int, touched: Sequence[int] | None = None, *, new: bool = True
    ) -> list[AddAction]:
        return write_base(
            rows,
            self.path,
            self.columns,
            key=self.key,
            order=self.order,
            buckets=buckets,
            touched=touched,
            bounds=self._bounds(),
            new=new,
        )

    def _bounds(self) -> Sequence[str] | None:
        """Return texts that divide the values of the first column of the order; None where rows are sorted by texts."""
        return None

    def _folded(self, spark: SparkSession, files: Snapshot) -> tuple[list[AddAction], list[DataFile]]:
        rows = files.base_rows + files.tail_rows
        buckets = files.buckets
        if not buckets or rows > _SLACK * buckets * ROWS_PER_BUCKET:
            content = self._net_content(spark, files)
            return self._write_base(content, buckets_for(rows), new=False), [*files.base, *files.tail]
        if files.tail_rows <= SMALL:
            tail = spark.createDataFrame(self._net.of(files), spark_schema(self.columns))
        else:
            tail = self._frame(spark, files, files.tail)
        place = bucket_of(self.key, buckets).alias(BUCKET)
        touched = sorted(row[0] for row in tail.select(place).distinct().collect())  # at most as many as buckets
        replaced = [file for file in files.base if file.bucket in set(touched)]
        merged = self._applied(self._frame(spark, files, replaced), tail, files.tail_rows)
        return self._write_base(merged, buckets, touched, new=False), [*replaced, *files.tail]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load did: quads in the table, lines that were set aside, and where those are."""

    quads: int
    rejected: int
    rejected_file: Path | None
    files: int


class QuadTable(WeightedTable):
    """A set of quads in the columns `QUAD`, in buckets by subject, sorted by `place_of` predicate and subject."""

    def __init__(self, path: AnyPath) -> None:
        super().__init__(path)
        if self.columns != QUAD or not self.distinct:
            raise TableError(f"{self.path} is a table of other rows than quads", hint="name a table that was loaded")

    @classmethod
    def make(cls, path: AnyPath) -> Self:
        """Make an empty table of quads."""
        return cls.create(path, QUAD, key="subject", order=("predicate", "subject", "object", "graph"), distinct=True)

    def _bounds(self) -> Sequence[str]:
        known = statistics.load(self.path)
        predicates = sorted(known.predicates) if known is not None else []
        step = max(1, -(-len(predicates) // (MOST_BOUNDS + 1)))
        return predicates[step::step]

    def load(
        self,
        spark: SparkSession,
        paths: Iterable[AnyPath],
        *,
        on_error: OnError = "reject",
        keep_labels: bool = False,
        rejected: AnyPath | None = None,
    ) -> Loaded:
        """Load RDF files of any syntax and size, folders and patterns into the empty table, as one commit.

        Damaged lines go to ``rejected`` (default: ``rejected.jsonl`` in the table), or fail the load; a damaged file
        always does. Blank nodes belong to their file unless ``keep_labels`` says that labels mean the same in all.
        """
        opened = open_delta(self.path)
        if opened.transaction_version(LOADING) is not None or snapshot(self.path, opened).rows:
            raise TableError(f"{self.path} holds quads already", hint="load into a new table")
        notes = new_folder(self.path)
        notes.mkdir(parents=True)
        try:
            dump = read_dump(spark, paths, notes=notes, on_error=on_error, keep_labels=keep_labels)
            buckets = buckets_for(estimated_rows(dump.files))
            actions = write_set(
                dump.frame,
                self.path,
                QUAD,
                key="subject",
                order=self.order,
                buckets=buckets,
                bounds=some_predicates(dump.files, MOST_BOUNDS),
            )
            target = Path(rejected) if rejected else self.path / "rejected.jsonl"
            count = collect_rejected(notes, target)
            commit(opened, actions, app=LOADING, batch=1)
        finally:
            shutil.rmtree(notes, ignore_errors=True)
        self._measure(spark)
        return Loaded(self.snapshot().base_rows, count, target if count else None, len(dump.files))


def _is_long(files: Snapshot) -> bool:
    return files.tail_rows > max(SMALL, files.base_rows // 4)


__all__ = ["COMPACTION", "LOADING", "SMALL", "Loaded", "QuadTable", "TableVersionUnknown", "WeightedTable"]
