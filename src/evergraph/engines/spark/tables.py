"""Tables of weighted rows in Delta Lake, without any jar: what Spark's views, states and quads are kept in.

A table is a bag of rows. Its *base* holds consolidated rows in sorted, hashed buckets; every batch of changes appends
a small file with signed weights to the *tail*; `WeightedTable.compact` folds the tail into the buckets that it
touches. What counts is always base plus tail, so a batch costs what it changes, and compaction changes nothing.
"""

import contextlib
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evergraph.engines.spark import statistics
from evergraph.engines.spark.dumps import estimated_rows
from evergraph.engines.spark.loading import OnError, collect_rejected, read_dump
from evergraph.engines.spark.net import NetTail, base_and_tail, consolidated, matching, net_rows
from evergraph.engines.spark.rows import QUAD, WEIGHT, arrow_schema, spark_schema
from evergraph.engines.spark.snapshots import (
    BUCKET,
    BUCKETS,
    PARTITIONS,
    CommitConflict,
    DataFile,
    NoVersion,
    Snapshot,
    TableError,
    added_file,
    commit,
    open_delta,
    snapshot,
    write_small,
)
from evergraph.engines.spark.statistics import Statistics
from evergraph.engines.spark.writing import (
    DATA,
    ROWS_PER_BUCKET,
    bucket_of,
    buckets_for,
    discard,
    new_folder,
    write_base,
    write_set,
    write_tail,
)
from evergraph.errors import UsageError
from evergraph.files import AnyPath

FORMAT = 1
"""The version of the layout; a table of another one is refused."""

SMALL = 50_000
"""Up to so many rows, a change or a tail goes through the driver."""

COMPACTION = "evergraph.compaction"
"""The application transaction of compactions, so that of two at the same time only one is committed."""

LOADING = "evergraph.loading"
"""The application transaction of the first load."""

_FORMAT_KEY, _SHAPE_KEY = "evergraph.format", "evergraph.shape"
_MOST_TAIL_FILES = 100
_SLACK = 4


class TableVersionUnknown(TableError):
    """The folder holds a Delta table that this version of Evergraph does not read."""

    condition = "TABLE_FORMAT"


