"""Brokers for tests: in this process on a thread of their own, or as a process that can be killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from evergraph.database import Database, open_database
from evergraph.server.guard import guarded_loader
from evergraph.server.run import Running
from evergraph.server.settings import Limits, Settings

_SECONDS = 60.0


@cache
def http() -> httpx.Client:
    """Return a client that keeps its connections: to make one takes longer than most requests."""
    return httpx.Client(timeout=_SECONDS, verify=False)


@dataclass(frozen=True, slots=True)
class Served:
    """A broker that listens."""

    url: str
    ws_url: str
    running: Running | None = None
    process: "subprocess.Popen[bytes] | None" = None

    def update(self, text: str, **params: str) -> dict[str, Any]:
        """Run an update."""
        headers = {"Content-Type": "application/sparql-update"}
        response = http().post(f"{self.url}/update", content=text, params=params, headers=headers)
        response.raise_for_status()
        found: dict[str, Any] = response.json()
        return found

    def select(self, text: str) -> list[dict[str, Any]]:
        """Run a SELECT query."""
        response = http().post(f"{self.url}/query", data={"query": text})
        response.raise_for_status()
        found: list[dict[str, Any]] = response.json()["results"]["bindings"]
        return found

    def kill(self) -> None:
        """Kill the process as `kill -9` does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def broker(database: Database | None = None, *, limits: Limits | None = None, **settings: Any) -> Iterator[Served]:
    """Run a broker in this process until the block ends; without a database, over a new one in memory."""
    chosen = replace(Settings(port=0, ws_port=0, drain_seconds=1.0, limits=limits or Limits()), **settings)
    if database is None:
        database = open_database(load=guarded_loader(chosen.load, chosen.hosts))
    running: list[Running] = []
    ready, stop = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    async def serve() -> None:
        one = Running(database, chosen)
        await one.start()
        running.append(one)
        ready.set()
        await asyncio.to_thread(stop.wait)
        await one.stop()

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - the test is told
            failures.append(error)
            ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        if failures:
            raise failures[0]
        http, ws = running[0].addresses
        yield Served(http, ws.replace("http", "ws", 1), running[0])
    finally:
        stop.set()
        thread.join()
    if failures:
        raise failures[0]


@contextmanager
def broker_process(folder: Path, *options: str) -> Iterator[Served]:
    """Run ``evergraph serve`` over a database in a folder until the block ends, or it is killed."""
    command = [sys.executable, "-m", "evergraph", "serve", "--store", str(folder), *options]
    if "--port" not in options:
        command += ["--port", "0", "--ws-port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as process:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        drain = threading.Thread(target=process.stderr.read, daemon=True)
        drain.start()
        try:
            if "listening at" not in line:
                raise RuntimeError(f"the broker did not start: {line}")
            http, _, ws = line.split("listening at ")[1].strip().partition(", WebSockets also at ")
            yield Served(http, (ws or http).replace("http", "ws", 1), process=process)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            drain.join()


class Subscriber:
    """A WebSocket client that adds up what it is told."""

    def __init__(self, served: Served, path: str = "/subscribe") -> None:
        self._stack = ExitStack()
        self.socket: ClientConnection = self._stack.enter_context(
            connect(served.ws_url + path, max_size=None, max_queue=None, open_timeout=_SECONDS, close_timeout=1)
        )
        self.messages: list[dict[str, Any]] = []

    def __enter__(self) -> "Subscriber":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._stack.close()

    def send(self, message: object) -> None:
        """Send a message."""
        self.socket.send(message if isinstance(message, str) else json.dumps(message))

    def receive(self, timeout: float = _SECONDS) -> dict[str, Any]:
        """Receive a message."""
        message: dict[str, Any] = json.loads(self.socket.recv(timeout))
        self.messages.append(message)
        return message

    def ask(self, message: object) -> dict[str, Any]:
        """Send a message and receive the answer."""
        self.send(message)
        return self.receive()

    def subscribe(self, text: str, **members: object) -> dict[str, Any]:
        """Subscribe, and receive the first notification."""
        answer = self.ask({"subscribe": {"sparql": text, **members}})
        assert "notification" in answer, answer
        found: dict[str, Any] = answer["notification"]
        return found

    def notification(self, timeout: float = _SECONDS) -> dict[str, Any]:
        """Receive a notification."""
        answer = self.receive(timeout)
        assert "notification" in answer, answer
        found: dict[str, Any] = answer["notification"]
        return found

    def is_quiet(self, seconds: float = 0.3) -> bool:
        """Tell whether nothing comes for a while."""
        try:
            self.receive(seconds)
        except TimeoutError:
            return True
        except ConnectionClosed:
            return True
        return False


def rows(results: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of SPARQL results JSON as sorted tuples of texts; what is unbound is empty."""
    names = results["head"]["vars"]
    return sorted(
        tuple(binding.get(name, {}).get("value", "") for name in names) for binding in results["results"]["bindings"]
    )


def wait_until(condition: Any, seconds: float = 20.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)
