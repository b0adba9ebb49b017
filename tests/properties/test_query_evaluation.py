"""Evaluation from scratch on random queries over random datasets: against pyoxigraph, and against definitions."""

from collections.abc import Callable
from random import Random

import pytest
from pyoxigraph import QueryBoolean, QuerySolutions, QueryTriples, Store
from tests.support.random_queries import PROLOGUE, Language, RandomQueries
from tests.support.sparql_results import same_solutions, same_triples

from evergraph.delta import Bag
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.sparql.relation import Relation
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


def check_against_pyoxigraph(seed: int) -> None:
    source = RandomQueries(Random(seed), Language.common())
    quads, text = source.dataset(), source.query()
    ours = evaluate_query(parse_query(text), Dataset(quads))
    theirs = evaluated_by_pyoxigraph(text, quads)
    assert same(ours, theirs), f"seed {seed}\n{text}\n{quads}\n{ours}\n{theirs}"


def check_graph_by_graph(seed: int) -> None:
    """Compare GRAPH ?g {P} with its definition: for each graph, GRAPH <name> {P} joined with the name."""
    source = RandomQueries(Random(seed))
    dataset, pattern, name = Dataset(source.dataset(most=30)), source.group(), source.random.choice(("?g", "?a"))

    def solutions(where: str) -> Solutions:
        result = evaluate_query(parse_query(f"{PROLOGUE}SELECT * {{ {where} }}"), dataset)
        assert isinstance(result, Solutions)
        return result

    together = solutions(f"GRAPH {name} {pattern}")
    one_by_one: Bag[Row] = Bag()
    for graph in dataset.named:
        part = solutions(f"GRAPH {graph} {pattern} VALUES {name} {{ {graph} }}")
        one_by_one.update(Relation(part.variables, part.bag).project(together.variables).rows)
    assert together.bag == one_by_one, f"seed {seed}: GRAPH {name} {pattern}"


@pytest.mark.parametrize("check", [check_against_pyoxigraph, check_graph_by_graph])
@pytest.mark.parametrize("block", range(4))
def test_evaluation(check: Callable[[int], None], block: int) -> None:
    for seed in range(block * 100, (block + 1) * 100):
        check(seed)


@pytest.mark.long
@pytest.mark.parametrize("check", [check_against_pyoxigraph, check_graph_by_graph])
@pytest.mark.parametrize("block", range(100))
def test_evaluation_long(check: Callable[[int], None], block: int) -> None:
    for seed in range(400 + block * 200, 400 + (block + 1) * 200):
        check(seed)
