"""The W3C tests of SPARQL 1.0 and 1.1 Query, by manifest: every result from scratch, every verdict on syntax."""

import pytest
from tests.support.sparql_results import as_csv, read_solutions, same_solutions, same_triples
from tests.support.w3c import Entry, Files, iri, parameters, path_of

from evergraph.errors import SyntaxProblem
from evergraph.rdfio import read_quads
from evergraph.sparql.algebra import Query
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.parser import parse_query
from evergraph.sparql.results import Solutions, evaluate_query
from evergraph.terms import NamedNode, Triple

SKIPPED = {
    "sparql11/entailment": "asks for an entailment regime other than simple entailment",
    "sparql11/service": "SERVICE is refused: it is no function of the dataset",
    "sparql10/optional-filter/dawg-optional-filter-005-simplified": (
        "not among the entries of its manifest: the reading that SPARQL 1.1 decided against"
    ),
}


def query_parameters(*kinds: str) -> list[object]:
    """List the entries of SPARQL 1.0 and 1.1; SPARQL 1.2 is not a recommendation yet."""
    chosen: list[object] = []
    for parameter in parameters(*kinds):
        entry = getattr(parameter, "values", [None])[0]
        if entry is None:
            return [parameter]
        if entry.name.startswith("sparql12/"):
            continue
        reason = SKIPPED.get(entry.name) or SKIPPED.get(entry.name.rpartition("/")[0])
        marks = [pytest.mark.skip(reason=reason)] if reason else []
        chosen.append(pytest.param(entry, id=entry.name, marks=marks))
    return chosen


@pytest.mark.parametrize("entry", query_parameters("QueryEvaluationTest", "CSVResultFormatTest"))
def test_evaluation(entry: Entry) -> None:
    query = parse_query(entry.text, base=entry.base)
    result = evaluate_query(query, dataset_for(query, entry.action))
    path = entry.result.text
    assert path is not None
    if isinstance(result, frozenset):
        expected_quads = read_quads(path, base_iri=iri(path))
        assert same_triples(result, {Triple(q.subject, q.predicate, q.object) for q in expected_quads})
        return
    expected = read_solutions(path)
    if isinstance(result, bool):
        assert result is expected
        return
    assert isinstance(expected, Solutions)
    if path.suffix == ".csv":
        result = as_csv(result)
    if "/reduced/" in entry.name:
        assert_permitted_reduction(expected, result)
    else:
        assert same_solutions(result, expected, ordered=result.sequence is not None and path.suffix != ".csv")


def dataset_for(query: Query, action: Files) -> Dataset:
    """Read the dataset of a test; where the query names its graphs and the test does not, they are files."""
    if query.dataset is not None and not action.named:
        graphs = dict.fromkeys(query.dataset.default + query.dataset.named)
        action = Files(named=tuple((graph.value, path_of(graph)) for graph in graphs))
    return Dataset(action.quads(), [NamedNode(name) for name, _ in action.named])


def assert_permitted_reduction(expected: Solutions, result: Solutions) -> None:
    """Compare as `mf:LaxCardinality` has it: no solution is missing, none is new, none comes more often."""
    assert set(expected.bag) == set(result.bag)
    assert all(result.bag.weight(row) <= weight for row, weight in expected.bag.items())


@pytest.mark.parametrize("entry", query_parameters("PositiveSyntaxTest", "PositiveSyntaxTest11"))
def test_good_syntax(entry: Entry) -> None:
    parse_query(entry.text, base=entry.base)


@pytest.mark.parametrize("entry", query_parameters("NegativeSyntaxTest", "NegativeSyntaxTest11"))
def test_bad_syntax(entry: Entry) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_query(entry.text, base=entry.base)
    assert caught.value.line >= 1
