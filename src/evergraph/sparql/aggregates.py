"""The set functions (https://www.w3.org/TR/sparql11-query/#setFunctions), over the values of one group.

Every result is a function of the bag of values alone, whatever the order in which they came: SAMPLE is the least by the
total order of terms, GROUP_CONCAT goes through them in that order, and sums of floats are rounded once.

* COUNT counts the values that are not errors. SAMPLE takes one of them.
* SUM, AVG, MIN, MAX and GROUP_CONCAT of a group with an error in it are an error, and leave their variable unbound.
* Of an empty group, COUNT, SUM and AVG are 0, GROUP_CONCAT is the empty string, MIN, MAX and SAMPLE are errors.
* MIN and MAX use the order of ORDER BY, and so have a value for any terms.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import assert_never

from evergraph.sparql import numbers
from evergraph.sparql.algebra import Aggregate, AggregateFunction
from evergraph.sparql.functions import number_of
from evergraph.sparql.numbers import Numeric, NumericType
from evergraph.sparql.values import integer, sort_key
from evergraph.terms import Literal, NamedNode, Term

Weighted = tuple[Term | None, int]
"""A value, None for an error, and how often it occurs."""


def aggregate(definition: Aggregate, values: Iterable[Weighted]) -> Term | None:
    """Compute an aggregate of the values of a group; None is an error. ``COUNT(*)`` is not for this function."""
    counted: dict[Term | None, int] = {}
    for value, weight in values:
        counted[value] = counted.get(value, 0) + weight
    if definition.distinct:
        counted = dict.fromkeys(counted, 1)
    failed = counted.pop(None, 0) > 0
    terms: list[tuple[Term, int]] = [(term, weight) for term, weight in counted.items() if term is not None]
    match definition.function:
        case AggregateFunction.COUNT:
            return integer(sum(weight for _, weight in terms))
        case AggregateFunction.SAMPLE:
            return _first(min, terms)
        case AggregateFunction.MIN:
            return None if failed else _first(min, terms)
        case AggregateFunction.MAX:
            return None if failed else _first(max, terms)
        case AggregateFunction.SUM:
            return None if failed else _literal(total(terms))
        case AggregateFunction.AVG:
            return None if failed else _average(terms)
        case AggregateFunction.GROUP_CONCAT:
            return None if failed else _concatenation(terms, definition.separator)
        case _:
            assert_never(definition.function)


def _first(choose: Callable[..., Term], terms: list[tuple[Term, int]]) -> Term | None:
    return choose((term for term, _ in terms), key=sort_key) if terms else None


def _literal(number: Numeric | None) -> Term | None:
    return None if number is None else numbers.to_literal(number)


def total(terms: Iterable[tuple[Term, int]]) -> Numeric | None:
    """Add up numeric terms; None if one of them is not numeric.

    The type is the highest one among them. Floats are added exactly and rounded at the end, so that neither the order
    nor what has come and gone in between shows in the result.
    """
    kind = NumericType.INTEGER
    exact = Fraction(0)
    special = 0.0
    for term, weight in terms:
        number = number_of(term)
        if number is None:
            return None
        kind = max(kind, number.type)
        if isinstance(number.value, float) and not math.isfinite(number.value):
            special += number.value
        else:
            exact += Fraction(number.value) * weight
    return rounded(kind, exact, special)


def rounded(kind: NumericType, exact: Fraction, special: float) -> Numeric:
    """Give an exact sum its type; ``special`` is the sum of what is not finite."""
    match kind:
        case NumericType.INTEGER:
            return Numeric(kind, exact.numerator)
        case NumericType.DECIMAL:
            quotient = numbers.divide(_integer(exact.numerator), _integer(exact.denominator))
            assert quotient is not None
            return quotient
        case NumericType.FLOAT | NumericType.DOUBLE:
            value = special if special or special != special else numbers.to_float(exact)
            return numbers.single(value) if kind is NumericType.FLOAT else numbers.double(value)


def _integer(value: int) -> Numeric:
    return Numeric(NumericType.INTEGER, value)


def _average(terms: list[tuple[Term, int]]) -> Term | None:
    count = sum(weight for _, weight in terms)
    if not count:
        return integer(0)
    sum_ = total(terms)
    return None if sum_ is None else _literal(numbers.divide(sum_, _integer(count)))


def _concatenation(terms: list[tuple[Term, int]], separator: str) -> Term | None:
    texts: list[str] = []
    for term, weight in sorted(terms, key=lambda pair: sort_key(pair[0])):
        if not isinstance(term, Literal | NamedNode):
            return None
        texts.extend([term.value] * weight)
    return Literal(separator.join(texts))


__all__ = ["Weighted", "aggregate", "rounded", "total"]
