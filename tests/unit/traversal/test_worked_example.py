"""The example of the paper, document by document: over the dataset alone, and over HTTP."""

from collections.abc import Iterator

import pytest
from tests.support.web import Reply, Web, serve_web

from evergraph.delta import Bag
from evergraph.engines.local.engine import LocalEngine
from evergraph.sparql.parser import parse_query
from evergraph.terms import NamedNode, Triple
from evergraph.traversal import F, Traversal, traverse
from evergraph.traversal.dataset import LinkedDataset, Retrieved
from evergraph.traversal.documents import read_document
from evergraph.traversal.oracle import answer, dataset

ALICE = ':alice :knows :bob, :charlie . :bob :name "Bobby" .'
BOB = ':bob :name "Bob" .'
CHARLIE = ':charlie :name "Charlie" .'
NAMES = "SELECT ?x ?n {{ :alice :knows ?x . ?x :name ?n }}"
OWN_NAMES = "SELECT ?x ?n {{ :alice :knows ?x . ?x {f} ?y . GRAPH ?y {{ ?x :name ?n }} }}"


def text_of(template: str, base: str) -> str:
    return f"PREFIX : <{base}> " + template.format(f=F)


@pytest.fixture
def web() -> Iterator[Web]:
    with serve_web() as served:
        served.turtle("alice", ALICE)
        served.turtle("bob", BOB, delay=0.3)
        served.turtle("charlie", CHARLIE)
        yield served


def shown(rows: "Bag[tuple[object, ...]]", base: str) -> list[tuple[str, ...]]:
    return sorted(tuple(str(getattr(term, "value", "")).removeprefix(base) for term in row) for row in rows.rows())


def run(traversal: Traversal, base: str) -> list[tuple[list[str], list[tuple[str, ...]], list[tuple[str, ...]]]]:
    """Run a traversal, and compare with an evaluation from scratch after every step."""
    steps = []
    with traversal:
        for step in traversal:
            expected = answer(traversal.query, traversal.dataset.documents, traversal.dataset.f)
            assert traversal.result() == expected
            assert frozenset(traversal.dataset.quads()) == dataset(traversal.dataset.documents, traversal.dataset.f)
            documents = [document.removeprefix(base) for document in step.documents]
            steps.append((documents, shown(step.added, base), shown(step.removed, base)))  # type: ignore[arg-type]
    return steps


def test_the_example_over_http(web: Web) -> None:
    steps = run(traverse(text_of(NAMES, web.base), allow=[web.host]), web.base)
    assert steps == [
        ([], [], []),
        (["alice"], [("bob", "Bobby")], []),
        (["charlie"], [("charlie", "Charlie")], []),
        (["bob"], [("bob", "Bob")], []),
    ]
    assert sorted(web.paths()) == ["/alice", "/bob", "/charlie"]


def test_only_what_the_owner_of_an_iri_says(web: Web) -> None:
    steps = run(traverse(text_of(OWN_NAMES, web.base), allow=[web.host]), web.base)
    assert steps == [
        ([], [], []),
        (["charlie"], [("charlie", "Charlie")], []),
        (["bob"], [("bob", "Bob")], []),
    ]


@pytest.mark.parametrize("template", [NAMES, OWN_NAMES], ids=["names", "own names"])
def test_the_example_over_the_dataset(template: str) -> None:
    base = "http://example.org/"
    query = parse_query(text_of(template, base))
    engine, linked = LocalEngine(), LinkedDataset()
    view = engine.register(query)
    results = []
    for name, text in (("alice", ALICE), ("charlie", CHARLIE), ("bob", BOB)):
        triples = read_document(f"@prefix : <{base}> . {text}".encode(), "text/turtle", base + name).triples
        resource = NamedNode(base + name)
        engine.apply(linked.take([Retrieved(resource, resource, triples)]))
        assert view.result() == answer(query, linked.documents, linked.f)
        results.append(shown(view.result(), base))  # type: ignore[arg-type]
    bobby, bob, charlie = ("bob", "Bobby"), ("bob", "Bob"), ("charlie", "Charlie")
    if template == NAMES:
        assert results == [[bobby], [bobby, charlie], sorted([bobby, charlie, bob])]
    else:
        assert results == [[], [charlie], [bob, charlie]]


def test_the_relation_cannot_be_forged(web: Web) -> None:
    """Alice claims that her document is Bob's, in every way that she can think of."""
    alice = web.iri("alice")
    web.turtle(
        "alice", f"{ALICE} :bob {F} :alice . :charlie <{F.value}> :alice .", headers={"Content-Location": "/bob"}
    )
    traversal = traverse(text_of(OWN_NAMES, web.base), allow=[web.host])
    steps = run(traversal, web.base)
    assert [added for _, added, _ in steps] == [[], [("charlie", "Charlie")], [("bob", "Bob")]]
    assert next(visit.forged for visit in traversal.report() if visit.url == alice) == 2


def test_a_document_cannot_write_into_the_graph_of_another(web: Web) -> None:
    trig = f'PREFIX : <{web.base}> :alice :knows :bob . :bob {{ :bob :name "X" }}'
    web.reply("alice", Reply(trig.encode(), headers={"Content-Type": "application/trig"}))
    traversal = traverse(text_of(OWN_NAMES, web.base), allow=[web.host])
    assert [added for _, added, _ in run(traversal, web.base)] == [[], [("bob", "Bob")]]
    assert next(visit.elsewhere for visit in traversal.report() if visit.url == web.iri("alice")) == 1


def test_triples_of_a_dataset_know_their_document() -> None:
    triple = Triple(NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:c"))
    linked = LinkedDataset()
    one, two = NamedNode("urn:one"), NamedNode("urn:two")
    first = linked.take([Retrieved(one, one, frozenset([triple])), Retrieved(two, two, frozenset([triple]))])
    assert len(first.inserted) == 5  # two graphs, the default graph once, f twice
    second = linked.take([Retrieved(one, one, frozenset())])
    assert not second.inserted
    assert [quad.graph_name for quad in second.deleted] == [one]
    third = linked.take([Retrieved(one, two, None)])  # the document of one is nobody's document now
    assert one not in linked.documents
    assert len(third) == 2
    with pytest.raises(ValueError, match="nothing is known"):
        linked.take([Retrieved(one, NamedNode("urn:three"), None)])
