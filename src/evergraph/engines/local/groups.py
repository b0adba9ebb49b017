"""Group. Its rule is in `evergraph.plan.nodes`."""

from collections.abc import Callable

from evergraph.engines.local.accumulators import Accumulator
from evergraph.engines.local.dictionary import Dictionary, Row, ZSet, add
from evergraph.engines.local.operators import Budget, Operator


class _State:
    __slots__ = ("accumulators", "count", "row", "size")

    def __init__(self, accumulators: list[Accumulator]) -> None:
        self.count = 0
        self.accumulators = accumulators
        self.row: Row | None = None
        self.size = 0


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
        self._remembered = 0
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
        self._budget.check(self.size())
        return out

    def _report(self, key: Row, group: _State, out: ZSet) -> None:
        self._remembered -= group.size
        if group.count or self._always:
            values = [one.result() for one in group.accumulators]
            row = key + self._dictionary.encode_row(tuple(values))
            group.size = sum(map(len, group.accumulators))
            self._remembered += group.size
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
        return len(self._groups) + self._remembered
