"""Replicas on real servers: what they hold after every change, failed writes, first fills, crashes."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from tests.support import servers
from tests.support.proxy import Answer, Asked, Fault, Proxy, running
from tests.support.remote import stored
from tests.support.replica_files import changeset, rq, write
from tests.support.servers import Server

import evergraph as eg
from evergraph.errors import EndpointError, StoreError
from evergraph.terms import BlankNode, Literal, NamedNode, Quad, Term, skolemise_quad
from evergraph.views.replicas import parse_interest
from evergraph.views.replicas.oracle import interesting

pytestmark = pytest.mark.server

INTEREST = "SELECT * { ?a <urn:p> ?b OPTIONAL { ?b <urn:q> ?c } }"
GRAPH = "urn:replica"


def history(steps: int, size: int = 20) -> list[frozenset[Quad]]:
    random = Random(3)
    nodes: list[NamedNode | BlankNode] = [*(NamedNode(f"urn:n{number}") for number in range(4)), BlankNode("b")]
    values: list[Term] = [*nodes, Literal("x", language="en"), Literal('say "é"\n'), Literal("x")]
    pool = [Quad(one, NamedNode(f"urn:{name}"), value) for one in nodes for name in "pqr" for value in values]
    return [frozenset(random.sample(pool, size)) for _ in range(steps)]


class Case:
    def __init__(self, folder: Path, states: list[frozenset[Quad]]) -> None:
        self.folder = folder
        self.interest = rq(folder / "interest.rq", "", INTEREST)
        self.states = states
        write(folder / "init.nt", states[0])
        self.number = 0

    def add_change(self) -> None:
        before, after = self.states[self.number : self.number + 2]
        self.number += 1
        changeset(self.folder / "changes", self.number, before - after, after - before)

    def run(self, query_url: str, update_url: str, init: str | None = None) -> eg.Replicated:
        return eg.replicate(
            self.interest,
            init=init or self.folder / "init.nt",
            changes=self.folder / "changes",
            target=query_url,
            update_endpoint=update_url,
            graph=GRAPH,
            state=self.folder / "state",
            page=3,
        )

    def expected(self, number: int) -> frozenset[Quad]:
        found = interesting(parse_interest(INTEREST), self.states[number])
        return frozenset(
            Quad(quad.subject, quad.predicate, quad.object, NamedNode(GRAPH)) for quad in map(skolemise_quad, found)
        )


def test_a_replica_after_every_change(server: Server, tmp_path: Path) -> None:
    servers.reset(server)
    case = Case(tmp_path, history(6))
    for number in range(1, 6):
        case.add_change()
        assert case.run(server.query_url, server.update_url).position == number
        assert stored(server) == case.expected(number)


def test_many_changes_in_one_run(server: Server, tmp_path: Path) -> None:
    servers.reset(server)
    case = Case(tmp_path, history(12))
    for _ in range(11):
        case.add_change()
    case.run(server.query_url, server.update_url)
    assert stored(server) == case.expected(11)


@pytest.fixture(scope="module")
def oxigraph(started: Callable[[str], Server]) -> Server:
    return started("oxigraph")


@pytest.fixture
def proxy(oxigraph: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    servers.reset(oxigraph)
    monkeypatch.setattr("evergraph.replication.targets.time.sleep", lambda seconds: None)
    with running(oxigraph) as made:
        yield made


@pytest.mark.parametrize(
    "fault", [Fault.CUT_BEFORE, Fault.CUT_AFTER, Answer(500, b"full"), Answer(503, b"busy"), Answer(404, b"gone")]
)
def test_failed_writes_do_not_advance_the_position(
    oxigraph: Server, proxy: Proxy, tmp_path: Path, fault: Fault | Answer
) -> None:
    case = Case(tmp_path, history(4))
    case.add_change()
    case.run(proxy.query_url, proxy.update_url)
    case.add_change()
    proxy.begin(lambda asked: fault if asked.is_update else None)
    with pytest.raises(EndpointError, match=r"(?s).*the position has not advanced"):
        case.run(proxy.query_url, proxy.update_url)
    assert sum(asked.is_update for asked in proxy.asked) == 6  # it was tried again
    proxy.begin()
    assert case.run(proxy.query_url, proxy.update_url).position == 2
    assert stored(oxigraph) == case.expected(2)


def test_writes_are_retried_without_harm(oxigraph: Server, proxy: Proxy, tmp_path: Path) -> None:
    case = Case(tmp_path, history(5))
    for _ in range(4):
        case.add_change()
    faults = [Fault.CUT_AFTER, None, Answer(503), Fault.CUT_BEFORE, Fault.CUT_AFTER, None]

    def behave(asked: Asked) -> Fault | Answer | None:
        return faults[asked.number % len(faults)] if asked.is_update else None

    proxy.begin(behave)
    assert case.run(proxy.query_url, proxy.update_url).position == 4
    assert stored(oxigraph) == case.expected(4)


def test_a_change_is_one_request(oxigraph: Server, proxy: Proxy, tmp_path: Path) -> None:
    case = Case(tmp_path, history(3))
    case.add_change()
    case.run(proxy.query_url, proxy.update_url)
    case.add_change()
    proxy.begin()
    case.run(proxy.query_url, proxy.update_url)
    assert sum(asked.is_update for asked in proxy.asked) == 1


def test_a_target_that_holds_something_else_is_not_touched(oxigraph: Server, tmp_path: Path) -> None:
    servers.reset(oxigraph)
    with eg.connect(oxigraph.query_url, oxigraph.update_url) as database:
        database.update(f"INSERT DATA {{ GRAPH <{GRAPH}> {{ <urn:mine> <urn:p> 1 }} }}")
    case = Case(tmp_path, history(2))
    case.add_change()
    with pytest.raises(StoreError, match="holds something already"):
        case.run(oxigraph.query_url, oxigraph.update_url)
    assert len(stored(oxigraph)) == 1


def test_the_first_fill_comes_from_an_endpoint_in_pages(server: Server, tmp_path: Path) -> None:
    servers.reset(server)
    states = [frozenset(quad for quad in state if "_:" not in str(quad)) for state in history(2, size=40)]
    case = Case(tmp_path, states)
    case.add_change()
    with eg.connect(server.query_url, server.update_url, default_graph=VIRTUOSO.get(server.name)) as database:
        database.apply(eg.Request(added=states[0]))
    result = eg.replicate(
        case.interest, init=server.query_url, changes=tmp_path / "changes", target=tmp_path / "target", page=3
    )
    assert result.sizes["interest"][0] == len(case.expected(1))


@pytest.mark.usefixtures("spark")
def test_the_first_fill_of_spark(oxigraph: Server, tmp_path: Path) -> None:
    servers.reset(oxigraph)
    states = [frozenset(quad for quad in state if "_:" not in str(quad)) for state in history(2, size=40)]
    case = Case(tmp_path, states)
    case.add_change()
    with eg.connect(oxigraph.query_url, oxigraph.update_url) as database:
        database.apply(eg.Request(added=states[0]))
    sizes = [
        eg.replicate(
            case.interest,
            init=oxigraph.query_url,
            changes=tmp_path / "changes",
            target=tmp_path / engine,
            page=3,
            engine=engine,
        ).sizes["interest"]
        for engine in ("local", "spark")
    ]
    assert sizes[0] == sizes[1]
    assert sizes[0][0] == len(case.expected(1))
    assert (tmp_path / "local/data.nt").read_bytes() == (tmp_path / "spark/data.nt").read_bytes()


VIRTUOSO = {"virtuoso": "http://example.org/default"}


def test_kills(oxigraph: Server, tmp_path: Path) -> None:
    servers.reset(oxigraph)
    urls = (oxigraph.query_url, oxigraph.update_url)
    command = [sys.executable, "-m", "tests.support.replica_kills", str(tmp_path), "endpoint", "30", *urls]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 2
