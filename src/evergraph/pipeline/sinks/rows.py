"""Sinks for the rows of views: Delta tables, JSON lines as ``evergraph watch`` prints them, and whole results."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from evergraph.delta import Bag
from evergraph.engines.spark.rows import WEIGHT, term_of
from evergraph.engines.spark.tables import WeightedTable
from evergraph.files import open_output
from evergraph.pipeline.outcomes import Format, Outcome, binding, lines, quoted_statement, statement
from evergraph.pipeline.sinks.base import AppendedFile, PathSink, save_json
from evergraph.sparql.algebra import Query, Select
from evergraph.sparql.expressions import Row
from evergraph.terms import Variable
from evergraph.views.queries import Step, json_step

_COMPACT_EVERY = 20


class TableWriter(PathSink):
    """A Delta table: the sum of the weights of a row says how often it is in the result."""

    def __init__(self, path: Path, columns: Sequence[str], app: str, spark: SparkSession, *, distinct: bool) -> None:
        super().__init__(path)
        self._columns = tuple(columns)
        self._app = app
        self._spark = spark
        self._distinct = distinct
        self._opened: WeightedTable | None = None

    @property
    def _table(self) -> WeightedTable:
        if self._opened is None:
            self._opened = WeightedTable(self._path)
        return self._opened

    def begin(self) -> None:
        """Make the table."""
        shutil.rmtree(self._path, ignore_errors=True)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._opened = WeightedTable.create(self._path, self._columns, distinct=self._distinct)

    def write(self, outcome: Outcome, batch: int, sequence: int) -> None:
        """Commit the rows, once."""
        if outcome:
            self._table.append(outcome.data, app=self._app, batch=batch, large=outcome.is_large)
        if batch % _COMPACT_EVERY == 0 and self._table.should_compact():
            self._table.compact(self._spark)


class JsonLinesWriter(PathSink):
    """A file with a line for every batch that has an effect, and a first one for what there was."""

    def __init__(self, path: Path, ledger: Path, staging: Path, query: Query, variables: tuple[Variable, ...]) -> None:
        super().__init__(path)
        self._file = AppendedFile(path, ledger)
        self._staging = staging
        self._query = query
        self._variables = variables
        self._first = False

    def begin(self) -> None:
        """Make the file."""
        self._file.begin()
        self._first = True

    def write(self, outcome: Outcome, batch: int, sequence: int) -> None:
        """Add a line."""
        if outcome or self._first:
            self._file.append(batch, json_line(outcome, sequence, self._query, self._variables, self._staging))
        self._first = False


class StandardOutput:
    """Prints what ``evergraph watch`` prints."""

    def __init__(self, staging: Path, query: Query, variables: tuple[Variable, ...]) -> None:
        self._staging = staging
        self._query = query
        self._variables = variables
        self._first = True

    def check(self) -> None:
        """Do nothing."""

    def begin(self) -> None:
        """Do nothing."""

    def write(self, outcome: Outcome, batch: int, sequence: int) -> None:
        """Print a line: the first always, and then what has an effect."""
        if outcome or self._first:
            sys.stdout.buffer.writelines(json_line(outcome, sequence, self._query, self._variables, self._staging))
            sys.stdout.buffer.flush()
        self._first = False

    def finish(self, batch: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class SnapshotWriter(PathSink):
    """A file with the whole result, written when the run ends; until then, the one of the run before stays."""

    def __init__(
        self,
        path: Path,
        ledger: Path,
        staging: Path,
        query: Query | None,
        names: tuple[str, ...],
        result: Callable[[], Outcome],
    ) -> None:
        super().__init__(path)
        self._ledger = ledger
        self._staging = staging
        self._write = partial(binding, names) if _has_rows(query) else statement
        self._by_column = _has_rows(query)
        self._result = result

    def begin(self) -> None:
        """Make the folder that it is to be in."""
        self._ledger.unlink(missing_ok=True)
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, outcome: Outcome, batch: int, sequence: int) -> None:
        """Do nothing: only the end counts."""

    def finish(self, batch: int) -> None:
        """Write the file, unless it is that of the batch already; it appears wholly or not at all."""
        if self._path.exists() and self._ledger.exists() and json.loads(self._ledger.read_text()) == {"batch": batch}:
            return
        outcome = self._result()
        with open_output(self._path) as out:
            for line in lines(outcome, 1, self._write, self._staging, by_column=self._by_column):
                out.write(line + b"\n")
        outcome.close()
        save_json(self._ledger, {"batch": batch})


def _has_rows(query: Query | None) -> bool:
    return isinstance(query, Select)


def step_of(outcome: Outcome, sequence: int) -> Step:
    """Read an outcome of few rows as a step of a standing query."""
    assert outcome.rows is not None
    columns = [outcome.rows.column(name).to_pylist() for name in outcome.columns]
    bag: Bag[Row] = Bag()
    for place, weight in enumerate(outcome.rows.column(WEIGHT).to_pylist()):
        bag.add(tuple(None if column[place] is None else term_of(column[place]) for column in columns), weight)
    return Step(sequence, bag.positive(), bag.negative())


def json_line(
    outcome: Outcome, sequence: int, query: Query, variables: tuple[Variable, ...], staging: Path
) -> Iterator[bytes]:
    """Write an outcome as the line that ``evergraph watch`` prints for it, in pieces."""
    if outcome.rows is not None:
        step = json_step(query, step_of(outcome, sequence), variables)
        yield (json.dumps(step, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
        return
    names = tuple(variable.value for variable in variables)
    write: Format = quoted_statement
    opening, closing = b"[", b"]"
    if isinstance(query, Select):
        write = partial(binding, names)
        head = json.dumps({"vars": list(names)}, ensure_ascii=False, separators=(",", ":"))
        opening, closing = b'{"head":%s,"results":{"bindings":[' % head.encode(), b"]}}"
    yield b'{"sequence":%d' % sequence
    for key, sign in ((b"added", 1), (b"removed", -1)):
        yield b',"%s":' % key + opening
        rows = lines(outcome, sign, write, staging, by_column=isinstance(query, Select))
        for place, line in enumerate(rows):
            yield (b"," if place else b"") + line
        yield closing
    yield b"}\n"
