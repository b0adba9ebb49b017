"""What aggregates remember of a group, so that rows can come and go."""

import math
from collections.abc import Callable
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from evergraph.engines.local.dictionary import UNBOUND, Dictionary, Row, ZSet, add
from evergraph.engines.local.slices import Descending
from evergraph.sparql import numbers
from evergraph.sparql.aggregates import aggregate, rounded
from evergraph.sparql.algebra import Aggregate, AggregateFunction
from evergraph.sparql.functions import number_of
from evergraph.sparql.numbers import Numeric, NumericType
from evergraph.sparql.values import integer, sort_key
from evergraph.terms import Term

_SLACK = 16
"""How many values that have gone a heap may hold, besides as many as there are."""


class Accumulator(Protocol):
    """What one aggregate remembers of one group."""

    def add(self, row: Row, weight: int) -> None:
        """Take in the change of one row."""
        ...

    def result(self) -> Term | None:
        """Return the value; None is an error."""
        ...

    def __len__(self) -> int: ...


class Count:
    """COUNT(*), and COUNT of an expression: the number of rows without an error."""

    __slots__ = ("_count", "_value")

    def __init__(self, value: Callable[[Row], int] | None) -> None:
        self._value = value
        self._count = 0

    def add(self, row: Row, weight: int) -> None:
        """Count the row."""
        if self._value is None or self._value(row) != UNBOUND:
            self._count += weight

    def result(self) -> Term | None:
        """Return the number."""
        return integer(self._count)

    def __len__(self) -> int:
        return 1


class CountDistinctRows:
    """COUNT(DISTINCT *)."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: ZSet = {}

    def add(self, row: Row, weight: int) -> None:
        """Count the row."""
        add(self._rows, row, weight)

    def result(self) -> Term | None:
        """Return the number of different rows."""
        return integer(len(self._rows))

    def __len__(self) -> int:
        return len(self._rows)


class Values:
    """Any aggregate, from the bag of all values."""

    __slots__ = ("_definition", "_dictionary", "_value", "_weights")

    def __init__(self, definition: Aggregate, value: Callable[[Row], int], dictionary: Dictionary) -> None:
        self._definition = definition
        self._value = value
        self._dictionary = dictionary
        self._weights: dict[int, int] = {}

    def add(self, row: Row, weight: int) -> None:
        """Add the value of the row."""
        value = self._value(row)
        total = self._weights.get(value, 0) + weight
        if total:
            self._weights[value] = total
        else:
            del self._weights[value]

    def result(self) -> Term | None:
        """Compute the aggregate."""
        terms = self._dictionary.terms
        return aggregate(self._definition, ((terms[value], weight) for value, weight in self._weights.items()))

    def __len__(self) -> int:
        return len(self._weights)


class Sum:
    """SUM and AVG: exact, and as if what has gone had never come.

    Integers and fractions are added up exactly; what is not finite, not a number or an error is counted, for it must be
    possible to take it back.
    """

    __slots__ = ("_average", "_dictionary", "_exact", "_failed", "_special", "_types", "_value", "_whole")

    def __init__(self, value: Callable[[Row], int], dictionary: Dictionary, *, average: bool) -> None:
        self._value = value
        self._dictionary = dictionary
        self._average = average
        self._whole = 0
        self._exact = Fraction(0)
        self._types = [0] * len(NumericType)
        self._special: dict[str, int] = {}
        self._failed = 0

    def add(self, row: Row, weight: int) -> None:
        """Add the value of the row."""
        term = self._dictionary.terms[self._value(row)]
        number = None if term is None else number_of(term)
        if number is None:
            self._failed += weight
            return
        self._types[number.type] += weight
        if isinstance(number.value, int):
            self._whole += number.value * weight
        elif isinstance(number.value, float) and not math.isfinite(number.value):
            name = str(number.value)
            self._special[name] = self._special.get(name, 0) + weight
        else:
            self._exact += Fraction(number.value) * weight

    def result(self) -> Term | None:
        """Return the sum or the average, in the highest type among the values."""
        if self._failed:
            return None
        count = sum(self._types)
        kind = max((one for one in NumericType if self._types[one]), default=NumericType.INTEGER)
        special = sum(float(name) for name, times in self._special.items() if times)
        number: Numeric | None = rounded(kind, self._exact + self._whole, special)
        if self._average and count:
            assert number is not None
            number = numbers.divide(number, Numeric(NumericType.INTEGER, count))
        return None if number is None else numbers.to_literal(number)

    def __len__(self) -> int:
        return 1 + len(self._special)


class Extreme:
    """MIN, MAX and SAMPLE: the bag of values, and a heap of them from which those that have gone are dropped late."""

    __slots__ = ("_dictionary", "_heap", "_queued", "_value", "_weights", "_which")

    def __init__(self, which: AggregateFunction, value: Callable[[Row], int], dictionary: Dictionary) -> None:
        self._which = which
        self._value = value
        self._dictionary = dictionary
        self._weights: dict[int, int] = {}
        self._heap: list[tuple[Any, int]] = []
        self._queued: set[int] = set()

    def add(self, row: Row, weight: int) -> None:
        """Add the value of the row."""
        value = self._value(row)
        total = self._weights.get(value, 0) + weight
        if not total:
            del self._weights[value]
            if len(self._heap) > 2 * len(self._weights) + _SLACK:
                self._forget_gone()
            return
        self._weights[value] = total
        if value != UNBOUND and value not in self._queued:
            self._queued.add(value)
            key = sort_key(self._dictionary.terms[value])
            heappush(self._heap, (Descending(key) if self._which is AggregateFunction.MAX else key, value))

    def _forget_gone(self) -> None:
        """Drop the values that have gone: few enough times that it does not show in the cost of a change."""
        self._heap = [entry for entry in self._heap if entry[1] in self._weights]
        heapify(self._heap)
        self._queued = {value for _, value in self._heap}

    def result(self) -> Term | None:
        """Return the first value that is still there."""
        if self._which is not AggregateFunction.SAMPLE and UNBOUND in self._weights:
            return None
        heap = self._heap
        while heap and heap[0][1] not in self._weights:
            self._queued.discard(heappop(heap)[1])
        return self._dictionary.terms[heap[0][1]] if heap else None

    def __len__(self) -> int:
        return len(self._weights) + len(self._heap)


def accumulator(
    definition: Aggregate, value: Callable[[Row], int] | None, dictionary: Dictionary
) -> Callable[[], Accumulator]:
    """Return what makes the accumulator of an aggregate for a new group."""
    if value is None:
        return CountDistinctRows if definition.distinct else lambda: Count(None)
    if definition.function is AggregateFunction.COUNT and not definition.distinct:
        return lambda: Count(value)
    if definition.function in (AggregateFunction.SUM, AggregateFunction.AVG) and not definition.distinct:
        average = definition.function is AggregateFunction.AVG
        return lambda: Sum(value, dictionary, average=average)
    if definition.function in (AggregateFunction.MIN, AggregateFunction.MAX, AggregateFunction.SAMPLE):
        return lambda: Extreme(definition.function, value, dictionary)
    return lambda: Values(definition, value, dictionary)
