"""The Spark engine: standing queries over a table of quads, batch by batch.

There are five ways to bring a view up to date, and all give the same change:

* **following**: what a small change can touch is fetched, and the local engine does the rest (`following`);
* **whole**: all that a view can look at is fetched, if it is little, and the local engine does the rest (`whole`);
* **shares**: what a large change can touch is divided among the tasks, each with a local engine, for views that fall
  apart by the values of a variable (`shares`);
* **incremental**: the plan as DataFrames over the weights of the change (`compile`);
* **direct**: the plan from scratch before and after, and the difference.

Views that only the local engine can maintain run there as a whole, in one task (`islands`).
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from evergraph.engines.spark.clearing import without_marks
from evergraph.engines.spark.compile import PlanFrames
from evergraph.engines.spark.costs import Choice, Costs, Quads, Sizes, Way
from evergraph.engines.spark.following import SEQUENCE, SmallChange, follow
from evergraph.engines.spark.frames import WEIGHT, Frame, sum_of, with_sane_size
from evergraph.engines.spark.islands import Island
from evergraph.engines.spark.relations import Relations, Version
from evergraph.engines.spark.rows import QUAD, arrow_schema, spark_schema
from evergraph.engines.spark.session import forget_broadcasts
from evergraph.engines.spark.shares import VIEW, shared_changes
from evergraph.engines.spark.vicinity import TooMuch
from evergraph.engines.spark.views import SparkView
from evergraph.engines.spark.whole import fetched, small_views, whole_changes, whole_results
from evergraph.sparql.algebra import Query

_MOST_HASHES = 2_000_000
"""Up to so many hashes of quads are sent to every task."""
_LARGE = 50_000
"""From so many changed quads on, what a batch has broadcast is worth the time to forget it."""
_LAST, _HASH, _THERE = "_last", "_hash", "_there"
_NEVER = -1
"""Stands for the number of a request that nobody made."""
FEW = 20_000
"""Up to so many requested quads, a change is followed."""


class SparkEngine:
    """Maintains views over a table of quads. One batch at a time: `exact`, `deltas`, then `release`.

    ``way`` overrides the choice between the ways, for tests and measurements.
    """

    def __init__(
        self, spark: SparkSession, quads: Quads, queries: Mapping[str, Query], *, way: Way | None = None
    ) -> None:
        self._spark = spark
        self._quads = quads
        self._way = way
        self._kept: list[DataFrame] = []
        self._small: tuple[pa.Table, SmallChange] | None = None
        self._size = 0.0
        self.costs = Costs()
        self.counts: dict[str, tuple[int, int]] = {}
        """How many rows came and went in the batch at hand, of views of which that is known without another look."""
        self.views = {name: SparkView(name, query) for name, query in queries.items()}
        for view in self.views.values():
            view.plan  # noqa: B018 - what cannot be maintained is refused now

    def exact(self, requested: DataFrame, *, clears: bool = False) -> DataFrame | pa.Table:
        """Return what requested changes change in the end: for each quad the last one counts, an addition last.

        A small change comes as an Arrow table.

        :param clears: the first change clears something (`clearing`).
        """
        if clears:
            requested = without_marks(requested, self._quads.read(self._spark)).localCheckpoint()
        if self._way in (None, Way.FOLLOWING):
            rows = requested.select(*QUAD, SEQUENCE, WEIGHT).limit(FEW + 1).toArrow()
            if rows.num_rows <= FEW:
                try:
                    return self._follow(rows)
                except TooMuch:
                    pass
        return self._exact(requested).localCheckpoint(eager=False)

    def _exact(self, requested: DataFrame) -> DataFrame:
        """Compare the last request for each quad with what is there.

        Numbers are compared where that will do: the last request is the greatest number, and of the quads that are
        there only those move whose hash is that of a requested one.
        """
        number = 2 * sf.col(SEQUENCE) + (sf.col(WEIGHT) > 0).cast("long")
        wanted = requested.select(*QUAD, number.alias(_LAST), sf.lit(0).alias(_THERE)).localCheckpoint(eager=False)
        hashes = wanted.select(sf.xxhash64(*QUAD).alias(_HASH))
        few = wanted.count() <= _MOST_HASHES
        present = self._quads.read(self._spark).select(*QUAD).withColumn(_HASH, sf.xxhash64(*QUAD))
        near = present.join(sf.broadcast(hashes) if few else hashes, _HASH, "left_semi")
        both = wanted.unionAll(near.select(*QUAD, sf.lit(_NEVER).cast("long"), sf.lit(1)))
        known = both.groupBy(*QUAD).agg(sf.max(_LAST).alias(_LAST), sf.max(_THERE).alias(_THERE))
        added = sf.pmod(sf.col(_LAST), sf.lit(2))
        changed = known.where((sf.col(_LAST) != _NEVER) & (added == 1 - sf.col(_THERE)))
        return changed.select(*QUAD, (2 * added - 1).alias(WEIGHT))

    def initial(self, name: str) -> DataFrame:
        """Return the whole result of a view, as it is now."""
        view = self.views[name]
        nothing = self._spark.createDataFrame([], spark_schema(QUAD))
        relations = Relations(self._quads.read(self._spark), nothing, 0, self._sizes())
        if self._way in (None, Way.WHOLE) and small_views([view], relations):
            rows = fetched([view], relations)
            found = {} if rows is None else whole_results([view], rows)
            if name in found:
                return self._spark.createDataFrame(found[name], spark_schema(view.columns))
        if view.island is not None:
            return _named(view, self._island(view, relations, changes=False))
        frames = PlanFrames(self._spark, relations, view.environment, self._keep)
        return _named(view, frames.rows(view.plan, Version.OLD).consolidated())

    def deltas(self, delta: DataFrame | pa.Table) -> dict[str, DataFrame | pa.Table]:
        """Return for each view how an exact change of the quads changes its result; the quads are still the old.

        What is small comes as an Arrow table; what comes as a frame is computed already, and kept until `release`.
        """
        found: dict[str, DataFrame | pa.Table] = {}
        small = self._small[1] if self._small is not None and self._small[0] is delta else None
        if small is not None:
            found = self._followed(small)
        rest = [view for name, view in self.views.items() if name not in found]
        if not rest:
            return found
        changes = delta if isinstance(delta, DataFrame) else self._spark.createDataFrame(delta, spark_schema(QUAD))
        self._size = float(changes.count())
        relations = Relations(self._quads.read(self._spark), changes, self._size, self._sizes(), self._store)
        relations.count(pattern for view in rest for pattern in view.patterns)
        found |= self._shared([view for view in rest if self._is_shared(view, relations)], changes, relations)
        found |= self._whole([view for view in rest if view.name not in found], relations)
        return found | {view.name: self._delta(view, relations) for view in rest if view.name not in found}

    def release(self) -> None:
        """Give back what was kept for the last batch."""
        for frame in self._kept:
            frame.unpersist()
        self._kept = []
        self._small = None
        self.counts = {}
        if self._size >= _LARGE:
            forget_broadcasts(self._spark)
        self._size = 0.0

    @contextmanager
    def batch(self) -> Iterator["SparkEngine"]:
        """Release at the end, come what may."""
        try:
            yield self
        finally:
            self.release()

    def _follow(self, requested: pa.Table) -> pa.Table:
        small = follow(requested, self._quads.read(self._spark), list(self.views.values()), self._sizes())
        self._small = (small.table, small)
        return self._small[0]

    def _followed(self, small: SmallChange) -> dict[str, DataFrame | pa.Table]:
        views = [view for view in self.views.values() if view.name in small.followed]
        begin = time.perf_counter()
        tables = small.changes(views)
        seconds = (time.perf_counter() - begin) / max(1, len(views))
        for view in views:
            self.costs.record(Choice(view.name, len(small.delta), 0, 0, Way.FOLLOWING), seconds)
        return {
            view.name: table.rename_columns([*view.columns, WEIGHT]) for view, table in zip(views, tables, strict=True)
        }

    def _is_shared(self, view: SparkView, relations: Relations) -> bool:
        if self._way not in (None, Way.SHARES) or view.centre is None:
            return False
        return any(relations.matches(pattern) for pattern in view.patterns)

    def _shared(
        self, views: list[SparkView], changes: DataFrame, relations: Relations
    ) -> dict[str, DataFrame | pa.Table]:
        """Let the tasks maintain their shares of views, of all in one pass."""
        if not views:
            return {}
        begin = time.perf_counter()
        kept = self._store(shared_changes(views, self._quads.read(self._spark), changes, relations))
        counts = {row[0]: (row[1], row[2]) for row in kept.groupBy(VIEW).agg(*_came_and_went()).collect()}  # one a view
        seconds = (time.perf_counter() - begin) / len(views)
        found: dict[str, DataFrame | pa.Table] = {}
        for number, view in enumerate(views):
            self.costs.record(Choice(view.name, round(self._size), 0, 0, Way.SHARES), seconds)
            if number not in counts:
                found[view.name] = arrow_schema(view.columns).empty_table()
                continue
            frame = Frame(view.variables, kept.where(sf.col(VIEW) == number), sum(counts[number]))
            if view.centre is not None and not view.centre.is_held:  # shares may have the same row
                frame = replace(frame, data=frame.consolidated().data.localCheckpoint(eager=False))
                ((came, went),) = frame.data.agg(*_came_and_went()).collect()
                counts[number] = (came or 0, went or 0)
            self.counts[view.name] = counts[number]
            found[view.name] = _named(view, frame)
        return found

    def _whole(self, views: list[SparkView], relations: Relations) -> dict[str, pa.Table]:
        """Maintain views here that can look at few quads."""
        chosen = small_views(views, relations) if self._way in (None, Way.WHOLE) else []
        if not chosen:
            return {}
        begin = time.perf_counter()
        rows = fetched(chosen, relations)
        found = {} if rows is None else whole_changes(chosen, rows)
        seconds = (time.perf_counter() - begin) / len(chosen)
        for name in found:
            self.costs.record(Choice(name, round(self._size), 0, 0, Way.WHOLE), seconds)
        return found

    def _delta(self, view: SparkView, relations: Relations) -> DataFrame | pa.Table:
        if not any(relations.matches(pattern) for pattern in view.patterns):
            return arrow_schema(view.columns).empty_table()
        if view.island is not None:
            rows = self._keep(self._island(view, relations, changes=True))
            return arrow_schema(view.columns).empty_table() if rows is None else _named(view, rows)
        choice = self.costs.choose(view, relations, self._way)
        begin = time.perf_counter()
        frames = PlanFrames(self._spark, relations, view.environment, self._keep)
        if choice.chosen is Way.DIRECT:
            after, before = (frames.rows(view.plan, version) for version in (Version.NEW, Version.OLD))
            delta: Frame | None = sum_of([after, before.times(-1)])
        else:
            delta = frames.delta(view.plan)
        kept = None if delta is None else self._keep(delta.consolidated())
        self.costs.record(choice, time.perf_counter() - begin)
        return arrow_schema(view.columns).empty_table() if kept is None else _named(view, kept)

    def _island(self, view: SparkView, relations: Relations, *, changes: bool) -> Frame:
        island = Island(view.query, view.environment, len(view.variables))
        schema = spark_schema([f"c{number}" for number in range(len(view.variables))])
        quads = relations.quads(view.patterns).coalesce(1)
        data = quads.mapInArrow(island.changes if changes else island.rows, schema)
        return Frame(view.variables, data, 0)

    def _sizes(self) -> Sizes:
        return Sizes(self._quads.statistics(self._spark))

    @staticmethod
    def _keep(frame: Frame) -> Frame | None:
        """Compute a frame once. A checkpoint, unlike a cache, does not carry the plans of all that was kept before."""
        data = with_sane_size(frame.data.localCheckpoint(eager=False))
        rows = data.count()
        return replace(frame, data=data, rows=rows) if rows else None

    def _store(self, data: DataFrame) -> DataFrame:
        kept = data.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        return kept


def _named(view: SparkView, frame: Frame) -> DataFrame:
    names = [sf.col(f"c{number}").alias(name) for number, name in enumerate(view.columns)]
    return frame.data.select(*names, WEIGHT)


def _came_and_went() -> list[Column]:
    """Sum up the weights of rows that came, and of rows that went."""
    return [sf.sum(sf.greatest(sign * sf.col(WEIGHT), sf.lit(0))) for sign in (1, -1)]
