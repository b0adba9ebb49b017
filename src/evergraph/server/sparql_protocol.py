"""SPARQL 1.1 Protocol (https://www.w3.org/TR/sparql11-protocol/): queries and updates over HTTP."""

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from pyoxigraph import QueryBoolean, QuerySolutions, QueryTriples, serialize
from starlette.requests import Request
from starlette.responses import Response

from evergraph.database import QueryResult, UpdateRequest
from evergraph.delta import Change
from evergraph.errors import EvergraphError
from evergraph.patch import transaction
from evergraph.server import problems
from evergraph.server.broker import Broker
from evergraph.server.guard import check_services, check_shape
from evergraph.server.negotiation import GRAPHS, RESULTS, choose, chosen
from evergraph.server.problems import PROTOCOL, Problem, problem_of
from evergraph.terms import Literal, NamedNode, Triple

FORM = "application/x-www-form-urlencoded"
QUERY = "application/sparql-query"
UPDATE = "application/sparql-update"
PATCH = "application/rdf-patch"
_FIELDS = 10_000


@dataclass(frozen=True, slots=True)
class Operation:
    """What a request asks for: the text of a query or of an update, and the graphs that the protocol names."""

    kind: str
    text: str
    default: tuple[NamedNode, ...]
    named: tuple[NamedNode, ...]


async def read_body(request: Request, most: int) -> bytes:
    """Read the body of a request, if it is not too long."""
    length = request.headers.get("content-length", "0")
    content = bytearray()
    if not length.isdecimal() or int(length) <= most:
        async for chunk in request.stream():
            content += chunk
            if len(content) > most:
                break
        else:
            return bytes(content)
    raise Problem(problems.TOO_LARGE, f"the request is longer than {most} bytes", 413, {"Connection": "close"})


async def read_operation(request: Request, most: int, kinds: tuple[str, ...]) -> Operation:
    """Read what a request asks for, in any of the forms of the protocol."""
    fields = _fields(request.url.query)
    if request.method == "GET":
        if any(name == "update" for name, _ in fields):
            raise Problem(PROTOCOL, "updates are sent with POST", 405, {"Allow": "POST"})
        return _operation(fields, ("query",), kinds)
    media_type, parameters = _content_type(request.headers.get("content-type", ""))
    body = _decoded(await read_body(request, most), parameters)
    if media_type == FORM:
        return _operation(fields + _fields(body), ("query", "update"), kinds)
    if media_type in (QUERY, UPDATE):
        name = "query" if media_type == QUERY else "update"
        if any(other in ("query", "update") for other, _ in fields):
            raise Problem(PROTOCOL, f"the {name} is given both in the address and in the body", 400)
        return _operation([*fields, (name, body)], (name,), kinds)
    raise Problem(PROTOCOL, f"the content type is {media_type or 'missing'}; use {FORM}, {QUERY} or {UPDATE}", 415)


def _content_type(header: str) -> tuple[str, dict[str, str]]:
    media_type, *rest = header.split(";")
    pairs = (part.partition("=") for part in rest)
    return media_type.strip().lower(), {key.strip().lower(): value.strip(' "').lower() for key, _, value in pairs}


def _decoded(body: bytes, parameters: dict[str, str]) -> str:
    charset = parameters.get("charset", "utf-8")
    if charset not in ("utf-8", "utf8", "us-ascii"):
        raise Problem(PROTOCOL, f"the request is in {charset}; it must be in UTF-8", 415)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(PROTOCOL, f"the request is not in UTF-8: {error}", 400) from error


