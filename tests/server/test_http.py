"""Queries, updates and the change feed over HTTP, and what the broker says about itself."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pyoxigraph import RdfFormat, parse
from tests.support.brokers import Served, Subscriber, broker, broker_process, http, rows
from tests.support.servers import missing, start

import evergraph as eg
from evergraph.delta import Delta
from evergraph.errors import DataError
from evergraph.patch import read_patches
from evergraph.server.jsap import read_profile
from evergraph.server.negotiation import choose


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with broker(eg.open(tmp_path_factory.mktemp("http") / "db", sync=False)) as one:
        yield one


@pytest.fixture
def served(shared: Served) -> Served:
    shared.update("DROP ALL")
    return shared


def get(served: Served, query: str, accept: str = "", **params: str) -> httpx.Response:
    headers = {"Accept": accept}
    return http().get(f"{served.url}/query", params={"query": query, **params}, headers=headers)


# --- formats


@pytest.mark.parametrize(
    ("query", "accept", "kind"),
    [
        ("SELECT * { ?s ?p ?o }", "", "application/sparql-results+json"),
        ("SELECT * { ?s ?p ?o }", "*/*", "application/sparql-results+json"),
        ("SELECT * { ?s ?p ?o }", "application/json", "application/json"),
        ("SELECT * { ?s ?p ?o }", "text/csv;q=0.5, application/sparql-results+xml", "application/sparql-results+xml"),
        ("SELECT * { ?s ?p ?o }", "text/csv", "text/csv; charset=utf-8"),
        ("SELECT * { ?s ?p ?o }", "text/tab-separated-values", "text/tab-separated-values; charset=utf-8"),
        ("ASK {}", "application/xml", "application/xml"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "", "text/turtle; charset=utf-8"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "application/n-triples", "application/n-triples"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "application/ld+json", "application/ld+json"),
        ("DESCRIBE <urn:a>", "application/rdf+xml", "application/rdf+xml"),
    ],
)
def test_formats(served: Served, query: str, accept: str, kind: str) -> None:
    served.update("INSERT DATA { <urn:a> <http://e.example/p> 'ü' }")
    response = get(served, query, accept)
    assert (response.status_code, response.headers["content-type"]) == (200, kind)
    if "rdf" in kind or "triples" in kind or "turtle" in kind or "ld+json" in kind:
        assert len(list(parse(response.content, RdfFormat.from_media_type(kind)))) == 1


def test_what_nobody_can_write_is_not_acceptable(served: Served) -> None:
    assert get(served, "SELECT * {}", "image/png").status_code == 406
    assert get(served, "CONSTRUCT WHERE { ?s ?p ?o }", "text/csv").status_code == 406


def test_negotiation() -> None:
    assert choose("a/b;q=0.1, a/*;q=0.5", ("a/b", "a/c")) == "a/c"
    assert choose("a/b;q=0, */*", ("a/b", "c/d")) == "c/d"
    assert choose("a/b;q=nonsense", ("a/b",)) is None
    assert choose("", ("a/b",)) == "a/b"


# --- updates


def test_an_update_tells_what_it_did(served: Served) -> None:
    first = served.update("INSERT DATA { <urn:a> <urn:p> 1, 2 }")
    assert (first["inserted"], first["deleted"], first["response"]["isJson"]) == (2, 0, False)
    second = served.update("DELETE WHERE { <urn:a> ?p 1 }", quads="true")
    assert second["sequence"] == first["sequence"] + 1
    assert second["quads"] == {
        "inserted": [],
        "deleted": ['<urn:a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .'],
    }
    headers = {"Accept": "application/rdf-patch", "Content-Type": "application/sparql-update; charset=utf-8"}
    patch = http().post(f"{served.url}/update", content="INSERT DATA { <urn:b> <urn:p> 'é' }", headers=headers)
    assert patch.headers["content-type"] == "application/rdf-patch"
    assert 'A <urn:b> <urn:p> "é" .' in patch.text


def test_errors_say_where(served: Served) -> None:
    response = http().post(f"{served.url}/update", data={"update": "INSERT DATA {\n <urn:a> <urn:p> ?x }"})
    assert response.status_code == 400
    assert response.json()["error"] == "parsing failed"
    assert ":2:" in response.json()["error_description"] or "2:" in response.json()["error_description"]
    failed = http().post(f"{served.url}/update", data={"update": "CREATE GRAPH <urn:g> ; CREATE GRAPH <urn:g>"})
    assert (failed.status_code, failed.json()["error"]) == (500, "update_processing")
    assert "operation 2" in failed.json()["error_description"]
    assert get(served, "SELECT * { ?s ?p ?o", "").status_code == 400
    assert http().get(f"{served.url}/nowhere").json()["error"] == "wrong_path"
    assert http().get(f"{served.url}/update", params={"update": "CLEAR ALL"}).status_code == 405
    assert http().post(f"{served.url}/query", data={"update": "CLEAR ALL"}).status_code == 400
    assert get(served, "ASK {}", **{"default-graph-uri": "not an iri"}).status_code == 400


def test_many_at_once_are_written_together(tmp_path: Path) -> None:
    with broker(eg.open(tmp_path / "db")) as served, Subscriber(served) as one:
        one.subscribe("SELECT ?o { <urn:a> <urn:p> ?o }")

        def write(start: int) -> None:
            with httpx.Client(timeout=60) as client:
                for number in range(start, start + 20):
                    text = f"INSERT DATA {{ <urn:a> <urn:p> {number} }}"
                    client.post(f"{served.url}/update", data={"update": text}).raise_for_status()

        threads = [threading.Thread(target=write, args=(100 * number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        found = [one.notification() for _ in range(160)]
        for thread in threads:
            thread.join()
        assert [step["sequence"] for step in found] == list(range(1, 161))
        assert [step["change"] for step in found] == list(range(1, 161))


def test_subscriptions_over_some_graphs(served: Served) -> None:
    with Subscriber(served) as one:
        one.subscribe("SELECT ?o { ?s <urn:p> ?o }", **{"default-graph-uri": "urn:g", "extra": {"ignored": 1}})
        one.subscribe("SELECT ?o { GRAPH ?g { ?s <urn:p> ?o } }", **{"named-graph-uri": ["urn:h"]})
        served.update(
            "INSERT DATA { <urn:a> <urn:p> 1 . GRAPH <urn:g> { <urn:a> <urn:p> 2 } "
            "GRAPH <urn:h> { <urn:a> <urn:p> 3 } }"
        )
        assert sorted(rows(one.notification()["addedResults"]) for _ in range(2)) == [[("2",)], [("3",)]]


# --- the feed


def test_changes_by_sequence(served: Served) -> None:
    before = served.update("INSERT DATA { <urn:a> <urn:p> 1 }")["sequence"]
    served.update("DELETE DATA { <urn:a> <urn:p> 1 } ; INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:p> 2 } }")
    response = http().get(f"{served.url}/changes", params={"after": before - 1})
    assert response.headers["x-last-sequence"] == response.headers["x-newest-sequence"] == str(before + 1)
    patches = list(read_patches(response.content.splitlines(keepends=True), "feed"))
    assert [len(patch.request.added) for patch in patches] == [1, 1]
    one = http().get(f"{served.url}/changes", params={"after": before - 1, "limit": 1})
    assert one.headers["x-last-sequence"] == str(before)
    assert http().get(f"{served.url}/changes", params={"after": before + 1}).content == b""
    assert http().get(f"{served.url}/changes", params={"after": "x"}).status_code == 400


def test_a_replica_from_the_feed(served: Served) -> None:
    for number in range(5):
        served.update(f"INSERT DATA {{ <urn:a> <urn:p> {number} }} ; DELETE WHERE {{ <urn:a> <urn:p> {number - 1} }}")
    replica: Delta = Delta()
    after = 0
    while True:
        response = http().get(f"{served.url}/changes", params={"after": after, "limit": 3})
        for patch in read_patches(response.content.splitlines(keepends=True), "feed"):
            replica = replica.then(Delta(inserted=patch.request.added, deleted=patch.request.removed))
        if int(response.headers["x-last-sequence"]) == after:
            break
        after = int(response.headers["x-last-sequence"])
    assert served.running is not None
    assert replica.inserted == frozenset(served.running.broker.database.quads())


def test_waiting_for_a_change(served: Served) -> None:
    last = served.update("INSERT DATA { <urn:a> <urn:p> 1 }")["sequence"]
    thread = threading.Timer(0.3, served.update, args=("INSERT DATA { <urn:a> <urn:p> 2 }",))
    thread.start()
    begin = time.monotonic()
    response = http().get(f"{served.url}/changes", params={"after": last, "wait": 20}, timeout=30)
    assert response.headers["x-last-sequence"] == str(last + 1)
    assert 0.1 < time.monotonic() - begin < 15
    thread.join()


def test_changes_as_events(served: Served) -> None:
    last = served.update("INSERT DATA { <urn:a> <urn:p> 1 }")["sequence"]
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(last)}
    lines: list[str] = []
    with http().stream("GET", f"{served.url}/changes", headers=headers, timeout=20) as stream:
        thread = threading.Thread(target=served.update, args=("INSERT DATA { <urn:a> <urn:p> 2 }",))
        thread.start()
        for line in stream.iter_lines():
            lines.append(line)
            if line == "data: TC .":
                break
        thread.join()
    assert f"id: {last + 1}" in lines


def test_neptune_streams(served: Served) -> None:
    first = served.update("INSERT DATA { <urn:a> <urn:p> 1, 2 }")["sequence"]
    served.update("DELETE DATA { <urn:a> <urn:p> 1 } ; INSERT DATA { <urn:a> <urn:p> 3 }")

    def read(**params: object) -> httpx.Response:
        return http().get(f"{served.url}/sparql/stream", params=params)  # type: ignore[arg-type]

    found = read(commitNum=first, limit=3).json()
    assert [record["eventId"] for record in found["records"]] == [
        {"commitNum": first, "opNum": 1},
        {"commitNum": first, "opNum": 2},
        {"commitNum": first + 1, "opNum": 1},
    ]
    assert [record["op"] for record in found["records"]] == ["ADD", "ADD", "REMOVE"]
    times = [record["commitTimestampInMillis"] for record in found["records"]]
    assert times == sorted(times)
    assert times[0] == times[1]
    assert abs(times[-1] - 1000 * time.time()) < 60_000
    assert found["lastTrxTimestamp"] == times[-1]
    assert [record.get("isLastOp", False) for record in found["records"]] == [False, True, False]
    last = found["lastEventId"]
    rest = read(iteratorType="AFTER_SEQUENCE_NUMBER", commitNum=last["commitNum"], opNum=last["opNum"]).json()
    assert [record["op"] for record in rest["records"]] == ["ADD"]
    after = read(iteratorType="AFTER_SEQUENCE_NUMBER", commitNum=first + 1, opNum=2)
    assert (after.status_code, after.json()["error"]) == (404, "StreamRecordsNotFoundException")
    assert read(iteratorType="TRIM_HORIZON").json()["records"][0]["eventId"]["opNum"] == 1
    assert read(iteratorType="LATEST").json()["records"][0]["eventId"]["commitNum"] == first + 1
    assert read(iteratorType="NONSENSE").status_code == 400


# --- about the broker


def test_what_it_says_about_itself(served: Served) -> None:
    assert http().get(f"{served.url}/echo").json()["status"] == "up"
    metrics = http().get(f"{served.url}/metrics").text
    assert "evergraph_updates_total" in metrics
    assert 'evergraph_update_seconds_bucket{le="+Inf"}' in metrics
    description = http().get(f"{served.url}/sparql").text
    assert "SPARQL11Query" in description
    openapi = http().get(f"{served.url}/openapi.json").json()
    assert openapi["openapi"].startswith("3.")
    for path in openapi["paths"]:
        assert http().options(served.url + path.replace("{name}", "x")).status_code == 204


def test_the_page_needs_nothing_from_elsewhere(served: Served) -> None:
    page = http().get(f"{served.url}/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    script = http().get(f"{served.url}/page.js").text
    for text in (page.text, script):
        assert "http://" not in text.replace('"http"', "")
        assert "https://" not in text
    assert "innerHTML" not in script


def test_a_profile(tmp_path: Path) -> None:
    profile = {
        "host": "localhost",
        "sparql11protocol": {"protocol": "http", "port": 8001, "query": {"path": "/query"}},
        "sparql11seprotocol": {"protocol": "ws", "availableProtocols": {"ws": {"port": 9001, "path": "/subscribe"}}},
        "namespaces": {"ex": "http://e.example/"},
        "updates": {
            "put": {
                "sparql": "INSERT DATA { ?s ex:p ?o }",
                "forcedBindings": {"s": {"type": "uri"}, "o": {"type": "literal"}},
            },
            "wrong": {"sparql": "INSERT"},
        },
        "queries": {"get": {"sparql": "SELECT * { ?s ex:p ?o }"}, "empty": {}},
    }
    path = tmp_path / "app.jsap"
    path.write_text(json.dumps(profile))
    found = read_profile(path)
    assert (found.port, found.ws_port) == (8001, 9001)
    assert [problem.split(":")[1].split()[0] for problem in found.problems] == ["empty", "wrong"]
    path.write_text("[")
    with pytest.raises(DataError):
        read_profile(path)


def test_it_ends_as_it_should(tmp_path: Path) -> None:
    """SIGTERM: what was accepted is durable, readers hear of it, and the exit code is 0."""
    with broker_process(tmp_path / "db") as served, Subscriber(served) as one:
        one.subscribe("SELECT * { ?s ?p ?o }")
        served.update("INSERT DATA { <urn:a> <urn:p> 1 }")
        assert served.process is not None
        served.process.send_signal(signal.SIGTERM)
        assert one.notification()["sequence"] == 1
        assert served.process.wait(20) == 0
    with eg.open(tmp_path / "db") as db:
        assert len(list(db.quads())) == 1


def test_a_port_that_is_taken(tmp_path: Path, shared: Served) -> None:
    port = shared.url.rpartition(":")[2]
    command = [sys.executable, "-m", "evergraph", "serve", "--store", str(tmp_path / "db"), "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.server
@pytest.mark.skipif(missing("oxigraph") is not None, reason=str(missing("oxigraph")))
def test_in_front_of_an_endpoint(tmp_path: Path) -> None:
    """A broker over the SPARQL server that somebody has."""
    with start("oxigraph") as server:
        database = eg.connect(server.query_url, server.update_url, log=tmp_path / "log")
        with broker(database) as served, Subscriber(served) as one:
            one.subscribe("SELECT ?o { ?s <urn:p> ?o }")
            served.update("INSERT DATA { <urn:a> <urn:p> 1 }")
            assert rows(one.notification()["addedResults"]) == [("1",)]
            served.update("DELETE { ?s ?p ?o } INSERT { ?s ?p 2 } WHERE { ?s ?p ?o }")
            step = one.notification()
            assert (rows(step["addedResults"]), rows(step["removedResults"])) == ([("2",)], [("1",)])
            assert [row["o"]["value"] for row in served.select("SELECT ?o { ?s ?p ?o }")] == ["2"]
            graphs = {"default-graph-uri": "urn:g"}
            assert get(served, "SELECT * { ?s ?p ?o }", **graphs).json()["results"]["bindings"] == []
            assert http().get(f"{served.url}/changes").text.count("TX .") == 2


def test_a_slow_query_keeps_no_writer_waiting(tmp_path: Path) -> None:
    with eg.open(tmp_path / "db", sync=False) as database:
        database.update("INSERT DATA { " + " ".join(f"<urn:{n}> <urn:p> {n} ." for n in range(160)) + " }")
        with broker(database) as served:
            slow = 'ASK { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER (CONCAT(STR(?c), STR(?f), STR(?i)) = "none") }'
            asked: list[float] = []

            def ask() -> None:
                get_slowly = http().get(f"{served.url}/query", params={"query": slow}, timeout=100)
                assert get_slowly.json()["boolean"] is False
                asked.append(time.monotonic())

            thread = threading.Thread(target=ask)
            thread.start()
            time.sleep(0.3)
            served.update("INSERT DATA { <urn:x> <urn:p> 0 }")
            answered = time.monotonic()
            thread.join()
            assert answered < asked[0]


def test_streams_end_with_the_broker() -> None:
    """Nobody waits for the next heartbeat."""
    begin = 0.0
    lines: list[list[str]] = [[], []]
    threads = []
    with broker(drain_seconds=30.0) as served:
        begun = threading.Barrier(3)

        def read(place: int, path: str) -> None:
            headers = {"Accept": "text/event-stream"}
            with http().stream("GET", served.url + path, headers=headers, timeout=60) as stream:
                begun.wait(20)
                lines[place] = list(stream.iter_lines())

        for place, path in enumerate(("/changes", "/subscribe?query=ASK%7B%7D")):
            threads.append(threading.Thread(target=read, args=(place, path)))
            threads[-1].start()
        begun.wait(20)
        time.sleep(0.3)
        begin = time.monotonic()
    assert time.monotonic() - begin < 10
    for thread in threads:
        thread.join()
    assert any("notification" in line for line in lines[1])
