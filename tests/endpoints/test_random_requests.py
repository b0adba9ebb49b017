"""Random requests on real servers, against the difference that they make and against Oxigraph running them itself.

Servers differ in how they evaluate patterns and in what they make of literals. So that the outcome can be compared with
Oxigraph's, they get requests on which all agree; that the report is what happened is checked for the others too.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from pyoxigraph import Store
from tests.support import servers
from tests.support.datasets import difference, isomorphic
from tests.support.plain_updates import random_data, random_request
from tests.support.random_updates import PROLOGUE, RandomUpdates
from tests.support.remote import run, stored, unskolemised
from tests.support.servers import Server

import evergraph as eg
from evergraph.delta import Delta, Request
from evergraph.errors import EndpointError, EvergraphError
from evergraph.gate import presence, remote
from evergraph.gate.data_update import data_block
from evergraph.gate.operations import Original
from evergraph.terms import NamedNode, Quad, quad_has_blank_node, skolemise_quad

pytestmark = pytest.mark.server

REQUESTS_PER_SEED = 5

# As every server gives them back, and no two with the same value.
LITERALS = (
    *('"x"', '"x"@en', '"x"@en-GB', "'''}'{'''", '"GRAPH # {"', "1", "-1", "1.5"),
    *('"one"', '"1"^^:unknown', '"2020-01-01T00:00:00Z"^^xsd:dateTime'),
)
VIRTUOSO_LITERALS = (
    *(
        "true",
        "1.0",
        "1e0",
        "1.50",
        "15e-1",
        '"1"^^xsd:int',
        '"+1"^^xsd:byte',
        '"2020-01-01T02:00:00+02:00"^^xsd:dateTime',
    ),
    *LITERALS,
)


@dataclass(frozen=True, slots=True)
class Ways:
    """What requests a server gets so that it agrees with Oxigraph."""

    make: Callable[[Random], RandomUpdates]
    keeps_empty_graphs: bool = False
    unlike: str = "(?!)"
    """What it evaluates in a way of its own, as a regular expression."""


FUSEKI = Ways(
    lambda random: RandomUpdates(
        random,
        literals=LITERALS,
        expressions=("?o", "STR(?o)", "IF(isIRI(?x), ?x, ?o)", "COALESCE(?y, :c)", ":g1"),
        paths=(":p", ":q", ":p/:q", "^:p", "!:p"),
        triple_terms=False,
    ),
    unlike=r"GRAPH \?\w+ \{.*MINUS",  # is ?g a variable that the two sides share?
)
VIRTUOSO = Ways(
    lambda random: RandomUpdates(
        random,
        literals=LITERALS,
        expressions=("?o", "COALESCE(?y, :c)", ":g1"),
        conditions=("isIRI(?o)", "BOUND(?x)"),
        paths=(":p", ":q"),
        elements=(0, 1, 2),
        triple_terms=False,
    ),
    # A variable that stands twice in a triple, a graph within a graph.
    unlike=r"(\?\w+)(?: \S+)? \1\b|GRAPH \S+ \{[^}]*GRAPH",
)
WAYS = {"oxigraph": Ways(RandomUpdates, keeps_empty_graphs=True), "fuseki": FUSEKI, "virtuoso": VIRTUOSO}


@dataclass(slots=True)
class Oracle:
    """Runs requests as Oxigraph does, but for what a remote dataset knows of graphs: those that hold quads exist.

    A graph that loses its quads exists until the request is over, unless it is dropped.
    """

    keeps_empty_graphs: bool
    store: Store = field(default_factory=Store)

    def run(self, operations: tuple[str, ...]) -> Store | None:
        """Run a request on a copy, operation by operation; None if one fails."""
        store = Store()
        store.extend(self.store)
        existing = _names(store)
        for operation in operations:
            words = operation.split()
            silent, kind = "SILENT" in words, words[0]
            source, target = words[-3:][0], words[-1]
            if kind in ("ADD", "COPY", "MOVE") and source != "DEFAULT" and source not in existing:
                if silent:
                    continue
                return None
            if kind in ("CLEAR", "DROP") and target.startswith(":") and target not in existing and not silent:
                return None
            if kind == "CREATE" and target in existing and not silent:
                return None
            if kind == "LOAD" and not silent:
                return None
            store.update(PROLOGUE + (operation if silent else re.sub("^(CLEAR|DROP|CREATE)", r"\1 SILENT", operation)))
            _skolemise(store)
            existing |= _names(store)
            if kind == "CREATE":
                existing.add(target)
            if kind == "DROP":
                existing -= existing if target in ("ALL", "NAMED") else {target}
            if kind == "MOVE" and source != target:
                existing.discard(source)
            if kind in ("COPY", "MOVE") and source != target and target not in _names(store):
                existing.discard(target)
            self._forget_empty_graphs(store, words)
        return store

    def _forget_empty_graphs(self, store: Store, words: list[str]) -> None:
        full = {quad.graph_name for quad in store}
        for name in [name for name in store.named_graphs() if name not in full]:
            if not self.keeps_empty_graphs or words[0] == "CREATE":
                store.remove_graph(name)


def _names(store: Store) -> set[str]:
    full = {quad.graph_name for quad in store}
    return {name.value.replace("http://example.org/", ":") for name in full if isinstance(name, NamedNode)}


def _skolemise(store: Store) -> None:
    for quad in [quad for quad in store if quad_has_blank_node(quad)]:
        store.remove(quad)
        store.add(skolemise_quad(quad))


def is_what_the_server_does(server: Server, text: str, before: Iterable[Quad], outcome: set[Quad]) -> bool:
    """Let the server itself run a request on which it does not agree with Oxigraph, and compare with that."""
    present = stored(server)
    put(server, before)
    run(server, text)
    does = isomorphic(unskolemised(stored(server)), outcome)
    put(server, present)
    return does


def put(server: Server, quads: Iterable[Quad]) -> None:
    servers.reset(server)
    run(server, f"INSERT DATA {{ {data_block(quads)} }}")


def check_seed(db: eg.Database, server: Server, seed: int, ways: Ways, *, compare: bool = True) -> int:
    """Run some requests in a row on random data; count those that the server could run."""
    source, count = ways.make(Random(seed)), 0
    servers.reset(server)
    oracle = Oracle(ways.keeps_empty_graphs)
    oracle.store.extend(db.apply(Request(added=source.dataset())).inserted)
    for number in range(REQUESTS_PER_SEED):
        operations = source.request()
        if re.search(ways.unlike, " ".join(operations)):
            continue
        text = PROLOGUE + ";\n".join(operations)
        context = f"seed {seed}, request {number}:\n{text}"
        before, sequence = stored(server), db.sequence
        expected = oracle.run(operations) if compare else None
        try:
            change = db.update(text)
        except EvergraphError as error:
            assert (stored(server), db.sequence) == (before, sequence), context
            assert not compare or expected is None or isinstance(error, EndpointError), f"{context}\n{error}"
            continue
        after = stored(server)
        assert change.delta == difference(before, after), context
        count += 1
        if compare:
            assert expected is not None, context
            outcome = unskolemised(after)
            assert isomorphic(outcome, unskolemised(expected)) or is_what_the_server_does(
                server, text, before, outcome
            ), context
        oracle.store = Store()
        oracle.store.extend(after)
        if ways.keeps_empty_graphs:
            for name in ("g1", "g2", "g3"):
                if not any(quad.graph_name == NamedNode(f"http://example.org/{name}") for quad in after):
                    run(server, f"DROP SILENT GRAPH <http://example.org/{name}>")
    return count


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(30), id="150-requests"),
        pytest.param(range(1_000, 1_400), id="2000-requests", marks=pytest.mark.long),
    ],
)
def test_as_oxigraph_does(db: eg.Database, server: Server, seeds: Iterable[int]) -> None:
    assert sum(check_seed(db, server, seed, WAYS[server.name]) for seed in seeds) > 2 * len(list(seeds))


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(500, 510), id="50-requests"),
        pytest.param(range(2_000, 2_200), id="1000-requests", marks=pytest.mark.long),
    ],
)
def test_what_is_reported_is_what_happened(db: eg.Database, server: Server, seeds: Iterable[int]) -> None:
    """With every pattern and literal, however the server takes them; what it cannot run must leave no trace."""
    everything = {
        "oxigraph": Ways(RandomUpdates),
        "fuseki": Ways(lambda random: RandomUpdates(random, triple_terms=False)),
        "virtuoso": Ways(
            lambda random: RandomUpdates(
                random, literals=VIRTUOSO_LITERALS, paths=(":p/:q", "^:p", ":p|:q"), triple_terms=False
            )
        ),
    }[server.name]
    assert sum(check_seed(db, server, seed, everything, compare=False) for seed in seeds) > len(list(seeds))


@pytest.mark.parametrize(
    "seeds", [range(100), pytest.param(range(1_000, 4_000), marks=pytest.mark.long)], ids=lambda seeds: len(seeds)
)
def test_plain_requests(
    connection: eg.Database, server: Server, seeds: Iterable[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that are sent as they are do what is reported; so do checks that large ones are spared."""
    monkeypatch.setattr(presence, "LARGE", 1)
    sent: list[bool] = []
    does_the_same = remote.RemoteDataset._does_the_same

    def noting(self: Any, original: Original, delta: Delta) -> bool:
        sent.append(does_the_same(self, original, delta))
        return sent[-1]

    monkeypatch.setattr(remote.RemoteDataset, "_does_the_same", noting)
    for seed in seeds:
        random = Random(seed)
        servers.reset(server)
        connection.update(random_data(random, blank_nodes=False))
        text = random_request(random)
        before, sequence = stored(server), connection.sequence
        try:
            change = connection.update(text)
        except EvergraphError:
            assert (stored(server), connection.sequence) == (before, sequence), (seed, text)
            continue
        assert change.delta == difference(before, stored(server)), (seed, text)
    assert any(sent)
