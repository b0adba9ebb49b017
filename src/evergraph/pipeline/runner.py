"""Running a pipeline: from the source, through exact changes and views, to the sinks, exactly once.

The order makes it so. A batch is read, its exact change is computed against the table of quads, every view's change
from that, and every sink gets its part, in a way that may be repeated. **Last**, the exact change is appended to the
table of quads, under the number of the batch: only now it counts. Before that moment, a crash leaves the table as it
was, so that the same batch computes the same changes again; after it, the batch is known and skipped.
"""

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.rows import QUAD, WEIGHT, arrow_schema
from evergraph.engines.spark.stream import forget_plan, planned_end, read_changes
from evergraph.engines.spark.tables import SMALL, QuadTable
from evergraph.errors import EmptySource, EvergraphError
from evergraph.pipeline.definition import Pipeline, ViewDefinition, targets
from evergraph.pipeline.failures import lost_executor, told
from evergraph.pipeline.linksets import LinkedView
from evergraph.pipeline.outcomes import Outcome, outcome_of
from evergraph.pipeline.parts import Clock, Stopped, Target
from evergraph.pipeline.sinks import Databases, Flow, KeptInStep, Places, open_sink
from evergraph.pipeline.state import State
from evergraph.sources.feeds import Settings, open_feed, set_aside
from evergraph.terms import Variable

_COMPACT_EVERY = 20
_POLL = "100 milliseconds"
_MOST_THREADS = 4
_PATIENCE = 0.5
"""Seconds between looks for the first change."""
_ATTEMPTS = 4

Report = Callable[[dict[str, object]], None]


