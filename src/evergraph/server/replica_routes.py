"""Replicas over HTTP: register an interest, read what it holds, follow its changes."""

import asyncio
import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pyoxigraph import serialize
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from evergraph.server import problems
from evergraph.server.broker import Broker
from evergraph.server.feed import EVENTS, HEARTBEAT, number
from evergraph.server.negotiation import GRAPHS, choose, chosen
from evergraph.server.problems import Problem
from evergraph.server.sparql_protocol import PATCH, patch_of, read_body

PATH = "/replicas"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def route(broker: Broker, path: str) -> dict[str, Callable[[Request], Awaitable[Response]]] | None:
    """Return what can be done at an address; None if there is nothing."""
    if path == PATH:
        return {"GET": lambda request: _list(broker)}
    if not path.startswith(PATH + "/"):
        return None
    name, _, rest = path.removeprefix(PATH + "/").partition("/")
    if not _NAME.fullmatch(name):
        return None
    if rest == "changes":
        return {"GET": lambda request: _changes(broker, request, name)}
    if rest:
        return None
    return {
        "GET": lambda request: _read(broker, request, name),
        "PUT": lambda request: _put(broker, request, name),
        "DELETE": lambda request: _delete(broker, request, name),
    }


async def _do(broker: Broker, work: Callable[[], Any]) -> Any:
    return await asyncio.shield(broker.writer.submit(work))


async def _list(broker: Broker) -> Response:
    return JSONResponse({"replicas": await _do(broker, broker.shelf.everything)})


async def _put(broker: Broker, request: Request, name: str) -> Response:
    try:
        text = (await read_body(request, broker.limits.message_bytes)).decode()
    except UnicodeDecodeError as error:
        raise Problem(problems.PROTOCOL, f"the interest is not in UTF-8: {error}", 400) from error
    user = request.state.user
    return JSONResponse(await _do(broker, lambda: broker.shelf.add(name, text, user)), 201)


async def _delete(broker: Broker, request: Request, name: str) -> Response:
    user = request.state.user
    await _do(broker, lambda: broker.shelf.remove(name, user))
    return Response(status_code=204)


async def _read(broker: Broker, request: Request, name: str) -> Response:
    media_type = chosen(request.headers.get("accept", ""), tuple(GRAPHS))
    sequence, quads = await _do(broker, lambda: broker.shelf.triples(name))
    out = io.BytesIO()
    await asyncio.to_thread(serialize, [quad.triple for quad in quads], out, GRAPHS[media_type])
    return Response(out.getvalue(), media_type=media_type, headers={"X-Sequence": str(sequence)})


async def _changes(broker: Broker, request: Request, name: str) -> Response:
    after = number(request, "after", 0)
    if choose(request.headers.get("accept", ""), (PATCH, EVENTS)) == EVENTS:
        resumed = request.headers.get("last-event-id", "")
        start = int(resumed) if resumed.isdecimal() else after
        await _do(broker, lambda: broker.shelf.changes(name, start, 1))
        events = _events(broker, name, start)
        return StreamingResponse(events, media_type=EVENTS, headers={"Cache-Control": "no-store"})
    limit = max(1, min(number(request, "limit", broker.limits.feed_changes), broker.limits.feed_changes))
    last, found = await _do(broker, lambda: broker.shelf.changes(name, after, limit))
    return Response(b"".join(map(patch_of, found)), media_type=PATCH, headers={"X-Last-Sequence": str(last)})


async def _events(broker: Broker, name: str, after: int) -> AsyncIterator[str]:
    yield f": changes after {after}\n\n"
    position = after
    while not broker.closing:
        start = position
        try:
            position, found = await _do(broker, lambda start=start: broker.shelf.changes(name, start, 100))  # type: ignore[misc]
        except Problem as problem:
            yield f"event: error\ndata: {problem.text()}\n\n"
            return
        for change in found:
            data = "".join(f"data: {line}\n" for line in patch_of(change).decode().splitlines())
            yield f"id: {change.sequence}\nevent: change\n{data}\n"
        if not found and not await broker.wait_for_change(position, HEARTBEAT):
            yield ": still here\n\n"
