"""Replicas and linksets over HTTP: register one, read what it holds, follow its changes."""

import asyncio
import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

from pyoxigraph import serialize
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from evergraph.delta import Change
from evergraph.server import problems
from evergraph.server.broker import Broker
from evergraph.server.feed import EVENTS, HEARTBEAT, number
from evergraph.server.linksets import read_definition
from evergraph.server.negotiation import GRAPHS, choose, chosen
from evergraph.server.problems import Problem
from evergraph.server.sparql_protocol import PATCH, patch_of, read_body
from evergraph.terms import Quad

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
Routes = dict[str, Callable[[Request], Awaitable[Response]]]


class Shelf(Protocol):
    """What can be done with all that is registered, in the thread that it belongs to."""

    def everything(self) -> list[dict[str, Any]]:
        """Describe all of it."""

    def remove(self, name: str, user: str) -> None:
        """End one."""

    def triples(self, name: str) -> tuple[int, frozenset[Quad]]:
        """Return what one holds, and the change of the data that it is at."""

    def changes(self, name: str, after: int, limit: int) -> tuple[int, list[Change]]:
        """Return the changes of one after a change of the data."""


class Replicas:
    """Replicas; they belong to the thread that writes."""

    path = "/replicas"

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.shelf: Shelf = broker.shelf

    async def do(self, work: Callable[[], Any]) -> Any:
        """Do something with replicas."""
        return await asyncio.shield(self._broker.writer.submit(work))

    async def add(self, name: str, text: str, user: str) -> dict[str, Any]:
        """Register an interest."""
        found: dict[str, Any] = await self.do(lambda: self._broker.shelf.add(name, text, user))
        return found


class Linksets:
    """Linksets; they have a thread of their own."""

    path = "/linksets"

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.shelf: Shelf = broker.linksets

    async def do(self, work: Callable[[], Any]) -> Any:
        """Do something with linksets."""
        return await asyncio.wrap_future(self._broker.linksets.do(work))

    async def add(self, name: str, text: str, user: str) -> dict[str, Any]:
        """Register a linkset. Its data are read in the thread that writes, and matched in its own."""
        definition = await asyncio.to_thread(read_definition, name, text)
        known: dict[str, Any] | None = await self.do(lambda: self._broker.linksets.find(name, text))
        if known is not None:
            return known
        begin = self._broker.writer.submit(lambda: self._broker.linksets.begin(name, text, user, definition))
        return await asyncio.wrap_future(await asyncio.shield(begin))


def route(broker: Broker, path: str) -> Routes | None:
    """Return what can be done at an address; None if there is nothing."""
    for kind in (Replicas, Linksets):
        if path == kind.path or path.startswith(kind.path + "/"):
            return _route(broker, kind(broker), path.removeprefix(kind.path).removeprefix("/"))
    return None


def _route(broker: Broker, kind: Replicas | Linksets, place: str) -> Routes | None:
    if not place:
        return {"GET": lambda request: _list(kind)}
    name, _, rest = place.partition("/")
    if not _NAME.fullmatch(name):
        return None
    if rest == "changes":
        return {"GET": lambda request: _changes(broker, kind, request, name)}
    if rest:
        return None
    return {
        "GET": lambda request: _read(kind, request, name),
        "PUT": lambda request: _put(broker, kind, request, name),
        "DELETE": lambda request: _delete(kind, request, name),
    }


async def _list(kind: Replicas | Linksets) -> Response:
    return JSONResponse({kind.path[1:]: await kind.do(kind.shelf.everything)})


async def _put(broker: Broker, kind: Replicas | Linksets, request: Request, name: str) -> Response:
    try:
        text = (await read_body(request, broker.limits.message_bytes)).decode()
    except UnicodeDecodeError as error:
        raise Problem(problems.PROTOCOL, f"the text is not in UTF-8: {error}", 400) from error
    return JSONResponse(await kind.add(name, text, request.state.user), 201)


async def _delete(kind: Replicas | Linksets, request: Request, name: str) -> Response:
    user = request.state.user
    await kind.do(lambda: kind.shelf.remove(name, user))
    return Response(status_code=204)


async def _read(kind: Replicas | Linksets, request: Request, name: str) -> Response:
    media_type = chosen(request.headers.get("accept", ""), tuple(GRAPHS))
    sequence, quads = await kind.do(lambda: kind.shelf.triples(name))
    out = io.BytesIO()
    await asyncio.to_thread(serialize, [quad.triple for quad in quads], out, GRAPHS[media_type])
    return Response(out.getvalue(), media_type=media_type, headers={"X-Sequence": str(sequence)})


async def _changes(broker: Broker, kind: Replicas | Linksets, request: Request, name: str) -> Response:
    after = number(request, "after", 0)
    if choose(request.headers.get("accept", ""), (PATCH, EVENTS)) == EVENTS:
        resumed = request.headers.get("last-event-id", "")
        start = int(resumed) if resumed.isdecimal() else after
        await kind.do(lambda: kind.shelf.changes(name, start, 1))
        events = _events(broker, kind, name, start)
        return StreamingResponse(events, media_type=EVENTS, headers={"Cache-Control": "no-store"})
    limit = max(1, min(number(request, "limit", broker.limits.feed_changes), broker.limits.feed_changes))
    last, found = await kind.do(lambda: kind.shelf.changes(name, after, limit))
    return Response(b"".join(map(patch_of, found)), media_type=PATCH, headers={"X-Last-Sequence": str(last)})


async def _events(broker: Broker, kind: Replicas | Linksets, name: str, after: int) -> AsyncIterator[str]:
    yield f": changes after {after}\n\n"
    position = after
    while not broker.closing:
        start = position
        try:
            position, found = await kind.do(lambda start=start: kind.shelf.changes(name, start, 100))  # type: ignore[misc]
        except Problem as problem:
            yield f"event: error\ndata: {problem.text()}\n\n"
            return
        for change in found:
            data = "".join(f"data: {line}\n" for line in patch_of(change).decode().splitlines())
            yield f"id: {change.sequence}\nevent: change\n{data}\n"
        if not found and not await broker.wait_for_change(position, HEARTBEAT):
            yield ": still here\n\n"
