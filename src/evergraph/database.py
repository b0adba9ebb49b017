"""A database: a dataset behind the gate, with a queue of updates, sequence numbers and a change log."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Protocol, TypeAlias, TypeVar

from pyoxigraph import QueryBoolean, QuerySolutions, QueryTriples, Triple

from evergraph.delta import Change, Delta, Request
from evergraph.engines.local.engine import LocalEngine, View
from evergraph.engines.local.store import Lookup
from evergraph.engines.local.views import ViewChange
from evergraph.errors import EvergraphError, ReadOnly, StoreError, SyntaxProblem, UpdateFailed, UsageError
from evergraph.fifo import FifoLock
from evergraph.gate.embedded import EmbeddedDataset
from evergraph.gate.endpoint import Endpoint
from evergraph.gate.extract import Effect, Loader, extract, request_delta
from evergraph.gate.journal import FolderLock, Journal
from evergraph.gate.load import load_document
from evergraph.gate.operations import DatasetGraphs, Modify
from evergraph.gate.remote import RemoteDataset
from evergraph.gate.request import Step as UpdateStep
from evergraph.gate.request import parse_update
from evergraph.gate.transaction import Dataset, Transaction
from evergraph.interrupts import uninterrupted
from evergraph.log import ChangeLog
from evergraph.plan.notation import prefixes
from evergraph.rdfio import read_quads
from evergraph.sparql.algebra import Query
from evergraph.sparql.parser import parse_query
from evergraph.terms import DEFAULT_GRAPH, GraphName, NamedNode, Quad
from evergraph.views.queries import StandingQuery

T = TypeVar("T")
QueryResult: TypeAlias = QuerySolutions | QueryBoolean | QueryTriples | list[Triple]


class QueryableDataset(Dataset, Protocol):
    """What a database needs of its dataset: reading and writing for the gate, queries, and an end to each change."""

    snapshots: bool
    """Whether a query sees one state, whatever is written meanwhile; others keep writers waiting until they begin."""

    def query(self, text: str, base: str | None = None, graphs: DatasetGraphs | None = None) -> QueryResult:
        """Run a SPARQL query."""

    def settle(self, sequence: int) -> None:
        """Take note that the change with this number counts; what was written for it is not to be taken back."""

    def roll_back(self) -> None:
        """Take back what was written since the last change that counted."""

    def close(self) -> None:
        """Let go of files and connections."""


class Listener(Protocol):
    """Somebody who follows a standing query."""

    def take(self, sequence: int, change: ViewChange) -> None:
        """Take what a change of the data did to the result; called in the order of changes, by who makes them."""

    def close(self) -> None:
        """Take note that the query is no longer maintained."""


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """A SPARQL 1.1 Update request. ``using`` and ``using_named`` are the dataset of the protocol, if it names one."""

    text: str
    base: str | None = None
    using: tuple[NamedNode, ...] = ()
    using_named: tuple[NamedNode, ...] = ()

    def parse(self) -> tuple[UpdateStep, ...]:
        """Parse the request; its WHERE clauses are over the graphs that the protocol names."""
        steps = parse_update(self.text, base=self.base)
        return tuple(map(self._placed, steps)) if self.using or self.using_named else steps

    def _placed(self, step: UpdateStep) -> UpdateStep:
        operation = step.operation
        if not isinstance(operation, Modify):
            return step
        where = operation.where
        if where.with_graph is not None or where.using is not None or where.using_named is not None:
            raise SyntaxProblem(f"{step}: a request with WITH or USING cannot be given using-graph-uri parameters")
        where = replace(where, using=self.using, using_named=self.using_named, only=None)
        return replace(step, operation=replace(operation, where=where, deletes_matches=False, matches_plainly=False))


@dataclass(frozen=True, slots=True)
class Moment:
    """A standing query in an engine of its own that follows nothing: what the result was at one change."""

    sequence: int
    engine: LocalEngine
    view: View


class Database:
    """A dataset that tells exactly how it changes. Made by `evergraph.open` and `evergraph.connect`.

    Updates are served first in, first out, one at a time; each gets the next sequence number. A database can be used
    from several threads.
    """

    def __init__(
        self,
        dataset: QueryableDataset,
        log: ChangeLog | None = None,
        *,
        read_only: bool = False,
        load: Loader = load_document,
    ) -> None:
        self._dataset = dataset
        self._log = log
        self._read_only = read_only
        self._load = load
        self.timed = False
        """Whether changes note when they were made."""
        self._turn = FifoLock()
        self._visible = Lock()
        self._maintaining = Lock()
        self._sequence = log.last if log else 0
        self._closed = False
        self._engine: LocalEngine | None = None
        self._watching: dict[View, Listener] = {}

    @property
    def sequence(self) -> int:
        """The sequence number of the last change; 0 before the first."""
        return self._sequence

    @property
    def has_log(self) -> bool:
        """Whether there is a change log."""
        return self._log is not None

    def update(self, text: str, *, base: str | None = None, where: str = "") -> Change:
        """Run a SPARQL 1.1 Update request, wholly or not at all, and tell exactly what it changed.

        :param base: resolves relative IRIs.
        :param where: names the text in error messages, a file name for example.
        :raises SyntaxProblem: with line and column.
        :raises UpdateFailed: if an operation fails; the message says which, and nothing was applied.
        """
        steps = parse_update(text, base=base, where=where)

        return self._change(lambda transaction: self._stage(steps, transaction, where))

    def update_all(self, requests: Sequence[UpdateRequest]) -> list[Change | EvergraphError]:
        """Run requests one after the other, and write their changes together, with one wait for the disk.

        Each gets a change of its own, or the error that it alone fails with. Nobody sees any of them before all are
        durable. A dataset that cannot evaluate a pattern over unwritten changes has them written one by one.
        """
        if self._read_only:
            raise ReadOnly("the database is open read-only", hint="open it without read_only to change it")
        parsed = [_attempt(request.parse) for request in requests]
        if not self._dataset.atomic or len(requests) == 1:
            return [
                one if isinstance(one, EvergraphError) else _attempt(lambda steps=one: self._change_by(steps))  # type: ignore[misc]
                for one in parsed
            ]
        outcomes: list[Change | EvergraphError] = []
        changes: list[Change] = []
        with uninterrupted(), self._turn:
            self._refuse_if_closed()
            transaction = Transaction(self._dataset)
            for one in parsed:
                if isinstance(one, EvergraphError):
                    outcomes.append(one)
                    continue
                before = transaction.branch()
                try:
                    delta = self._stage(one, transaction)
                except EvergraphError as error:
                    transaction = before
                    outcomes.append(error)
                    continue
                changes.append(Change(self._sequence + len(changes) + 1, delta, self._now()))
                outcomes.append(changes[-1])
            if changes:
                self._commit(transaction, *changes)
            for change in changes:
                self._sequence = change.sequence
                self._dataset.settle(change.sequence)
                self._notify(change)
        return outcomes

    def _change_by(self, steps: Sequence[UpdateStep]) -> Change:
        return self._change(lambda transaction: self._stage(steps, transaction))

    def _stage(self, steps: Sequence[UpdateStep], transaction: Transaction, where: str = "") -> Delta:
        """Let the operations of a request be seen by what follows; return what they change together."""
        total = Delta()
        for step in steps:
            try:
                effect = extract(step.operation, transaction, self._load)
            except UpdateFailed as error:
                place = f"{where}: {step}" if where else str(step)
                raise type(error)(f"{place}: {error.message}", hint=error.hint) from error
            transaction.stage(effect)
            total = total.then(effect.delta) if total else effect.delta
        return total

    def apply(self, request: Request) -> Change:
        """Pass a requested change through the gate: what it asks for and is so already does not count."""
        return self._change(
            lambda transaction: transaction.stage(
                Effect(request_delta(transaction, request.removed - request.added, request.added))
            )
        )

    def load(self, *paths: str | Path) -> Change:
        """Add the contents of RDF files as one change."""
        return self.apply(Request(added=frozenset(quad for path in paths for quad in read_quads(path))))

    def query(self, text: str, *, base: str | None = None, graphs: DatasetGraphs | None = None) -> QueryResult:
        """Run a SPARQL query over the present state.

        The store answers it, with its own understanding of SPARQL (see docs/sparql.md for what standing queries mean).

        :param base: resolves relative IRIs.
        :param graphs: the graphs of the default graph, and the named graphs, in place of what the query says.
        """
        self._refuse_if_closed()
        with nullcontext() if self._dataset.snapshots else self._visible:
            return self._dataset.query(text, base, graphs)

    def quads(self) -> Iterator[Quad]:
        """Iterate over all quads of the present state."""
        self._refuse_if_closed()
        with self._visible:
            names: list[GraphName] = [DEFAULT_GRAPH, *self._dataset.graph_names()]
            graphs = [self._dataset.graph(name) for name in names]
        return chain.from_iterable(graphs)

    def watch(self, text: str, *, limit: int | None = None, backlog: int = 10_000) -> StandingQuery:
        """Register a standing query: its result is kept up to date from now on.

        :param limit: how many entries of state the query may need; one that needs more fails, and the others go on.
        :param backlog: how many steps to keep for a slow reader before they are put together.
        """
        query = parse_query(text)
        if self._read_only:
            raise ReadOnly(
                "a database that is open read-only shows one moment and follows no changes",
                hint="watch it in the process that changes it, or follow its log (evergraph watch --changes DIR/log)",
            )
        with uninterrupted(), self._turn:
            self._refuse_if_closed()
            view = self._maintained(query, limit)
            standing = StandingQuery(
                view, self._sequence, backlog=backlog, guard=self._maintaining, prefixes=prefixes(text)
            )
            view.on_failure = lambda _: standing.close()
            self._watching[view] = standing
        return standing

    def follow(self, query: Query, listener: Listener) -> tuple[int, View]:
        """Register a standing query for a listener; return its view and the change that it is at."""
        with uninterrupted(), self._turn:
            self._refuse_if_closed()
            view = self._maintained(query)
            view.on_failure = lambda _: listener.close()
            self._watching[view] = listener
            return self._sequence, view

    def unfollow(self, view: View) -> None:
        """Stop to maintain a standing query, and drop what only it needs."""
        with uninterrupted(), self._turn:
            if self._watching.pop(view, None) is not None and not self._closed:
                assert self._engine is not None
                self._engine.remove(view)

    def moment(self, query: Query) -> Moment:
        """Register a standing query over the data of now in an engine of its own."""
        with uninterrupted(), self._turn:
            self._refuse_if_closed()
            engine = LocalEngine(self.quads, self._lookup())
            return Moment(self._sequence, engine, engine.register(query))

    def _maintained(self, query: Query, limit: int | None = None) -> View:
        if self._engine is None:
            self._engine = LocalEngine(self.quads, self._lookup())
        return self._engine.register(query, limit=limit)

    def _lookup(self) -> Lookup | None:
        return self._dataset.match if isinstance(self._dataset, EmbeddedDataset) else None

    def unwatch(self, standing: StandingQuery) -> None:
        """Stop to maintain a standing query, and drop what only it needs."""
        with uninterrupted(), self._turn:
            for view in [view for view, one in self._watching.items() if one is standing]:
                del self._watching[view]
                assert self._engine is not None
                self._engine.remove(view)
        standing.close()

    def changes(self, after: int = 0) -> Iterator[Change]:
        """Read the log from any sequence number on."""
        if self._log is None:
            raise UsageError(
                "this database keeps no change log",
                hint="give it a folder: evergraph.open(path), or evergraph.connect(…, log=path)",
            )
        self._refuse_if_closed()
        return self._log.read(after)

    def close(self) -> None:
        """Let go of files and connections; the database cannot be used after this."""
        with uninterrupted(), self._turn:
            if self._closed:
                return
            self._closed = True
            for standing in self._watching.values():
                standing.close()
            self._dataset.close()
            if self._log:
                self._log.close()

    def __enter__(self) -> "Database":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreError("the database is closed", hint="open it again")

    # --- the one way to change anything

    def _change(self, run: Callable[[Transaction], object]) -> Change:
        """Make one change. Interrupts are let in only while nothing counts yet."""
        if self._read_only:
            raise ReadOnly("the database is open read-only", hint="open it without read_only to change it")
        with uninterrupted() as let_in, self._turn:
            self._refuse_if_closed()
            self._dataset.roll_back()  # in case it could not be done when the last change failed
            transaction = Transaction(self._dataset)
            try:
                with let_in():
                    run(transaction)
                    if not self._dataset.atomic:
                        self._write(transaction)
                change = Change(self._sequence + 1, transaction.total, self._now())
                self._commit(transaction, change)
            except BaseException:
                self._dataset.roll_back()
                raise
            self._sequence = change.sequence
            self._dataset.settle(change.sequence)
            self._notify(change)
            return change

    def _now(self) -> float | None:
        return time.time() if self.timed else None

    def _notify(self, change: Change) -> None:
        if self._engine is None or not change:
            return
        with self._maintaining:
            for step in self._engine.apply(change.delta):
                self._watching[step[0]].take(change.sequence, step)

    def _commit(self, transaction: Transaction, *changes: Change) -> None:
        """Log changes, and write them after that if writes are atomic: the log can complete them after a crash."""
        if self._log:
            self._log.append(*changes)
        if self._dataset.atomic:
            try:
                self._write(transaction)
            except BaseException:
                if self._log:
                    self._log.take_back()
                raise

    def _write(self, transaction: Transaction) -> None:
        with self._visible:
            transaction.commit()


def open_database(
    path: str | Path | None = None, *, read_only: bool = False, sync: bool = True, load: Loader = load_document
) -> Database:
    """Open a database in a folder, made if missing, or a new one in memory.

    :param read_only: several processes may read while one writes.
    :param sync: whether an update has reached the disk when it returns, or only the operating system.
    :param load: reads documents for LOAD.
    """
    if path is None:
        return Database(EmbeddedDataset.open(None), load=load)
    folder = Path(path)
    _check_folder(folder, read_only)
    # The store first: its lock keeps other writers away from the log.
    dataset = EmbeddedDataset.open(folder / "store", read_only=read_only)
    log = ChangeLog(folder / "log", sync=sync, read_only=read_only)
    if not read_only:
        dataset.catch_up(log)
    return Database(dataset, log, read_only=read_only, load=load)


def connect(
    query_url: str,
    update_url: str,
    *,
    log: str | Path | None = None,
    default_graph: str | None = None,
    timeout: float = 60.0,
    headers: Mapping[str, str] | None = None,
    load: Loader = load_document,
) -> Database:
    """Connect to a SPARQL 1.1 endpoint. Exactness needs that nobody else writes to it meanwhile.

    :param log: a folder for the change log, and for what is needed to take back a change that a crash cut short.
    :param default_graph: the IRI of a graph that serves as the default graph, for servers without one (Virtuoso).
    :param headers: sent with every request, for authorisation.
    :param load: reads documents for LOAD.
    """
    resources = ExitStack()
    try:
        endpoint = Endpoint(query_url, update_url, timeout=timeout, headers=headers)
        resources.callback(endpoint.close)
        folder = Path(log) if log is not None else None
        if folder:
            resources.callback(FolderLock(folder).release)  # before the log is read: another process may be writing it
        change_log = ChangeLog(folder) if folder else None
        journal = Journal(folder / ".unsettled" if folder else None, change_log.last if change_log else 0)
        dataset = RemoteDataset(endpoint, journal, _graph_name(default_graph), close=resources.close)
        dataset.roll_back()
    except BaseException:
        resources.close()
        raise
    return Database(dataset, change_log, load=load)


def _attempt(action: Callable[[], T]) -> T | EvergraphError:
    try:
        return action()
    except EvergraphError as error:
        return error


def _graph_name(iri: str | None) -> NamedNode | None:
    try:
        return NamedNode(iri) if iri is not None else None
    except ValueError as error:
        raise UsageError(f"the default graph {iri!r} is not an absolute IRI") from error


def _check_folder(folder: Path, read_only: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is a file, not the folder of a database", hint="name a folder")
    known = (folder / "store").is_dir()
    if not known and read_only:
        raise StoreError(f"{folder} is not a database", hint="open it without read_only to make one")
    if known and not (folder / "log").is_dir() and (folder / "checkpoint").exists():
        raise StoreError(f"{folder} has lost its change log", hint="restore the folder of the database from a backup")
    if not known and (folder / "log").is_dir():
        raise StoreError(
            f"{folder} has a change log, but its store is gone",
            hint=f"rebuild it: evergraph apply --store NEW --changes {folder / 'log'}",
        )
    if not known and folder.is_dir() and any(folder.iterdir()):
        raise StoreError(f"{folder} holds something else than a database", hint="name an empty folder, or a new one")
