"""Subscriptions as Server-Sent Events, for browsers and for anybody with an HTTP client.

The events are the notifications of the WebSocket protocol. The id of an event has the subscription and its sequence
number; a browser that loses the connection sends it back by itself, and the subscription goes on.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from evergraph.server import problems
from evergraph.server.broker import Broker
from evergraph.server.problems import Problem
from evergraph.server.sparql_protocol import graph_names
from evergraph.server.subscriptions import PREFIX, Channel, Subscription

EVENTS = "text/event-stream"
_HEARTBEAT = 15.0
_MOST = 64


async def subscribe(broker: Broker, request: Request, user: str) -> Response:
    """Answer ``GET /subscribe?query=…`` with a stream of notifications."""
    queue: asyncio.Queue[list[str]] = asyncio.Queue(_MOST)

    async def send(texts: Iterable[str]) -> None:
        await queue.put(list(texts))

    def end() -> None:
        if not queue.full():  # else it is read soon anyway
            queue.put_nowait([])

    channel = Channel(send, broker.registry, broker.encoded, user)
    channel.on_end = end
    broker.open(channel)
    try:
        one, preface = await _begin(broker, channel, request)
    except BaseException:
        broker.close(channel)
        raise
    events = _events(broker, channel, one, queue, preface)
    return _Stream(events, lambda: broker.close(channel))


class _Stream(StreamingResponse):
    """A stream that tells when it is over, even if it never began."""

    def __init__(self, content: AsyncIterator[str], over: Callable[[], None]) -> None:
        super().__init__(content, media_type=EVENTS, headers={"Cache-Control": "no-store"})
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._over()


async def _begin(broker: Broker, channel: Channel, request: Request) -> tuple[Subscription, str]:
    fields = request.query_params.multi_items()
    default, named = (
        tuple(node.value for node in graph_names(fields, name)) for name in ("default-graph-uri", "named-graph-uri")
    )
    given = request.headers.get("last-event-id", "") or request.query_params.get("last-event-id", "")
    name, _, number = given.rpartition("/")
    if name and number.isdecimal():
        try:
            one, reason = await broker.resume(channel, PREFIX + name, int(number))
        except Problem as problem:
            if problem.code != problems.UNKNOWN_SUBSCRIPTION:
                raise
        else:
            broker.attach(channel, one)
            told = {"spuid": one.spuid, "resumed": reason is None} | ({"reason": reason} if reason else {})
            return one, f"event: resumption\ndata: {json.dumps(told)}\n\n"
    queries = [value for key, value in fields if key == "query"]
    if len(queries) != 1:
        raise Problem(problems.PROTOCOL, f"there must be exactly one query, and there are {len(queries)}", 400)
    alias = request.query_params.get("alias")
    return await broker.subscribe(channel, queries[0], alias, default, named), ""


async def _events(
    broker: Broker, channel: Channel, one: Subscription, queue: "asyncio.Queue[list[str]]", preface: str
) -> AsyncIterator[str]:
    pump = asyncio.create_task(channel.pump())
    name = one.spuid.removeprefix(PREFIX)
    sequence = -1 if one.sequence < 0 else one.sequence
    try:
        yield preface or ": subscribed\n\n"
        while not broker.closing:
            try:
                texts = await asyncio.wait_for(queue.get(), _HEARTBEAT)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            for text in texts:
                if text.startswith('{"notification"'):
                    sequence += 1
                    yield f"id: {name}/{sequence}\nevent: notification\ndata: {text}\n\n"
                else:
                    yield f"event: error\ndata: {text}\n\n"
                    return
    finally:
        pump.cancel()
