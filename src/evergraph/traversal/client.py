"""Requests: polite, bounded, and answered or refused with a reason."""

import asyncio
import time
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy

import httpx

from evergraph.traversal.addresses import AddressGuard, RefusedAddress
from evergraph.traversal.archive import Answer
from evergraph.traversal.compression import Inflater
from evergraph.traversal.documents import ACCEPT
from evergraph.traversal.freshness import retry_after
from evergraph.traversal.hosts import Hosts
from evergraph.traversal.iris import origin
from evergraph.traversal.options import Limits, Manners
from evergraph.traversal.transport import GuardedTransport

_TRY_AGAIN = frozenset((429, 503))


class Fault(Exception):
    """Ends the fetching of one address."""

    def __init__(self, kind: str, reason: str, *, passing: bool = False, gone: str | None = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.passing = passing
        self.gone = gone


@dataclass(slots=True)
class Traffic:
    """How much has been asked and received."""

    requests: int = 0
    bytes: int = 0
    by_origin: dict[str, int] = field(default_factory=dict)


class Client:
    """Sends requests, within one event loop; knows nothing of redirects and caches."""

    def __init__(self, manners: Manners, limits: Limits) -> None:
        self._manners = manners
        self._limits = limits
        self._client = httpx.AsyncClient(
            transport=GuardedTransport(AddressGuard(manners.allowed), connections=manners.concurrency + 4),
            headers={"User-Agent": manners.agent, "Accept": ACCEPT, "Accept-Encoding": "gzip, deflate"},
            timeout=manners.timeout,
            follow_redirects=False,
            trust_env=False,
        )
        self._client.cookies.jar.set_policy(_NoCookies())
        self._room = asyncio.Semaphore(manners.concurrency)
        self.hosts = Hosts(manners.per_host, manners.delay)
        self.traffic = Traffic()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def request(self, url: str, headers: dict[str, str], most: int | None = None, cut: bool = False) -> Answer:
        """Send a request; again, after a pause, if the server asks for that or the connection breaks."""
        place = origin(url)
        for attempt in range(self._manners.retries + 1):
            last = attempt == self._manners.retries
            try:
                async with self.hosts.turn(place), self._room:
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
            self.hosts.silence(place, wait)
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
        except httpx.InvalidURL as error:
            raise Fault("BAD_REDIRECT", f"it redirects to no address: {error}") from error
        except zlib.error as error:
            raise Fault("BROKEN_DOCUMENT", f"the body is not compressed as declared: {error}") from error
        except (httpx.HTTPError, httpx.StreamError) as error:
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
        async for part in _pieces(got):
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


async def _pieces(got: httpx.Response) -> AsyncIterator[bytes]:
    """Give the body piece by piece, decompressed."""
    coding = got.headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        async for part in got.aiter_raw():
            yield part
        return
    inflater = Inflater(coding)
    async for part in got.aiter_raw():
        for piece in inflater.feed(part):
            yield piece
    yield inflater.end()


class _NoCookies(DefaultCookiePolicy):
    """Nobody is remembered across requests."""

    def set_ok(self, cookie: object, request: object) -> bool:
        return False
