"""Group. Its rule is in `evergraph.plan.nodes`."""

from collections.abc import Callable
from typing import Protocol

from evergraph.engines.local.dictionary import UNBOUND, Dictionary, Row, ZSet, add
from evergraph.engines.local.operators import Budget, Operator
from evergraph.sparql.aggregates import aggregate
from evergraph.sparql.algebra import Aggregate, AggregateFunction
from evergraph.sparql.values import integer
from evergraph.terms import Term


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


def accumulator(
    definition: Aggregate, value: Callable[[Row], int] | None, dictionary: Dictionary
) -> Callable[[], Accumulator]:
    """Return what makes the accumulator of an aggregate for a new group."""
    if value is None:
        return CountDistinctRows if definition.distinct else lambda: Count(None)
    if definition.function is AggregateFunction.COUNT and not definition.distinct:
        return lambda: Count(value)
    return lambda: Values(definition, value, dictionary)


class _State:
    __slots__ = ("accumulators", "count", "row")

    def __init__(self, accumulators: list[Accumulator]) -> None:
        self.count = 0
        self.accumulators = accumulators
        self.row: Row | None = None


class GroupOperator:
    """Group."""

    def __init__(
        self,
        operand: Operator,
        key: Callable[[Row], Row],
        makers: list[Callable[[], Accumulator]],
        dictionary: Dictionary,
        budget: Budget,
        *,
        always: bool,
    ) -> None:
        self._operand = operand
        self._key = key
        self._makers = makers
        self._dictionary = dictionary
        self._budget = budget
        self._always = always
        self._groups: dict[Row, _State] = {}
        self._is_new = always

    def pull(self) -> ZSet:
        """Report the old and the new row of each group that the change touches."""
        touched: dict[Row, _State] = {}
        if self._is_new:
            self._is_new = False
            touched[()] = self._groups[()] = _State([make() for make in self._makers])
        for row, weight in self._operand.pull().items():
            key = self._key(row)
            group = touched.get(key)
            if group is None:
                group = self._groups.get(key)
                if group is None:
                    group = self._groups[key] = _State([make() for make in self._makers])
                touched[key] = group
            group.count += weight
            for one in group.accumulators:
                one.add(row, weight)
        out: ZSet = {}
        for key, group in touched.items():
            self._report(key, group, out)
        self._budget.check(len(self._groups))
        return out

    def _report(self, key: Row, group: _State, out: ZSet) -> None:
        if group.count or self._always:
            values = [one.result() for one in group.accumulators]
            row = key + self._dictionary.encode_row(tuple(values))
        else:
            row = None
            del self._groups[key]
        if row != group.row:
            if group.row is not None:
                add(out, group.row, -1)
            if row is not None:
                add(out, row, 1)
            group.row = row

    def size(self) -> int:
        """Count the groups and what their aggregates remember."""
        return len(self._groups) + sum(len(one) for group in self._groups.values() for one in group.accumulators)
