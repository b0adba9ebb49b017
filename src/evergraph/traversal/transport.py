"""HTTP/1.1 and HTTP/2 over connections that go only where they may.

Names are resolved and checked when a connection is made, and the connection goes to the very address that was checked:
a name that changes its address in between, or a redirect, leads nowhere else.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import httpcore
import httpx

from evergraph.traversal.addresses import AddressGuard, RefusedAddress, addresses_of


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to addresses that the guard lets through."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of a host that answers, of those that are allowed."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                found = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"the name {host} was not resolved in time") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host}: {getattr(error, 'strerror', None) or error}") from error
        problem: Exception | None = None
        for address in self._guard.choose(host, port, addresses_of(found)):
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
        assert problem is not None
        raise problem

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@lru_cache(maxsize=4)
def _trust(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Read whom to trust, from where httpx looks for it; this takes longer than many a traversal."""
    return httpx.create_ssl_context()


class GuardedTransport(httpx.AsyncBaseTransport):
    """The transport of a client whose connections are guarded. It knows no proxies: they would connect anywhere."""

    def __init__(self, guard: AddressGuard, *, connections: int) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=_trust(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=15,
            http1=True,
            http2=True,
            network_backend=GuardedBackend(guard),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request."""
        wire = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            extensions=request.extensions,
        )
        with _translated():
            answer = await self._pool.handle_async_request(wire)
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated():
            async for part in self._answer.aiter_stream():
                yield part

    async def aclose(self) -> None:
        await self._answer.aclose()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except RefusedAddress:
        raise
    except httpcore.TimeoutException as error:
        raise httpx.ReadTimeout(str(error) or "no answer in time") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
        raise httpx.TransportError(str(error) or type(error).__name__) from error
