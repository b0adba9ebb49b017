"""An HTTP proxy on loopback between a client and a server, for things to go wrong in."""

import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.support.servers import Server


class Fault(Enum):
    """What may happen to a request."""

    CUT_BEFORE = auto()
    """The connection breaks, and the server never sees the request."""
    CUT_AFTER = auto()
    """The server does what it was asked; the connection breaks before the answer."""
    LATE = auto()
    """The connection breaks, and the server does it some time later."""
    SLOW = auto()
    """The answer takes longer than anybody waits."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that the server never gave."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    """The length that it claims to have."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came; ``number`` counts from 1 since the last `Proxy.begin`."""

    number: int
    path: str
    body: bytes
    headers: Mapping[str, str]

    @property
    def is_update(self) -> bool:
        return self.path.endswith("/update")


Behaviour = Callable[[Asked], Fault | Answer | None]


class Proxy:
    """Passes requests on, or does to them what a test asks for."""

    def __init__(self, upstream: Server, port: int) -> None:
        self.query_url = f"http://127.0.0.1:{port}/query"
        self.update_url = f"http://127.0.0.1:{port}/update"
        self.late: list[threading.Timer] = []
        self._upstream = urlsplit(upstream.query_url)
        self.begin()

    def begin(self, behaviour: Behaviour = lambda asked: None) -> None:
        """Count from 1 again, with another behaviour."""
        self.behaviour = behaviour
        self.asked: list[Asked] = []

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Deal with one request."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        asked = Asked(len(self.asked) + 1, handler.path, body, dict(handler.headers))
        self.asked.append(asked)
        match self.behaviour(asked):
            case None:
                _reply(handler, self._forward(handler, asked))
            case Answer() as made_up:
                _reply(handler, made_up)
            case Fault.CUT_BEFORE:
                handler.close_connection = True
            case Fault.CUT_AFTER:
                self._forward(handler, asked)
                handler.close_connection = True
            case Fault.LATE:
                self.late.append(threading.Timer(0.2, self._forward, (handler, asked)))
                self.late[-1].start()
                handler.close_connection = True
            case Fault.SLOW:
                answer = self._forward(handler, asked)
                time.sleep(1)
                with suppress(OSError):
                    _reply(handler, answer)

    def settle(self) -> None:
        """Wait until everything late has arrived."""
        for timer in self.late:
            timer.join()

    def _forward(self, handler: BaseHTTPRequestHandler, asked: Asked) -> Answer:
        connection = http.client.HTTPConnection(str(self._upstream.hostname), self._upstream.port, timeout=60)
        try:
            kept = {name: value for name, value in asked.headers.items() if name in ("Content-Type", "Accept")}
            connection.request(handler.command, asked.path, asked.body, kept)
            response = connection.getresponse()
            headers = {name: value for name, value in response.getheaders() if name in ("content-type", "server")}
            return Answer(response.status, response.read(), headers)
        finally:
            connection.close()


def _reply(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
    handler.send_response_only(answer.status)
    for name, value in answer.headers.items():
        handler.send_header(name, value)
    if answer.status != http.client.NO_CONTENT:
        handler.send_header("Content-Length", str(len(answer.body) if answer.length is None else answer.length))
    handler.end_headers()
    handler.wfile.write(answer.body)
    if answer.length is not None:
        handler.close_connection = True


@contextmanager
def running(upstream: Server) -> Iterator[Proxy]:
    """Run a proxy in front of an Oxigraph server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer is one packet; in two, the second would wait for the first to be acknowledged

        def do_GET(self) -> None:
            proxy.answer(self)

        def do_POST(self) -> None:
            proxy.answer(self)

        def log_message(self, *arguments: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        proxy = Proxy(upstream, server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.settle()
            server.shutdown()
            thread.join()
