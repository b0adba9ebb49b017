"""``evergraph.run``: a pipeline from its definition to its end. Spark is only imported when it runs."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeAlias

from evergraph.pipeline.definition import Pipeline, load_pipeline

Report: TypeAlias = Callable[[dict[str, object]], None]
"""Is told about every batch that was committed."""


def run(
    path: str | Path | Pipeline,
    follow: bool = False,
    spark_master: str | None = None,
    *,
    report: Report | None = None,
) -> list[dict[str, object]]:
    """Run a pipeline until its source is exhausted, or with ``follow`` until it is interrupted.

    A run goes on where the last one was, however that ended. SIGINT and SIGTERM end it after the batch at hand.

    :param report: is told about every batch after it was committed; without it, the reports are returned.
    :returns: a report for every committed batch: its number, the sequence reached, what was inserted and deleted, what
        each view gained and lost, and how long it took. With ``report``, an empty list.
    """
    from evergraph.engines.spark.session import open_session
    from evergraph.pipeline.runner import Runner

    pipeline = path if isinstance(path, Pipeline) else load_pipeline(path)
    spark = open_session(spark_master or pipeline.master, memory=pipeline.memory, conf=pipeline.conf)
    reports: list[dict[str, object]] = []
    runner = Runner(pipeline, spark, report or reports.append, follow=follow)
    with stopped_by_signals(runner.stop):
        runner.run()
    return reports


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
