"""Queries that take too long: they are answered, make room for others, and do not keep the broker from anything."""

import asyncio
import signal
import threading
import time
from pathlib import Path

import httpx
import pytest
from tests.support.brokers import Served, broker, broker_process, http

from evergraph.database import open_database
from evergraph.server.queries import Queries
from evergraph.server.settings import Limits

ENDLESS = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER (?c + ?f + ?i + ?l < 0) }"
LONG = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER (?c + ?f + ?i < 0) }"
DATA = "INSERT DATA { " + " ".join(f"<urn:{n}> <urn:p> {n} ." for n in range(250)) + " }"


def test_turns() -> None:
    """So many at a time, in order; who is left behind makes room, as long as there is room for those."""

    async def run() -> None:
        queries = Queries(1, 1)
        gates = [threading.Event() for _ in range(4)]
        tickets = [queries.submit(lambda one=one: one.wait(20)) for one in gates]  # type: ignore[misc]
        await asyncio.sleep(0.05)
        assert queries.waiting == 3
        queries.leave(tickets[0])  # the second one begins
        assert (queries.waiting, queries.late) == (2, 1)
        await asyncio.sleep(0.05)
        queries.leave(tickets[1])  # there is no room for another one that is late
        assert (queries.waiting, queries.late) == (2, 2)
        queries.leave(tickets[3])  # one that waits never begins
        assert queries.waiting == 1
        assert tickets[3].future.cancelled()
        for gate in gates:
            gate.set()
        assert await asyncio.wait_for(tickets[2].future, 20) is True
        await asyncio.wait_for(asyncio.gather(tickets[0].future, tickets[1].future), 20)
        assert (queries.waiting, queries.late) == (0, 0)
        again = queries.submit(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await again.future
        queries.submit(gates[0].wait)
        queries.close()

    asyncio.run(run())


def ask(served: Served, query: str) -> httpx.Response:
    return http().get(f"{served.url}/query", params={"query": query}, timeout=60)


def test_others_go_on(tmp_path: Path) -> None:
    with broker_process(tmp_path / "db", "--query-seconds", "0.5") as served:
        served.update(DATA)
        for _ in range(3):
            assert ask(served, ENDLESS).json()["error"] == "query_timeout"
        assert served.update("INSERT DATA { <urn:x> <urn:y> 1 }")["sequence"] == 2
        assert ask(served, "ASK { <urn:x> <urn:y> 1 }").json()["boolean"] is True
        metrics = http().get(f"{served.url}/metrics").text
        assert "evergraph_queries_left_behind 3" in metrics
        assert served.process is not None
        begin = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(30) == 0
        assert time.monotonic() - begin < 20, "what is left behind does not keep the broker from ending"


def test_refused_rather_than_drowned(tmp_path: Path) -> None:
    limits = Limits(query_seconds=0.3, queries_at_once=1, queries_left_behind=1, queries_waiting=1)
    with broker(open_database(tmp_path / "db", sync=False), limits=limits) as served:
        served.update(DATA)
        answers = [ask(served, LONG).status_code for _ in range(3)]
        assert answers == [503, 503, 503]
        assert served.update("INSERT DATA { <urn:x> <urn:y> 1 }")["inserted"] == 1
        end = time.monotonic() + 60
        while ask(served, "ASK {}").status_code != 200:
            assert time.monotonic() < end, "turns come back when the store does"
            time.sleep(0.2)
