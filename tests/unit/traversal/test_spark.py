"""Traversals on Spark: many documents as one batch, and the same result."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.support.web import Web, serve_web

from evergraph.delta import Bag
from evergraph.errors import UsageError
from evergraph.sparql.expressions import Row
from evergraph.traversal import F, traverse
from evergraph.traversal.oracle import answer


@pytest.fixture
def web() -> Iterator[Web]:
    with serve_web() as served:
        for number in range(30):
            links = ", ".join(f":n{other}" for other in (range(1, 20) if number == 0 else range(20, 30)[: number % 9]))
            text = f':n{number} :name "{number}"' + (f" ; :next {links}" if links else "")
            served.turtle(f"n{number}", f"{text} ; :note [ :of :n{number} ] .")
        yield served


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        ("patterns", "SELECT ?x ?y ?n {{ ?x :next ?y OPTIONAL {{ ?y {f} ?d GRAPH ?d {{ ?y :name ?n }} }} }}"),
        ("solutions", "SELECT ?n {{ :n0 :next ?x . ?x :next ?y . ?x :name ?n MINUS {{ ?y :name '3' }} }}"),
    ],
)
def test_batches(spark: SparkSession, web: Web, strategy: str, text: str) -> None:
    query = f"PREFIX : <{web.base}> " + text.format(f=F)
    with traverse(query, [web.iri("n0")], allow=[web.host], strategy=strategy, engine="spark") as traversal:
        total: Bag[Row] = Bag()
        steps = 0
        for step in traversal:
            total = total + step.added - step.removed
            assert total == traversal.result()
            assert total == answer(traversal.query, traversal.dataset.documents, traversal.dataset.f)
            steps += 1
        documents = set(traversal.dataset.documents)
        assert steps <= len(documents)
    with traverse(query, [web.iri("n0")], allow=[web.host], strategy=strategy) as local:
        list(local)
    assert local.result() == total
    assert set(local.dataset.documents) == documents
    assert spark.range(3).count() == 3, "a session that was there before goes on"


def test_engines_have_names() -> None:
    with pytest.raises(UsageError, match="no engine"):
        traverse("SELECT * { ?s ?p ?o }", ["http://example.org/"], engine="other")
