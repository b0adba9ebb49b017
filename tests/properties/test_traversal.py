"""Traversals: maintained = from scratch after every document, retractions included; the right documents are fetched."""

from collections.abc import Iterator
from random import Random

import pytest
from tests.support.random_queries import PROLOGUE, RandomQueries
from tests.support.web import Reply, Web, serve_web

from evergraph.delta import Bag
from evergraph.engines.local.engine import LocalEngine
from evergraph.sparql.algebra import BGP, Project, Select
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.terms import NamedNode, Quad, Triple, Variable
from evergraph.traversal import F, Manners, Strategy, traverse
from evergraph.traversal.dataset import LinkedDataset, Lost, Retrieved
from evergraph.traversal.documents import read_document
from evergraph.traversal.oracle import answer, dataset

BASE = "http://example.org/"
NAMES = ("a", "b", "c", "g", "p")
BLOCK = 25


def with_f(random: Random, text: str) -> str:
    """Let some patterns of a query be about the reserved relation."""
    head, body = text.split("\n", 1)
    return f"{head}\n{body.replace(':q', str(F))}" if random.random() < 0.5 else text


def random_triples(source: RandomQueries, url: str) -> frozenset[Triple]:
    quads = source.dataset(most=8)
    lines = "".join(f"{quad.subject} {quad.predicate} {quad.object} .\n" for quad in quads)
    forged = f"<{url}> {F} <{BASE}a> .\n" if source.random.random() < 0.2 else ""
    return read_document((lines + forged).encode(), "application/n-triples", url).triples


def check_history(seed: int) -> None:
    """Take in documents of a random web, one or many at a time: new ones, changed ones, other redirects, losses."""
    random = Random(seed)
    source = RandomQueries(random)
    text = with_f(random, source.query())
    query = parse_query(text)
    engine, linked = LocalEngine(), LinkedDataset()
    view = engine.register(query)
    documents: dict[NamedNode, frozenset[Triple]] = {}
    f: dict[NamedNode, NamedNode] = {}
    total: Bag[Row] = view.result()
    for step in range(8):
        batch: list[Retrieved | Lost] = []
        for _ in range(random.choice((1, 1, 1, 3))):
            resource = NamedNode(BASE + random.choice(NAMES))
            document = resource if random.random() < 0.6 else NamedNode(BASE + random.choice(NAMES))
            triples = random_triples(source, document.value)
            documents[document], f[resource] = triples, document
            batch.append(Retrieved(resource, document, triples))
        if random.random() < 0.3:
            known = random.choice(sorted(set(f.values()), key=str))
            resource = NamedNode(f"{BASE}x{step}")
            f[resource] = known
            batch.append(Retrieved(resource, known, None))
        if random.random() < 0.3:
            gone = random.choice(sorted(f, key=str))
            batch.append(Lost(gone, f.pop(gone)))
        before = frozenset(linked.quads())
        delta = linked.take(batch)
        after = dataset(documents, f)
        where = f"seed {seed}, step {step}\n{text}"
        assert frozenset(linked.quads()) == after, where
        assert (delta.inserted, delta.deleted) == (after - before, before - after), where
        changes = engine.apply(delta)
        expected = answer(query, documents, f, view.environment)
        assert view.result() == expected, where
        change = view.changed(changes[0][1]) if changes else Bag[Row]()
        assert change == expected - total, where
        total = expected


