"""The reading side of tables: their format, their versions, their net content, and the files that nobody needs."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Self

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evergraph.engines.spark import statistics
from evergraph.engines.spark.net import NetTail, base_and_tail, consolidated, matching
from evergraph.engines.spark.rows import QUAD, WEIGHT, arrow_schema, spark_schema
from evergraph.engines.spark.snapshots import (
    BUCKET,
    BUCKETS,
    PARTITIONS,
    DataFile,
    NoVersion,
    Snapshot,
    TableError,
    open_delta,
    snapshot,
)
from evergraph.engines.spark.statistics import Statistics
from evergraph.engines.spark.writing import DATA
from evergraph.errors import UsageError
from evergraph.files import AnyPath

FORMAT = 1
"""The version of the layout; a table of another one is refused."""

SMALL = 50_000
"""Up to so many rows, a change or a tail goes through the driver."""

_BROADCAST = 500_000
"""Up to so many rows of a tail are sent to every task."""

_SAMPLE = 1_000_000
"""From about so many quads, in whole buckets, follows how many subjects and objects there are."""

_FORMAT_KEY, _SHAPE_KEY = "evergraph.format", "evergraph.shape"


class TableVersionUnknown(TableError):
    """The folder holds a Delta table that this version of Evergraph does not read."""

    condition = "TABLE_FORMAT"


class StoredRows:
    """A bag of rows of nullable text columns, in a folder of its own, at any of its versions."""

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

    def statistics(self, spark: SparkSession) -> Statistics:
        """Tell how large the table is; measured the first time, after that as of the last load or larger compaction."""
        return statistics.load(self.path) or self._measure(spark)

    def _measure(self, spark: SparkSession) -> Statistics:
        files = self.snapshot()
        content = self._net_content(spark, files)
        if self.columns == QUAD and files.base_rows > _SAMPLE and self.key == "subject":
            some = files.base[: -(-_SAMPLE * len(files.base) // files.base_rows)]
            sample = self._frame(spark, files, some)
            found = statistics.by_predicate(content, files.version, sample, len(some) / files.buckets)
        else:
            found = statistics.measure(content, files.version)
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
        return self._applied(base, tail, files.tail_rows) if files.base else consolidated(tail, self.columns)

    def _applied(self, base: DataFrame, tail: DataFrame, tail_rows: int) -> DataFrame:
        """Apply a tail of so many rows to a base; of a set, only the tail has to be added up."""
        if not self.distinct:
            return consolidated(base.unionByName(tail), self.columns)
        net = consolidated(tail, self.columns)
        gone, come = (net.where(sf.col(WEIGHT) * sign > 0) for sign in (-1, 1))
        kept = matching(base, gone, self.columns, "left_anti", broadcast=tail_rows <= _BROADCAST)
        return kept.unionByName(come)

    def _frame(self, spark: SparkSession, files: Snapshot, some: Sequence[DataFile]) -> DataFrame:
        schema = spark_schema(self.columns)
        if not some:
            return spark.createDataFrame([], schema)
        return spark.read.schema(schema).parquet(*files.absolute(some))

    def _refuse_vacuumed(self, files: Snapshot) -> None:
        if not all(Path(path).exists() for path in files.absolute([*files.base, *files.tail])):
            raise NoVersion(
                f"{self.path}: the files of version {files.version} were removed",
                hint="vacuum later, or read a newer one",
            )


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
