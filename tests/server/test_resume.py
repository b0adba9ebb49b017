"""Subscriptions that go on: after a lost connection, a restart, and kill -9."""

import json
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.brokers import Served, Subscriber, broker, broker_process, http, rows, wait_until

from evergraph.database import open_database
from evergraph.server.settings import Limits

QUERY = "SELECT ?s ?o { ?s <urn:p> ?o }"


class Follower:
    """Adds up notifications, and checks that none is missing or comes twice."""

    def __init__(self) -> None:
        self.spuid = ""
        self.sequence = -1
        self.rows: Counter[tuple[str, ...]] = Counter()
        self.at: dict[int, Counter[tuple[str, ...]]] = {}
        self.restarts = 0

    def take(self, notification: dict[str, Any]) -> None:
        if notification["sequence"] == 0:
            if self.sequence >= 0:
                self.restarts += 1
            self.rows.clear()
            self.spuid = notification["spuid"]
        else:
            assert notification["sequence"] == self.sequence + 1
        self.sequence = notification["sequence"]
        assert notification["spuid"] == self.spuid
        self.rows.update(rows(notification["addedResults"]))
        removed = Counter(rows(notification["removedResults"]))
        assert removed <= self.rows
        self.rows -= removed
        self.at[notification["change"]] = self.rows.copy()

    def resume(self, one: Subscriber) -> dict[str, Any]:
        answer = one.ask({"subscribe": {"sparql": QUERY, "spuid": self.spuid, "sequence": self.sequence}})
        found: dict[str, Any] = answer["resumption"]
        return found


def put(served: Served, number: int) -> int:
    return int(served.update(f"INSERT DATA {{ <urn:s{number}> <urn:p> {number} }}")["sequence"])


def expected(served: Served) -> Counter[tuple[str, ...]]:
    return Counter((row["s"]["value"], row["o"]["value"]) for row in served.select(QUERY))


def test_a_lost_connection(tmp_path: Path) -> None:
    with broker(open_database(tmp_path / "db"), folder=tmp_path / "broker") as served:
        follower = Follower()
        with Subscriber(served) as one:
            follower.take(one.subscribe(QUERY, alias="mine"))
            put(served, 1)
            follower.take(one.notification())
            one.socket.socket.close()
        put(served, 2)
        served.update("INSERT DATA { <urn:other> <urn:q> 1 }")
        served.update("DELETE DATA { <urn:s1> <urn:p> 1 }")
        with Subscriber(served) as again:
            told = follower.resume(again)
            assert told == {"spuid": follower.spuid, "resumed": True, "alias": "mine", "sequence": 1}
            follower.take(again.notification())
            follower.take(again.notification())
            assert follower.rows == expected(served)
            put(served, 3)
            follower.take(again.notification())
            assert (follower.sequence, follower.restarts) == (4, 0)
            assert again.is_quiet()
        with Subscriber(served) as third:  # and from a point further back: what was sent may not have arrived
            follower.sequence, follower.rows = 1, Counter([("urn:s1", "1")])
            assert follower.resume(third)["resumed"] is True
            for _ in range(3):
                follower.take(third.notification())
            assert follower.rows == expected(served)


def test_nothing_is_maintained_for_who_is_away(tmp_path: Path) -> None:
    with broker(open_database(tmp_path / "db"), folder=tmp_path / "broker") as served:
        assert served.running is not None
        registry = served.running.broker.registry
        with Subscriber(served) as one:
            one.subscribe(QUERY)
        wait_until(lambda: registry.absent and not registry.live)
        database = served.running.broker.database
        wait_until(lambda: not database._watching)


