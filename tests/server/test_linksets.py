"""Linksets that are registered in a running broker."""

import json
import random
import threading
from pathlib import Path

import httpx
import pytest
from pyoxigraph import RdfFormat, parse
from tests.support.brokers import Served, broker, http

from evergraph.database import open_database
from evergraph.delta import Delta
from evergraph.patch import read_patches
from evergraph.terms import NamedNode, Quad

SAME = NamedNode("http://www.w3.org/2002/07/owl#sameAs")
DEFINITION = """
[linkset]
predicate = "owl:sameAs"

[source]
text = '''
CONSTRUCT { ?x a <urn:Film> ; <urn:title> ?t ; <urn:year> ?y }
WHERE { GRAPH <urn:left> { ?x a <urn:Film> ; <urn:title> ?t ; <urn:year> ?y } }
'''

[target]
text = '''
CONSTRUCT { ?x a <urn:Movie> ; <urn:name> ?t ; <urn:made> ?y }
WHERE { GRAPH <urn:right> { ?x a <urn:Movie> ; <urn:name> ?t ; <urn:made> ?y } }
'''

[[match.compare]]
source = "urn:title"
measure = "levenshtein"
max = 1

[[match.compare]]
source = "urn:year"
measure = "exact"
"""
TITLES = ("Alien", "Aliens", "Avatar", "Heat", "Head")


def put(served: Served, name: str, text: str = DEFINITION) -> httpx.Response:
    return http().put(f"{served.url}/linksets/{name}", content=text.encode(), timeout=30)


def links(served: Served, name: str) -> tuple[int, frozenset[Quad]]:
    response = http().get(f"{served.url}/linksets/{name}", headers={"Accept": "application/n-triples"})
    response.raise_for_status()
    return int(response.headers["x-sequence"]), frozenset(parse(response.content, RdfFormat.N_TRIPLES))


def distance(one: str, other: str) -> int:
    """Count the edits between two texts, by the definition."""
    if not one or not other:
        return len(one) + len(other)
    if one[0] == other[0]:
        return distance(one[1:], other[1:])
    return 1 + min(distance(one[1:], other), distance(one, other[1:]), distance(one[1:], other[1:]))


def side(served: Served, graph: str, kind: str, name: str, year: str) -> list[tuple[str, str, str]]:
    query = f"SELECT ?x ?t ?y {{ GRAPH <urn:{graph}> {{ ?x a <urn:{kind}> ; <urn:{name}> ?t ; <urn:{year}> ?y }} }}"
    found = http().get(f"{served.url}/query", params={"query": query}).json()["results"]["bindings"]
    return [(row["x"]["value"], row["t"]["value"], row["y"]["value"]) for row in found]


def wanted(served: Served) -> frozenset[Quad]:
    """Find the links from scratch, by the definition."""
    return frozenset(
        Quad(NamedNode(one), SAME, NamedNode(other))
        for one, title, year in side(served, "left", "Film", "title", "year")
        for other, name, made in side(served, "right", "Movie", "name", "made")
        if year == made and distance(title, name) <= 1
    )


def an_update(choice: random.Random) -> str:
    number, title, year = choice.randrange(4), choice.choice(TITLES), choice.randrange(2)
    left = f"<urn:left> {{ <urn:f{number}> a <urn:Film> ; <urn:title> '{title}' ; <urn:year> {year} }}"
    right = f"<urn:right> {{ <urn:m{number}> a <urn:Movie> ; <urn:name> '{title}' ; <urn:made> {year} }}"
    kind = choice.choice(["INSERT", "INSERT", "DELETE"])
    return f"{kind} DATA {{ GRAPH {choice.choice([left, right, '<urn:other> { <urn:a> <urn:b> 1 }'])} }}"


