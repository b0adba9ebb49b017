"""Many writers, many subscribers that come and go: the sum of what each is told is the result, at every change."""

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.brokers import broker, rows
from websockets.asyncio.client import ClientConnection, connect

from evergraph.database import open_database
from evergraph.delta import Bag, Change, Delta
from evergraph.server.settings import Limits
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.parser import parse_query
from evergraph.views.queries import result_rows

QUERIES = (
    "SELECT ?s ?o { ?s <urn:p> ?o }",
    "SELECT ?o { <urn:s1> <urn:p> ?o }",
    "SELECT ?o { <urn:s2> <urn:p> ?o }",
    "SELECT ?s (COUNT(*) AS ?n) { ?s <urn:p> ?o } GROUP BY ?s",
    "SELECT ?s ?x { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?x } }",
    "SELECT ?s { ?s <urn:p> ?o FILTER NOT EXISTS { ?s <urn:q> ?x } }",
    "ASK { <urn:s3> <urn:p> 1 }",
    "CONSTRUCT { ?o <urn:r> ?s } WHERE { ?s <urn:p> ?o }",
)
Row = tuple[str, ...]


class Heard:
    """What one subscriber was told: the sum after each notification."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.sequence = -1
        self.sum: Counter[Row] = Counter()
        self.at: list[tuple[int, Counter[Row]]] = []

    def take(self, one: dict[str, Any]) -> None:
        assert one["sequence"] == self.sequence + 1
        self.sequence += 1
        self.sum.update(rows(one["addedResults"]))
        removed = Counter(rows(one["removedResults"]))
        assert removed <= self.sum
        self.sum -= removed
        assert not self.at or one["change"] > self.at[-1][0]
        self.at.append((one["change"], self.sum.copy()))


def an_update(choice: random.Random) -> str:
    s, o = f"<urn:s{choice.randrange(5)}>", choice.randrange(4)
    return choice.choice(
        (
            f"INSERT DATA {{ {s} <urn:p> {o} }}",
            f"INSERT DATA {{ {s} <urn:p> {o} }}",
            f"DELETE DATA {{ {s} <urn:p> {o} }}",
            f"INSERT DATA {{ {s} <urn:q> {o} }}",
            f"DELETE WHERE {{ {s} <urn:q> ?o }}",
            f"DELETE {{ {s} <urn:p> ?o }} INSERT {{ {s} <urn:p> {o} }} WHERE {{ {s} <urn:p> ?o }}",
        )
    )


async def follow(url: str, choice: random.Random, heard: list[Heard], done: asyncio.Event) -> None:
    """Subscribe to some queries, read for a while, sometimes slowly, and leave in one way or another."""
    while not done.is_set():
        async with connect(url, max_size=None, close_timeout=1) as socket:
            mine: dict[str, Heard] = {}
            for query in choice.sample(QUERIES, 3):
                alias = str(len(mine))
                mine[alias] = Heard(query)
                heard.append(mine[alias])
                await socket.send(json.dumps({"subscribe": {"sparql": query, "alias": alias}}))
            for _ in range(choice.randrange(5, 40)):
                if not await _hear_one(socket, mine):
                    break
                if choice.random() < 0.1:
                    await asyncio.sleep(0.02)
            if choice.random() < 0.5:
                socket.transport.abort()
                return_to = choice.random() / 50
                await asyncio.sleep(return_to)


async def _hear_one(socket: ClientConnection, mine: dict[str, Heard]) -> bool:
    try:
        message = json.loads(await asyncio.wait_for(socket.recv(), 1))
    except TimeoutError:
        return False
    mine[message["notification"]["alias"]].take(message["notification"])
    return True


async def run(http: str, ws: str, updates: int, writers: int, readers: int, seed: int) -> list[Heard]:
    heard: list[Heard] = []
    done = asyncio.Event()
    following = [
        asyncio.create_task(follow(f"{ws}/subscribe", random.Random(f"{seed} {number}"), heard, done))
        for number in range(readers)
    ]

    async def write(number: int) -> None:
        choice = random.Random(seed * 100 + number)
        async with httpx.AsyncClient(timeout=60) as client:
            for _ in range(updates):
                response = await client.post(f"{http}/update", data={"update": an_update(choice)})
                assert response.status_code == 200, response.text

    await asyncio.gather(*(write(number) for number in range(writers)))
    done.set()
    await asyncio.gather(*following)
    return heard


def check(changes: list[Change], heard: list[Heard]) -> int:
    """Compare every sum with the query's result at that change."""
    results: dict[tuple[str, int], Counter[Row]] = {}
    total: Delta = Delta()
    wanted = {(one.query, change) for one in heard for change, _ in one.at}
    for change in [Change(0), *changes]:
        total = total.then(change.delta)
        for query in QUERIES:
            if (query, change.sequence) in wanted:
                found = result_rows(parse_query(query), Dataset(total.inserted))
                results[query, change.sequence] = _texts(found)
    compared = 0
    for one in heard:
        for number, summed in one.at:
            assert summed == results[one.query, number], (one.query, number)
            compared += 1
        for number, _ in one.at[1:]:  # and nothing was told without an effect
            assert number > one.at[0][0]
    return compared


def _texts(bag: Bag[Any]) -> Counter[Row]:
    return Counter(tuple("" if term is None else term.value for term in row) for row in bag.rows())


@pytest.mark.parametrize("backlog", [1_000, 2])
def test_sums_are_results_at_every_change(tmp_path: Path, backlog: int) -> None:
    limits = Limits(backlog=backlog)
    with broker(open_database(tmp_path / "db", sync=False), limits=limits) as served:
        heard = asyncio.run(run(served.url, served.ws_url, updates=12, writers=8, readers=6, seed=backlog))
        assert served.running is not None
        changes = list(served.running.broker.database.changes())
        assert [change.sequence for change in changes] == list(range(1, 8 * 12 + 1))
        assert check(changes, heard) > 50


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_sums_are_results_at_every_change_for_long(tmp_path: Path, seed: int) -> None:
    with broker(open_database(tmp_path / "db", sync=False), limits=Limits(backlog=50)) as served:
        heard = asyncio.run(run(served.url, served.ws_url, updates=300, writers=10, readers=20, seed=seed))
        assert served.running is not None
        assert check(list(served.running.broker.database.changes()), heard) > 1_000