class WeightedTable:
    """A bag of rows of nullable text columns. Open an existing one, or make one with `create`.

    One process writes under one ``app`` name; any number may read, at any version, and compact.
    """

    def __init__(self, path: AnyPath) -> None:
        self.path = Path(path).absolute()
        configuration = open_delta(self.path).metadata().configuration
        found = configuration.get(_FORMAT_KEY)
        if found != str(FORMAT):
            what = f"is a table of format {found}" if found else "is a Delta table, but not one of Evergraph"
            raise TableVersionUnknown(
                f"{self.path} {what}; this version reads format {FORMAT}",
                hint="load the data again into a new folder, or use the version of Evergraph that wrote it",
            )
        shape = json.loads(configuration[_SHAPE_KEY])
        self.columns: tuple[str, ...] = tuple(shape["columns"])
        self.key: str | None = shape["key"]
        self.order: tuple[str, ...] = tuple(shape["order"])
        self.distinct: bool = shape["distinct"]
        self._net = NetTail(self.columns)

    @classmethod
    def create(
        cls,
        path: AnyPath,
        columns: Sequence[str],
        *,
        key: str | None = None,
        order: Sequence[str] | None = None,
        distinct: bool = False,
    ) -> Self:
        """Make an empty table.

        ``key`` is the column that buckets go by (default: the first) and ``order`` how rows are sorted in them.
        ``distinct`` says that no row ever counts more than once and that all changes are exact: reading is cheaper.
        """
        _refuse_names(columns)
        _refuse_content(Path(path))
        shape = {
            "columns": list(columns),
            "key": key or (columns[0] if columns else None),
            "order": list(order if order is not None else columns),
            "distinct": distinct,
        }
        partitions = [pa.field(name, pa.int32()) for name in PARTITIONS]
        DeltaTable.create(
            Path(path).absolute(),
            pa.schema([*arrow_schema(columns), *partitions]),
            partition_by=list(PARTITIONS),
            configuration={
                _FORMAT_KEY: str(FORMAT),
                _SHAPE_KEY: json.dumps(shape),
                "delta.checkpointInterval": "50",
            },
            mode="error",
            raise_if_key_not_exists=False,
        )
        return cls(path)

    @classmethod
    def exists(cls, path: AnyPath) -> bool:
        """Tell whether there is a Delta table in a folder."""
        return DeltaTable.is_deltatable(str(Path(path).absolute()))

    @property
    def version(self) -> int:
        """The newest version; every commit makes one."""
        return open_delta(self.path).version()

    def snapshot(self, version: int | None = None) -> Snapshot:
        """List the files of a version."""
        return snapshot(self.path, open_delta(self.path, version))

    def committed(self, app: str) -> int | None:
        """Tell the last batch that was committed under a name."""
        return open_delta(self.path).transaction_version(app)

    def read(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """Read the net content: every row once, with a weight above 0. Later commits do not show in the frame."""
        files = self.snapshot(version)
        if version is not None:
            self._refuse_vacuumed(files)
        return self._net_content(spark, files)

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
        if whole or not files.base or _is_long(files):
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

    def statistics(self, spark: SparkSession) -> Statistics:
        """Tell how large the table is; measured the first time, after that as of the last load or larger compaction."""
        return statistics.load(self.path) or self._measure(spark)

    def _measure(self, spark: SparkSession) -> Statistics:
        files = self.snapshot()
        found = statistics.measure(self._net_content(spark, files), files.version)
        statistics.save(self.path, found)
        return found

    def vacuum(self, *, older_than_hours: int = 24 * 7) -> int:
        """Remove the files that no version of the last hours needs, orphans included; tell how many there were.

        Work that runs for longer than that loses its files: choose the time accordingly.
        """
        unused = open_delta(self.path).vacuum(
            retention_hours=older_than_hours, dry_run=True, enforce_retention_duration=False, full=True
        )
        # Delta would remove everything in the folder that it does not know, whoever put it there.
        own = [self.path / path for path in unused if PurePosixPath(path).parts[0] == DATA]
        for path in own:
            path.unlink(missing_ok=True)
        for folder in sorted((self.path / DATA).glob("**/"), reverse=True):
            with contextlib.suppress(OSError):  # not empty
                folder.rmdir()
        return len(own)

    def _net_content(self, spark: SparkSession, files: Snapshot) -> DataFrame:
        base = self._frame(spark, files, files.base)
        if not files.tail:
            return base
        if files.tail_rows <= SMALL:
            net = self._net.of(files)
            if not files.base:
                return spark.createDataFrame(net, spark_schema(self.columns))
            if not net.num_rows:
                return base
            if self.columns:
                return base_and_tail(spark, base, net, self.columns, distinct=self.distinct)
        tail = self._frame(spark, files, files.tail)
        if not (self.distinct and files.base):
            return consolidated(base.unionByName(tail), self.columns)
        net_tail = consolidated(tail, self.columns)
        kept = matching(base, net_tail.where(sf.col(WEIGHT) < 0), self.columns, "left_anti", broadcast=False)
        return kept.unionByName(net_tail.where(sf.col(WEIGHT) > 0))

    def _frame(self, spark: SparkSession, files: Snapshot, some: Sequence[DataFile]) -> DataFrame:
        schema = spark_schema(self.columns)
        if not some:
            return spark.createDataFrame([], schema)
        return spark.read.schema(schema).parquet(*files.absolute(some))

    def _write(self, opened: DeltaTable, delta: DataFrame | pa.Table, large: bool | None) -> list[AddAction]:
        if isinstance(delta, DataFrame):
            if not large:
                rows = delta.select(*self.columns, WEIGHT).limit(SMALL + 1).toArrow()
                if rows.num_rows <= SMALL:
                    return self._write_small(net_rows(rows, self.columns))
            if snapshot(self.path, opened).tail or snapshot(self.path, opened).base:
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
        count = rows.count()
        return self._write_base(consolidated(rows, self.columns), buckets_for(count))

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
            new=new,
        )

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
        merged = consolidated(self._frame(spark, files, replaced).unionByName(tail), self.columns)
        return self._write_base(merged, buckets, touched, new=False), [*replaced, *files.tail]

    def _refuse_vacuumed(self, files: Snapshot) -> None:
        if not all(Path(path).exists() for path in files.absolute([*files.base, *files.tail])):
            raise NoVersion(
                f"{self.path}: the files of version {files.version} were removed",
                hint="vacuum later, or read a newer one",
            )


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load did: quads in the table, lines that were set aside, and where those are."""

    quads: int
    rejected: int
    rejected_file: Path | None
    files: int


class QuadTable(WeightedTable):
    """A set of quads in the columns `QUAD`, in buckets by subject, sorted by predicate, subject and object."""

    @classmethod
    def make(cls, path: AnyPath) -> Self:
        """Make an empty table of quads."""
        return cls.create(path, QUAD, key="subject", order=("predicate", "subject", "object", "graph"), distinct=True)

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
            actions = write_set(dump.frame, self.path, QUAD, key="subject", order=self.order, buckets=buckets)
            target = Path(rejected) if rejected else self.path / "rejected.jsonl"
            count = collect_rejected(notes, target)
            commit(opened, actions, app=LOADING, batch=1)
        finally:
            shutil.rmtree(notes, ignore_errors=True)
        self._measure(spark)
        return Loaded(self.snapshot().base_rows, count, target if count else None, len(dump.files))


def _is_long(files: Snapshot) -> bool:
    return files.tail_rows > max(SMALL, files.base_rows // 10)


def _refuse_content(path: Path) -> None:
    """A table has its folder for itself."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise TableError(
            f"{path} is there already", hint="name a new or empty folder for the table, or open the one it is"
        )


def _refuse_names(columns: Sequence[str]) -> None:
    reserved = {WEIGHT, *PARTITIONS} & set(columns)
    folded = {name.casefold() for name in columns}
    odd = [name for name in columns if not name or set(name) & set(" ,;{}()\n\t=")]
    if reserved or len(folded) != len(columns) or odd:
        raise UsageError(
            f"a table cannot have the columns {', '.join(columns)}",
            hint=f"names differ in more than case, without ,;{{}}()=, and are not {WEIGHT}, {BUCKET}, {BUCKETS}",
        )