@pytest.mark.parametrize("block", range(8))
def test_histories(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check_history(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(400))
def test_histories_long(block: int) -> None:
    for seed in range(100_000 + block * BLOCK, 100_000 + (block + 1) * BLOCK):
        check_history(seed)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve_web() as served:
        yield served


QUERIES = (
    "SELECT ?x ?v {{ {0} :p ?x OPTIONAL {{ ?x :q ?v }} }}",
    "SELECT * {{ {0} :p ?x MINUS {{ ?x :q ?y . ?y :p ?z }} }}",
    "SELECT * {{ {0} :p ?x . ?x {1} ?d GRAPH ?d {{ ?x :q ?v }} }}",
    "SELECT ?d (COUNT(*) AS ?n) {{ GRAPH ?d {{ ?x :p ?y }} {0} :q ?z }} GROUP BY ?d",
    "ASK {{ {0} :p/:q ?x FILTER NOT EXISTS {{ ?x :p {0} }} }}",
    "CONSTRUCT {{ ?x :r ?y }} {{ {0} (:p|:q)+ ?x OPTIONAL {{ ?x :q ?y }} }}",
    "SELECT ?x {{ {0} ?p ?x FILTER (?x != {0}) }} ORDER BY ?x LIMIT 3",
)


def random_web(random: Random, web: Web, size: int) -> None:
    """Serve nodes that link to each other; some redirect, some are missing or broken, some are described elsewhere."""
    web.routes.clear()
    web.asked.clear()
    for number in range(size):
        name = f"n{number}"
        links = " . ".join(
            f":n{random.choice((number, number, random.randrange(size)))} {random.choice((':p', ':p', ':q'))} "
            f"{random.choice((f':n{random.randrange(size)}', f':n{random.randrange(size)}', '[]', '1', '2'))}"
            for _ in range(random.randint(1, 5))
        )
        match random.random():
            case chance if chance < 0.15:
                web.redirect(name, f"/data/{name}")
                web.turtle(f"data/{name}", links + " .")
            case chance if chance < 0.25:
                web.redirect(name, f"/n{random.randrange(size)}")
            case chance if chance < 0.3:
                web.reply(name, Reply(b"nonsense", headers={"Content-Type": "text/turtle"}))
            case chance if chance < 0.35:
                pass
            case _:
                web.turtle(name, links + " .", delay=random.choice((0, 0, 0, 0.01)))


def matching(query: object, quads: frozenset[Quad]) -> set[NamedNode]:
    """Find what variables of a basic graph pattern stand for in triples that match one of its patterns; naively."""
    assert isinstance(query, Select)
    assert isinstance(query.pattern, Project)
    assert isinstance(query.pattern.operand, BGP)
    found: set[NamedNode] = set()
    for pattern in query.pattern.operand.triples:
        for quad in quads:
            wanted = (pattern.subject, pattern.predicate, pattern.object)
            terms = (quad.subject, quad.predicate, quad.object)
            if all(isinstance(one, Variable) or one == term for one, term in zip(wanted, terms, strict=True)):
                places = [(wanted[0], terms[0]), (wanted[2], terms[2])]
                found |= {term for one, term in places if isinstance(one, Variable) and isinstance(term, NamedNode)}
    return found


@pytest.mark.parametrize("seed", range(14))
def test_webs(web: Web, seed: int) -> None:
    random = Random(seed)
    random_web(random, web, 12)
    template = QUERIES[seed % len(QUERIES)]
    text = f"PREFIX : <{web.base}> " + template.format(":n0", F)
    strategy = random.choice(list(Strategy))
    seeds = [web.iri("n1"), web.iri("n2")]
    batch = random.choice((1, 1, 4))
    with traverse(
        text, seeds, allow=[web.host], strategy=strategy, batch=batch, manners=Manners(retries=0)
    ) as traversal:
        total: Bag[Row] = Bag()
        try:
            for step in traversal:
                total = total + step.added - step.removed
                expected = answer(traversal.query, traversal.dataset.documents, traversal.dataset.f)
                assert total == traversal.result() == expected
                assert batch > 1 or len(step.documents) <= 1
        finally:
            assert traversal.counts()["queued"] == traversal.counts()["under way"] == 0
            assert len(web.paths()) == len(set(web.paths())), "nothing is asked for twice"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strategy", [Strategy.PATTERNS, Strategy.ALL])
def test_what_is_fetched(web: Web, seed: int, strategy: Strategy) -> None:
    """Exactly the documents that the strategy reaches are fetched: the least fixpoint of its definition."""
    random = Random(seed)
    random_web(random, web, 10)
    text = f"PREFIX : <{web.base}> SELECT * {{ :n0 :p ?x . ?x :q ?y }}"
    with traverse(text, [web.iri("n3")], allow=[web.host], strategy=strategy) as traversal:
        list(traversal)
    seeds = {NamedNode(web.iri("n0")), NamedNode(web.iri("n3"))}
    said = frozenset(quad for quad in traversal.dataset.quads() if quad.predicate != F)
    if strategy is Strategy.PATTERNS:
        links = matching(traversal.query, said)
    else:
        links = {term for quad in said for term in (quad.subject, quad.object) if isinstance(term, NamedNode)}
    asked = {NamedNode(iri.value) for visit in traversal.report() for iri in visit.iris}
    assert asked == links | seeds
    fetched = {iri for visit in traversal.report() if visit.document for iri in visit.iris}
    assert set(traversal.dataset.f) == fetched


def test_prologue_names_the_nodes_of_this_test() -> None:
    assert BASE in PROLOGUE
