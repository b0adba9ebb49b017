"""Fetching: one address to a document, through redirects, caches and robots.txt, or to the reason why there is none."""

import asyncio
import time
from dataclasses import dataclass, field, replace
from http.cookiejar import DefaultCookiePolicy

import httpx

from evergraph.errors import EvergraphError
from evergraph.traversal import robots
from evergraph.traversal.addresses import AddressGuard, RefusedAddress
from evergraph.traversal.archive import Answer, Archive
from evergraph.traversal.documents import ACCEPT, Content, alternate, is_rdf, read_document
from evergraph.traversal.freshness import fresh_until, retry_after, validators
from evergraph.traversal.hosts import Hosts
from evergraph.traversal.iris import joined, origin
from evergraph.traversal.options import Limits, Manners
from evergraph.traversal.robots import EVERYTHING, Robots, parse_robots
from evergraph.traversal.transport import GuardedTransport

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_TRY_AGAIN = frozenset((429, 503))
_RULES_GOOD, _RULES_FAILED = 86_400.0, 60.0
"""Seconds until a host is asked for its robots.txt again, after an answer and after none."""
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


class Fault(Exception):
    """Ends the fetching of one address."""

    def __init__(self, kind: str, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.kind = kind
        self.passing = passing


@dataclass(slots=True)
class _Exchange:
    """What one address answered, and whether a server had to send it."""

    answer: Answer
    cached: bool


@dataclass(slots=True)
class Traffic:
    """How much has been asked and received."""

    requests: int = 0
    bytes: int = 0
    by_origin: dict[str, int] = field(default_factory=dict)


class Fetcher:
    """Fetches documents; to be used within one event loop."""

    def __init__(self, manners: Manners, limits: Limits, archive: Archive) -> None:
        self._manners = manners
        self._archive = archive
        self._limits = limits
        self._client = httpx.AsyncClient(
            transport=GuardedTransport(AddressGuard(manners.allowed), connections=manners.concurrency + 4),
            headers={"User-Agent": manners.agent, "Accept": ACCEPT, "Accept-Encoding": "gzip, deflate"},
            timeout=manners.timeout,
            follow_redirects=False,
            trust_env=False,
        )
        self._client.cookies.jar.set_policy(_NoCookies())
        self._hosts = Hosts(manners.per_host, manners.delay)
        self._room = asyncio.Semaphore(manners.concurrency)
        self._robots: dict[str, tuple[float, asyncio.Task[Robots]]] = {}
        self._under_way: dict[str, asyncio.Task[_Exchange]] = {}
        self.traffic = Traffic()

    async def fetch(self, url: str, since: float) -> Document | Problem:
        """Fetch what an address leads to. What was received ``since`` is not asked for again."""
        begin = time.monotonic()
        try:
            found = await self._follow(url, since)
        except Fault as fault:
            return Problem(url, fault.kind, str(fault), fault.passing, time.monotonic() - begin)
        except EvergraphError as error:
            return Problem(url, "BROKEN_DOCUMENT", error.message, False, time.monotonic() - begin)
        return replace(found, seconds=time.monotonic() - begin)

    async def close(self) -> None:
        """Close all connections."""
        for task in (*(one for _, one in self._robots.values()), *self._under_way.values()):
            task.cancel()
        await self._client.aclose()

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
        if len(answer.body) > _LARGE:
            content = await asyncio.to_thread(read_document, answer.body, media_type, current)
        else:
            content = read_document(answer.body, media_type, current)
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
        answer = await self._request(url, validators(known.headers) if known is not None else {})
        if answer.status == 304 and known is not None:
            news = {name: value for name, value in answer.headers.items() if not name.startswith("content-")}
            answer = replace(known, headers={**known.headers, **news}, received=answer.received)
            self._archive.keep(answer)
            return _Exchange(answer, cached=True)
        if answer.status == 200 or answer.status in _REDIRECTS:
            self._archive.keep(answer)
            return _Exchange(answer, cached=False)
        passing = answer.status >= 500 or answer.status in (408, 425, 429)
        raise Fault("HTTP_STATUS", f"the server answers {answer.status}", passing=passing)

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
                answer = await self._request(url, {"Accept": "text/plain, */*;q=0.1"}, most=robots.LARGEST, cut=True)
                target = joined(url, answer.headers.get("location", ""))
                if answer.status not in _REDIRECTS or target is None:
                    break
                url = target
        except Fault as fault:
            raise Fault(fault.kind, f"{fault} (for robots.txt)", passing=fault.passing) from fault
        if answer.status == 200:
            rules = parse_robots(answer.body.decode("utf-8", "replace"))
            self._hosts.set_delay(place, rules.delay)
            return rules
        if answer.status >= 500 or answer.status == 429:
            raise Fault("ROBOTS", f"the server answers {answer.status} for robots.txt", passing=True)
        return EVERYTHING

    async def _request(self, url: str, headers: dict[str, str], most: int | None = None, cut: bool = False) -> Answer:
        """Send a request; again, after a pause, if the server asks for that or the connection breaks."""
        place = origin(url)
        for attempt in range(self._manners.retries + 1):
            last = attempt == self._manners.retries
            try:
                async with self._hosts.turn(place), self._room:
                    answer = await self._once(url, headers, self._limits.document_bytes if most is None else most, cut)
            except Fault as fault:
                if last or fault.kind != "CONNECTION":
                    raise
                await asyncio.sleep(0.1 * 2**attempt)
                continue
            if answer.status not in _TRY_AGAIN or last:
                return answer
            wait = retry_after(answer.headers)
            wait = 0.5 * 2**attempt if wait is None else wait
            if wait > self._manners.longest_wait:
                raise Fault("RETRY_AFTER", f"the server asks to wait {wait:.0f} s", passing=True)
            self._hosts.silence(place, wait)
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, url: str, headers: dict[str, str], most: int, cut: bool) -> Answer:
        self.traffic.requests += 1
        place = origin(url)
        self.traffic.by_origin[place] = self.traffic.by_origin.get(place, 0) + 1
        try:
            async with asyncio.timeout(self._manners.timeout), self._client.stream("GET", url, headers=headers) as got:
                body = await self._body(got, most, cut)
        except TimeoutError as error:
            raise Fault("TIMEOUT", f"no whole answer within {self._manners.timeout:g} s", passing=True) from error
        except RefusedAddress as error:
            raise Fault("REFUSED_ADDRESS", str(error)) from error
        except httpx.TimeoutException as error:
            raise Fault("TIMEOUT", str(error) or "no answer in time", passing=True) from error
        except httpx.DecodingError as error:
            raise Fault("BROKEN_DOCUMENT", f"the body is not compressed as declared: {error}") from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise Fault("CONNECTION", str(error) or type(error).__name__, passing=True) from error
        names = {name.lower(): value for name, value in got.headers.items()}
        return Answer(url, got.status_code, names, body, time.time())

    async def _body(self, got: httpx.Response, most: int, cut: bool) -> bytes:
        if got.status_code != 200:
            return b""
        declared = got.headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:18]) > most and not cut:
            raise Fault("TOO_LARGE", f"the document has {int(declared[:18]):,} bytes, and {most:,} are allowed")
        parts: list[bytes] = []
        size = 0
        async for part in got.aiter_bytes():
            parts.append(part)
            size += len(part)
            self.traffic.bytes += len(part)
            if size > most:
                if cut:
                    break
                raise Fault("TOO_LARGE", f"the document has more than the {most:,} bytes that are allowed")
            if self.traffic.bytes > self._limits.bytes:
                raise Fault("LIMIT", f"all documents together have more than {self._limits.bytes:,} bytes")
        return b"".join(parts)[:most]


def _elsewhere(answer: Answer) -> str | None:
    """Return where a page that is not RDF says that its RDF is."""
    if is_rdf(answer.headers.get("content-type", ""), answer.url):
        return None
    return alternate(answer.headers)


def _has_failed(task: asyncio.Task[Robots]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


class _NoCookies(DefaultCookiePolicy):
    """Nobody is remembered across requests."""

    def set_ok(self, cookie: object, request: object) -> bool:
        return False
