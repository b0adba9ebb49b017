"""The change feed: every change of the database, by sequence number.

As RDF Patch for replicas, as Server-Sent Events for browsers, and in the form that readers of Neptune Streams poll.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from evergraph.delta import Change
from evergraph.errors import EvergraphError, StoreError
from evergraph.server import problems
from evergraph.server.broker import Broker
from evergraph.server.negotiation import choose
from evergraph.server.problems import PROTOCOL, Problem, problem_of
from evergraph.server.sparql_protocol import PATCH, patch_of
from evergraph.terms import Quad, sorted_quads

EVENTS = "text/event-stream"
HEARTBEAT = 15.0
_LONGEST_WAIT = 60.0
_QUADS = 100_000
"""After how many quads an answer ends with the change that it is at."""


async def changes(broker: Broker, request: Request) -> Response:
    """Answer ``GET /changes?after=N``: what came after change N; ``limit`` and ``wait`` (seconds) may be given."""
    after = number(request, "after", 0)
    if choose(request.headers.get("accept", ""), (PATCH, EVENTS)) == EVENTS:
        resumed = request.headers.get("last-event-id", "")
        start = int(resumed) if resumed.isdecimal() else number(request, "after", broker.database.sequence)
        return StreamingResponse(_events(broker, start), media_type=EVENTS, headers={"Cache-Control": "no-store"})
    limit = min(number(request, "limit", broker.limits.feed_changes), broker.limits.feed_changes)
    seconds = min(float(number(request, "wait", 0)), _LONGEST_WAIT)
    if seconds:
        await broker.wait_for_change(after, seconds)
    found = await read_changes(broker, after, limit)
    body = b"".join(map(patch_of, found))
    last = found[-1].sequence if found else after
    headers = {"X-Last-Sequence": str(last), "X-Newest-Sequence": str(broker.database.sequence)}
    return Response(body, media_type=PATCH, headers=headers)


async def read_changes(broker: Broker, after: int, limit: int) -> list[Change]:
    """Read changes after a number, not too many quads at a time, but at least one change."""
    if after >= broker.database.sequence:
        return []
    if (recent := broker.recent.after(after)) is not None:
        return _some(recent, limit)
    try:
        return await asyncio.to_thread(lambda: _some(broker.database.changes(after), limit))
    except StoreError as error:
        raise Problem(PROTOCOL, str(error), 410) from error
    except EvergraphError as error:
        raise problem_of(error) from error


def _some(found: Iterable[Change], limit: int) -> list[Change]:
    taken: list[Change] = []
    quads = 0
    for change in found:
        if len(taken) >= limit or (taken and quads + len(change.delta) > _QUADS):
            break
        taken.append(change)
        quads += len(change.delta)
    return taken


async def _events(broker: Broker, after: int) -> AsyncIterator[str]:
    """Give changes as events for as long as somebody listens: the id is the number, the data are RDF Patch."""
    yield f": changes after {after}\n\n"
    while not broker.closing:
        found = await read_changes(broker, after, 100)
        for change in found:
            lines = patch_of(change).decode().splitlines()
            data = "".join(f"data: {line}\n" for line in lines)
            yield f"id: {change.sequence}\nevent: change\n{data}\n"
            after = change.sequence
        if not found and not await broker.wait_for_change(after, HEARTBEAT):
            yield ": still here\n\n"


# --- the form of Neptune Streams


async def neptune(broker: Broker, request: Request) -> Response:
    """Answer ``GET /sparql/stream`` as Neptune Streams does; one record is one quad."""
    kind = request.query_params.get("iteratorType", "AT_SEQUENCE_NUMBER")
    commit, operation = number(request, "commitNum", 1), number(request, "opNum", 1)
    limit = min(number(request, "limit", 10), 100_000)
    match kind:
        case "TRIM_HORIZON":
            commit, operation = 1, 1
        case "LATEST":
            commit, operation = broker.database.sequence, 1
        case "AFTER_SEQUENCE_NUMBER":
            operation += 1
        case "AT_SEQUENCE_NUMBER":
            pass
        case _:
            raise _neptune_problem("InvalidParameterException", f"unknown iteratorType {kind!r}", 400)
    records = await _records(broker, commit, operation, limit)
    if not records:
        raise _neptune_problem("StreamRecordsNotFoundException", f"no records from {commit}, {operation} on", 404)
    last = records[-1]
    body: dict[str, Any] = {"lastEventId": last["eventId"]}
    if "commitTimestampInMillis" in last:
        body["lastTrxTimestamp"] = last["commitTimestampInMillis"]
    body |= {"format": "NQUADS", "records": records, "totalRecords": len(records)}
    return Response(json.dumps(body, ensure_ascii=False), media_type="application/json")


async def _records(broker: Broker, commit: int, operation: int, limit: int) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    after = max(commit - 1, 0)
    while len(records) < limit:
        found = await read_changes(broker, after, max(1, limit - len(records)))
        if not found:
            break
        for change in found:
            first = operation if change.sequence == commit else 1
            records += _change_records(change)[first - 1 :]
        after = found[-1].sequence
    return records[:limit]


def _change_records(change: Change) -> list[dict[str, Any]]:
    quads: list[tuple[str, Quad]] = [("REMOVE", quad) for quad in sorted_quads(change.deleted)]
    quads += [("ADD", quad) for quad in sorted_quads(change.inserted)]
    when = {} if change.time is None else {"commitTimestampInMillis": round(1000 * change.time)}
    records: list[dict[str, Any]] = [
        {
            **when,
            "eventId": {"commitNum": change.sequence, "opNum": number},
            "data": {"stmt": f"{quad} ."},
            "op": operation,
        }
        for number, (operation, quad) in enumerate(quads, 1)
    ]
    if records:
        records[-1]["isLastOp"] = True
    return records


def _neptune_problem(code: str, text: str, status: int) -> Problem:
    problem = Problem(problems.PROTOCOL, text, status)
    problem.code = code
    return problem


def number(request: Request, name: str, default: int) -> int:
    """Read a parameter that is a number."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 18:
        raise Problem(PROTOCOL, f"{name} must be a number", 400)
    return int(text)