class Runner:
    """One run of a pipeline.

    :param report: is told about every batch after it was committed.
    :param warn: is told about changes that are set aside, before the batch counts that does without them.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        spark: SparkSession,
        report: Report,
        *,
        follow: bool = False,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._report = report
        self._warn = warn
        self._follow = follow
        self._failure: BaseException | None = None
        self._stopping = threading.Event()
        self._busy = threading.Lock()
        self._resources = ExitStack()
        self._databases = Databases()
        self._resources.callback(self._databases.close)
        try:
            self._has_changes()  # what is wrong with the source is told before Spark begins
            self._state = State(pipeline)
            self._resources.callback(self._state.close)
            self._table = self._open_table()
            self._engine = self._open_engine()
            self._linked = self._open_links()
            self._targets = list(self._open_targets())
            self._state.accept({target.key for target in self._targets})
        except (PySparkException, Py4JError) as error:
            self._resources.close()
            raise told(error) from None
        except BaseException:
            self._resources.close()
            raise

    def run(self) -> None:
        """Bring everything up to date; following a source, go on until `stop`."""
        try:
            self._load()
            self._load_links()
            self._begin_sinks()
            while not self._has_changes() and not self._stopping.wait(_PATIENCE):
                pass
            if not self._stopping.is_set():
                self._stream_or_finish()
            self._finish()
        except (PySparkException, Py4JError) as error:
            raise told(error) from None
        finally:
            self._resources.close()

    def _stream_or_finish(self) -> None:
        """Take in the changes; something wrong with one of them concerns none of those before it."""
        try:
            self._stream()
        except EvergraphError:
            with suppress(EvergraphError, PySparkException, Py4JError, OSError):
                self._finish()
            raise

    def _finish(self) -> None:
        committed = self._table.committed(self._pipeline.name) or 0
        for target in self._targets:
            target.writer.finish(committed)

    def _has_changes(self) -> bool:
        """Tell whether there is a source already; a folder that is followed may be empty at first."""
        try:
            open_feed(self._pipeline.changes)
        except EmptySource:
            if not self._follow:
                raise
            return False
        return True

    def _stream(self) -> None:
        """Take in the changes, batch by batch."""
        query = self._start()
        try:
            while not self._stopping.is_set() and not query.awaitTermination(1):
                pass
        except PySparkException:
            self._raise_failure()
            if self._failure is None:
                raise
        finally:
            with self._busy:
                query.stop()
        self._raise_failure()

    def variables(self, view: str) -> tuple[Variable, ...]:
        """Return what the columns of a view are."""
        return self._engine.views[view].variables

    def is_begun(self) -> bool:
        """Tell whether what there was before the first change has been taken in."""
        return self._table.committed(self._pipeline.name) is not None

    def rows(self, view: str) -> int:
        """Count the rows that a view has now."""
        with self._engine.batch():
            outcome = self._result(view)
            outcome.close()
        return outcome.added - outcome.removed

    def sequence(self) -> int:
        """Tell how many changes of the source count."""
        batch = self._table.committed(self._pipeline.name) or 0
        end = planned_end(self._state.checkpoint, batch - 1) if batch else None
        return int(end["sequence"]) if end else 0

    def add(self, target: Target) -> None:
        """Add a sink that only this run has."""
        self._targets.append(target)

    def stop(self) -> None:
        """End after the batch at hand; may be called from anywhere, signal handlers included."""
        self._stopping.set()

    def _raise_failure(self) -> None:
        if self._failure is not None and not isinstance(self._failure, Stopped):
            raise self._failure

    # --- opening

    def _open_table(self) -> QuadTable:
        """Open the table of quads, or make it; nothing of it counts before batch 0 does."""
        path = self._state.quads
        if QuadTable.exists(path):
            table = QuadTable(path)
            if table.committed(self._pipeline.name) is not None:
                return table
        shutil.rmtree(path, ignore_errors=True)
        shutil.rmtree(self._state.checkpoint, ignore_errors=True)
        return QuadTable.make(path)

    def _load(self) -> None:
        """Load what there is before the first change, unless that has been done before."""
        if self._table.committed(self._pipeline.name) is None:
            if self._pipeline.init:
                self._table.load(self._spark, self._pipeline.init, on_error="fail", keep_labels=True)
            with self._engine.batch():
                self._table.append(self._left_out(), app=self._pipeline.name, batch=0)
            if self._pipeline.left_out:
                self._table.compact(self._spark, whole=True)

    def _left_out(self) -> DataFrame | pa.Table:
        """Return what is taken away from the first dataset."""
        if not self._pipeline.left_out:
            return arrow_schema(QUAD).empty_table()
        found, kept = (self._triples(names) for names in (self._pipeline.left_out, self._pipeline.kept))
        gone = found.subtract(kept)
        return gone.select("*", sf.lit("").alias(QUAD[3]), sf.lit(-1).cast("long").alias(WEIGHT))

    def _triples(self, views: tuple[str, ...]) -> DataFrame:
        """Return what views of triples have now."""
        return reduce(DataFrame.unionByName, (self._engine.initial(view).select(*QUAD[:3]) for view in views))

    def _open_engine(self) -> SparkEngine:
        queries = {name: query for view in self._pipeline.views for name, query in view.queries().items()}
        engine = SparkEngine(self._spark, self._table, queries)
        self._state.remember(engine)
        return engine

    def _open_links(self) -> dict[str, LinkedView]:
        views = (view for view in self._pipeline.views if view.linkset is not None)
        return {view.name: LinkedView(view, self._spark) for view in views}

    def _load_links(self) -> None:
        """Find the links of what the table of quads holds."""
        self._linked = self._open_links()
        for linked in self._linked.values():
            linked.load(self._engine)

    def _open_targets(self) -> Iterator[Target]:
        for view, sink in targets(self._pipeline):
            key = self._state.key(view, sink)
            app = f"{self._pipeline.name}:{key}"
            places = Places(self._state.ledger(key), self._state.staging, app, self._databases)
            writer = open_sink(sink, self._flow(view), places, self._spark)
            self._resources.callback(writer.close)
            if not self._state.sink_state(key):
                writer.check()
            elif isinstance(writer, KeptInStep) and writer.is_empty():  # somebody emptied it
                self._state.note_sink(key, "begun")
            yield Target(view.name if view else None, writer, key)

    def _flow(self, view: ViewDefinition | None) -> Flow:
        if view is None:
            return Flow(None, QUAD, (), lambda: self._result(None))
        known = self._linked.get(view.name) or self._engine.views[view.name]
        return Flow(view.query, known.columns, known.variables, lambda: self._result(view.name))

    def _result(self, view: str | None) -> Outcome:
        """Compute all that a view holds now."""
        if view is None:
            return outcome_of(self._table.read(self._spark), QUAD)
        if view in self._linked:
            return self._linked[view].result()
        return outcome_of(self._engine.initial(view), self._engine.views[view].columns)

    # --- the beginning of sinks

    def _begin_sinks(self) -> None:
        """Give every sink that is not ready yet all that there is now, as if it came with the last batch."""
        new = [target for target in self._targets if self._state.sink_state(target.key) != "ready" or not target.key]
        if not new:
            return
        clock = Clock()
        batch = self._table.committed(self._pipeline.name) or 0
        end = planned_end(self._state.checkpoint, batch - 1) if batch else None
        sequence = int(end["sequence"]) if end else 0
        views: dict[str, object] = {}
        quads = 0
        for view in dict.fromkeys(target.view for target in new):
            with self._engine.batch(), clock.part("views"):
                outcome = self._result(view)
                for target in new:
                    if target.view == view:
                        self._begin_sink(target, outcome, batch, sequence)
                outcome.close()
            if view is not None:
                views[view] = _counts(outcome)
        if not batch:
            files = self._table.snapshot()
            quads = files.base_rows + files.tail_rows
        self._tell(batch, sequence, 0, quads, 0, views, clock)

    def _begin_sink(self, target: Target, outcome: Outcome, batch: int, sequence: int) -> None:
        if target.key:
            self._state.note_sink(target.key, "begun")
        target.writer.begin()
        target.writer.write(outcome, batch, sequence)
        if target.key:
            self._state.note_sink(target.key, "ready")

    # --- batches

    def _start(self) -> StreamingQuery:
        committed = self._table.committed(self._pipeline.name) or 0
        begun = self._state.begun(committed)
        if self._pipeline.skip_damaged and begun < 0:
            self._plan_anew(committed)
        settings = Settings(
            follow=self._follow,
            settle=self._pipeline.settle,
            poll=self._pipeline.poll,
            pause=self._pipeline.pause,
            begun=begun,
            skip_damaged=self._pipeline.skip_damaged,
        )
        stream = read_changes(self._spark, self._pipeline.changes, settings, self._pipeline.limit)
        writer = stream.writeStream.foreachBatch(self._take).option(
            "checkpointLocation", self._state.checkpoint.as_uri()
        )
        trigger: dict[str, Any] = {"processingTime": _POLL} if self._follow else {"availableNow": True}
        return writer.trigger(**trigger).start()

    def _plan_anew(self, batch: int) -> None:
        """Let a batch be planned again that was planned when damage was to stop the run, and that has not begun."""
        planned = planned_end(self._state.checkpoint, batch)
        if planned is not None and "damaged" not in planned:
            forget_plan(self._state.checkpoint, batch)

    def _take(self, requested: DataFrame, place: int) -> None:
        """Take one batch of the stream. That it returns tells Spark that the batch is done."""
        with self._busy:
            try:
                self._process_again(requested, place + 1)
            except BaseException as error:
                self._failure = told(error)
                raise

    def _process_again(self, requested: DataFrame, batch: int) -> None:
        """Process a batch; once more where an executor was lost with what it held, which may be repeated any time."""
        attempts = _ATTEMPTS
        while True:
            if self._stopping.is_set():
                raise Stopped
            try:
                if attempts < _ATTEMPTS:
                    self._load_links()  # they may have taken the batch in
                return self._process(requested, batch)
            except (PySparkException, Py4JError) as error:
                attempts -= 1
                if not attempts or not lost_executor(error):
                    raise

    def _process(self, requested: DataFrame, batch: int) -> None:
        """Process a batch; numbers count from 1, because 0 is what was there at first."""
        name = self._pipeline.name
        committed = self._table.committed(name) or 0
        if committed >= batch:
            return
        end, start = planned_end(self._state.checkpoint, batch - 1), planned_end(self._state.checkpoint, batch - 2)
        assert end is not None
        sequence = int(end["sequence"])
        changes = sequence - (int(start["sequence"]) if start else 0)
        clock = Clock()
        with self._engine.batch(), ExitStack() as outcomes:
            with clock.part("exact"):
                delta = self._engine.exact(requested, clears=bool(end.get("clears")))
                exact = outcome_of(delta, QUAD, kept=True)
                outcomes.callback(exact.close)
            with clock.part("views"):
                found = self._outcomes(delta) if exact else {}
                for outcome in found.values():
                    outcomes.callback(outcome.close)
            with clock.part("sinks"):
                if exact:
                    self._state.note_begun(batch, sequence)
                    self._write(exact, found, batch, sequence)
            for number, problem in set_aside(end).items():
                self._warn(f"change {number} is set aside: {problem}")
            with clock.part("commit"):
                self._table.append(exact.data, app=name, batch=batch, large=exact.is_large)
            views: dict[str, object] = {view: _counts(outcome) for view, outcome in found.items() if outcome}
        self._compact(batch, exact.added + exact.removed, clock)
        self._tell(batch, sequence, changes, exact.added, exact.removed, views, clock)

    def _outcomes(self, delta: DataFrame | pa.Table) -> dict[str, Outcome]:
        found = self._maintained(delta)
        for name, linked in self._linked.items():
            found[name] = linked.take(found)
        return found

    def _maintained(self, delta: DataFrame | pa.Table) -> dict[str, Outcome]:
        """Return what the engine maintains."""
        frames = self._engine.deltas(delta)
        work = {
            name: partial(
                outcome_of,
                frame,
                self._engine.views[name].columns,
                kept=True,
                counts=self._engine.counts.get(name),
            )
            for name, frame in frames.items()
        }
        if len(work) < 2:
            return {name: find() for name, find in work.items()}
        with ThreadPoolExecutor(min(_MOST_THREADS, len(work))) as pool:
            jobs = {name: pool.submit(find) for name, find in work.items()}
            return {name: job.result() for name, job in jobs.items()}

    def _write(self, exact: Outcome, found: dict[str, Outcome], batch: int, sequence: int) -> None:
        for target in self._targets:
            outcome = exact if target.view is None else found[target.view]
            if outcome:
                target.writer.write(outcome, batch, sequence)

    def _compact(self, batch: int, size: int, clock: Clock) -> None:
        """Compact the table now and then, and after a large change: every view would read it beside the rest."""
        if (batch % _COMPACT_EVERY == 0 or size > SMALL) and self._table.should_compact():
            with clock.part("compaction"):
                self._table.compact(self._spark)

    def _tell(
        self,
        batch: int,
        sequence: int,
        changes: int,
        inserted: int,
        deleted: int,
        views: dict[str, object],
        clock: Clock,
    ) -> None:
        self._report(
            {
                "batch": batch,
                "sequence": sequence,
                "changes": changes,
                "inserted": inserted,
                "deleted": deleted,
                "views": views,
                "seconds": clock.seconds(),
                "parts": clock.parts,
            }
        )


def _counts(outcome: Outcome) -> dict[str, int]:
    return {"added": outcome.added, "removed": outcome.removed}
