"""Replicas that are registered in a running broker."""

import json
import random
import threading
from pathlib import Path

import httpx
from pyoxigraph import RdfFormat, parse
from tests.support.brokers import Served, broker, http

from evergraph.database import open_database
from evergraph.delta import Delta
from evergraph.patch import read_patches
from evergraph.terms import Quad

INTEREST = "SELECT * { ?s <urn:name> ?n ; <urn:age> ?a }"
WHOLE = "CONSTRUCT { ?s <urn:name> ?n ; <urn:age> ?a } WHERE { ?s <urn:name> ?n ; <urn:age> ?a }"


def put(served: Served, name: str, text: str = INTEREST) -> httpx.Response:
    return http().put(f"{served.url}/replicas/{name}", content=text)


def held(served: Served, name: str) -> tuple[int, frozenset[Quad]]:
    response = http().get(f"{served.url}/replicas/{name}", headers={"Accept": "application/n-triples"})
    response.raise_for_status()
    return int(response.headers["x-sequence"]), frozenset(parse(response.content, RdfFormat.N_TRIPLES))


def wanted(served: Served) -> frozenset[Quad]:
    response = http().get(f"{served.url}/query", params={"query": WHOLE}, headers={"Accept": "application/n-triples"})
    return frozenset(parse(response.content, RdfFormat.N_TRIPLES))


def an_update(choice: random.Random) -> str:
    s, kind, value = choice.randrange(4), choice.choice(["name", "age", "other"]), choice.randrange(3)
    return f"{choice.choice(['INSERT', 'INSERT', 'DELETE'])} DATA {{ <urn:s{s}> <urn:{kind}> {value} }}"


def test_a_copy_that_follows(tmp_path: Path) -> None:
    choice = random.Random(1)
    with broker(open_database(tmp_path / "db", sync=False), folder=tmp_path / "broker") as served:
        for _ in range(10):
            served.update(an_update(choice))
        made = put(served, "people")
        assert made.status_code == 201, made.text
        position, first = held(served, "people")
        assert first == wanted(served)
        copy = Delta(inserted=first)
        for _ in range(60):
            served.update(an_update(choice))
            response = http().get(f"{served.url}/replicas/people/changes", params={"after": position})
            for patch in read_patches(response.content.splitlines(keepends=True), "changes"):
                copy = copy.then(Delta(inserted=patch.request.added, deleted=patch.request.removed))
            position = int(response.headers["x-last-sequence"])
            assert copy.inserted == wanted(served)
        assert held(served, "people") == (position, copy.inserted)
    with broker(open_database(tmp_path / "db", sync=False), folder=tmp_path / "broker") as served:
        assert held(served, "people") == (position, copy.inserted)  # it is known after a restart
        served.update("INSERT DATA { <urn:new> <urn:name> 1 ; <urn:age> 2 }")
        changes = http().get(f"{served.url}/replicas/people/changes", params={"after": position})
        assert changes.text.count("\nA ") == 2
        missed = http().get(f"{served.url}/replicas/people/changes", params={"after": position - 1})
        assert missed.status_code == 410
        assert "read the whole again" in missed.json()["error_description"]


def test_events(tmp_path: Path) -> None:
    with broker() as served:
        put(served, "people")
        lines = []
        headers = {"Accept": "text/event-stream"}
        with http().stream("GET", f"{served.url}/replicas/people/changes", headers=headers, timeout=20) as stream:
            text = "INSERT DATA { <urn:a> <urn:name> 1 ; <urn:age> 2 }"
            thread = threading.Thread(target=served.update, args=(text,))
            thread.start()
            for line in stream.iter_lines():
                lines.append(line)
                if line == "data: TC .":
                    break
            thread.join()
        assert "id: 1" in lines


def test_who_may_do_what() -> None:
    with broker() as served:
        address = f"{served.url}/replicas"
        assert put(served, "one").json()["triples"] == 0
        assert put(served, "one").status_code == 201
        assert put(served, "one", "SELECT * { ?s <urn:other> ?o }").status_code == 409
        assert put(served, "two", "no query").status_code == 400
        assert put(served, "two", "SELECT * { ?s ?p ?o } LIMIT 1").status_code in (201, 400)
        assert put(served, "..%2fevil").status_code == 404
        assert http().get(f"{address}/none").status_code == 404
        assert http().get(address).json()["replicas"][0]["name"] == "one"
        assert served.running is not None
        served.running.broker.shelf._held["one"].user = "somebody else"
        assert http().delete(f"{address}/one").status_code == 403
        served.running.broker.shelf._held["one"].user = "@127.0.0.1"
        assert http().delete(f"{address}/one").status_code == 204
        assert http().get(f"{address}/one").status_code == 404
        assert json.loads(http().get(address).content)["replicas"] is not None
