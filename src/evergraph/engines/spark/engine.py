"""The Spark engine: standing queries over a table of quads, batch by batch."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evergraph.engines.spark.compile import PlanFrames
from evergraph.engines.spark.frames import WEIGHT, Frame, sum_of
from evergraph.engines.spark.islands import Island
from evergraph.engines.spark.relations import Relations, Statistics, Version
from evergraph.engines.spark.rows import QUAD, spark_schema
from evergraph.engines.spark.views import SparkView
from evergraph.sparql.algebra import Query

SEQUENCE = "sequence"


class Quads(Protocol):
    """The quads that are there now."""

    def read(self, spark: SparkSession) -> DataFrame:
        """Return them, each once."""
        ...


class Way(StrEnum):
    """How a view is brought up to date."""

    INCREMENTAL = "incremental"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class Guess(Statistics):
    """Statistics of a table that has none."""

    size: float = 1e6

    def rows(self, predicate: str | None) -> float:
        """Take a predicate for a tenth of all."""
        return self.size if predicate is None else self.size / 10

    def fan_out(self, predicate: str | None, position: str) -> float:
        """Take few quads for one subject, and more for one object."""
        return 4.0 if position == "subject" else 16.0


class SparkEngine:
    """Maintains views over a table of quads. One batch at a time: `exact`, `deltas`, then `release`."""

    def __init__(
        self, spark: SparkSession, quads: Quads, queries: Mapping[str, Query], *, way: Way | None = None
    ) -> None:
        self._spark = spark
        self._quads = quads
        self._way = way
        self.views = {name: SparkView(name, query) for name, query in queries.items()}
        self._kept: list[DataFrame] = []

    def exact(self, requested: DataFrame) -> DataFrame:
        """Return what requested changes change in the end: for each quad the last one counts, an addition last."""
        last = sf.max(sf.struct(SEQUENCE, WEIGHT))[WEIGHT].alias(WEIGHT)
        wanted = requested.groupBy(*QUAD).agg(last)
        present = self._quads.read(self._spark).select(*QUAD)
        known = present.join(sf.broadcast(wanted.select(*QUAD)), list(QUAD), "left_semi").withColumn("there", sf.lit(1))
        both = wanted.join(known, list(QUAD), "left")
        changes = sf.when(sf.col("there").isNull(), sf.col(WEIGHT) > 0).otherwise(sf.col(WEIGHT) < 0)
        return self._store(both.where(changes).select(*QUAD, WEIGHT))

    def initial(self, name: str) -> DataFrame:
        """Return the whole result of a view, as it is now."""
        view = self.views[name]
        nothing = self._spark.createDataFrame([], spark_schema(QUAD))
        relations = Relations(self._quads.read(self._spark), nothing, 0, Guess())
        if view.island is not None:
            return self._named(view, self._island(view, relations, changes=False))
        frames = PlanFrames(self._spark, relations, view.environment, self._keep)
        return self._named(view, frames.rows(view.plan, Version.OLD).consolidated())

    def deltas(self, delta: DataFrame) -> dict[str, DataFrame]:
        """Return for each view how an exact change of the quads changes its result; the quads are still the old."""
        size = float(delta.count())
        relations = Relations(self._quads.read(self._spark), delta, size, Guess())
        relations.count(pattern for view in self.views.values() for pattern in view.patterns)
        return {name: self._named(view, self._delta(view, relations)) for name, view in self.views.items()}

    def release(self) -> None:
        """Give back what was kept for the last batch."""
        for frame in self._kept:
            frame.unpersist()
        self._kept = []

    @contextmanager
    def batch(self) -> Iterator["SparkEngine"]:
        """Release at the end, come what may."""
        try:
            yield self
        finally:
            self.release()

    def _delta(self, view: SparkView, relations: Relations) -> Frame:
        if not any(relations.matches(pattern) for pattern in view.patterns):
            return self._empty(view)
        if view.island is not None:
            return self._island(view, relations, changes=True)
        frames = PlanFrames(self._spark, relations, view.environment, self._keep)
        if self._way is Way.DIRECT:
            after, before = (frames.rows(view.plan, version) for version in (Version.NEW, Version.OLD))
            return sum_of([after, before.times(-1)]).consolidated()
        delta = frames.delta(view.plan)
        return self._empty(view) if delta is None else delta.consolidated()

    def _island(self, view: SparkView, relations: Relations, *, changes: bool) -> Frame:
        island = Island(view.query, view.environment, len(view.variables))
        schema = spark_schema([f"c{number}" for number in range(len(view.variables))])
        quads = relations.quads(view.patterns).coalesce(1)
        data = quads.mapInArrow(island.changes if changes else island.rows, schema)
        return Frame(view.variables, data, 0)

    def _empty(self, view: SparkView) -> Frame:
        schema = spark_schema([f"c{number}" for number in range(len(view.variables))])
        return Frame(view.variables, self._spark.createDataFrame([], schema), 0)

    @staticmethod
    def _named(view: SparkView, frame: Frame) -> DataFrame:
        names = [sf.col(f"c{number}").alias(name) for number, name in enumerate(view.columns)]
        return frame.data.select(*names, WEIGHT)

    def _keep(self, frame: Frame) -> Frame | None:
        data = self._store(frame.data)
        rows = data.count()
        return replace(frame, data=data, rows=rows) if rows else None

    def _store(self, data: DataFrame) -> DataFrame:
        kept = data.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        return kept
