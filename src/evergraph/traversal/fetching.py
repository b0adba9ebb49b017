"""Fetching: one address to a document, through redirects, caches and robots.txt, or to the reason why there is none."""

import asyncio
import time
from dataclasses import dataclass, replace

from evergraph.errors import DataError, EvergraphError, SyntaxProblem
from evergraph.traversal import robots
from evergraph.traversal.archive import Answer, Archive
from evergraph.traversal.client import Client, Fault
from evergraph.traversal.documents import Content, alternate, is_rdf, read_document
from evergraph.traversal.freshness import fresh_until, validators
from evergraph.traversal.iris import joined, origin
from evergraph.traversal.options import Limits, Manners
from evergraph.traversal.robots import EVERYTHING, Robots, parse_robots

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_GONE = frozenset((404, 410))
_RULES_GOOD, _RULES_FAILED = 86_400.0, 60.0
"""Seconds until a host is asked for its robots.txt again, after an answer and after none."""
_PLAIN = {"Accept": "text/plain, */*;q=0.1"}
_LARGE = 200_000
"""Bytes from which a document is parsed beside the event loop."""


@dataclass(frozen=True, slots=True)
class Document:
    """What an address led to: the document there, after the addresses in ``via``."""

    url: str
    document: str
    content: Content
    via: tuple[str, ...]
    media_type: str
    size: int
    cached: bool
    """Whether no server had to send it: it was in the cache, fresh or confirmed."""
    fresh_until: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an address led to no document. ``passing``: it may be otherwise later; ``kind`` is a stable name."""

    url: str
    kind: str
    reason: str
    passing: bool
    seconds: float = 0.0
    gone: str | None = None
    """The address, of those that were asked on the way, of which the server says that nothing is there."""


@dataclass(slots=True)
class _Exchange:
    """What one address answered, whether a server had to send it, and what was kept before."""

    answer: Answer
    cached: bool
    before: Answer | None = None


class Fetcher:
    """Fetches documents; to be used within one event loop."""

    def __init__(self, manners: Manners, limits: Limits, archive: Archive) -> None:
        self._manners = manners
        self._archive = archive
        self._limits = limits
        self._client = Client(manners, limits)
        self._robots: dict[str, tuple[float, asyncio.Task[Robots]]] = {}
        self._under_way: dict[str, asyncio.Task[_Exchange]] = {}
        self.traffic = self._client.traffic

    async def fetch(self, url: str, since: float) -> Document | Problem:
        """Fetch what an address leads to. What was received ``since`` is not asked for again."""
        begin = time.monotonic()
        try:
            found = await self._follow(url, since)
        except Fault as fault:
            return Problem(url, fault.kind, str(fault), fault.passing, time.monotonic() - begin, fault.gone)
        return replace(found, seconds=time.monotonic() - begin)

    async def close(self) -> None:
        """Close all connections."""
        for task in (*(one for _, one in self._robots.values()), *self._under_way.values()):
            task.cancel()
        await self._client.close()

    async def _follow(self, url: str, since: float) -> Document:
        via: list[str] = []
        until: list[float] = []
        cached = True
        current = url
        while True:
            exchange = await self._shared(current, since)
            answer = exchange.answer
            cached = cached and exchange.cached
            good = fresh_until(answer.headers, answer.received)
            location = answer.headers.get("location") if answer.status in _REDIRECTS else _elsewhere(answer)
            if location is None and answer.status not in _REDIRECTS:
                break
            if good is not None and good > answer.received:
                until.append(good)
            via.append(current)
            target = None if location is None else joined(current, location)
            if target is None:
                raise Fault("BAD_REDIRECT", f"{current} redirects to {'nowhere' if location is None else location!r}")
            if target in via:
                raise Fault("REDIRECT_LOOP", f"{target} redirects to itself, over {len(via)} redirects")
            if len(via) > self._manners.redirects:
                raise Fault("REDIRECT_LOOP", f"more than {self._manners.redirects} redirects")
            if origin(target) != origin(url) and self.traffic.by_origin.get(origin(target), 0) > self._limits.per_host:
                raise Fault("HOST_LIMIT", f"more than {self._limits.per_host:,} requests lead to {origin(target)}")
            current = target
        media_type = answer.headers.get("content-type", "")
        try:
            if len(answer.body) > _LARGE:
                content = await asyncio.to_thread(read_document, answer.body, media_type, current)
            else:
                content = read_document(answer.body, media_type, current)
        except (DataError, SyntaxProblem, ValueError, RecursionError) as error:
            if exchange.before is not None:  # what counts is still the document that could be read
                self._archive.keep(exchange.before)
            reason = error.message if isinstance(error, EvergraphError) else f"cannot be read: {error}"
            raise Fault("BROKEN_DOCUMENT", reason) from error
        if good is not None:
            until.append(good)
        return Document(
            url, current, content, tuple(via), media_type, len(answer.body), cached, min(until, default=None), 0.0
        )

    async def _shared(self, url: str, since: float) -> _Exchange:
        """Let those that want the same address at the same time share one request."""
        if url not in self._under_way:
            task = asyncio.create_task(self._exchange(url, since))
            self._under_way[url] = task
            task.add_done_callback(lambda done: self._under_way.pop(url, None))
        return await asyncio.shield(self._under_way[url])

    async def _exchange(self, url: str, since: float) -> _Exchange:
        known = self._archive.answer(url)
        if known is not None and known.is_good(time.time(), since):
            return _Exchange(known, cached=True)
        if not (await self._rules(origin(url))).allows(url):
            raise Fault("ROBOTS", "robots.txt does not allow it")
        answer = await self._client.request(url, validators(known.headers) if known is not None else {})
        if answer.status == 304 and known is not None:
            news = {name: value for name, value in answer.headers.items() if not name.startswith("content-")}
            answer = replace(known, headers={**known.headers, **news}, received=answer.received)
            self._archive.keep(answer)
            return _Exchange(answer, cached=True)
        if answer.status == 200 or answer.status in _REDIRECTS:
            self._archive.keep(answer)
            return _Exchange(answer, cached=False, before=known)
        passing = answer.status >= 500 or answer.status in (408, 425, 429)
        gone = url if answer.status in _GONE else None
        if gone is not None:
            self._archive.drop(url)
        raise Fault("HTTP_STATUS", f"the server answers {answer.status}", passing=passing, gone=gone)

    async def _rules(self, place: str) -> Robots:
        if not self._manners.robots:
            return EVERYTHING
        known = self._robots.get(place)
        if known is None or time.monotonic() > known[0] + (_RULES_FAILED if _has_failed(known[1]) else _RULES_GOOD):
            known = (time.monotonic(), asyncio.create_task(self._ask_rules(place)))
            self._robots[place] = known
        return await asyncio.shield(known[1])

    async def _ask_rules(self, place: str) -> Robots:
        """Ask for robots.txt. A host that cannot tell its rules is not to be asked anything (RFC 9309, 2.3.1.4)."""
        url = f"{place}/robots.txt"
        try:
            for _ in range(5):
                answer = await self._client.request(url, _PLAIN, most=robots.LARGEST, cut=True)
                target = joined(url, answer.headers.get("location", ""))
                if answer.status not in _REDIRECTS or target is None:
                    break
                url = target
        except Fault as fault:
            raise Fault(fault.kind, f"{fault} (for robots.txt)", passing=fault.passing) from fault
        if answer.status == 200:
            rules = parse_robots(answer.body.decode("utf-8", "replace"))
            self._client.hosts.set_delay(place, rules.delay)
            return rules
        if answer.status >= 500 or answer.status == 429:
            raise Fault("ROBOTS", f"the server answers {answer.status} for robots.txt", passing=True)
        return EVERYTHING


def _elsewhere(answer: Answer) -> str | None:
    """Return where a page that is not RDF says that its RDF is."""
    if is_rdf(answer.headers.get("content-type", ""), answer.url):
        return None
    return alternate(answer.headers)


def _has_failed(task: asyncio.Task[Robots]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
