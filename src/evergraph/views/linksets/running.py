"""``evergraph.link``: a linkset from its definition to its files, run by run."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from evergraph.delta import Delta, Request
from evergraph.errors import UsageError
from evergraph.linking.definition import Dataset, Definition, load_linkset
from evergraph.linking.matching import Matcher
from evergraph.ports import SourceChange
from evergraph.rdfio import read_quads
from evergraph.sources import open_source, refuse_changed
from evergraph.sparql.expressions import Environment
from evergraph.terms import XSD, Literal, NamedNode, Quad
from evergraph.views.linksets.linkset import Linkset, Mode, Run
from evergraph.views.linksets.outputs import publish
from evergraph.views.linksets.state import LinksetState, forget
from evergraph.views.linksets.view import CatalogueView

Report: TypeAlias = Callable[[Run], None]
"""Is told about every run that counts."""


def link(
    path: str | Path | Definition,
    *,
    full: bool = False,
    fresh: bool = False,
    every: float | None = None,
    engine: str = "local",
    spark_master: str | None = None,
    report: Report | None = None,
) -> list[Run]:
    """Bring a linkset up to date with its change sources, in one run or as many as the definition asks for.

    The first run matches everything; later ones go on where the last one was, however that ended.

    :param full: match everything anew.
    :param fresh: forget the state first.
    :param every: go on, and look for changes after so many seconds, until interrupted.
    :param engine: ``"local"``, or ``"spark"`` to have many resources matched by Spark.
    :param report: is told about every run after it counts; without it, the runs are returned.
    """
    if engine not in ("local", "spark"):
        raise UsageError(f"no engine is called {engine!r}", hint="there are 'local' and 'spark'")
    definition = path if isinstance(path, Definition) else load_linkset(path)
    if fresh:
        _forget(definition)
    runs: list[Run] = []
    tell = report or runs.append
    with matcher_for(definition, engine, spark_master) as matcher, opened(definition, matcher) as runner:
        for run in runner.runs(Mode.FULL if full else None):
            tell(run)
        while every is not None:
            time.sleep(every)
            for run in runner.runs(None, only_changes=True):
                tell(run)
    return runs


def _forget(definition: Definition) -> None:
    """Remove the state, and the changes of earlier runs, whose numbers will be used again."""
    forget(definition.state)
    if definition.output.changes is not None:
        for path in definition.output.changes.glob("[0-9][0-9][0-9][0-9][0-9][0-9].rdfp"):
            path.unlink()


@contextmanager
def matcher_for(definition: Definition, engine: str, spark_master: str | None = None) -> Iterator[Matcher]:
    """Start what matches. Spark is only imported when it is asked for, and stopped unless it was running before."""
    if engine == "local":
        yield Matcher(definition.rule)
        return
    from evergraph.engines.spark.daemon import MODULE
    from evergraph.engines.spark.session import current_session, open_session, stop_session
    from evergraph.linking.spark import SparkMatcher

    running = current_session()
    spark = running or open_session(spark_master, conf={"spark.python.daemon.module": MODULE})
    try:
        yield SparkMatcher(definition.rule, spark)
    finally:
        if running is None:
            stop_session(spark)


@contextmanager
def opened(definition: Definition, matcher: Matcher | None = None) -> "Iterator[Runner]":
    """Open the state of a linkset, and close it in the end."""
    state = LinksetState(definition)
    try:
        yield Runner(definition, state, matcher)
    finally:
        state.close()


class Runner:
    """Runs of one linkset."""

    def __init__(self, definition: Definition, state: LinksetState, matcher: Matcher | None = None) -> None:
        self._definition = definition
        self._state = state
        self._now = state.now or Environment().now.value
        environment = Environment(now=Literal(self._now, datatype=NamedNode(XSD + "dateTime")))
        self._sides = definition.source, definition.target
        self._positions, self._places = list(state.positions), list(state.places)
        views = [CatalogueView(side.catalogue, environment) for side in self._sides]
        accept, review, one_to_one = state.selection
        self.linkset = Linkset(
            definition.rule, views[0], views[1], accept=accept, review=review, one_to_one=one_to_one, matcher=matcher
        )
        if state.sequence:
            contents = state.read()
            for view, quads in zip(views, contents.quads, strict=True):
                view.take(Delta(inserted=frozenset(quads)))
            self.linkset.restore(state.sequence, contents.scores)
            if state.published() < state.sequence:
                last = state.last()
                self._publish(last.sequence, last.added, last.removed)
            wanted = definition.accept, definition.review, definition.one_to_one
            if wanted != state.selection:
                self.linkset.reselect(*wanted)

    def runs(self, mode: Mode | None = None, *, only_changes: bool = False) -> Iterator[Run]:
        """Make runs until the change sources are exhausted: at least one, unless only changes count."""
        if self._state.rule_changed:
            mode = Mode.FULL
        sources = [self._changes(number, side) for number, side in enumerate(self._sides)]
        batch = self._definition.batch
        while True:
            is_first = self._state.sequence == 0
            taken = [list(islice(source, batch)) for source in sources]
            if only_changes and not any(taken):
                return
            requests = [
                self._request(side, changes, is_first) for side, changes in zip(self._sides, taken, strict=True)
            ]
            deltas = self._take(0, requests[0]), self._take(1, requests[1])
            run = self.linkset.maintain(mode)
            for number, changes in enumerate(taken):
                if changes:
                    self._positions[number], self._places[number] = changes[-1].sequence, changes[-1].where
            self._state.commit(run, deltas, self._positions, self._places, self._now)
            self._publish(run.sequence, run.added, run.removed)
            yield run
            mode = None
            if batch is None or not any(len(changes) == batch for changes in taken):
                return
            only_changes = True

    def _changes(self, number: int, side: Dataset) -> Iterator[SourceChange]:
        if side.changes is None:
            return iter(())
        source, position, place = open_source(side.changes), self._positions[number], self._places[number]
        if place is not None:
            refuse_changed(source, side.changes, position, place)
        return source.changes(position)

    def _request(self, side: Dataset, changes: Iterable[SourceChange], is_first: bool) -> Request:
        """Fold the changes of one run into one."""
        wanted: dict[Quad, bool] = {}
        for path in side.init if is_first else ():
            wanted.update(dict.fromkeys(read_quads(path), True))
        for change in changes:
            wanted.update(dict.fromkeys(change.request.removed, False))
            wanted.update(dict.fromkeys(change.request.added, True))
        return Request(
            added=frozenset(quad for quad, there in wanted.items() if there),
            removed=frozenset(quad for quad, there in wanted.items() if not there),
        )

    def _take(self, side: int, request: Request) -> Delta:
        view = self.linkset.views[side]
        delta = view.exact(request)
        view.take(delta)
        return delta

    def _publish(self, sequence: int, added: frozenset[tuple[str, str]], removed: frozenset[tuple[str, str]]) -> None:
        publish(self._definition, self.linkset, added, removed)
        self._state.note_published(sequence)
