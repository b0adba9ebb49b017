"""Shares: what a large change does to views that fall apart by the values of a variable (`evergraph.plan.centres`).

The quads that a view can look at are shuffled by the value of its centre, and every task hands its share to the local
engine, with the part of the change that belongs to it. Of the old quads only those move that have a value which the
change touches. Views whose quads go to the same places share the shuffle, and the engine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, StructField, StructType

from evergraph.engines.local.dictionary import Dictionary, ZSet
from evergraph.engines.local.engine import LocalEngine
from evergraph.engines.local.pauses import undisturbed
from evergraph.engines.spark.islands import read_change
from evergraph.engines.spark.relations import Relations, any_pattern
from evergraph.engines.spark.rows import QUAD, WEIGHT, arrow_schema, spark_schema
from evergraph.engines.spark.views import SparkView
from evergraph.plan.centres import ANY, Places, places_of
from evergraph.plan.nodes import QuadPattern
from evergraph.sparql.algebra import Query
from evergraph.sparql.expressions import Environment
from evergraph.terms import term_text

VIEW = "view"
"""The column that tells whose row it is, in a frame with the changes of several views."""
_KEY = "_key"
_SHARE = 200_000
"""How many quads a share may have, about."""
_MOST_SHARES = 4096
_MOST_HASHES = 2_000_000
"""Up to so many hashes of values are sent to every task."""


@dataclass(frozen=True)
class Company:
    """Views whose quads go to the same places, so that they can share a task."""

    views: tuple[SparkView, ...]
    places: Places

    @property
    def patterns(self) -> tuple[QuadPattern, ...]:
        """What the views look at."""
        return tuple(dict.fromkeys(pattern for view in self.views for pattern in view.patterns))


def companies(views: Sequence[SparkView]) -> list[Company]:
    """Put views with centres together as far as their quads go to the same places."""
    found: list[Company] = []
    for view in views:
        for number, company in enumerate(found):
            places = places_of(_placed((*company.views, view)))
            if places is not None:
                found[number] = Company((*company.views, view), places)
                break
        else:
            places = places_of(_placed((view,)))
            assert places is not None
            found.append(Company((view,), places))
    return found


def _placed(views: Sequence[SparkView]) -> Iterator[tuple[QuadPattern, frozenset[int]]]:
    for view in views:
        assert view.centre is not None
        yield from view.centre.patterns


def shared_changes(views: Sequence[SparkView], quads: DataFrame, changes: DataFrame, relations: Relations) -> DataFrame:
    """Return how the results of views with centres change: the number of the view in `VIEW`, its columns, the weight.

    Rows of different shares of one view may be the same: they are not added up.
    """
    numbers = {view.name: number for number, view in enumerate(views)}
    width = max(len(view.variables) for view in views)
    parts = [_changes_of(company, numbers, width, quads, changes, relations) for company in companies(views)]
    return reduce(DataFrame.unionAll, parts)


def _changes_of(
    company: Company,
    numbers: Mapping[str, int],
    width: int,
    quads: DataFrame,
    changes: DataFrame,
    relations: Relations,
) -> DataFrame:
    wanted, key = any_pattern(company.patterns), _key(company.places)
    changed = changes.where(wanted).withColumn(_KEY, key)
    old = quads.select(*QUAD).where(wanted).withColumn(_KEY, key)
    touched = sum(relations.matching[pattern] for pattern in company.patterns)
    hashes = changed.select(sf.xxhash64(_KEY).alias("_hash")).distinct()
    near = old.withColumn("_hash", sf.xxhash64(_KEY)).join(
        sf.broadcast(hashes) if touched <= _MOST_HASHES else hashes, "_hash", "left_semi"
    )
    rows = near.select(*QUAD, sf.lit(0).cast("long").alias(WEIGHT), _KEY).unionAll(changed.select(*QUAD, WEIGHT, _KEY))
    tasks = _tasks(company, relations, touched, changes.sparkSession.sparkContext.defaultParallelism)
    share = Share(tuple((numbers[view.name], view.query, view.environment) for view in company.views), width)
    return rows.repartition(tasks, _KEY).drop(_KEY).mapInArrow(share.changes, spark_columns(width))


def spark_columns(width: int) -> StructType:
    """Return the columns of changes of several views."""
    return StructType([StructField(VIEW, IntegerType(), False), *spark_schema([f"c{n}" for n in range(width)])])


def _key(places: Places) -> Column:
    """Return the column that has the value of the centre."""
    if ANY in places:
        return sf.col(QUAD[places[ANY]])
    chosen = sf.lit(None).cast("string")
    for place in sorted(set(places.values())):
        predicates = [text for text, other in places.items() if other == place]
        chosen = sf.when(sf.col("predicate").isin(predicates), sf.col(QUAD[place])).otherwise(chosen)
    return chosen


def _tasks(company: Company, relations: Relations, touched: float, least: int) -> int:
    """Choose how many shares there are: as many as tasks at least, and more if they would be large."""
    near = sum(_near(pattern, company.places, relations, touched) for pattern in company.patterns)
    return int(min(_MOST_SHARES, max(least, -(-(near + touched) // _SHARE))))


def _near(pattern: QuadPattern, places: Places, relations: Relations, touched: float) -> float:
    """Estimate how many old quads of a pattern have a value that is touched."""
    predicate = None if ANY in places else term_text(pattern.predicate)  # type: ignore[arg-type]
    rows = relations.statistics.rows(predicate)
    place = QUAD[places[ANY if ANY in places else predicate]]
    return min(rows, touched * relations.statistics.fan_out(predicate, place)) if place != "graph" else rows


@dataclass(frozen=True)
class Share:
    """What a task does: the local engine maintains some queries, each with a number, over the quads that come in."""

    queries: tuple[tuple[int, Query, Environment], ...]
    width: int

    def changes(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return how the results change with the quads whose weight is not 0."""
        with undisturbed():
            quads, delta = read_change(batches)
            if not delta:
                return
            engine = LocalEngine(lambda: quads)
            registered = engine.register_all([(query, environment) for _, query, environment in self.queries])
            views = {view: number for view, (number, _, _) in zip(registered, self.queries, strict=True)}
            changes = engine.apply(delta)
            for view in views:
                if view.failed is not None:
                    raise view.failed
            texts = _Texts(engine.dictionary)
            for view, rows in changes:
                yield self._batch(views[view], rows, len(view.variables), texts)
            for view in views:
                engine.remove(view)  # the collector would have to look at all that they keep

    def _batch(self, number: int, rows: ZSet, width: int, texts: "_Texts") -> pa.RecordBatch:
        columns = [pa.array([texts[row[place]] for row in rows], pa.string()) for place in range(width)]
        columns += [pa.nulls(len(rows), pa.string())] * (self.width - width)
        return pa.RecordBatch.from_arrays(
            [pa.array([number] * len(rows), pa.int32()), *columns, pa.array(list(rows.values()), pa.int64())],
            schema=pa.schema([(VIEW, pa.int32()), *arrow_schema([f"c{place}" for place in range(self.width)])]),
        )


class _Texts(dict[int, str | None]):
    """The texts of terms by their ids, each written once."""

    def __init__(self, dictionary: Dictionary) -> None:
        super().__init__()
        self._terms = dictionary.terms

    def __missing__(self, number: int) -> str | None:
        term = self._terms[number]
        text = self[number] = None if term is None else term_text(term)
        return text
