"""How the result follows the documents: on the local engine, or on Spark, batch by batch."""

import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from evergraph.delta import Bag, Delta
from evergraph.engines.local.engine import LocalEngine
from evergraph.sparql.algebra import Query
from evergraph.sparql.expressions import Row
from evergraph.terms import Quad, Variable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_COMPACT_EVERY = 8
_LEAST_WAIT = 1.0
"""Seconds for which a change waits for others, at least."""
_RESULT, _SOLUTIONS = "result", "solutions"


@dataclass(slots=True)
class Effect:
    """What a change of the dataset does: to the result, and which solutions come, to look for links in."""

    result: Bag[Row] = field(default_factory=Bag)
    solutions: list[Row] = field(default_factory=list)


class Maintainer(Protocol):
    """Keeps the result of a query up to date."""

    variables: tuple[Variable, ...]

    def apply(self, delta: Delta) -> Effect:
        """Take in an exact change of the dataset."""

    def result(self) -> Bag[Row]:
        """Return the current rows."""

    def close(self) -> None:
        """Let go of everything."""


class Queue:
    """Changes of the dataset that are to be taken in together, because a batch has its price.

    They wait until there are enough documents, or for twice as long as the batch before took.
    """

    def __init__(self, last: float = 0.0) -> None:
        self.documents: dict[str, None] = {}
        self._change: Bag[Quad] = Bag()
        self._until = time.monotonic() + max(_LEAST_WAIT, 2 * last)

    def put(self, delta: Delta) -> Effect:
        """Let a change wait: it has no effect yet."""
        self._change.update(delta.bag())
        return Effect()

    def is_due(self, most: int) -> bool:
        """Tell whether what waits should wait no longer."""
        return len(self.documents) >= most or time.monotonic() >= self._until

    def delta(self) -> Delta:
        """Return all that waits, as one exact change."""
        return Delta(
            inserted=frozenset(quad for quad, weight in self._change.items() if weight > 0),
            deleted=frozenset(quad for quad, weight in self._change.items() if weight < 0),
        )


class LocalMaintainer:
    """The local engine. ``solutions`` is a second query, whose rows are looked through for links."""

    def __init__(self, query: Query, solutions: Query | None, limit: int | None) -> None:
        self._engine = LocalEngine()
        self.view = self._engine.register(query, limit=limit)
        self._solutions = self.view if solutions is None else self._engine.register(solutions, limit=limit)
        self.variables = self.view.variables

    def apply(self, delta: Delta) -> Effect:
        """Take in a change; raises what a view fails with."""
        effect = Effect()
        for view, rows in self._engine.apply(delta):
            if view is self.view:
                effect.result = view.changed(rows)
            if view is self._solutions:
                effect.solutions = list(view.added(rows))
        for view in (self.view, self._solutions):
            if view.failed is not None:
                raise view.failed
        return effect

    def result(self) -> Bag[Row]:
        """Return the current rows."""
        return self.view.result()

    def close(self) -> None:
        """Nothing is open."""


class SparkMaintainer:
    """The Spark engine, over a table of quads in a temporary folder; for large batches of documents.

    The changes of the result, and their sum, are on the driver; what the query needs to find them is not.
    """

    def __init__(self, query: Query, solutions: Query | None, master: str | None) -> None:
        from pyspark.sql import SparkSession

        from evergraph.engines.spark.daemon import MODULE
        from evergraph.engines.spark.engine import SparkEngine
        from evergraph.engines.spark.session import current_session, open_session
        from evergraph.engines.spark.tables import QuadTable

        self._owns_spark = current_session() is None
        self._spark: SparkSession = open_session(master, conf={"spark.python.daemon.module": MODULE})
        self._folder = Path(tempfile.mkdtemp(prefix="evergraph-traversal-"))
        try:
            self._table = QuadTable.make(self._folder / "quads")
            queries = {_RESULT: query} | ({} if solutions is None else {_SOLUTIONS: solutions})
            self._engine = SparkEngine(self._spark, self._table, queries)
            self.variables = self._engine.views[_RESULT].variables
            self._batch = 0
            with self._engine.batch():
                self._total = _bag(self._engine.initial(_RESULT))
        except BaseException:
            self.close()
            raise

    def apply(self, delta: Delta) -> Effect:
        """Take in a change as one batch."""
        with self._engine.batch():
            exact = self._engine.exact(self._requested(delta))
            found = {name: _bag(rows) for name, rows in self._engine.deltas(exact).items()}
            self._batch += 1
            self._table.append(exact, app="traversal", batch=self._batch)
        if self._batch % _COMPACT_EVERY == 0 and self._table.should_compact():
            self._table.compact(self._spark)
        self._total.update(found[_RESULT])
        return Effect(found[_RESULT], list(found.get(_SOLUTIONS, found[_RESULT]).positive()))

    def result(self) -> Bag[Row]:
        """Return the current rows."""
        return Bag.weighted(self._total.items())

    def close(self) -> None:
        """Remove the table, and stop Spark if it was started here."""
        from evergraph.engines.spark.session import stop_session

        shutil.rmtree(self._folder, ignore_errors=True)
        if self._owns_spark:
            stop_session(self._spark)

    def _requested(self, delta: Delta) -> "DataFrame":
        import pyarrow as pa

        from evergraph.engines.spark.rows import QUAD, WEIGHT, table_of
        from evergraph.engines.spark.stream import REQUESTED, SEQUENCE

        table = table_of(delta.bag().items())
        numbers = pa.array([self._batch + 1] * table.num_rows, pa.int64())
        table = table.append_column(SEQUENCE, numbers).select([*QUAD, SEQUENCE, WEIGHT])
        return self._spark.createDataFrame(table, REQUESTED)


def _bag(data: "DataFrame | pa.Table") -> Bag[Row]:
    """Read rows of texts as a bag of rows of terms."""
    import pyarrow as pa

    from evergraph.engines.spark.rows import term_of

    table = data if isinstance(data, pa.Table) else data.toArrow()
    *columns, weights = [column.to_pylist() for column in table.columns]
    rows = zip(*columns, strict=True) if columns else [()] * len(weights)
    return Bag.weighted(
        (tuple(None if text is None else term_of(text) for text in row), weight)
        for row, weight in zip(rows, weights, strict=True)
    )
