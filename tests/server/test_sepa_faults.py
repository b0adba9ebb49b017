"""Each known fault of SEPA's own engine, as a test that the broker does not have it."""

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from tests.support.brokers import Served, Subscriber, broker, rows, wait_until

from evergraph.server.settings import Limits


@pytest.fixture(scope="module")
def shared() -> Iterator[Served]:
    with broker() as one:
        yield one


@pytest.fixture
def served(shared: Served) -> Served:
    shared.update("DROP ALL")
    return shared


def test_ask_and_construct_and_describe_are_notified(served: Served) -> None:
    with Subscriber(served) as one:
        first = one.subscribe("ASK { ?s <urn:p> 1 }")
        assert first["addedResults"]["boolean"] is False
        assert rows(first["removedResults"]) == []
        made = one.subscribe("CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }")
        assert made["addedResults"]["head"]["vars"] == ["subject", "predicate", "object"]
        one.subscribe("DESCRIBE <urn:a>")
        served.update("INSERT DATA { <urn:a> <urn:p> 1 }")
        found = [one.notification() for _ in range(3)]
        [asked] = [step for step in found if "boolean" in step["addedResults"]]
        assert (asked["addedResults"]["boolean"], asked["removedResults"]["boolean"]) == (True, False)
        triples = [rows(step["addedResults"]) for step in found if "boolean" not in step["addedResults"]]
        assert sorted(triples) == [[("urn:a", "urn:p", "1")], [("urn:a", "urn:q", "1")]]


def test_rows_with_unbound_variables_are_told_once(served: Served) -> None:
    served.update("INSERT DATA { <urn:a> <urn:p> 1 }")
    with Subscriber(served) as one:
        first = one.subscribe("SELECT ?s ?x { ?s <urn:p> ?o OPTIONAL { ?s <urn:x> ?x } }")
        assert first["addedResults"]["results"]["bindings"] == [{"s": {"type": "uri", "value": "urn:a"}}]
        served.update("INSERT DATA { <urn:other> <urn:y> 1 }")
        served.update("INSERT DATA { <urn:b> <urn:p> 1 }")
        step = one.notification()
        assert (rows(step["addedResults"]), rows(step["removedResults"])) == ([("urn:b", "")], [])


def test_multiplicities_count(served: Served) -> None:
    served.update("INSERT DATA { <urn:a> <urn:p> 1, 2 }")
    with Subscriber(served) as one:
        assert rows(one.subscribe("SELECT ?s { ?s <urn:p> ?o }")["addedResults"]) == [("urn:a",)] * 2
        served.update("INSERT DATA { <urn:a> <urn:p> 3 }")
        assert rows(one.notification()["addedResults"]) == [("urn:a",)]
        served.update("DELETE DATA { <urn:a> <urn:p> 1 , 2 }")
        assert rows(one.notification()["removedResults"]) == [("urn:a",)] * 2


def test_blank_nodes_are_seen_to_change(served: Served) -> None:
    with Subscriber(served) as one:
        one.subscribe("SELECT ?s ?o { ?s <urn:p> ?o }")
        served.update("INSERT DATA { _:x <urn:p> 1 }")
        [first] = rows(one.notification()["addedResults"])
        served.update("INSERT DATA { _:x <urn:p> 1 }")
        [second] = rows(one.notification()["addedResults"])
        assert first != second
        served.update("DELETE WHERE { ?s <urn:p> 1 }")
        assert rows(one.notification()["removedResults"]) == sorted([first, second])


def test_the_default_graph_wakes_subscribers(served: Served) -> None:
    with Subscriber(served) as one:
        one.subscribe("SELECT * { ?s <urn:p> ?o }")
        served.update("INSERT DATA { <urn:a> <urn:p> 1 }")
        assert rows(one.notification()["addedResults"]) == [("urn:a", "1")]


@pytest.mark.parametrize(
    "pattern",
    [
        "?s <urn:p> ?o OPTIONAL { GRAPH <urn:g> { ?s <urn:x> ?x } }",
        "{ ?s <urn:none> ?x } UNION { GRAPH <urn:g> { ?s <urn:x> ?x } }",
        "?s <urn:p> ?o MINUS { GRAPH <urn:g> { ?s <urn:x> ?x } }",
        "?s <urn:p> ?o FILTER EXISTS { GRAPH <urn:g> { ?s <urn:x> ?x } }",
        "?s <urn:p> ?o FILTER NOT EXISTS { GRAPH ?g { ?s <urn:x> ?x } }",
        "{ SELECT ?s { GRAPH ?g { ?s <urn:x> ?x } } }",
    ],
)
def test_graph_is_seen_wherever_it_stands(served: Served, pattern: str) -> None:
    served.update("INSERT DATA { <urn:a> <urn:p> 1 }")
    with Subscriber(served) as one:
        one.subscribe(f"SELECT * {{ {pattern} }}")
        served.update("INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:x> 2 } }")
        step = one.notification()
        assert rows(step["addedResults"]) or rows(step["removedResults"])


def test_graph_variables_in_templates(served: Served) -> None:
    served.update("INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:name> 'Pietro' } }")
    with Subscriber(served) as one:
        one.subscribe("SELECT ?name { GRAPH <urn:g> { ?s <urn:name> ?name } }")
        served.update(
            "DELETE { GRAPH ?g { ?a <urn:name> 'Pietro' } } INSERT { GRAPH ?g { ?a <urn:name> 'Mario' } } "
            "WHERE { GRAPH ?g { ?a <urn:name> 'Pietro' } }"
        )
        step = one.notification()
        assert (rows(step["addedResults"]), rows(step["removedResults"])) == ([("Mario",)], [("Pietro",)])


