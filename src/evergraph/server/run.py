"""Runs a broker until it is told to stop."""

import asyncio
import contextlib
import gc
import itertools
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Iterator

import uvicorn

from evergraph.database import Database
from evergraph.errors import UsageError
from evergraph.server.access import Access
from evergraph.server.app import App
from evergraph.server.auth import Clients
from evergraph.server.broker import Broker
from evergraph.server.limits import RateLimit
from evergraph.server.logs import tell
from evergraph.server.settings import Settings

_BACKLOG = 2_048
_FORGET_EVERY = 60.0
_THRESHOLDS = (10_000, 10, 1_000)
"""How many objects come, younger collections go, and middle ones, before Python collects garbage by itself."""
_COLLECT_EVERY = 10
"""After how many times forgetting old subscriptions, garbage is looked for among all objects."""


def collect() -> None:
    """Look for garbage among all objects, and not again among those that stay.

    With thousands of subscriptions this takes a tenth of a second, in which nobody is told anything. By itself, Python
    does it whenever the objects have become a quarter more.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Running:
    """A broker with its sockets."""

    def __init__(self, database: Database, settings: Settings, jsap: bytes | None = None) -> None:
        self.settings = settings
        self.broker = Broker(database, settings)
        self._jsap = jsap
        self._servers: list[_Server] = []
        self._sockets: list[socket.socket] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to listen."""
        settings = self.settings
        ports = [settings.port] + ([settings.ws_port] if settings.ws_port is not None else [])
        clients = Clients(
            settings.folder,
            open_to_all=settings.registration,
            identities=settings.identities,
            seconds=settings.token_seconds,
        )
        access = Access(clients, RateLimit(settings.limits.requests_per_second), settings.require_tokens)
        self._sockets = [_listen(settings.host, port) for port in ports]
        await self.broker.start()
        app = App(self.broker, access, self._jsap)
        for one in self._sockets:
            server = _Server(_config(app, settings))
            self._servers.append(server)
            self._tasks.append(asyncio.create_task(server.serve([one])))
        while not all(server.started for server in self._servers):
            if any(task.done() for task in self._tasks):
                await asyncio.gather(*self._tasks)
            await asyncio.sleep(0.01)
        self._sweeper = asyncio.create_task(self._sweep())

    @property
    def addresses(self) -> list[str]:
        """Where the broker listens: first for HTTP, then for WebSockets, if that has a port of its own."""
        scheme = "https" if self.settings.certificate else "http"
        host = f"[{self.settings.host}]" if ":" in self.settings.host else self.settings.host
        return [f"{scheme}://{host}:{one.getsockname()[1]}" for one in self._sockets]

    async def stop(self) -> None:
        """Finish what was begun, and close everything."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self.broker.stop()
        for server in self._servers:
            server.should_exit = True
        await asyncio.gather(*self._tasks)

    async def _sweep(self) -> None:
        for number in itertools.count(1):
            await asyncio.sleep(_FORGET_EVERY)
            self.broker.registry.forget_old()
            self.broker.registry.commit()
            if number % _COLLECT_EVERY == 0:
                collect()


def _config(app: App, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        http="httptools",
        ws="websockets-sansio",
        ws_max_size=settings.limits.message_bytes,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        ws_per_message_deflate=False,
        limit_concurrency=None,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )


def _listen(host: str, port: int) -> socket.socket:
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        one = socket.socket(family, kind, protocol)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(address)
        one.listen(_BACKLOG)
        one.setblocking(False)
    except OSError as error:
        raise UsageError(
            f"cannot listen at {host}:{port}: {error.strerror}", hint="another program may use the port; see --port"
        ) from error
    return one


def check_certificate(settings: Settings) -> None:
    """See that certificate and key fit."""
    if settings.certificate is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(settings.certificate, settings.key)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"the certificate {settings.certificate} cannot be used: {error}") from error


async def run(database: Database, settings: Settings, ready: Callable[[list[str]], None], jsap: bytes | None) -> None:
    """Run a broker until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop.set)
    running = Running(database, settings, jsap)
    await running.start()
    gc.set_threshold(*_THRESHOLDS)
    collect()
    ready(running.addresses)
    await stop.wait()
    tell("shutting down", logging.INFO, subscriptions=len(running.broker.registry.live))
    await running.stop()
