"""Delta tables as targets: a table of triples for every interest, for Spark and other tools to read.

A commit carries the number of the last change that is in it. What is told again after a crash is known by its number
and not written twice, so that changes may be committed together. No Spark is needed: a replica fits into memory, and so
does what is written.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from deltalake.exceptions import DeltaError

from evergraph.delta import Delta
from evergraph.engines.spark.rows import arrow_schema
from evergraph.engines.spark.tables import WeightedTable
from evergraph.errors import StoreError
from evergraph.sources.folders import make_folder
from evergraph.terms import term_text

COLUMNS = ("subject", "predicate", "object")
_APP = "evergraph.replica"
_COMPACT_EVERY = 100


class TableTarget:
    """A Delta table in a folder of its own, as the sink of a pipeline makes it for an interest."""

    each = False

    def __init__(self, folder: Path) -> None:
        self._table = _open(folder)
        committed = self._table.committed(_APP)
        self._last = -1 if committed is None else committed
        self._told = self._last
        self._waiting = Delta()
        self._commits = 0

    def is_empty(self) -> bool:
        """Tell whether nothing was ever committed."""
        return self._last < 0 and not self._table.snapshot().rows

    def write(self, delta: Delta, sequence: int) -> None:
        """Remember a change until the next `flush`, unless it has been committed before."""
        if sequence > self._told:
            self._waiting, self._told = self._waiting.then(delta), sequence

    def flush(self) -> None:
        """Commit what was told, under the number of its last change."""
        if self._told == self._last:
            return
        if not self._table.append(_rows(self._waiting), app=_APP, batch=self._told):
            raise StoreError(
                f"{self._table.path} got change {self._told} from somebody else",
                hint="let only one replication write a table, then begin anew with another one",
            )
        self._waiting, self._last = Delta(), self._told
        self._commits += 1
        if self._commits % _COMPACT_EVERY == 0:
            self._compact()

    def finish(self, statements: Callable[[], list[str]]) -> None:
        """Put many small files together."""
        self._compact()

    def _compact(self) -> None:
        if self._table.should_compact():
            self._table.compact_here()

    def close(self) -> None:
        """Do nothing: what was not committed is told again."""


def _open(folder: Path) -> WeightedTable:
    make_folder(folder)
    try:
        if not WeightedTable.exists(folder):
            _remove_unborn(folder)
            return WeightedTable.create(folder, COLUMNS, distinct=True)
    except (DeltaError, OSError) as error:
        raise StoreError(
            f"cannot make a table in {folder}: {str(error).splitlines()[0]}", hint="choose another place"
        ) from error
    table = WeightedTable(folder)
    if table.columns != COLUMNS:
        raise StoreError(f"{folder} is a table of {', '.join(table.columns)}", hint="name a new folder")
    return table


def _remove_unborn(folder: Path) -> None:
    """Remove a log without any commit: what is left of a table whose making was cut off."""
    log = folder / "_delta_log"
    if log.is_dir() and not any(path.suffix in (".json", ".parquet") for path in log.iterdir()):
        shutil.rmtree(log)


def _rows(delta: Delta) -> pa.Table:
    schema = arrow_schema(COLUMNS)
    columns = list(zip(*_weighted(delta), strict=True)) or [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _weighted(delta: Delta) -> Iterator[tuple[str, str, str, int]]:
    for quads, weight in ((delta.deleted, -1), (delta.inserted, 1)):
        for quad in quads:
            yield str(quad.subject), str(quad.predicate), term_text(quad.object), weight
