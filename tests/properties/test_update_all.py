"""Requests that are written together do what they do one by one."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.properties.test_gate import graph_names
from tests.support.datasets import canonical, difference, replay
from tests.support.random_updates import PROLOGUE, RandomUpdates

import evergraph as eg
from evergraph.database import UpdateRequest
from evergraph.delta import Bag, Change, Request
from evergraph.errors import EvergraphError, StoreError, SyntaxProblem
from evergraph.gate.embedded import EmbeddedDataset
from evergraph.terms import NamedNode

TOGETHER = 6


def check_seed(one: eg.Database, many: eg.Database, seed: int) -> None:
    source = RandomUpdates(Random(seed))
    data = source.dataset()
    for db in (one, many):
        db.update("DROP ALL")
        db.apply(Request(added=data))
    texts = [PROLOGUE + ";\n".join(source.request()) for _ in range(TOGETHER)]
    first = many.sequence
    before = frozenset(many.quads())
    view = many.watch("SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }")
    outcomes = many.update_all([UpdateRequest(text) for text in texts])
    changes = [outcome for outcome in outcomes if isinstance(outcome, Change)]
    for text, outcome in zip(texts, outcomes, strict=True):
        context = f"seed {seed}:\n{text}"
        if isinstance(outcome, EvergraphError):
            with pytest.raises(type(outcome)):
                one.update(text)
        else:
            assert (len(one.update(text).delta) > 0) == bool(outcome), context
    assert [change.sequence for change in changes] == list(range(first + 1, first + 1 + len(changes)))
    assert canonical(one.quads()) == canonical(many.quads()), f"seed {seed}: {texts}"
    assert graph_names(one.query) == graph_names(many.query), f"seed {seed}: {texts}"
    total = Bag(before)
    for change in changes:
        total.update(change.delta.bag())
    assert total == Bag(many.quads())
    assert difference(before, many.quads()).bag() == total - Bag(before)
    assert len(view.result()) == len(list(many.quads()))
    many.unwatch(view)


@pytest.fixture(params=["memory", "disk"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[eg.Database, eg.Database]]:
    folders = (tmp_path / "one", tmp_path / "many") if request.param == "disk" else (None, None)
    with eg.open(folders[0], sync=False) as one, eg.open(folders[1], sync=False) as many:
        yield one, many
        if request.param == "disk":
            assert canonical(replay(many.changes())) == canonical(many.quads())


def test_together_as_one_by_one(pair: tuple[eg.Database, eg.Database]) -> None:
    for seed in range(25):
        check_seed(*pair, seed)


@pytest.mark.long
def test_together_as_one_by_one_often(pair: tuple[eg.Database, eg.Database]) -> None:
    for seed in range(25, 1_500):
        check_seed(*pair, seed)


def test_one_that_fails_leaves_the_others(tmp_path: Path) -> None:
    with eg.open(tmp_path / "db") as db:
        outcomes = db.update_all(
            [
                UpdateRequest("INSERT DATA { <urn:a> <urn:p> 1 }"),
                UpdateRequest("INSERT DATA { <urn:b> <urn:p> 2 } ; CREATE GRAPH <urn:g> ; CREATE GRAPH <urn:g>"),
                UpdateRequest("no update at all"),
                UpdateRequest("DELETE { ?s <urn:p> 1 } INSERT { ?s <urn:q> 3 } WHERE { ?s <urn:p> 1 }"),
            ]
        )
        first, second, third, fourth = outcomes
        assert isinstance(first, Change)
        assert isinstance(second, EvergraphError)
        assert isinstance(third, SyntaxProblem)
        assert isinstance(fourth, Change)
        assert (first.sequence, fourth.sequence, db.sequence) == (1, 2, 2)
        assert [str(quad) for quad in fourth.deleted] == [
            '<urn:a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer>'
        ]
        assert len(list(db.changes())) == 2


def test_nothing_counts_if_the_store_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with eg.open(tmp_path / "db") as db:
        db.update("INSERT DATA { <urn:a> <urn:p> 1 }")
        requests = [UpdateRequest(f"INSERT DATA {{ <urn:a> <urn:p> {number} }}") for number in (2, 3)]
        with monkeypatch.context() as patch:
            patch.setattr(EmbeddedDataset, "write", _fail)
            with pytest.raises(StoreError):
                db.update_all(requests)
        assert db.sequence == 1
        assert [change.sequence for change in db.changes()] == [1]
        assert [getattr(one, "sequence", None) for one in db.update_all(requests)] == [2, 3]
    with eg.open(tmp_path / "db") as db:
        assert len(list(db.quads())) == 3


def _fail(*_: object) -> None:
    raise StoreError("the disk is full")


def test_graphs_of_the_protocol_are_those_of_where_clauses() -> None:
    db = eg.open()
    db.update("INSERT DATA { <urn:a> <urn:p> 1 . GRAPH <urn:g> { <urn:b> <urn:p> 1 } }")
    [graph] = {quad.graph_name for quad in db.quads() if str(quad.graph_name) == "<urn:g>"}
    assert isinstance(graph, NamedNode)
    request = UpdateRequest("INSERT { ?s <urn:q> 2 } WHERE { ?s <urn:p> 1 }", using=(graph,))
    [change] = db.update_all([request])
    assert isinstance(change, Change)
    assert [str(quad.subject) for quad in change.inserted] == ["<urn:b>"]
    [refused] = db.update_all([UpdateRequest("WITH <urn:g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", using=(graph,))])
    assert isinstance(refused, SyntaxProblem)
