"""The W3C tests of SPARQL Update: every result, every exact change, every verdict on syntax."""

from collections.abc import Iterator

import pytest
from tests.support.datasets import difference, isomorphic
from tests.support.w3c import Entry, parameters

import evergraph as eg
from evergraph.delta import Request
from evergraph.errors import SyntaxProblem
from evergraph.gate.request import parse_update


@pytest.fixture(scope="module", params=["memory", "disk"])
def db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[eg.Database]:
    folder = tmp_path_factory.mktemp("w3c") / "db" if request.param == "disk" else None
    with eg.open(folder, sync=False) as database:
        yield database


@pytest.mark.parametrize("entry", parameters("UpdateEvaluationTest"))
def test_evaluation(entry: Entry, db: eg.Database) -> None:
    db.update("DROP ALL")
    db.apply(Request(added=entry.action.quads()))
    before = set(db.quads())
    change = db.update(entry.text, base=entry.base)
    after = set(db.quads())
    assert isomorphic(after, entry.result.quads())
    assert change.delta == difference(before, after)


@pytest.mark.parametrize("entry", parameters("PositiveUpdateSyntaxTest11", "PositiveUpdateSyntaxTest"))
def test_good_syntax(entry: Entry) -> None:
    parse_update(entry.text, base=entry.base)


@pytest.mark.parametrize("entry", parameters("NegativeUpdateSyntaxTest11", "NegativeUpdateSyntaxTest"))
def test_bad_syntax(entry: Entry) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_update(entry.text, base=entry.base)
    assert caught.value.line >= 1
    assert caught.value.column >= 1
