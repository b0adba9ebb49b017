import pytest
from hypothesis import given
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad
from tests.support.rdf_strategies import objects, quads

from evergraph.engines.spark.rows import QUAD, WEIGHT, arrow_schema, quad_of, row_of, spark_schema, table_of, term_of
from evergraph.terms import term_text


@given(quads)
def test_a_quad_comes_back_from_its_row(quad: Quad) -> None:
    assert quad_of(row_of(quad)) == quad


@given(objects)
def test_a_term_comes_back_from_its_text(term: Literal) -> None:
    assert term_of(term_text(term)) == term


def test_the_default_graph_is_empty() -> None:
    quad = Quad(NamedNode("urn:s"), NamedNode("urn:p"), Literal("é\n", language="en"), DefaultGraph())
    table = table_of([(quad, -2)])
    assert table.schema == arrow_schema()
    assert table.to_pylist() == [
        {"subject": "<urn:s>", "predicate": "<urn:p>", "object": '"é\\n"@en', "graph": "", "weight": -2}
    ]


def test_no_quads_are_a_table_without_rows() -> None:
    assert table_of([]).num_rows == 0
    assert table_of([]).schema == arrow_schema()


def test_both_schemas_have_the_same_columns() -> None:
    assert spark_schema().names == arrow_schema().names == [*QUAD, WEIGHT]


@pytest.mark.parametrize("text", ["<urn:a>", "_:b", '"x"', '"x"@en', '"1"^^<urn:t>', "<<( <urn:a> <urn:b> _:c )>>"])
def test_equal_texts_give_equal_terms(text: str) -> None:
    assert term_of(text) == term_of(text)
    assert term_text(term_of(text)) == text
