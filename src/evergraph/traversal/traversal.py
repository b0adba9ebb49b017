"""Traversals: a query, the documents that are discovered while it runs, and the steps of its result."""

import hashlib
import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import TracebackType

from evergraph.delta import Bag
from evergraph.errors import EvergraphError, TraversalFailed
from evergraph.sparql.algebra import Query
from evergraph.sparql.expressions import Row
from evergraph.terms import NamedNode
from evergraph.traversal.archive import Archive, Visited
from evergraph.traversal.dataset import LinkedDataset, Lost, Retrieved
from evergraph.traversal.documents import read_document
from evergraph.traversal.fetching import Document, Problem
from evergraph.traversal.frontier import Frontier, State, Visit
from evergraph.traversal.iris import document_url
from evergraph.traversal.links import Links, Rank, Strategy, solutions_query
from evergraph.traversal.maintaining import LocalMaintainer, Maintainer, Queue, SparkMaintainer
from evergraph.traversal.options import Limits, Manners
from evergraph.traversal.spill import Spill
from evergraph.traversal.worker import Worker
from evergraph.views.queries import Step

_TICK = 0.2
"""Seconds after which a wait looks whether it is to end."""
_LONGEST_PAUSE = 3_600.0
_ROOM = 64_000_000
"""Bytes of documents that may wait to be taken in, as far as can be told from those before."""
_LINGER = 1.0
"""Seconds for which Spark, where a batch has its price, waits for a batch to fill."""


@dataclass(frozen=True, slots=True)
class TraversalStep(Step):
    """What documents did to the result; ``documents`` are those behind the change, none at the start."""

    documents: tuple[str, ...] = ()


