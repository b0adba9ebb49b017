"""A small web on loopback: documents, redirects, and servers that are slow, broken, huge or lying."""

import gzip
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias
from urllib.parse import urlsplit

from pyoxigraph import RdfFormat, parse, serialize

Headers: TypeAlias = Mapping[str, str]


@dataclass(slots=True)
class Reply:
    """What the server says. ``truncate`` cuts the body off after it has promised all of it."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    truncate: bool = False
    endless: bool = False
    drip: float = 0.0


@dataclass(slots=True)
class Asked:
    """A request that came."""

    path: str
    headers: dict[str, str]
    at: float


Handler: TypeAlias = Callable[[Asked], Reply]


class Web:
    """The routes of one server, and what has been asked of it. IRIs are those under ``base``."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}/"
        self.host = f"127.0.0.1:{port}"
        self.routes: dict[str, Handler] = {}
        self.asked: list[Asked] = []
        self.busy = self.busiest = 0
        self.lock = threading.Lock()

    def iri(self, name: str) -> str:
        return self.base + name

    def paths(self) -> list[str]:
        """Return the paths that were asked for, in order, without robots.txt."""
        return [one.path for one in self.asked if one.path != "/robots.txt"]

    def turtle(self, name: str, text: str, *, headers: Headers | None = None, delay: float = 0.0) -> None:
        """Serve a document in Turtle; ``:`` is the prefix of this web."""
        body = f"@prefix : <{self.base}> .\n{text}".encode()
        given = {"Content-Type": "text/turtle", **(headers or {})}
        self.reply(name, Reply(body, headers=given, delay=delay))

    def reply(self, name: str, reply: Reply) -> None:
        """Answer always the same."""
        self.routes["/" + name] = lambda asked: reply

    def redirect(self, name: str, target: str, status: int = 303, headers: Headers | None = None) -> None:
        self.reply(name, Reply(status=status, headers={"Location": target, **(headers or {})}))

    def versions(self, name: str, *texts: str, headers: Headers | None = None) -> None:
        """Serve one text after the other, with an ETag that changes with the text; the last one stays."""
        count = [0]

        def handler(asked: Asked) -> Reply:
            number = min(count[0], len(texts) - 1)
            count[0] += 1
            etag = f'"{hash(texts[number])}"'
            given = {"Content-Type": "text/turtle", "ETag": etag, **(headers or {})}
            if asked.headers.get("if-none-match") == etag:
                return Reply(status=304, headers=given)
            return Reply(f"@prefix : <{self.base}> .\n{texts[number]}".encode(), headers=given)

        self.routes["/" + name] = handler

    def negotiated(self, name: str, text: str, only: RdfFormat | None = None) -> None:
        """Serve a document in the syntax that the client likes best, or always in one."""
        quads = list(parse(f"@prefix : <{self.base}> .\n{text}".encode(), RdfFormat.TURTLE, base_iri=self.iri(name)))

        def handler(asked: Asked) -> Reply:
            syntax = only or RdfFormat.from_media_type(asked.headers.get("accept", "").split(",")[0].split(";")[0])
            assert syntax is not None
            media_type = syntax.media_type
            return Reply(serialize(quads, format=syntax) or b"", headers={"Content-Type": media_type})

        self.routes["/" + name] = handler

    def answer(self, asked: Asked) -> Reply:
        with self.lock:
            self.asked.append(asked)
        handler = self.routes.get(urlsplit(asked.path).path)
        return Reply(status=404) if handler is None else handler(asked)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: Web

    def do_GET(self) -> None:
        web = self.web
        with web.lock:
            web.busy += 1
            web.busiest = max(web.busiest, web.busy)
        try:
            asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, time.monotonic())
            self._send(web.answer(asked))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with web.lock:
                web.busy -= 1

    def _send(self, reply: Reply) -> None:
        if reply.delay:
            time.sleep(reply.delay)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.endless:
            self.close_connection = True
            self.end_headers()
            while True:
                self.wfile.write(reply.body * 1000)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if reply.truncate:
            self.wfile.write(reply.body[: len(reply.body) // 2])
            self.close_connection = True
        elif reply.drip:
            for byte in reply.body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(reply.drip)
        else:
            self.wfile.write(reply.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are no news."""


@contextmanager
def serve_web() -> Iterator[Web]:
    """Serve an empty web on a free port of loopback."""
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    handler.web = Web(server.server_address[1])  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield handler.web  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def zipped(text: bytes) -> bytes:
    """Compress a body."""
    return gzip.compress(text)
