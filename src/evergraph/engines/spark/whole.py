"""Whole views: what can look at few quads is fetched, and maintained by the local engine, in this process.

A plan of DataFrames costs seconds, for planning alone, whatever the data. Where a view can look at few quads, all of
them cost less than that.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from evergraph.delta import Bag
from evergraph.engines.local.engine import LocalEngine
from evergraph.engines.local.pauses import undisturbed
from evergraph.engines.spark.islands import batch_of, read_change
from evergraph.engines.spark.relations import Relations, predicate_of
from evergraph.engines.spark.rows import WEIGHT
from evergraph.engines.spark.views import SparkView
from evergraph.errors import StateLimit
from evergraph.plan.nodes import QuadPattern
from evergraph.sparql.expressions import Row

MOST_QUADS = 50_000
"""How many quads are fetched at most."""
_MOST_ENTRIES = 500_000
"""How many entries of state a view may need here, such as rows of its result; with more, it is left to Spark."""


def small_views(views: Iterable[SparkView], relations: Relations) -> list[SparkView]:
    """Choose views that together look at few quads, by what is known; those that look at the fewest come first."""
    chosen: list[SparkView] = []
    patterns: dict[QuadPattern, float] = {}
    all_quads = relations.statistics.rows(None) + relations.size  # patterns may match the same ones
    for view in sorted(views, key=lambda one: sum(_sizes(one, relations).values())):
        patterns |= _sizes(view, relations)
        if min(all_quads, sum(patterns.values())) > MOST_QUADS:
            break
        chosen.append(view)
    return chosen


def _sizes(view: SparkView, relations: Relations) -> dict[QuadPattern, float]:
    return {
        pattern: relations.statistics.rows(predicate_of(pattern)) + relations.matching.get(pattern, 0.0)
        for pattern in view.patterns
    }


def fetched(views: Sequence[SparkView], relations: Relations) -> pa.Table | None:
    """Fetch all quads that views can look at, and the changes of them; None if they are not few after all."""
    patterns = dict.fromkeys(pattern for view in views for pattern in view.patterns)
    rows = relations.quads(patterns).limit(MOST_QUADS + 1).toArrow()
    return rows if rows.num_rows <= MOST_QUADS else None


def whole_results(views: Sequence[SparkView], rows: pa.Table) -> dict[str, pa.Table]:
    """Return the results of views over quads with weight 0; those are left out that need too much for one process."""
    return _maintained(views, rows, changes=False)


def whole_changes(views: Sequence[SparkView], rows: pa.Table) -> dict[str, pa.Table]:
    """Return how the results change with the quads that have another weight."""
    return _maintained(views, rows, changes=True)


def _maintained(views: Sequence[SparkView], rows: pa.Table, *, changes: bool) -> dict[str, pa.Table]:
    with undisturbed():
        quads, delta = read_change(iter(rows.to_batches()))
        engine = LocalEngine(lambda: quads)
        registered = {}
        for view in views:
            try:
                local = engine.register(view.query, limit=_MOST_ENTRIES, environment=view.environment)
            except StateLimit:
                continue
            registered[local] = view
        if not changes:
            return {view.name: _table(view, local.result()) for local, view in registered.items()}
        found = {local: local.changed(effect) for local, effect in engine.apply(delta)}
        return {
            view.name: _table(view, found.get(local, Bag()))
            for local, view in registered.items()
            if local.failed is None
        }


def _table(view: SparkView, rows: Bag[Row]) -> pa.Table:
    batch = batch_of(rows, len(view.variables))
    return pa.Table.from_batches([batch]).rename_columns([*view.columns, WEIGHT])