@pytest.mark.parametrize("operation", ["CLEAR ALL", "DROP ALL", "CLEAR GRAPH <urn:g>", "DROP NAMED"])
def test_clear_and_drop(served: Served, operation: str) -> None:
    served.update("INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:p> 1 } }")
    with Subscriber(served) as one:
        one.subscribe("SELECT * { GRAPH ?g { ?s ?p ?o } }")
        answer = served.update(operation)
        assert answer["deleted"] == 1
        assert len(rows(one.notification()["removedResults"])) == 1


def test_subscriptions_are_not_shared_between_clients(served: Served) -> None:
    text = "SELECT * { ?s <urn:p> ?o }"
    with Subscriber(served) as one, Subscriber(served) as other:
        mine, theirs = one.subscribe(text, alias="mine"), other.subscribe(text, alias="theirs")
        assert mine["spuid"] != theirs["spuid"]
        served.update("INSERT DATA { <urn:a> <urn:p> 1 }")
        assert (one.notification()["alias"], other.notification()["alias"]) == ("mine", "theirs")
        one.ask({"unsubscribe": {"spuid": mine["spuid"]}})
        served.update("INSERT DATA { <urn:a> <urn:p> 2 }")
        assert other.notification()["sequence"] == 2
        assert one.is_quiet()


def test_nobody_ends_the_subscription_of_another(served: Served) -> None:
    with Subscriber(served) as one, Subscriber(served) as other:
        mine = one.subscribe("SELECT * { ?s <urn:p> ?o }")
        refused = other.ask({"unsubscribe": {"spuid": mine["spuid"], "alias": "x"}})
        assert (refused["error"], refused["status_code"], refused["alias"]) == ("sid_not_found", 404, "x")
        served.update("INSERT DATA { <urn:a> <urn:p> 1 }")
        assert one.notification()["sequence"] == 1


def test_every_operation_of_a_request_counts(served: Served) -> None:
    with Subscriber(served) as one:
        one.subscribe("SELECT ?o { ?s <urn:p> ?o }")
        served.update(
            "INSERT DATA { <urn:z> <urn:q> 0 } ; INSERT DATA { <urn:a> <urn:p> 1 } ; INSERT DATA { <urn:a> <urn:p> 2 }"
        )
        assert rows(one.notification()["addedResults"]) == [("1",), ("2",)]


def test_a_slow_subscriber_blocks_nobody_and_misses_nothing() -> None:
    limits = Limits(backlog=8, backlog_rows=200)
    with broker(limits=limits) as served, Subscriber(served) as quick:
        quick.subscribe("SELECT ?o { <urn:a> <urn:p> ?o }")
        with socket.create_connection(served.ws_url.removeprefix("ws://").split(":"), 10) as slow:  # type: ignore[arg-type]
            _subscribe_by_hand(slow, "SELECT (?o AS ?big) { <urn:a> <urn:p> ?o }")
            filler = "x" * 200_000
            longest = 0.0
            for number in range(60):
                begin = time.monotonic()
                served.update(f"INSERT DATA {{ <urn:a> <urn:p> '{filler}{number}' }}")
                longest = max(longest, time.monotonic() - begin)
                assert quick.notification()["sequence"] == number + 1
            assert longest < 5
            assert served.running is not None
            [one] = [one for one in served.running.broker.registry.live.values() if "big" in one.text]
            assert len(one.pending) <= 8 + 1
            assert one.sequence < 60
            texts = _read_by_hand(slow, lambda found: sum(len(rows(one["addedResults"])) for one in found) == 60)
        assert [one["sequence"] for one in texts] == list(range(len(texts)))
        assert len(texts) < 61


def _subscribe_by_hand(one: socket.socket, text: str) -> None:
    """Open a WebSocket that reads only when it wants to."""
    import json

    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    one.sendall(
        b"GET /subscribe HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    head = b""
    while b"\r\n\r\n" not in head:
        head += one.recv(1)
    payload = json.dumps({"subscribe": {"sparql": text}}).encode()
    one.sendall(b"\x81" + bytes([0x80 | 126]) + struct.pack("!H", len(payload)) + b"\0\0\0\0" + payload)


def _read_by_hand(one: socket.socket, enough):  # type: ignore[no-untyped-def]
    import json

    one.settimeout(20)
    stream = one.makefile("rb")
    found: list[dict[str, object]] = []
    while not enough(found):
        first, length = stream.read(2)
        if length == 126:
            [length] = struct.unpack("!H", stream.read(2))
        elif length == 127:
            [length] = struct.unpack("!Q", stream.read(8))
        data = stream.read(length)
        if first & 0xF == 1:
            found.append(json.loads(data)["notification"])
    return found


def test_an_update_is_answered_while_a_subscriber_hangs() -> None:
    with broker() as served:
        with Subscriber(served) as one:
            one.subscribe("SELECT * { ?s <urn:p> ?o }")
            thread = threading.Thread(target=served.update, args=("INSERT DATA { <urn:a> <urn:p> 1 }",))
            thread.start()
            thread.join(10)
            assert not thread.is_alive()
        assert served.running is not None
        registry = served.running.broker.registry
        wait_until(lambda: not registry.live)
