"""``evergraph.run``: a pipeline from its definition to its end. Spark is only imported when it runs."""

import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TypeAlias

from evergraph.pipeline.definition import Pipeline, ViewDefinition, load_pipeline
from evergraph.sources.feeds import Limit
from evergraph.sparql.algebra import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Report: TypeAlias = Callable[[dict[str, object]], None]
"""Is told about every batch that was committed."""


def run(
    path: str | Path | Pipeline,
    follow: bool = False,
    spark_master: str | None = None,
    *,
    report: Report | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> list[dict[str, object]]:
    """Run a pipeline until its source is exhausted, or with ``follow`` until it is interrupted.

    A run goes on where the last one was, however that ended. SIGINT and SIGTERM end it after the batch at hand. Spark
    is stopped at the end, unless it was running before.

    :param report: is told about every batch after it was committed; without it, the reports are returned.
    :param warn: is told about changes that are set aside because they cannot be read.
    :returns: a report for every committed batch: its number, the sequence reached, what was inserted and deleted, what
        each view gained and lost, and how long it took. With ``report``, an empty list.
    """
    from evergraph.pipeline.runner import Runner

    pipeline = path if isinstance(path, Pipeline) else load_pipeline(path)
    reports: list[dict[str, object]] = []
    with spark_for(pipeline, spark_master) as spark:
        runner = Runner(pipeline, spark, report or reports.append, follow=follow, warn=warn)
        with stopped_by_signals(runner.stop):
            runner.run()
    return reports


def watch(
    query: Query,
    changes: Path,
    init: Iterable[Path] = (),
    spark_master: str | None = None,
    *,
    report: Report = lambda report: None,
) -> None:
    """Maintain one query on Spark, change by change, and print its changes as ``evergraph watch`` does."""
    from evergraph.pipeline.parts import Target
    from evergraph.pipeline.runner import Runner
    from evergraph.pipeline.sinks.rows import StandardOutput

    with tempfile.TemporaryDirectory(prefix="evergraph-") as folder:
        view = ViewDefinition("view", "", query, ())
        pipeline = Pipeline(
            "watch",
            Path(folder) / "state",
            changes.absolute(),
            tuple(path.absolute() for path in init),
            (view,),
            limit=Limit(changes=1),
        )
        with spark_for(pipeline, spark_master) as spark:
            runner = Runner(pipeline, spark, report)
            printer = StandardOutput(Path(folder), query, runner.variables("view"))
            runner.add(Target("view", printer))
            with stopped_by_signals(runner.stop):
                runner.run()


def check(path: str | Path, spark_master: str | None = None) -> dict[str, object]:
    """Compare the tables of a pipeline's views with a run of their queries from scratch, on Spark."""
    from evergraph.pipeline.checking import compare

    pipeline = load_pipeline(path)
    with spark_for(pipeline, spark_master) as spark:
        return compare(pipeline, spark)


@contextmanager
def spark_for(pipeline: Pipeline, master: str | None) -> "Iterator[SparkSession]":
    """Open Spark, and stop it at the end unless it was there before."""
    from evergraph.engines.spark.daemon import MODULE
    from evergraph.engines.spark.session import current_session, open_session, stop_session

    running = current_session() is not None
    conf = {"spark.python.daemon.module": MODULE, **pipeline.conf}
    spark = open_session(master or pipeline.master, memory=pipeline.memory, conf=conf)
    try:
        yield spark
    finally:
        if not running:
            stop_session(spark)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` on the first SIGINT or SIGTERM; a second one acts as it did before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for one, handler in before.items():
            signal.signal(one, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        restore()
        stop()

    for one in before:
        signal.signal(one, handle)
    try:
        yield
    finally:
        restore()