def test_what_cannot_be_resumed_begins_anew_and_says_so(tmp_path: Path) -> None:
    limits = Limits(replayed_changes=2)
    with broker(open_database(tmp_path / "db"), folder=tmp_path / "broker", limits=limits) as served:
        with Subscriber(served) as one:
            first = one.subscribe(QUERY)
        for number in range(3):
            put(served, number)
        with Subscriber(served) as again:
            told = again.ask({"subscribe": {"sparql": QUERY, "spuid": first["spuid"], "sequence": 0}})["resumption"]
            assert told["resumed"] is False
            assert "missed" in told["reason"]
            fresh = again.notification()
            assert (fresh["sequence"], fresh["spuid"], len(rows(fresh["addedResults"]))) == (0, first["spuid"], 3)
            put(served, 3)
            assert again.notification()["sequence"] == 1
        with Subscriber(served) as other:
            unknown = "sepa://subscription/00000000-0000-0000-0000-000000000000"
            refused = other.ask({"subscribe": {"spuid": unknown, "sequence": 0, "alias": "a"}})
            assert (refused["error"], refused["alias"]) == ("sid_not_found", "a")
            answers = [other.ask({"subscribe": {"sparql": QUERY, "spuid": unknown, "sequence": 0}}), other.receive()]
            assert {next(iter(answer)) for answer in answers} == {"resumption", "notification"}


def test_without_a_log_there_is_nothing_to_resume_from() -> None:
    with broker() as served:
        with Subscriber(served) as one:
            first = one.subscribe(QUERY)
        with Subscriber(served) as again:
            refused = again.ask({"subscribe": {"spuid": first["spuid"], "sequence": 0}})
            assert refused["error"] == "sid_not_found"


def test_a_query_that_asks_for_the_time_begins_anew(tmp_path: Path) -> None:
    with broker(open_database(tmp_path / "db"), folder=tmp_path / "broker") as served:
        with Subscriber(served) as one:
            first = one.subscribe("SELECT ?s (NOW() AS ?t) { ?s <urn:p> ?o }")
        with Subscriber(served) as again:
            assert "error" in again.ask({"subscribe": {"spuid": first["spuid"], "sequence": 0}})


def test_events_resume_by_their_last_id(tmp_path: Path) -> None:
    with broker(open_database(tmp_path / "db"), folder=tmp_path / "broker") as served:
        follower = Follower()
        address = f"{served.url}/subscribe"
        with http().stream("GET", address, params={"query": QUERY}, timeout=20) as stream:
            [last, notification] = _events(stream, 1)[0]
            follower.take(notification)
        put(served, 1)
        put(served, 2)
        headers = {"Last-Event-ID": last}
        with http().stream("GET", address, params={"query": QUERY}, headers=headers, timeout=20) as stream:
            found = _events(stream, 2)
            for name, notification in found:
                follower.take(notification)
                assert name.endswith(f"/{notification['sequence']}")
        assert (follower.sequence, follower.restarts) == (2, 0)
        assert follower.rows == expected(served)


def _events(stream: httpx.Response, count: int) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    name = ""
    for line in stream.iter_lines():
        if line.startswith("id: "):
            name = line[4:]
        elif line.startswith("data: ") and '"notification"' in line:
            found.append((name, json.loads(line[6:])["notification"]))
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("seed", [1])
def test_kill(tmp_path: Path, seed: int) -> None:
    """Writers and a subscriber live through several kills: nothing is lost, nothing comes twice."""
    choice = random.Random(seed)
    follower = Follower()
    acknowledged: set[int] = set()
    number = 0
    for round_ in range(3):
        with broker_process(tmp_path / "db") as served, Subscriber(served) as one:
            if round_ == 0:
                follower.take(one.subscribe(QUERY))
            else:
                assert follower.resume(one)["resumed"] is True
            stop = threading.Event()

            def write(served: Served, stop: threading.Event) -> None:
                nonlocal number
                with httpx.Client(timeout=20) as http:
                    while not stop.is_set():
                        number += 1
                        text = f"INSERT DATA {{ <urn:s{number}> <urn:p> {number} }}"
                        try:
                            http.post(f"{served.url}/update", data={"update": text}).raise_for_status()
                        except httpx.HTTPError:
                            return
                        acknowledged.add(number)

            writer = threading.Thread(target=write, args=(served, stop))
            writer.start()
            goal = follower.sequence + choice.randrange(20, 40)
            while follower.sequence < goal:
                follower.take(one.notification())
            if round_ < 2:
                served.kill()
            stop.set()
            writer.join()
            if round_ == 2:
                wait_until(lambda: _drained(one, follower, served))
                assert follower.rows == expected(served)
                assert {int(o) for _, o in follower.rows} >= acknowledged
                patch = http().get(f"{served.url}/changes").text
                numbers = [int(line.split('"')[1]) for line in patch.splitlines() if line.startswith("H sequence")]
                assert numbers == list(range(1, len(numbers) + 1))
    assert follower.restarts == 0


