"""Replicas are what their definition says, for random interests over random histories."""

from random import Random

import pytest
from tests.support.random_interests import RandomInterests
from tests.support.replica_histories import check_history

from evergraph.sparql.dataset import Dataset
from evergraph.sparql.results import evaluate_query
from evergraph.terms import Quad, Triple
from evergraph.views.replicas import candidates, parts
from evergraph.views.replicas.oracle import interesting, potentially_interesting


@pytest.mark.parametrize("block", range(20))
def test_one_interest(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        check_history(seed)


@pytest.mark.parametrize("block", range(6))
def test_many_interests(block: int) -> None:
    for seed in range(block * 10, block * 10 + 10):
        check_history(10_000 + seed, interests=6, steps=6)


@pytest.mark.long
@pytest.mark.parametrize("block", range(20))
def test_long(block: int) -> None:
    for seed in range(block * 200, block * 200 + 200):
        check_history(100_000 + seed, interests=1 + seed % 3, steps=10)


def _triples(quads: frozenset[Quad]) -> frozenset[Triple]:
    return frozenset(Triple(quad.subject, quad.predicate, quad.object) for quad in quads)


@pytest.mark.parametrize("block", range(5))
def test_an_interest_is_two_queries(block: int) -> None:
    """What other engines maintain: one CONSTRUCT for the target, and one for it and what is potentially interesting."""
    for seed in range(block * 40, block * 40 + 40):
        source = RandomInterests(Random(20_000 + seed))
        quads = source.pool()
        text, interest = source.interest()
        target = interesting(interest, quads)
        held = target | potentially_interesting(interest, quads)
        assert evaluate_query(parts.whole_query(interest), Dataset(quads)) == _triples(target), text
        assert evaluate_query(candidates.whole_query(interest), Dataset(quads)) == _triples(held), text
