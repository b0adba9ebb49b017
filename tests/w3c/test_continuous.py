"""The W3C query evaluation tests as standing queries: data come triple by triple, some go and come back."""

from random import Random

import pytest
from tests.support.sparql_results import as_csv, read_solutions, same_solutions, same_triples
from tests.support.w3c import Entry, Files, iri, path_of
from tests.w3c.test_query import assert_permitted_reduction, query_parameters

from evergraph.delta import Bag, Delta
from evergraph.engines.local.engine import LocalEngine, View
from evergraph.errors import UnsupportedQuery
from evergraph.rdfio import read_quads
from evergraph.sparql.algebra import Ask, Query, Select
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.sparql.results import Solutions, as_triple
from evergraph.sparql.values import boolean
from evergraph.terms import Quad, Triple

REFUSED = {
    "sparql11/functions/bnode02": "BNODE() is a new node each time: refused in a standing query",
    "sparql11/functions/rand01": "RAND() has another value each time: refused in a standing query",
    "sparql11/functions/struuid01": "STRUUID() has another value each time: refused in a standing query",
    "sparql11/functions/uuid01": "UUID() has another value each time: refused in a standing query",
    "sparql11/functions/uuid02": "UUID() has another value each time: refused in a standing query",
}


def quads_for(query: Query, action: Files) -> frozenset[Quad]:
    """Read the dataset of a test; where the query names its graphs and the test does not, they are files."""
    if query.dataset is not None and not action.named:
        graphs = dict.fromkeys(query.dataset.default + query.dataset.named)
        action = Files(named=tuple((graph.value, path_of(graph)) for graph in graphs))
    return action.quads()


def history(quads: frozenset[Quad], seed: int) -> list[Delta]:
    """Insert quads one by one in random order; now and then one is taken away again, and put back later."""
    random = Random(seed)
    waiting = sorted(quads, key=str)
    random.shuffle(waiting)
    present: list[Quad] = []
    deltas: list[Delta] = []
    detours = len(waiting) + 5
    while waiting:
        if present and detours and random.random() < 0.3:
            detours -= 1
            quad = present.pop(random.randrange(len(present)))
            waiting.insert(random.randrange(len(waiting) + 1), quad)
            deltas.append(Delta(deleted=frozenset({quad})))
        else:
            quad = waiting.pop()
            present.append(quad)
            deltas.append(Delta(inserted=frozenset({quad})))
    return deltas


@pytest.mark.parametrize("entry", query_parameters("QueryEvaluationTest", "CSVResultFormatTest"))
def test_continuous(entry: Entry) -> None:
    query = parse_query(entry.text, base=entry.base)
    engine = LocalEngine()
    if entry.name in REFUSED:
        with pytest.raises(UnsupportedQuery):
            engine.register(query)
        return
    view = engine.register(query)
    total = view.result()
    for delta in history(quads_for(query, entry.action), seed=len(entry.name)):
        for changed, rows in engine.apply(delta):
            assert not set(changed.added(rows)) & set(changed.removed(rows))
            total = total + changed.added(rows) - changed.removed(rows)
    assert view.result() == total
    assert_expected(entry, view, total)


def assert_expected(entry: Entry, view: View, total: Bag[Row]) -> None:
    path = entry.result.text
    assert path is not None
    if isinstance(view.query, Ask):
        assert total == Bag([(boolean(read_solutions(path) is True),)])
        return
    if not isinstance(view.query, Select):
        expected_quads = read_quads(path, base_iri=iri(path))
        triples = {as_triple(*row) for row in total.rows()}
        assert same_triples(
            {one for one in triples if one is not None},
            {Triple(q.subject, q.predicate, q.object) for q in expected_quads},
        )
        return
    expected = read_solutions(path)
    assert isinstance(expected, Solutions)
    result = Solutions(view.variables, total)
    if path.suffix == ".csv":
        result = as_csv(result)
    if "/reduced/" in entry.name:
        assert_permitted_reduction(expected, result)
    else:
        assert same_solutions(result, expected)
