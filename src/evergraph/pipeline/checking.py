"""Comparing the tables of a pipeline with a run of its queries from scratch."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evergraph.engines.spark.costs import Way
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.net import consolidated
from evergraph.engines.spark.rows import WEIGHT, spark_schema
from evergraph.engines.spark.tables import QuadTable, WeightedTable
from evergraph.errors import UsageError
from evergraph.pipeline.definition import Pipeline, TableSink, ViewDefinition
from evergraph.pipeline.linksets import LinkedView
from evergraph.pipeline.state import State


def compare(pipeline: Pipeline, spark: SparkSession) -> dict[str, object]:
    """Compare each view that has a table; the quads are those of the last committed batch.

    ``added`` counts what a table has too much, ``removed`` what it lacks; ``unchecked`` names the views without one.
    """
    tables = [(view, sink) for view in pipeline.views for sink in view.sinks if isinstance(sink, TableSink)]
    if not tables:
        raise UsageError("no view of the pipeline has a table", hint="give one a sink of kind 'table'")
    if not QuadTable.exists(pipeline.state / "quads"):
        raise UsageError(f"{pipeline.state} holds no quads", hint="run the pipeline first")
    state = State(pipeline)
    try:
        quads = QuadTable(state.quads)
        engine = SparkEngine(
            spark, quads, {name: one for view, _ in tables for name, one in view.queries().items()}, way=Way.DIRECT
        )
        state.remember(engine)
        report: dict[str, object] = {}
        for view, sink in tables:
            with engine.batch():
                report[view.name] = _difference(spark, sink.path, *_expected(view, spark, engine))
        ok = all(one == {"added": 0, "removed": 0} for one in report.values())
        unchecked = [view.name for view in pipeline.views if view.name not in report]
        rest = {"unchecked": unchecked} if unchecked else {}
        return {"ok": ok, "batch": quads.committed(pipeline.name), "views": report, **rest}
    finally:
        state.close()


def _expected(view: ViewDefinition, spark: SparkSession, engine: SparkEngine) -> tuple[DataFrame, tuple[str, ...]]:
    if view.linkset is None:
        return engine.initial(view.name), engine.views[view.name].columns
    linked = LinkedView(view, spark)
    linked.load(engine)
    return spark.createDataFrame(linked.result().rows, spark_schema(linked.columns)), linked.columns


def _difference(spark: SparkSession, path: Path, expected: DataFrame, columns: tuple[str, ...]) -> dict[str, int]:
    found = WeightedTable(path).read(spark).select(*columns, WEIGHT)
    lacking = expected.select(*columns, (-sf.col(WEIGHT)).alias(WEIGHT))
    wrong = consolidated(found.unionByName(lacking), columns)
    added, removed = (sf.sum(sf.greatest(sign * sf.col(WEIGHT), sf.lit(0))) for sign in (1, -1))
    sums = wrong.agg(added, removed).collect()[0]
    return {"added": int(sums[0] or 0), "removed": int(sums[1] or 0)}