def _drained(one: Subscriber, follower: Follower, served: Served) -> bool:
    try:
        follower.take(one.notification(0.3))
    except TimeoutError:
        return follower.rows == expected(served)
    return False


def test_a_restart_keeps_numbers(tmp_path: Path) -> None:
    follower = Follower()
    for round_ in range(3):
        with broker(open_database(tmp_path / "db"), folder=tmp_path / "db" / "broker") as served:
            with Subscriber(served) as one:
                if round_:
                    assert follower.resume(one)["resumed"] is True
                else:
                    follower.take(one.subscribe(QUERY))
                assert put(served, round_) == 2 * round_ + 1
                follower.take(one.notification())
                assert follower.sequence == 2 * round_ + 1
            put(served, 100 + round_)
            with Subscriber(served) as one:
                follower.resume(one)
                follower.take(one.notification())
                assert follower.rows == expected(served)


def test_coming_and_going_while_others_write(tmp_path: Path) -> None:
    """What a view tells that is no longer the subscription's must not be heard."""
    with broker(open_database(tmp_path / "db", sync=False), folder=tmp_path / "broker") as served:
        stop = threading.Event()

        def write(first: int) -> None:
            number = first
            with httpx.Client(timeout=20) as http:
                while not stop.is_set():
                    number += 1
                    text = f"INSERT DATA {{ <urn:s{number}> <urn:p> {number} }}"
                    http.post(f"{served.url}/update", data={"update": text}).raise_for_status()
                    time.sleep(0.01)  # not faster than the reader can follow

        writers = [threading.Thread(target=write, args=(1_000_000 * number,)) for number in range(3)]
        for writer in writers:
            writer.start()
        follower = Follower()
        try:
            with Subscriber(served) as one:
                follower.take(one.subscribe(QUERY))
            for _ in range(10):
                with Subscriber(served) as one, Subscriber(served) as other:
                    assert follower.resume(one)["resumed"] is True
                    follower.take(one.notification())
                    assert follower.resume(other)["resumed"] is True  # a second connection takes over
                    for _ in range(10):
                        follower.take(other.notification())
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        with Subscriber(served) as one:
            assert follower.resume(one)["resumed"] is True
            wait_until(lambda: _drained(one, follower, served))
        assert follower.restarts == 0


def test_a_large_result_is_sent_whole(tmp_path: Path) -> None:
    with broker() as served:
        served.update("INSERT DATA { " + " ".join(f"<urn:s> <urn:p> {n} ." for n in range(5_000)) + " }")
        with Subscriber(served) as one:
            assert len(rows(one.subscribe("SELECT ?o { ?s <urn:p> ?o }")["addedResults"])) == 5_000
            one.subscribe("SELECT ?p { ?s ?p 7 }")
            served.update("DELETE WHERE { ?s <urn:p> ?o }")
            assert sorted(len(rows(one.notification()["removedResults"])) for _ in range(2)) == [1, 5_000]


def test_many_subscriptions_of_one_connection(tmp_path: Path) -> None:
    """All of them can be resumed, and nothing is left of those that cannot."""
    with broker(open_database(tmp_path / "db", sync=False), folder=tmp_path / "broker") as served:
        with Subscriber(served) as one:
            spuids = [one.subscribe(f"SELECT ?o {{ <urn:s{number}> <urn:p> ?o }}")["spuid"] for number in range(250)]
        put(served, 7)
        with Subscriber(served) as again:
            again.send({"subscribe": {"spuid": spuids[7], "sequence": 0}})
            assert again.receive()["resumption"]["resumed"] is True
            assert rows(again.notification()["addedResults"]) == [("7",)]
        assert served.running is not None
        running = served.running.broker
        wait_until(lambda: len(running.registry.absent) == 250 and not running.database._watching)
        assert not running._per_user[f"@{served.url.split('/')[2].split(':')[0]}"]


def test_a_stream_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    with broker() as served:
        assert served.running is not None
        running = served.running.broker
        for _ in range(5):
            with http().stream("GET", f"{served.url}/subscribe", params={"query": QUERY}, timeout=20):
                pass
        wait_until(lambda: not running.channels and not running.registry.live and not running.database._watching)
