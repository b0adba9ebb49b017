"""The frontier: which IRIs are known, which addresses to ask next, and what became of each."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from evergraph.terms import NamedNode
from evergraph.traversal.fetching import Document, Problem
from evergraph.traversal.iris import document_url, origin
from evergraph.traversal.options import Limits

_LIMITS = frozenset(("LIMIT", "HOST_LIMIT"))
"""Problems that are ours: a limit keeps an address out."""


class State(StrEnum):
    """What became of an address."""

    QUEUED = "queued"
    UNDER_WAY = "under way"
    FETCHED = "fetched"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(slots=True)
class Visit:
    """An address: how it was found, and what became of it."""

    url: str
    host: str
    """Its origin, which the limits per host are about."""
    rank: int
    depth: int
    found_in: str | None
    """The document in which its IRI was found first; None for seeds and for solutions of several documents."""
    iris: list[NamedNode] = field(default_factory=list)
    state: State = State.QUEUED
    document: str | None = None
    """The address of the document, after redirects."""
    via: tuple[str, ...] = ()
    media_type: str = ""
    triples: int = 0
    size: int = 0
    cached: bool = False
    problem: str = ""
    """A stable name for why it failed or was skipped."""
    reason: str = ""
    forged: int = 0
    elsewhere: int = 0
    seconds: float = 0.0
    failures: int = 0

    def settle(self, outcome: Document | Problem) -> None:
        """Note what became of it. A failure leaves what is known of the document; `lose` forgets it."""
        self.seconds = outcome.seconds
        if isinstance(outcome, Problem):
            self.state = State.SKIPPED if outcome.kind in _LIMITS else State.FAILED
            self.problem, self.reason = outcome.kind, outcome.reason
            self.failures += 1
            return
        self.state, self.problem, self.reason, self.failures = State.FETCHED, "", "", 0
        self.document, self.via, self.media_type = outcome.document, outcome.via, outcome.media_type
        self.triples, self.size, self.cached = len(outcome.content.triples), outcome.size, outcome.cached
        self.forged, self.elsewhere = outcome.content.forged, outcome.content.elsewhere

    def lose(self) -> None:
        """Forget the document: it is gone."""
        self.document, self.via, self.media_type = None, (), ""
        self.triples = self.size = self.forged = self.elsewhere = 0
        self.cached = False


class Frontier:
    """Orders addresses by rank, depth and discovery, and keeps to the limits."""

    def __init__(self, limits: Limits, window: int) -> None:
        self._limits = limits
        self._window = window
        self.visits: dict[str, Visit] = {}
        self._of: dict[NamedNode, str] = {}
        self._heap: list[tuple[int, int, int, str]] = []
        self._parked: dict[str, list[tuple[int, int, int, str]]] = {}
        self._busy: dict[str, int] = {}
        self._asked: dict[str, int] = {}
        self._order = 0
        self.asked = 0
        self.unlisted = 0
        """Links that came when there was no room to list them."""
        self.counts = dict.fromkeys(State, 0)

    def add(self, iri: NamedNode, rank: int, depth: int, found_in: str | None) -> Visit | None:
        """Add an IRI; return its visit if that is news. One without an address is none."""
        known = self._of.get(iri)
        url = known or document_url(iri.value)
        if url is None:
            return None
        visit = self.visits.get(url)
        if visit is None and len(self.visits) >= self._limits.known:
            self.unlisted += 1
            return None
        if visit is None:
            visit = self.visits[url] = Visit(url, origin(url), rank, depth, found_in)
            self.counts[State.QUEUED] += 1
            self._enqueue(visit)
        elif rank < visit.rank or depth < visit.depth:
            self._improve(visit, rank, depth)
        if known is not None:
            return None
        self._of[iri] = url
        visit.iris.append(iri)
        return visit

    def of(self, iri: NamedNode) -> Visit:
        """Return the visit of a known IRI."""
        return self.visits[self._of[iri]]

    def lose(self, visit: Visit, reason: str) -> None:
        """Note that the document of an address is gone, whoever found out."""
        visit.lose()
        if visit.state is State.FETCHED:
            visit.problem, visit.reason = "GONE", reason
            self.move(visit, State.FAILED)

    def prefer(self, iri: NamedNode, rank: int) -> None:
        """Let a known IRI come earlier; what would be news is left alone."""
        if (url := self._of.get(iri)) is not None and rank < self.visits[url].rank:
            self._improve(self.visits[url], rank, self.visits[url].depth)

    @property
    def is_empty(self) -> bool:
        """Whether no address waits to be asked."""
        return not self.counts[State.QUEUED]

    def depth(self, iri: NamedNode) -> int:
        """Tell how many links away a known IRI is."""
        return self.of(iri).depth

    def next(self) -> Visit | None:
        """Take the best address whose host has room; None if there is none now."""
        while self._heap:
            entry = heapq.heappop(self._heap)
            visit = self.visits[entry[3]]
            if visit.state is not State.QUEUED or entry[:2] != (visit.rank, visit.depth):
                self._unpark(visit.host)  # a better entry stands for it, or it is done
                continue
            if self.asked >= self._limits.documents:
                self.skip(visit, "LIMIT", f"the limit of {self._limits.documents:,} documents")
                self._unpark(visit.host)
                continue
            host = visit.host
            if self._asked.get(host, 0) >= self._limits.per_host:
                self.skip(visit, "LIMIT", f"the limit of {self._limits.per_host:,} documents of one host")
                self._unpark(host)
                continue
            if self._busy.get(host, 0) >= self._window:
                heapq.heappush(self._parked.setdefault(host, []), entry)
                continue
            self.asked += 1
            self._asked[host] = self._asked.get(host, 0) + 1
            self._busy[host] = self._busy.get(host, 0) + 1
            self.move(visit, State.UNDER_WAY)
            return visit
        return None

    def settle(self, visit: Visit, outcome: Document | Problem) -> None:
        """Note what became of an address that was taken, and let the next one of its host come."""
        before = visit.state
        visit.settle(outcome)
        self._counted(before, visit.state)
        if before is State.UNDER_WAY:
            self._busy[visit.host] -= 1
            self._unpark(visit.host)

    def skip(self, visit: Visit, problem: str, reason: str) -> None:
        """Leave an address out."""
        visit.problem, visit.reason = problem, reason
        self.move(visit, State.SKIPPED)

    def skip_rest(self, problem: str, reason: str) -> None:
        """Leave out everything that has not been done."""
        for visit in self.visits.values():
            if visit.state in (State.QUEUED, State.UNDER_WAY):
                self.skip(visit, problem, reason)

    def move(self, visit: Visit, state: State) -> None:
        """Change what counts as the state of an address."""
        before, visit.state = visit.state, state
        self._counted(before, state)

    def open(self) -> Iterator[Visit]:
        """Iterate over what is not done."""
        return (visit for visit in self.visits.values() if visit.state in (State.QUEUED, State.UNDER_WAY))

    def _unpark(self, host: str) -> None:
        """Let the next address of a host that was full come. Whatever leaves the heap without being asked does this."""
        if parked := self._parked.get(host):
            heapq.heappush(self._heap, heapq.heappop(parked))

    def _improve(self, visit: Visit, rank: int, depth: int) -> None:
        if visit.state is State.QUEUED or visit.problem == "DEPTH":
            visit.rank, visit.depth = min(rank, visit.rank), min(depth, visit.depth)
            self._enqueue(visit)

    def _counted(self, before: State, after: State) -> None:
        self.counts[before] -= 1
        self.counts[after] += 1

    def _enqueue(self, visit: Visit) -> None:
        if visit.depth > self._limits.depth:
            self.skip(visit, "DEPTH", f"more than {self._limits.depth} links away")
            return
        if visit.state is State.SKIPPED:
            visit.problem = visit.reason = ""
            self.move(visit, State.QUEUED)
        self._order += 1
        heapq.heappush(self._heap, (visit.rank, visit.depth, self._order, visit.url))
