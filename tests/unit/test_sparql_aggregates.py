"""Aggregates of bags of values."""

import pytest

from evergraph.sparql.aggregates import aggregate
from evergraph.sparql.algebra import Aggregate, AggregateFunction
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Term

COUNT, SUM, AVG, MIN, MAX, SAMPLE, CONCAT = AggregateFunction


def typed(text: str, name: str = "integer") -> Literal:
    return Literal(text, datatype=NamedNode(XSD + name))


ONE, TWO, A, IRI = typed("1"), typed("2"), Literal("a"), NamedNode("urn:a")


def compute(
    function: AggregateFunction, *values: Term | None, distinct: bool = False, separator: str = " "
) -> Term | None:
    definition = Aggregate(function, IRI, distinct, separator)
    forwards = aggregate(definition, [(value, 1) for value in values])
    backwards = aggregate(definition, [(value, 1) for value in reversed(values)])
    assert forwards == backwards
    return forwards


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (COUNT, typed("0")),
        (SUM, typed("0")),
        (AVG, typed("0")),
        (MIN, None),
        (MAX, None),
        (SAMPLE, None),
        (CONCAT, Literal("")),
    ],
)
def test_the_empty_group(function: AggregateFunction, expected: Term | None) -> None:
    assert compute(function) == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [(COUNT, typed("2")), (SUM, None), (AVG, None), (MIN, None), (MAX, None), (SAMPLE, ONE), (CONCAT, None)],
)
def test_an_error_in_the_group(function: AggregateFunction, expected: Term | None) -> None:
    assert compute(function, TWO, None, ONE) == expected


def test_distinct_compares_terms() -> None:
    assert compute(COUNT, ONE, ONE, typed("01"), distinct=True) == typed("2")
    assert compute(SUM, TWO, TWO, ONE, distinct=True) == typed("3")
    assert compute(COUNT, ONE, ONE) == typed("2")


def test_sums_take_the_highest_type() -> None:
    assert compute(SUM, ONE, typed("1.5", "decimal")) == typed("2.5", "decimal")
    assert compute(SUM, ONE, typed("1.5", "float"), typed("1", "double")) == typed("3.5E0", "double")
    assert compute(SUM, ONE, A) is None
    assert compute(AVG, ONE, TWO) == typed("1.5", "decimal")
    assert compute(AVG, ONE, typed("1e0", "double")) == typed("1.0E0", "double")


def test_sums_of_floats_do_not_depend_on_their_order() -> None:
    large, small = typed("1e16", "double"), typed("1", "double")
    assert compute(SUM, large, small, small, typed("-1e16", "double")) == typed("2.0E0", "double")
    assert compute(SUM, typed("INF", "double"), ONE) == typed("INF", "double")
    assert compute(SUM, typed("INF", "double"), typed("-INF", "double")) == typed("NaN", "double")


def test_least_and_greatest_follow_order_by() -> None:
    values = (A, TWO, ONE, IRI, BlankNode("x"))
    assert compute(MIN, *values) == BlankNode("x")
    assert compute(MAX, *values) == A
    assert compute(SAMPLE, *values) == BlankNode("x")


def test_concatenation_has_an_order() -> None:
    assert compute(CONCAT, A, TWO, ONE, IRI, ONE, separator="-") == Literal("urn:a-1-1-2-a")
    assert compute(CONCAT, A, BlankNode("x")) is None