def test_links_that_follow(tmp_path: Path) -> None:
    choice = random.Random(2)
    with broker(open_database(tmp_path / "db", sync=False), folder=tmp_path / "broker") as served:
        for _ in range(15):
            served.update(an_update(choice))
        made = put(served, "films")
        assert made.status_code == 201, made.text
        position, first = links(served, "films")
        assert first == wanted(served)
        assert made.json()["links"] == len(first)
        copy, seen = Delta(inserted=first), {first}
        for _ in range(60):
            served.update(an_update(choice))
            response = http().get(f"{served.url}/linksets/films/changes", params={"after": position})
            for patch in read_patches(response.content.splitlines(keepends=True), "changes"):
                copy = copy.then(Delta(inserted=patch.request.added, deleted=patch.request.removed))
            position = int(response.headers["x-last-sequence"])
            assert copy.inserted == wanted(served)
            seen.add(copy.inserted)
        assert links(served, "films") == (position, copy.inserted)
        assert len(seen) > 5
    with broker(open_database(tmp_path / "db", sync=False), folder=tmp_path / "broker") as served:
        assert links(served, "films") == (position, copy.inserted)  # it is known after a restart
        missed = http().get(f"{served.url}/linksets/films/changes", params={"after": position - 1})
        assert missed.status_code == 410


def test_registered_while_others_write() -> None:
    """No change is lost or counted twice, whenever the linkset begins."""
    with broker() as served:

        def write(seed: int) -> None:
            choice = random.Random(seed)
            for _ in range(60):
                served.update(an_update(choice))

        threads = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for name in ("one", "two", "three"):
            assert put(served, name).status_code == 201
        for thread in threads:
            thread.join()
        expected = wanted(served)
        for name in ("one", "two", "three"):
            assert links(served, name)[1] == expected


def test_events() -> None:
    with broker() as served:
        put(served, "films")
        lines = []
        address, headers = f"{served.url}/linksets/films/changes", {"Accept": "text/event-stream"}
        with http().stream("GET", address, headers=headers, timeout=20) as stream:
            text = (
                "INSERT DATA { GRAPH <urn:left> { <urn:f> a <urn:Film> ; <urn:title> 'Heat' ; <urn:year> 1 }"
                " GRAPH <urn:right> { <urn:m> a <urn:Movie> ; <urn:name> 'Head' ; <urn:made> 1 } }"
            )
            thread = threading.Thread(target=served.update, args=(text,))
            thread.start()
            for line in stream.iter_lines():
                lines.append(line)
                if line == "data: TC .":
                    break
            thread.join()
        assert "data: A <urn:f> <http://www.w3.org/2002/07/owl#sameAs> <urn:m> ." in lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no TOML", "not TOML"),
        ("", "expected"),
        (DEFINITION.replace("'''\nCONSTRUCT { ?x a <urn:Film>", "'''\nCONSTRUCT ?x a <urn:Film>"), "cannot be parsed"),
        (DEFINITION.replace("[target]\ntext", "[target]\nview"), "cannot name a file"),
        (DEFINITION.replace("[source]", '[source]\ninit = "/etc/passwd"'), "init"),
        (DEFINITION + '\n[output]\nlinks = "/tmp/links.nt"', "output"),
        (DEFINITION.replace('"levenshtein"', '"magic"'), "magic"),
        (DEFINITION.replace("owl:sameAs", "nowhere:sameAs"), "nowhere"),
        ("x = " + "[" * 5_000, "not TOML"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with broker() as served:
        response = put(served, "films", text)
        assert response.status_code == 400, response.text
        assert message in response.json()["error_description"]
        assert "/tmp/" not in response.json()["error_description"].replace("/tmp/links.nt", "")
        assert http().get(f"{served.url}/linksets").json() == {"linksets": []}


def test_who_may_do_what() -> None:
    with broker() as served:
        address = f"{served.url}/linksets"
        assert put(served, "one").json()["links"] == 0
        assert put(served, "one").status_code == 201
        assert put(served, "one", DEFINITION + "\n# other\n").status_code == 409
        assert put(served, "..%2fevil").status_code == 404
        assert http().get(f"{address}/none").status_code == 404
        assert http().get(f"{address}/none/changes").status_code == 404
        assert [one["name"] for one in http().get(address).json()["linksets"]] == ["one"]
        assert served.running is not None
        linked = served.running.broker.linksets._linked["one"]
        user, linked.held.user = linked.held.user, "somebody else"
        assert http().delete(f"{address}/one").status_code == 403
        linked.held.user = user
        assert http().delete(f"{address}/one").status_code == 204
        assert http().get(f"{address}/one").status_code == 404
        served.update(an_update(random.Random(1)))
        assert put(served, "one").status_code == 201
        assert json.loads(http().get(address).content)["linksets"][0]["sequence"] == 1


def test_there_are_only_so_many() -> None:
    with broker() as served:
        most = 20
        assert {put(served, f"l{number}").status_code for number in range(most)} == {201}
        assert put(served, "more").status_code == 429
