"""Queries that take too long, or are too deep: they are answered, and do not keep the broker from anything."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
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


# --- what the store would not survive


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with broker() as one:
        yield one


SHAPES: dict[str, Callable[[int], str]] = {
    "groups": lambda n: "{" * n + "?s ?p ?o" + "}" * n,
    "sub-selects": lambda n: "{ SELECT * {" * n + "?s ?p ?o" + "}}" * n,
    "conditions": lambda n: "?s ?p ?o FILTER(" + "IF(true,1," * n + "1" + ")" * n + ")",
    "differences": lambda n: "?s ?p ?o ." + "MINUS{?s ?p 1}." * n,
    "variables": lambda n: "?s ?p 1" + "".join(f"BIND(1 AS ?v{i})" for i in range(n)),
    "alternatives": lambda n: "?s ?p ?o FILTER(" + "||".join(["?o=1"] * n) + ")",
    "behind texts": lambda n: '?s ?p \'\\\'#\', """"#""" .' + "FILTER EXISTS {" * n + "?s ?p ?o" + "}" * n,
}


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_too_deep_is_refused(served: Served, name: str) -> None:
    """One request of a few kilobytes could end the process: the stack of the store would be full."""
    shape = SHAPES[name]
    query = http().post(f"{served.url}/query", data={"query": f"SELECT * {{ {shape(5_000)} }}"}, timeout=60)
    assert (query.status_code, query.json()["error"]) == (400, "SPARQL11ProtocolException"), query.text[:300]
    update = {"update": f"INSERT {{ <urn:a> <urn:b> 1 }} WHERE {{ {shape(5_000)} }}"}
    refused = http().post(f"{served.url}/update", data=update, timeout=60)
    assert refused.status_code == 400, refused.text[:300]
    assert http().get(f"{served.url}/echo").status_code == 200
    fine = http().post(f"{served.url}/query", data={"query": f"SELECT * {{ {shape(40)} }}"}, timeout=60)
    assert fine.status_code == 200, fine.text[:300]


def test_large_data_are_not_deep(served: Served) -> None:
    rows = "".join(
        f"GRAPH <urn:g{n}#union> {{ <urn:s> <urn:if> '{{{{ FILTER', ({n} [ <urn:p> -1 ]) }} " for n in range(3_000)
    )
    answer = http().post(f"{served.url}/update", data={"update": f"INSERT DATA {{ {rows} }}"}, timeout=60)
    assert answer.status_code == 200, answer.text[:300]
