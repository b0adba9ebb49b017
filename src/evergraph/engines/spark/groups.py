"""Grouping of frames: weights are added up in the JVM, the aggregates of each group computed in Python."""

from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from evergraph.engines.spark.expressions import Columns, Expressions
from evergraph.engines.spark.frames import WEIGHT, Frame
from evergraph.engines.spark.rows import term_of
from evergraph.plan import nodes
from evergraph.sparql.aggregates import aggregate
from evergraph.sparql.algebra import Aggregate, AggregateFunction
from evergraph.sparql.values import integer
from evergraph.terms import term_text

_COUNTED = ""
"""Stands for every value that is only counted: it is no term."""


def group(plan: nodes.Group, frame: Frame, expressions: Expressions) -> Frame:
    """Return a row for each group of a bag; without keys, one row even of nothing."""
    columns = {variable: frame.column(variable) for variable in frame.variables}
    definitions = [definition for _, definition in plan.aggregates]
    values = [_value(one, columns, expressions) for one in definitions] or [sf.lit(_COUNTED)]
    entries = sf.array(*(sf.struct(sf.lit(n).alias("a"), value.alias("v")) for n, value in enumerate(values)))
    keys = [f"c{n}" for n in range(len(plan.keys))]
    chosen = [frame.column(key).alias(name) for key, name in zip(plan.keys, keys, strict=True)]
    flat = frame.data.select(*chosen, sf.explode(entries).alias("e"), WEIGHT).select(*keys, "e.a", "e.v", WEIGHT)
    counted = flat.groupBy(*keys, "a", "v").agg(sf.sum(WEIGHT).alias("w")).where("w != 0")
    bags = counted.groupBy(*keys).agg(sf.collect_list(sf.struct("a", "v", "w")).alias("bag"))
    results = bags.withColumn("results", _results(definitions, sf.col("bag")))
    made = [sf.col("results")[n].alias(f"c{len(keys) + n}") for n in range(len(definitions))]
    return Frame(plan.variables, results.select(*keys, *made, sf.lit(1).cast("long").alias(WEIGHT)), frame.rows)


def _value(definition: Aggregate, columns: Columns, expressions: Expressions) -> Column:
    if definition.expression is None:
        whole = sf.to_json(sf.struct(*[column.alias(f"a{n}") for n, column in enumerate(columns.values())]))
        return whole if definition.distinct and columns else sf.lit(_COUNTED)
    value = expressions.value(definition.expression, columns)
    if definition.function is AggregateFunction.COUNT and not definition.distinct:
        return sf.when(value.isNotNull(), sf.lit(_COUNTED))
    return value


def _results(definitions: list[Aggregate], bags: Column) -> Column:
    def run(column: pa.Array) -> pa.Array:
        return pa.array([_row(definitions, bag) for bag in column.to_pylist()], pa.list_(pa.string()))

    return cast(Column, cast(Any, sf).arrow_udf(run, "array<string>")(bags))


def _row(definitions: list[Aggregate], bag: list[dict[str, object]]) -> list[str | None]:
    parts: list[list[tuple[str | None, int]]] = [[] for _ in definitions]
    for entry in bag:
        if parts:
            parts[cast(int, entry["a"])].append((cast(str | None, entry["v"]), cast(int, entry["w"])))
    return [_aggregate(definition, part) for definition, part in zip(definitions, parts, strict=True)]


def _aggregate(definition: Aggregate, values: list[tuple[str | None, int]]) -> str | None:
    if definition.function is AggregateFunction.COUNT:
        weights = [weight for value, weight in values if value is not None]
        return term_text(integer(len(weights) if definition.distinct else sum(weights)))
    terms = ((None if value is None else term_of(value), weight) for value, weight in values)
    result = aggregate(definition, terms)
    return None if result is None else term_text(result)
