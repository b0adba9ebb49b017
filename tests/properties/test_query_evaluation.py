"""Evaluation from scratch against pyoxigraph's, on random queries over random datasets."""

from random import Random

import pytest
from pyoxigraph import QueryBoolean, QuerySolutions, QueryTriples, Store
from tests.support.random_queries import Language, RandomQueries
from tests.support.sparql_results import same_solutions, same_triples

from evergraph.delta import Bag
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.parser import parse_query
from evergraph.sparql.results import Result, Solutions, evaluate_query
from evergraph.terms import Quad


def evaluated_by_pyoxigraph(text: str, quads: frozenset[Quad]) -> Result:
    store = Store()
    store.extend(quads)
    result = store.query(text)
    match result:
        case QueryBoolean():
            return bool(result)
        case QueryTriples():
            return frozenset(result)
        case QuerySolutions():
            variables = tuple(result.variables)
            return Solutions(variables, Bag(tuple(one[variable] for variable in variables) for one in result))


def same(one: Result, other: Result) -> bool:
    if isinstance(one, Solutions) and isinstance(other, Solutions):
        return same_solutions(one, other)
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return same_triples(one, other)
    return one is other


def check(seed: int) -> None:
    source = RandomQueries(Random(seed), Language.common())
    quads, text = source.dataset(), source.query()
    ours = evaluate_query(parse_query(text), Dataset(quads))
    theirs = evaluated_by_pyoxigraph(text, quads)
    assert same(ours, theirs), f"seed {seed}\n{text}\n{quads}\n{ours}\n{theirs}"


@pytest.mark.parametrize("seed", range(300))
def test_same_as_pyoxigraph(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(100))
def test_same_as_pyoxigraph_long(block: int) -> None:
    for seed in range(1_000 + block * 200, 1_000 + (block + 1) * 200):
        check(seed)
