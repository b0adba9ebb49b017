"""Slices of frames: every task keeps as many rows as the window may need, and one task puts them in order."""

from collections.abc import Callable, Iterator
from heapq import nsmallest
from typing import Any

import pyarrow as pa

from evergraph.engines.local.slices import Descending
from evergraph.engines.spark.expressions import evaluator
from evergraph.engines.spark.frames import Frame
from evergraph.engines.spark.rows import arrow_schema, spark_schema, term_of
from evergraph.plan import nodes
from evergraph.sparql.expressions import Environment
from evergraph.sparql.values import sort_key
from evergraph.terms import Variable

Row = tuple[str | None, ...]
Place = tuple[Any, ...]


def window(plan: nodes.Slice, frame: Frame, environment: Environment) -> Frame:
    """Return the rows of a bag that are in the window, in the order of the conditions, ties by their terms."""
    columns = [f"c{number}" for number in range(len(plan.variables))]
    places = _Places(plan, frame.variables, environment)
    data = frame.consolidated().data
    if plan.length is not None:
        data = data.mapInArrow(places.first, spark_schema(frame.columns()))
    data = data.coalesce(1).mapInArrow(places.windowed, spark_schema(columns))
    return Frame(plan.variables, data, frame.rows if plan.length is None else min(plan.length, frame.rows))


class _Places:
    """Where rows stand in the order of a slice."""

    def __init__(self, plan: nodes.Slice, variables: tuple[Variable, ...], environment: Environment) -> None:
        self._plan = plan
        self._columns = variables
        self._environment = environment

    def first(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Keep the rows of one task that may be in the window."""
        plan = self._plan
        assert plan.length is not None
        wanted = plan.start + plan.length
        place = self._place()
        kept: list[tuple[Place, Row, int]] = []
        for batch in batches:
            found = kept + [(place(row), row, weight) for row, weight in _rows(batch)]
            kept = nsmallest(wanted, found, key=lambda one: one[0]) if not plan.distinct else _first(found, wanted)
        yield _batch([row for _, row, _ in kept], [weight for _, _, weight in kept], len(self._columns))

    def windowed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Put all rows in order, and cut the window."""
        plan = self._plan
        place = self._place()
        weights: dict[Place, int] = {}
        for batch in batches:
            for row, weight in _rows(batch):
                key = place(row)
                weights[key] = weights.get(key, 0) + weight
        end = None if plan.length is None else plan.start + plan.length
        rows: dict[Row, int] = {}
        seen: set[Row] = set()
        position = 0
        for key in sorted(weights):
            row, weight = key[-1], weights[key]
            if plan.distinct:
                if row in seen:
                    continue
                seen.add(row)
                weight = 1
            begin, last = max(position, plan.start), position + weight
            last = last if end is None else min(last, end)
            if last > begin:
                rows[row] = rows.get(row, 0) + last - begin
            position += weight
            if end is not None and position >= end:
                break
        yield _batch(list(rows), list(rows.values()), len(plan.variables))

    def _place(self) -> Callable[[Row], Place]:
        plan, columns = self._plan, self._columns
        keys = [(evaluator(one.expression, columns, self._environment), one.descending) for one in plan.conditions]
        slots = [columns.index(one) if one in columns else None for one in plan.variables]

        def place(row: Row) -> Place:
            terms = tuple([None if text is None else term_of(text) for text in row])
            values = [(sort_key(value(terms)), descending) for value, descending in keys]
            projected = tuple([None if slot is None else row[slot] for slot in slots])
            ties = tuple([sort_key(None if slot is None else terms[slot]) for slot in slots])
            return (*(Descending(key) if descending else key for key, descending in values), ties, projected)

        return place


def _first(found: list[tuple[Place, Row, int]], wanted: int) -> list[tuple[Place, Row, int]]:
    """Keep the first place of each of the first rows: those that a distinct window can show."""
    kept: dict[Row, tuple[Place, Row, int]] = {}
    for one in sorted(found, key=lambda one: one[0]):
        if one[0][-1] not in kept:
            if len(kept) == wanted:
                break
            kept[one[0][-1]] = one
    return list(kept.values())


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Row, int]]:
    *columns, weights = [column.to_pylist() for column in batch.columns]
    rows = zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)
    return zip(rows, weights, strict=True)


def _batch(rows: list[Row], weights: list[int], width: int) -> pa.RecordBatch:
    schema = arrow_schema([f"c{number}" for number in range(width)])
    columns = [pa.array([row[number] for row in rows], pa.string()) for number in range(width)]
    return pa.RecordBatch.from_arrays([*columns, pa.array(weights, pa.int64())], schema=schema)
