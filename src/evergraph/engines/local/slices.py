"""Slice: a window on ordered rows. Its rule is in `evergraph.plan.nodes`."""

from bisect import bisect_left, insort
from collections.abc import Callable
from functools import total_ordering
from typing import Any, TypeAlias

from evergraph.engines.local.dictionary import Row, ZSet, add
from evergraph.engines.local.operators import Budget, Operator

OrderKey: TypeAlias = tuple[Any, ...]
"""The place of a row in the order; its last member is the row itself, as it is in the result."""


@total_ordering
class Descending:
    """A sort key in reverse."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: "Descending") -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


class SliceOperator:
    """Slice."""

    def __init__(
        self,
        operand: Operator,
        place: Callable[[Row], OrderKey],
        window: tuple[int, int | None],
        budget: Budget,
        *,
        distinct: bool,
    ) -> None:
        self._operand = operand
        self._place = place
        self._start, self._length = window
        self._budget = budget
        self._distinct = distinct
        self._order: list[OrderKey] = []
        self._weights: dict[OrderKey, int] = {}
        self._window: ZSet = {}
        self._last: OrderKey | None = None
        """The last place in a window that is full: what changes after it does not show."""

    def pull(self) -> ZSet:
        """Return the window after the change less the window before."""
        delta = self._operand.pull()
        if not delta:
            return {}
        changes: dict[OrderKey, int] = {}
        for row, weight in delta.items():
            place = self._place(row)
            changes[place] = changes.get(place, 0) + weight
        for place, weight in changes.items():
            self._change(place, weight)
        self._budget.check(len(self._order))
        if self._last is not None and min(changes) > self._last:
            return {}
        before_, self._window = self._window, self._rows_in_window()
        out = dict(self._window)
        for row, weight in before_.items():
            add(out, row, -weight)
        return out

    def _change(self, place: OrderKey, weight: int) -> None:
        before = self._weights.get(place, 0)
        after = before + weight
        if after:
            self._weights[place] = after
            if not before:
                insort(self._order, place)
        elif before:
            del self._weights[place]
            del self._order[bisect_left(self._order, place)]

    def _rows_in_window(self) -> ZSet:
        end = None if self._length is None else self._start + self._length
        rows: ZSet = {}
        seen: set[Row] = set()
        position = 0
        self._last = None
        for place in self._order:
            row = place[-1]
            weight = self._weights[place]
            if self._distinct:
                if row in seen:
                    continue
                seen.add(row)
                weight = 1
            first, last = max(position, self._start), position + weight
            last = last if end is None else min(last, end)
            if last > first:
                add(rows, row, last - first)
            position += weight
            if end is not None and position >= end:
                self._last = place
                break
        return rows

    def size(self) -> int:
        """Count the rows in order."""
        return len(self._order) + len(self._window)
