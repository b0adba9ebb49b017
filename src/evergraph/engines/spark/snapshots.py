"""The files of a table and how they change: a thin layer over Delta's log.

Delta's commits are atomic, and an application transaction makes the second of two commits fail that carry the same
name and were prepared at the same time. Everything that must not happen twice carries one: delta-rs itself does not
notice when two commits remove the same file.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from evergraph.engines.spark.rows import WEIGHT
from evergraph.errors import EvergraphError

BUCKETS = "_buckets"
BUCKET = "_bucket"
PARTITIONS = (BUCKETS, BUCKET)
"""The partition columns: how many buckets there were when the file was written (0: it is of the tail), and which."""

TAIL: Mapping[str, str | None] = MappingProxyType({BUCKETS: "0", BUCKET: "0"})
"""The partition of the tail."""

_SHOWN = 64
"""How much of a text the statistics of a file hold."""


class TableError(EvergraphError):
    """A table cannot be read or written: it is none, it is of another version, or somebody else changed it."""

    condition = "TABLE"


class NoTable(TableError):
    """There is no table in that folder."""

    condition = "NO_TABLE"


class NoVersion(TableError):
    """The table has no such version, or its files are gone."""

    condition = "NO_TABLE_VERSION"


class CommitConflict(TableError):
    """Somebody else committed the same piece of work first."""

    condition = "TABLE_CONFLICT"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file: its path in the table, and which part of the table it is."""

    path: str
    size: int
    rows: int
    buckets: int
    bucket: int

    @property
    def partition(self) -> dict[str, str | None]:
        """The values of the partition columns, as Delta writes them."""
        return {BUCKETS: str(self.buckets), BUCKET: str(self.bucket)}

    def removal(self) -> RemoveAction:
        """Return the action that takes the file out of the table; its rows are elsewhere by then."""
        return RemoveAction(self.path, False, int(time.time() * 1000), self.size, self.partition)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a table: its files, base and tail."""

    root: Path
    version: int
    base: tuple[DataFile, ...]
    tail: tuple[DataFile, ...]

    @property
    def buckets(self) -> int:
        """The number of buckets of the base; 0 where there is no base yet."""
        return self.base[0].buckets if self.base else 0

    @property
    def base_rows(self) -> int:
        """The number of rows in the base."""
        return sum(file.rows for file in self.base)

    @property
    def rows(self) -> int:
        """The number of rows in all files: that of the content, or a little more."""
        return self.base_rows + self.tail_rows

    @property
    def tail_rows(self) -> int:
        """The number of rows in the tail, before they are added up."""
        return sum(file.rows for file in self.tail)

    def absolute(self, files: Iterable[DataFile]) -> list[str]:
        """Return the full paths of some of the files."""
        return [str(self.root / file.path) for file in files]


def open_delta(root: Path, version: int | None = None) -> DeltaTable:
    """Open a version of a Delta table, the newest by default."""
    try:
        return DeltaTable(root, version=version)
    except TableNotFoundError:
        raise NoTable(f"{root} is not a table", hint="check the path; a table is a folder with a _delta_log") from None
    except DeltaError as error:
        if version is not None:
            raise NoVersion(
                f"{root} has no version {version}", hint="it is newer than the table, or was vacuumed"
            ) from error
        raise TableError(f"{root} cannot be opened: {error}", hint="restore its _delta_log") from error


def snapshot(root: Path, delta: DeltaTable) -> Snapshot:
    """List the files of an opened table."""
    actions = pa.table(delta.get_add_actions(flatten=True)).to_pylist()
    found = [
        DataFile(
            one["path"],
            one["size_bytes"],
            one["num_records"],
            one[f"partition.{BUCKETS}"],
            one[f"partition.{BUCKET}"],
        )
        for one in actions
    ]
    found.sort(key=lambda file: (file.bucket, file.path))
    base, tail = (tuple(file for file in found if bool(file.buckets) is kind) for kind in (True, False))
    return Snapshot(root, delta.version(), base, tail)


def commit(
    delta: DeltaTable,
    added: Sequence[AddAction],
    removed: Sequence[DataFile] = (),
    *,
    app: str,
    batch: int,
    details: Mapping[str, str | int] | None = None,
) -> None:
    """Add and remove files in one step, once: a commit of the same ``app`` in the meantime is a `CommitConflict`."""
    properties = CommitProperties(
        custom_metadata=dict(details or {}), app_transactions=[Transaction(app, batch)], max_commit_retries=20
    )
    actions: list[AddAction | RemoveAction] = [*added, *(file.removal() for file in removed)]
    try:
        delta.create_write_transaction(
            actions, "append", delta.schema(), list(PARTITIONS), commit_properties=properties
        )
    except CommitFailedError as error:
        raise CommitConflict(
            f"{delta.table_uri}: batch {batch} of {app} collided with another commit: {error}",
            hint="let only one process write under one name; open the table again and see what is committed",
        ) from error
    except (DeltaError, OSError) as error:
        raise TableError(
            f"{delta.table_uri}: the commit failed: {error}", hint="free space, check permissions, then repeat"
        ) from error


def added_file(
    root: Path, path: Path, columns: Sequence[str], buckets: int = 0, bucket: int = 0, *, new: bool = True
) -> AddAction:
    """Describe a Parquet file under the root, with the statistics of its footer; ``new``: its rows were not there."""
    size = path.stat().st_size
    return AddAction(
        path.relative_to(root).as_posix(),
        size,
        {BUCKETS: str(buckets), BUCKET: str(bucket)},
        int(time.time() * 1000),
        new,
        json.dumps(_footer_statistics(path, columns)),
    )


def write_small(path: Path, rows: pa.Table) -> None:
    """Write a file of the tail, and see that it reaches the disk before anybody commits it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as out:
            pq.write_table(rows, out, compression="zstd")
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise TableError(
            f"cannot write {path}: {error.strerror or error}", hint="free space or choose another place"
        ) from error


def _footer_statistics(path: Path, columns: Sequence[str]) -> dict[str, object]:
    footer = pq.read_metadata(path)
    lowest: dict[str, object] = {}
    highest: dict[str, object] = {}
    nulls: dict[str, int] = {}
    names = {footer.schema.column(place).name: place for place in range(footer.num_columns)}
    for name in (*columns, WEIGHT):
        parts = [footer.row_group(group).column(names[name]).statistics for group in range(footer.num_row_groups)]
        if not parts or any(part is None or not part.has_null_count for part in parts):
            continue
        nulls[name] = sum(part.null_count for part in parts)
        if all(part.has_min_max for part in parts):
            lowest[name] = _below(min(part.min for part in parts))
            highest[name] = _above(max(part.max for part in parts))
    return {"numRecords": footer.num_rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}


def _below(value: str | int) -> str | int:
    return value[:_SHOWN] if isinstance(value, str) else value


def _above(value: str | int) -> str | int:
    """Cut a text so that what remains is not smaller."""
    if isinstance(value, str) and len(value) > _SHOWN:
        return value[:_SHOWN] + "\U0010ffff"
    return value
