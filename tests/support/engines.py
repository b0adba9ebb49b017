"""Both engines over one history, side by side."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from evergraph.delta import Bag, Delta, Request
from evergraph.engines.local.engine import LocalEngine, View
from evergraph.engines.spark.costs import Way
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.rows import QUAD, WEIGHT, quad_of, row_of, term_of
from evergraph.engines.spark.stream import REQUESTED
from evergraph.engines.spark.tables import QuadTable
from evergraph.sparql.algebra import Query
from evergraph.sparql.expressions import Row
from evergraph.terms import Quad


def requested_frame(spark: SparkSession, requests: Iterable[tuple[int, Request]]) -> DataFrame:
    """Write numbered requests as a stream would give them."""
    rows = [
        (*row_of(quad), sequence, weight)
        for sequence, request in requests
        for quads, weight in ((request.removed, -1), (request.added, 1))
        for quad in quads
    ]
    return spark.createDataFrame(rows, REQUESTED)


def bag_of(data: DataFrame | pa.Table) -> Bag[Row]:
    """Read rows of texts as a bag of rows of terms."""
    return Bag.weighted(
        (tuple(None if text is None else term_of(text) for text in row), weight) for row, weight in _rows(data)
    )


def quads_of(data: DataFrame | pa.Table) -> Bag[Quad]:
    """Read rows of quads."""
    return Bag.weighted((quad_of([text or "" for text in row]), weight) for row, weight in _rows(data))


def _rows(data: DataFrame | pa.Table) -> Iterator[tuple[list[str | None], int]]:
    table = data if isinstance(data, pa.Table) else data.toArrow()
    *columns, weights = [column.to_pylist() for column in table.columns]
    for place, weight in enumerate(weights):
        yield [column[place] for column in columns], weight


class BothEngines:
    """The local engine and the Spark engine with the same views over the same quads."""

    def __init__(self, spark: SparkSession, folder: Path, queries: Mapping[str, Query], way: Way | None) -> None:
        self._spark = spark
        self._table = QuadTable.make(folder)
        self.spark = SparkEngine(spark, self._table, queries, way=way)
        self.local = LocalEngine()
        self._views: dict[View, str] = {}
        for name, view in self.spark.views.items():
            registered = self.local.register(view.query, limit=10_000_000, environment=view.environment)
            self._views[registered] = name
        self._present: frozenset[Quad] = frozenset()
        self._sequence = 0

    def check_initial(self) -> None:
        """Compare the results as they are now."""
        for view, name in self._views.items():
            with self.spark.batch():
                assert bag_of(self.spark.initial(name)) == view.result(), name

    def check(self, requests: list[Request], batch: int) -> None:
        """Take in requests as one batch, and compare what both engines say."""
        numbered = list(enumerate(requests, self._sequence + 1))
        self._sequence += len(requests)
        after = self._present
        for request in requests:
            after = (after - request.removed) | request.added
        expected = Delta(after - self._present, self._present - after)
        changes = {self._views[view]: view.changed(rows) for view, rows in self.local.apply(expected)}
        with self.spark.batch():
            delta = self.spark.exact(requested_frame(self._spark, numbered))
            assert quads_of(delta) == expected.bag(), f"batch {batch}: the exact change"
            found = self.spark.deltas(delta)
            for name, data in found.items():
                names = data.column_names if isinstance(data, pa.Table) else data.columns
                assert tuple(names) == (*self.spark.views[name].columns, WEIGHT), name
                assert bag_of(data) == changes.get(name, Bag()), f"batch {batch}: {name}"
            self._table.append(delta, app="test", batch=batch)
        self._present = after
        assert sorted(map(tuple, _texts(self._table.read(self._spark)))) == sorted(map(row_of, after))


def _texts(quads: DataFrame) -> Iterator[list[str | None]]:
    return (row for row, _ in _rows(quads.select(*QUAD, WEIGHT)))
