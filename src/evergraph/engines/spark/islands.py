"""Islands: views that one task maintains on the local engine, over the quads that they can look at.

A pattern that means something else in each graph, or for each row, needs a plan of its own for each: the local engine
keeps them, and no single DataFrame could. `evergraph.plan.distribution` says which views these are, and why.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from evergraph.delta import Bag, Delta
from evergraph.engines.local.engine import DEFAULT_LIMIT, LocalEngine
from evergraph.engines.spark.rows import WEIGHT, arrow_schema, quads_of
from evergraph.sparql.algebra import Query
from evergraph.sparql.expressions import Environment, Row
from evergraph.terms import Quad, term_text


@dataclass(frozen=True)
class Island:
    """A query that one task maintains; its rows have ``width`` columns."""

    query: Query
    environment: Environment
    width: int

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the result over the quads that come in, which all have weight 0."""
        quads, _ = read_change(batches)
        yield self._batch(local_view(self.query, self.environment, quads)[1])

    def changes(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return how the result changes with the quads that have another weight."""
        quads, delta = read_change(batches)
        yield self._batch(local_changes([(self.query, self.environment)], quads, delta)[0])

    def _batch(self, rows: Bag[Row]) -> pa.RecordBatch:
        return batch_of(rows, self.width)


def batch_of(rows: Bag[Row], width: int) -> pa.RecordBatch:
    """Write rows of terms as rows of texts."""
    schema = arrow_schema([f"c{number}" for number in range(width)])
    pairs = list(rows.items())
    columns = [
        pa.array([None if (term := row[number]) is None else term_text(term) for row, _ in pairs], pa.string())
        for number in range(width)
    ]
    return pa.RecordBatch.from_arrays([*columns, pa.array([weight for _, weight in pairs], pa.int64())], schema=schema)


def local_view(query: Query, environment: Environment, quads: list[Quad]) -> tuple[LocalEngine, Bag[Row]]:
    """Maintain a query on the local engine, over some quads."""
    engine = LocalEngine(lambda: quads)
    return engine, engine.register(query, limit=DEFAULT_LIMIT, environment=environment).result()


def local_changes(queries: Iterable[tuple[Query, Environment]], quads: list[Quad], delta: Delta) -> list[Bag[Row]]:
    """Return what a change does to the results of some queries over some quads."""
    engine = LocalEngine(lambda: quads)
    views = engine.register_all(queries)
    changes = {view: view.changed(rows) for view, rows in engine.apply(delta)}
    for view in views:
        if view.failed is not None:
            raise view.failed
    return [changes.get(view, Bag()) for view in views]


def read_change(batches: Iterator[pa.RecordBatch]) -> tuple[list[Quad], Delta]:
    """Read old quads, which have weight 0, and the change of them."""
    quads: list[Quad] = []
    changed: dict[int, list[Quad]] = {1: [], -1: []}
    for batch in batches:
        weights = batch.column(WEIGHT).to_pylist()
        for quad, weight in zip(quads_of(batch), weights, strict=True):
            (changed[weight] if weight else quads).append(quad)
    return quads, Delta(frozenset(changed[1]), frozenset(changed[-1]))
