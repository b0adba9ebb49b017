"""SEPA's subscription protocol over WebSocket: one JSON text message each, many subscriptions per socket."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from starlette.types import Receive, Scope, Send

from evergraph.server import problems
from evergraph.server.access import Access
from evergraph.server.broker import Broker
from evergraph.server.problems import Problem
from evergraph.server.subscriptions import Channel
from evergraph.terms import NamedNode

GOING_AWAY, TOO_BIG, TRY_LATER, UNSUPPORTED = 1001, 1009, 1013, 1003


class Socket:
    """One WebSocket connection."""

    def __init__(self, broker: Broker, access: Access, scope: Scope, receive: Receive, send: Send) -> None:
        self._broker = broker
        self._access = access
        self._scope = scope
        self._receive = receive
        self._send = send
        self._channel = Channel(self._send_all, broker.registry, broker.encoded, access.guest(scope))
        self._secure = access.needs_token(scope)

    async def serve(self) -> None:
        """Answer messages until the connection ends."""
        await self._receive()
        try:
            self._broker.open(self._channel)
        except Problem:
            await self._send({"type": "websocket.close", "code": TRY_LATER})
            return
        await self._send({"type": "websocket.accept"})
        pump = asyncio.create_task(self._channel.pump())
        listen = asyncio.create_task(self._listen())
        try:
            done, _ = await asyncio.wait((pump, listen), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                if error is not None and not isinstance(error, OSError):
                    raise error
        finally:
            self._broker.close(self._channel)
            for task in (pump, listen):
                task.cancel()
            await asyncio.gather(pump, listen, return_exceptions=True)

    async def _send_all(self, texts: Iterable[str]) -> None:
        for text in texts:
            await self._send({"type": "websocket.send", "text": text})

    async def _listen(self) -> None:
        while True:
            event = await self._receive()
            if event["type"] == "websocket.disconnect":
                return
            text = event.get("text")
            alias: str | None = None
            try:
                self._access.count(self._channel.user)
                if text is None:
                    raise Problem(problems.JSON, "messages are JSON texts, not binary", 400)
                message = _parsed(text, self._broker.limits.message_bytes)
                alias = _alias(message)
                await self._answer(message, alias)
            except Problem as problem:
                self._broker.metrics.count("refused")
                self._channel.say(problem.text(alias))

    async def _answer(self, message: dict[str, Any], alias: str | None) -> None:
        match message:
            case {"subscribe": dict(members)}:
                self._authorise(members, message)
                await self._subscribe(members, alias)
            case {"unsubscribe": dict(members)}:
                self._authorise(members, message)
                spuid = _text(members, "spuid")
                await self._broker.unsubscribe(self._channel, spuid)
                self._channel.say(json.dumps({"unsubscribed": {"spuid": spuid}}))
            case _:
                raise Problem(problems.JSON, 'expected {"subscribe":{…}} or {"unsubscribe":{…}}', 400)

    def _authorise(self, members: dict[str, Any], message: dict[str, Any]) -> None:
        """See who sends a message. A socket belongs to one user: the first one that it names."""
        given = members.get("authorization", message.get("authorization"))
        if given is None and not self._secure:
            return
        user = self._access.user_of(given if isinstance(given, str) else "")
        if self._channel.user != user and self._channel.subscriptions:
            raise Problem(problems.INVALID_GRANT, "this connection belongs to another client", 401)
        self._channel.user = user

    async def _subscribe(self, members: dict[str, Any], alias: str | None) -> None:
        graphs = _graphs(members, "default-graph-uri"), _graphs(members, "named-graph-uri")
        if isinstance(members.get("spuid"), str) and "sequence" in members:
            await self._resume(members, alias, graphs)
            return
        await self._broker.subscribe(self._channel, _text(members, "sparql"), alias, *graphs)

    async def _resume(
        self, members: dict[str, Any], alias: str | None, graphs: tuple[tuple[str, ...], tuple[str, ...]]
    ) -> None:
        sequence = members["sequence"]
        if not isinstance(sequence, int) or isinstance(sequence, bool):
            raise Problem(problems.JSON, "sequence must be a number", 400)
        try:
            one, reason = await self._broker.resume(self._channel, members["spuid"], sequence)
        except Problem as problem:
            if problem.code != problems.UNKNOWN_SUBSCRIPTION or "sparql" not in members:
                raise
            one = await self._broker.subscribe(self._channel, _text(members, "sparql"), alias, *graphs)
            self._tell(one.spuid, alias, None, f"{problem.description}; this is a new one")
            return
        self._tell(one.spuid, one.alias, sequence if reason is None else None, reason)
        self._broker.attach(self._channel, one)

    def _tell(self, spuid: str, alias: str | None, sequence: int | None, reason: str | None) -> None:
        """Say whether a subscription goes on after a notification, or begins anew with sequence 0, and why."""
        found: dict[str, Any] = {"spuid": spuid, "resumed": reason is None}
        if alias is not None:
            found["alias"] = alias
        found |= {"sequence": sequence} if reason is None else {"reason": reason}
        self._channel.say(json.dumps({"resumption": found}, ensure_ascii=False))


def _parsed(text: str, most: int) -> dict[str, Any]:
    if len(text) > most:
        raise Problem(problems.TOO_LARGE, f"the message is longer than {most} characters", 413)
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Problem(problems.JSON, f"the message is not JSON: {error}", 400) from error
    if not isinstance(message, dict):
        raise Problem(problems.JSON, "the message is not a JSON object", 400)
    return message


def _alias(message: dict[str, Any]) -> str | None:
    for name in ("subscribe", "unsubscribe"):
        members = message.get(name)
        if isinstance(members, dict) and isinstance(members.get("alias"), str):
            return str(members["alias"])
    return None


def _text(members: dict[str, Any], name: str) -> str:
    found = members.get(name)
    if not isinstance(found, str):
        raise Problem(problems.JSON, f"the member {name!r} is missing, or is not a text", 400)
    return found


def _graphs(members: dict[str, Any], name: str) -> tuple[str, ...]:
    found = members.get(name) or []
    names = [found] if isinstance(found, str) else found
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise Problem(problems.JSON, f"{name} must be an IRI, or a list of IRIs", 400)
    try:
        return tuple(NamedNode(one).value for one in names)
    except ValueError as error:
        raise Problem(problems.PROTOCOL, f"{name} is not an absolute IRI: {error}", 400) from error
