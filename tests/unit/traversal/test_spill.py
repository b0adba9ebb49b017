"""Documents on disk behave as those in memory."""

from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest

from evergraph.terms import BlankNode, Literal, NamedNode, Term, Triple
from evergraph.traversal.archive import _VOLATILE, Answer, Archive
from evergraph.traversal.dataset import LinkedDataset, Lost, Retrieved
from evergraph.traversal.spill import Spill

NODES = [NamedNode(f"http://example.org/{name}") for name in "abcde"]
TERMS: list[Term] = [
    *NODES,
    BlankNode("dlx"),
    Literal('line\n"quoted" \\ \x07é😀'),
    Literal("x", language="de-AT"),
    Literal("01", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer")),
    Triple(NODES[0], NODES[1], Literal("inner", language="en")),
    Triple(NODES[0], NODES[1], Triple(BlankNode("y"), NODES[2], NODES[3])),
]


@pytest.fixture
def spill() -> Iterator[Spill]:
    with closing(Spill()) as one:
        yield one


def test_every_term_comes_back(spill: Spill) -> None:
    triples = frozenset(Triple(NODES[0], NODES[1], term) for term in TERMS)
    spill.documents[NODES[0]] = triples
    assert spill.documents[NODES[0]] == triples
    for number, triple in enumerate(sorted(triples, key=str)):
        spill.said[triple] = number + 1
    assert set(spill.said) == triples
    assert sorted(spill.said.values()) == list(range(1, len(triples) + 1))


def test_mappings(spill: Spill) -> None:
    one = Triple(NODES[0], NODES[1], NODES[2])
    spill.documents[NODES[1]] = frozenset()
    spill.documents[NODES[0]] = frozenset()
    spill.documents[NODES[1]] = frozenset([one])
    assert list(spill.documents) == [NODES[1], NODES[0]]
    assert len(spill.documents) == 2
    assert NODES[1] in spill.documents
    assert NODES[2] not in spill.documents
    del spill.documents[NODES[1]]
    for read in (lambda: spill.documents[NODES[1]], lambda: spill.said[one]):
        with pytest.raises(KeyError):
            read()
    with pytest.raises(KeyError):
        del spill.documents[NODES[1]]
    with pytest.raises(KeyError):
        del spill.said[one]


@pytest.mark.parametrize("seed", range(10))
def test_the_same_as_in_memory(spill: Spill, seed: int) -> None:
    random = Random(seed)
    memory, disk = LinkedDataset(), LinkedDataset(spill)
    for _ in range(20):
        batch: list[Retrieved | Lost] = []
        for _ in range(random.randint(1, 4)):
            resource, document = random.choice(NODES), random.choice(NODES)
            triples = frozenset(
                Triple(random.choice(NODES), NODES[0], random.choice(TERMS)) for _ in range(random.randint(0, 6))
            )
            lost = random.random() < 0.3
            batch.append(Lost(resource, document) if lost else Retrieved(resource, document, triples))
        assert disk.take(batch) == memory.take(batch)
        assert set(disk.quads()) == set(memory.quads())
        assert dict(disk.documents) == dict(memory.documents)


def test_what_must_not_be_stored_has_bounds() -> None:
    with closing(Archive()) as archive:
        body = b"x" * (_VOLATILE // 4)
        for number in range(6):
            archive.keep(Answer(f"http://a/{number}", 200, {"cache-control": "no-store"}, body, 1.0))
        kept = [number for number in range(6) if archive.answer(f"http://a/{number}") is not None]
        assert kept == [2, 3, 4, 5]
        archive.drop("http://a/5")
        archive.keep(Answer("http://a/6", 200, {"cache-control": "no-store"}, body, 1.0))
        assert archive.answer("http://a/2") is not None