def _fields(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
    except (ValueError, UnicodeError) as error:
        raise Problem(PROTOCOL, f"the parameters cannot be read: {error}", 400) from error


def _operation(fields: list[tuple[str, str]], names: tuple[str, ...], kinds: tuple[str, ...]) -> Operation:
    found = [(name, text) for name, text in fields if name in names]
    if len(found) != 1:
        wanted = " or ".join(names)
        raise Problem(PROTOCOL, f"there must be exactly one {wanted}, and there are {len(found)}", 400)
    [(kind, text)] = found
    if kind not in kinds:
        raise Problem(PROTOCOL, f"this address takes no {kind}", 400)
    prefix = "using-" if kind == "update" else ""
    default_name = "using-graph-uri" if prefix else "default-graph-uri"
    named_name = "using-named-graph-uri" if prefix else "named-graph-uri"
    return Operation(kind, text, graph_names(fields, default_name), graph_names(fields, named_name))


def graph_names(fields: Iterable[tuple[str, str]], name: str) -> tuple[NamedNode, ...]:
    """Read the graphs that parameters of one name give."""
    values = [value for key, value in fields if key == name]
    try:
        return tuple(NamedNode(value) for value in values)
    except ValueError as error:
        raise Problem(PROTOCOL, f"{name} is not an absolute IRI: {error}", 400) from error


# --- answers


async def answer(broker: Broker, request: Request, kinds: tuple[str, ...]) -> Response:
    """Run what a request asks for."""
    operation = await read_operation(request, broker.limits.request_bytes, kinds)
    base = str(request.url.replace(query="", fragment=""))
    if operation.kind == "update":
        change = await broker.update(UpdateRequest(operation.text, base, operation.default, operation.named))
        return update_answer(request, change)
    return await query_answer(broker, operation, base, request.headers.get("accept", ""))


def update_answer(request: Request, change: Change) -> Response:
    """Tell what an update has done: SEPA's members, the number of the change, and how many quads it changed.

    ``Accept: application/rdf-patch`` gets the change itself, ``?quads=true`` gets it besides.
    """
    if choose(request.headers.get("accept", ""), ("application/json", PATCH)) == PATCH:
        return Response(patch_of(change), media_type=PATCH, headers={"X-Sequence": str(change.sequence)})
    counts = f"change {change.sequence}: {len(change.inserted)} inserted, {len(change.deleted)} deleted"
    found: dict[str, Any] = {
        "response": {"body": counts, "isJson": False},
        "sequence": change.sequence,
        "inserted": len(change.inserted),
        "deleted": len(change.deleted),
    }
    if "quads=true" in request.url.query.split("&"):
        found["quads"] = {
            "inserted": sorted(f"{quad} ." for quad in change.inserted),
            "deleted": sorted(f"{quad} ." for quad in change.deleted),
        }
    return Response(json.dumps(found, ensure_ascii=False), media_type="application/json")


def patch_of(change: Change) -> bytes:
    """Write a change as RDF Patch, with its number."""
    return transaction(change.delta, {"sequence": Literal(change.sequence)})


async def query_answer(broker: Broker, operation: Operation, base: str, accept: str) -> Response:
    """Run a query, and write its result in the format that the client likes best."""
    try:
        check_services(operation.text, broker.settings.hosts)
    except EvergraphError as error:
        raise problem_of(error) from error
    out = Bounded(broker.limits.result_bytes)

    def work() -> str:
        check_shape(operation.text)
        graphs = (operation.default, operation.named) if operation.default or operation.named else None
        found = broker.database.query(operation.text, base=base, graphs=graphs)
        try:
            return write_result(found, accept, out)
        except Exception as error:
            # The rows of pyoxigraph must go in the thread that they came in, and no traceback may hold them.
            del found
            error.__traceback__ = error.__context__ = error.__cause__ = None
            raise

    try:
        media_type = await broker.run(work, out.stop)
    except EvergraphError as error:
        raise problem_of(error) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise Problem(problems.QUERY, f"the query could not be evaluated: {error}", 500) from error
    return Response(out.getvalue(), media_type=media_type)


def write_result(found: QueryResult, accept: str, out: io.BytesIO) -> str:
    """Write a result in the format that the client likes best; return its media type."""
    if isinstance(found, QuerySolutions | QueryBoolean):
        offered = tuple(RESULTS) if isinstance(found, QuerySolutions) else tuple(RESULTS)[:4]
        media_type = chosen(accept, offered)
        found.serialize(out, format=RESULTS[media_type])
        return media_type
    media_type = chosen(accept, tuple(GRAPHS))
    triples: Iterable[Triple] = found if not isinstance(found, QueryTriples) else iter(found)
    serialize(triples, out, GRAPHS[media_type])
    return media_type


class Bounded(io.BytesIO):
    """A buffer that takes only so much, and nothing once it is stopped."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._stopped = False

    def stop(self) -> None:
        """Take nothing more: whoever writes breaks off."""
        self._stopped = True

    def write(self, data: Any) -> int:
        """Take some more."""
        if self._stopped:
            raise TimeoutError("the query took too long")
        if self.tell() + len(data) > self._most:
            raise ResultTooLarge(problems.TOO_LARGE, f"the result is larger than {self._most} bytes", 413)
        return super().write(data)


class ResultTooLarge(Problem):
    """A result that nobody wants to send."""