class Traversal:
    """A query over Linked Data that is discovered while it runs. Made by `evergraph.traverse`.

    Iterate over it to let it run: each step says what a document, or ``batch`` of them, added to and removed from the
    result; the first one is what there is at the start. Between steps no more is fetched than there is room for.
    """

    def __init__(
        self,
        query: Query,
        seeds: tuple[NamedNode, ...],
        *,
        strategy: Strategy,
        vocabulary: bool,
        limits: Limits,
        manners: Manners,
        cache: Path | None,
        follow: bool,
        refresh: float,
        batch: int,
        spark: bool,
        spark_master: str | None,
    ) -> None:
        self.query = query
        self.seeds = seeds
        self._follow, self._refresh, self._batch = follow, refresh, batch
        self._linger = _LINGER if spark and strategy is Strategy.SOLUTIONS else 0.0
        self._limits, self._manners = limits, manners
        hidden = solutions_query(query) if strategy is Strategy.SOLUTIONS else None
        self._maintainer: Maintainer = (
            SparkMaintainer(query, hidden, spark_master) if spark else LocalMaintainer(query, hidden, limits.entries)
        )
        self.variables = self._maintainer.variables
        """The columns of a row."""
        self._queue = Queue() if spark and hidden is None else None
        """Changes that Spark will take in together; where solutions lead to documents, they cannot wait."""
        self._spill = Spill() if spark else None
        self.dataset = LinkedDataset(self._spill)
        """The documents so far; with Spark they are on disk, until the traversal is closed."""
        self._links = Links(query, strategy, vocabulary=vocabulary)
        self._frontier = Frontier(limits, max(2 * manners.per_host, batch))
        self._archive = Archive(cache)
        text = repr((query, self.seeds, strategy.value, vocabulary))
        self._run = hashlib.sha256(text.encode()).hexdigest()
        self._noted: dict[str, Visited] = {}
        self._numbers = 0
        self._due: list[tuple[float, str]] = []
        self._in_flight = 0
        self._going = Event()
        self._going.set()
        self._stopped = ""
        self._hopeful = self._arrived = False
        """Whether asking again may help: there is a document, or a failure that may pass; and whether there was one."""
        self._begin = time.monotonic()
        self.sequence = 0
        """How many changes of the dataset there were."""
        self.bytes = self.requests = 0
        self.on_progress: Callable[[Traversal], object] = lambda traversal: None
        """Called after everything that happens."""

    # --- what there is

    def result(self) -> Bag[Row]:
        """Return the current rows, as a bag."""
        return self._maintainer.result()

    def report(self) -> list[Visit]:
        """List the addresses and what became of each: where each document came from, what failed, what was skipped."""
        return list(self._frontier.visits.values())

    def counts(self) -> dict[str, int]:
        """Count the addresses by what became of them."""
        return {state.value: number for state, number in self._frontier.counts.items()}

    @property
    def unlisted(self) -> int:
        """How many links came when so many addresses were known that no more are listed."""
        return self._frontier.unlisted

    # --- control, from any thread

    def pause(self) -> None:
        """Start no more requests, and give no more steps, until `resume`."""
        self._going.clear()

    def resume(self) -> None:
        """Go on after a pause."""
        self._going.set()

    def stop(self) -> None:
        """End the traversal after the step at hand; with a cache, the next one goes on from there."""
        self._stopped = self._stopped or "STOPPED"
        self._going.set()

    def close(self) -> None:
        """Let go of the cache, of Spark, and of documents on disk."""
        self._archive.close()
        if self._spill is not None:
            self._spill.close()
        self._maintainer.close()

    def __enter__(self) -> "Traversal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # --- the run

    def __iter__(self) -> Iterator[TraversalStep]:
        """Run. Raises `TraversalFailed` at the end if no seed led to a document."""
        self._begin = time.monotonic()
        since = self._start()
        yield TraversalStep(self.sequence, self.result(), Bag())
        worker = Worker(self._manners, self._limits, self._archive)
        try:
            while not self._is_over():
                self._fill(worker, since)
                if not self._in_flight and not (self._due and self._hopeful):
                    break
                step = self._take(worker)
                self.bytes, self.requests = worker.traffic.bytes, worker.traffic.requests
                self.on_progress(self)
                if step is not None:
                    yield step
                self._going.wait()
            documents = tuple(self._queue.documents) if self._queue is not None else ()
            if (step := self._step(self._flush(), documents)) is not None:
                yield step
        finally:
            worker.close()
            self._note()
        self._end()

    def _start(self) -> float:
        """Put in what is to be asked first, or take up what an earlier run has left."""
        since, sequence, visited = self._archive.begin(self._run, time.time())
        known: list[Retrieved | Lost] = []
        for one in visited:
            iri = NamedNode(one.iri)
            visit = self._frontier.add(iri, one.rank, one.depth, one.found_in)
            if visit is not None and one.document is not None:
                known += self._recalled(visit, iri, one.document)
        for iri in self.seeds:
            self._found(iri, Rank.SEED, 0, None)
        if known:
            self._apply(known, None)
            self._flush()
        self.sequence = sequence
        self._note()
        return since

    def _recalled(self, visit: Visit, iri: NamedNode, document: str) -> list[Retrieved]:
        """Read a document of an earlier run from the cache; if it is not there any more, it will be fetched."""
        if visit.state is State.FETCHED:
            return [Retrieved(iri, NamedNode(document), None)]
        answer = self._archive.answer(document)
        if answer is None or answer.status != 200:
            return []
        media_type = answer.headers.get("content-type", "")
        try:
            content = read_document(answer.body, media_type, document)
        except EvergraphError:
            return []
        self._frontier.settle(
            visit, Document(visit.url, document, content, (), media_type, len(answer.body), True, None, 0.0)
        )
        self._frontier.asked += 1
        self._hopeful = self._arrived = True
        self._later(visit, None)
        return [Retrieved(iri, NamedNode(document), content.triples)]

    def _fill(self, worker: Worker, since: float) -> None:
        fetched = self._frontier.counts[State.FETCHED]
        room = _ROOM * fetched // (self.bytes + 1) if fetched else self._batch
        while self._in_flight < max(2 * self._manners.concurrency, min(self._batch, room)):
            if self._due and self._due[0][0] <= time.time():
                worker.submit(heapq.heappop(self._due)[1], time.time())
            elif (visit := self._frontier.next()) is not None:
                worker.submit(visit.url, since)
            else:
                return
            self._in_flight += 1

    def _take(self, worker: Worker) -> TraversalStep | None:
        """Wait for something to happen, and take it in, with what else has happened, up to a batch."""
        outcomes: list[Document | Problem] = []
        outcome = worker.take(_TICK)
        until = time.monotonic() + self._linger
        while outcome is not None:
            outcomes.append(outcome)
            full = len(outcomes) >= min(self._batch, self._in_flight)
            outcome = None if full else worker.take(max(0.0, until - time.monotonic()))
        batch: list[Retrieved | Lost] = []
        for outcome in outcomes:
            self._in_flight -= 1
            batch += self._settled(outcome) if isinstance(outcome, Document) else self._failed(outcome, batch)
        documents = tuple(dict.fromkeys(one.document.value for one in batch))
        change = self._apply(batch, documents[0] if len(documents) == 1 else None)
        if self._queue is not None:
            self._queue.documents |= dict.fromkeys(documents)
            documents = tuple(self._queue.documents)
            idle = not self._in_flight and self._frontier.is_empty
            change = self._flush() if idle or self._queue.is_due(self._batch) else Bag()
        if outcomes:
            self._note()
        return self._step(change, documents)

    def _step(self, change: Bag[Row], documents: tuple[str, ...]) -> TraversalStep | None:
        return TraversalStep(self.sequence, change.positive(), change.negative(), documents) if change else None

    def _settled(self, outcome: Document) -> list[Retrieved]:
        visit = self._frontier.visits[outcome.url]
        self._frontier.settle(visit, outcome)
        self._hopeful = self._arrived = True
        self._remember(visit)
        self._later(visit, outcome.fresh_until)
        document = NamedNode(outcome.document)
        return [Retrieved(iri, document, outcome.content.triples) for iri in visit.iris]

    def _failed(self, outcome: Problem, batch: list[Retrieved | Lost]) -> list[Lost]:
        """Note a failure. It deletes nothing, unless the server says that nothing is there any more."""
        visit = self._frontier.visits[outcome.url]
        self._frontier.settle(visit, outcome)
        self._hopeful |= outcome.passing
        if outcome.kind == "LIMIT":
            self._stopped = "BYTES"
        self._remember(visit, problem=outcome.reason)
        self._later(visit, None)
        if outcome.gone is None or visit.document is None:
            return []
        document = NamedNode(visit.document)
        lost = dict.fromkeys(visit.iris)
        if outcome.gone == visit.document:  # and so for all that lead to it, those of this batch too
            lost |= dict.fromkeys(self.dataset.resources(document))
            lost |= dict.fromkeys(one.resource for one in batch if one.document == document)
        for iri in lost:
            if (other := self._frontier.of(iri)).document == document.value:
                self._frontier.lose(other, outcome.reason)
                self._remember(other, problem=outcome.reason)
        return [Lost(iri, document) for iri in lost]

    def _apply(self, batch: list[Retrieved | Lost], source: str | None) -> Bag[Row]:
        """Take documents in; return what they do to the result. Links to known documents count at once."""
        total: Bag[Row] = Bag()
        changed = False
        while batch:
            delta = self.dataset.take(batch)
            depth = max(self._frontier.depth(one.resource) for one in batch)
            depths = {one.document: self._frontier.depth(one.resource) for one in batch}
            batch = []
            if not delta:
                break
            changed = True
            effect = self._maintainer.apply(delta) if self._queue is None else self._queue.put(delta)
            total.update(effect.result)
            found: dict[NamedNode, tuple[Rank, int, str | None]] = {}
            for iri, rank, document in self._links.in_quads(delta.inserted):
                best = (rank, depths.get(document, depth) + 1, document.value)
                if iri not in found or best < found[iri]:
                    found[iri] = best
            for iri, rank in self._links.in_rows(effect.solutions):
                origin = found[iri][2] if iri in found else source
                found[iri] = (rank, found[iri][1] if iri in found else depth + 1, origin)
            for iri, (rank, deep, origin) in sorted(found.items(), key=lambda one: (one[1][0], one[0].value)):
                batch += self._found(iri, rank, deep, origin)
        self.sequence += changed and self._queue is None
        return total

    def _flush(self) -> Bag[Row]:
        """Take in what was put off; return what it does to the result. Links in solutions go first from now on."""
        if self._queue is None or not (delta := self._queue.delta()):
            return Bag()
        begin = time.monotonic()
        effect = self._maintainer.apply(delta)
        self._queue = Queue(time.monotonic() - begin)
        self.sequence += 1
        for iri, rank in self._links.in_rows(effect.solutions):
            self._frontier.prefer(iri, rank)
        return effect.result

    def _found(self, iri: NamedNode, rank: Rank, depth: int, found_in: str | None) -> list[Retrieved]:
        """Take note of an IRI; if its document is known, say so."""
        visit = self._frontier.add(iri, rank, depth, found_in)
        if visit is None:
            return []
        self._noted[iri.value] = Visited(iri.value, depth, rank, found_in, visit.document)
        known = visit.document is not None and NamedNode(visit.document) in self.dataset.documents
        return [Retrieved(iri, NamedNode(visit.document or ""), None)] if known else []

    def _remember(self, visit: Visit, problem: str | None = None) -> None:
        for iri in visit.iris:
            self._noted[iri.value] = Visited(
                iri.value, visit.depth, visit.rank, visit.found_in, visit.document, problem
            )

    def _later(self, visit: Visit, good: float | None) -> None:
        """Plan when to ask again, if the answer is to be kept fresh."""
        if self._follow:
            pause = min(self._refresh * 2**visit.failures, max(_LONGEST_PAUSE, self._refresh))
            heapq.heappush(self._due, (max(good or 0.0, time.time() + pause), visit.url))

    def _note(self) -> None:
        self._archive.note(self._run, self.sequence, self._noted, self._numbers)
        self._numbers += len(self._noted)
        self._noted = {}

    def _is_over(self) -> bool:
        seconds = self._limits.seconds
        if seconds is not None and time.monotonic() - self._begin > seconds:
            self._stopped = self._stopped or "TIME"
        return bool(self._stopped)

    def _end(self) -> None:
        """Say what was left out, and why."""
        match self._stopped:
            case "TIME":
                self._frontier.skip_rest("LIMIT", f"the limit of {self._limits.seconds:g} seconds")
            case "BYTES":
                self._frontier.skip_rest("LIMIT", f"the limit of {self._limits.bytes:,} bytes")
            case "STOPPED":
                return
            case _:
                self._archive.end(self._run)
        seeds = [self._frontier.visits[url] for iri in self.seeds if (url := document_url(iri.value)) is not None]
        if seeds and not self._arrived:
            reasons = "\n".join(f"  {visit.url}: {visit.reason}" for visit in seeds[:5])
            hint = "check the IRIs, or start from others with --seed"
            if any(visit.problem == "REFUSED_ADDRESS" for visit in seeds):
                hint = "hosts at private addresses are refused unless they are named: --allow HOST"
            raise TraversalFailed(f"no IRI to start from led to a document\n{reasons}", hint=hint)
