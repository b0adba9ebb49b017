"""Operators that need at most a count for each row. Their rules are in `evergraph.plan.nodes`."""

from collections.abc import Callable
from typing import Protocol

from evergraph.engines.local.dictionary import Dictionary, Row, ZSet, add
from evergraph.errors import StateLimit


class Operator(Protocol):
    """Turns the changes of its operands into the change of its result. All state is as of the last `pull`."""

    def pull(self) -> ZSet:
        """Return the change since the last call; the first call returns the whole result."""
        ...

    def size(self) -> int:
        """Count the entries of state."""
        ...


class Budget:
    """How many entries one view may keep; asked wherever state can grow without bounds."""

    __slots__ = ("limit",)

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def check(self, entries: int) -> None:
        """Raise `StateLimit` if there are too many entries."""
        if entries > self.limit:
            raise state_limit(self.limit)


def state_limit(limit: int) -> StateLimit:
    """Return what a view with too many entries of state fails with."""
    return StateLimit(
        f"the query needs more than {limit:,} entries of state",
        hint="make the query more selective, or set a higher limit (`--limit`, `limit=`).",
    )


class UnionOperator:
    """Union, each operand padded to the columns of all."""

    def __init__(self, operands: list[tuple[Operator, Callable[[Row], Row] | None]]) -> None:
        self._operands = operands

    def pull(self) -> ZSet:
        """Sum the changes."""
        out: ZSet = {}
        for operand, pad in self._operands:
            for row, weight in operand.pull().items():
                add(out, pad(row) if pad else row, weight)
        return out

    def size(self) -> int:
        """Keep nothing."""
        return 0


class FilterOperator:
    """Filter."""

    def __init__(self, operand: Operator, test: Callable[[Row], bool]) -> None:
        self._operand = operand
        self._test = test

    def pull(self) -> ZSet:
        """Filter the change."""
        test = self._test
        return {row: weight for row, weight in self._operand.pull().items() if test(row)}

    def size(self) -> int:
        """Keep nothing."""
        return 0


class MapOperator:
    """Extend, Tag and Project: a row for a row."""

    def __init__(self, operand: Operator, function: Callable[[Row], Row]) -> None:
        self._operand = operand
        self._function = function

    def pull(self) -> ZSet:
        """Map the change; rows that become the same add up."""
        out: ZSet = {}
        function = self._function
        for row, weight in self._operand.pull().items():
            add(out, function(row), weight)
        return out

    def size(self) -> int:
        """Keep nothing."""
        return 0


def tagger(dictionary: Dictionary) -> Callable[[Row], Row]:
    """Return a function that appends an id for the row as a whole."""
    tag = dictionary.tag
    return lambda row: (*row, tag(row))


class DistinctOperator:
    """Distinct."""

    def __init__(self, operand: Operator, budget: Budget) -> None:
        self._operand = operand
        self._counts: ZSet = {}
        self._budget = budget

    def pull(self) -> ZSet:
        """Report the rows whose count rises above zero or falls to it."""
        out: ZSet = {}
        counts = self._counts
        for row, weight in self._operand.pull().items():
            before = counts.get(row, 0)
            after = before + weight
            if after:
                counts[row] = after
            else:
                del counts[row]
            if not before:
                out[row] = 1
            elif not after:
                out[row] = -1
        self._budget.check(len(counts))
        return out

    def size(self) -> int:
        """Count the rows."""
        return len(self._counts)
