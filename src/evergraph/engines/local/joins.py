"""Operators that compare the rows of two sides. Their rules are in `evergraph.plan.nodes`."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Protocol, TypeAlias

from evergraph.engines.local.dictionary import Row, ZSet, add
from evergraph.engines.local.operators import Budget, Operator
from evergraph.engines.local.rows import key_picker
from evergraph.plan import nodes
from evergraph.plan.nodes import Plan

_NOTHING: Mapping[Row, int] = {}
Weighted: TypeAlias = Iterable[tuple[Row, int]]
Test: TypeAlias = Callable[[Row, Row], bool]


class Index(Protocol):
    """The rows of one side, found by rows of the other."""

    def add(self, row: Row, weight: int) -> int:
        """Add to the weight of a row; return the new weight."""
        ...

    def matches(self, other: Row) -> Weighted:
        """Return the compatible rows, with their weights."""
        ...

    def __len__(self) -> int: ...


class HashIndex:
    """Rows by the shared columns, all of which are bound on both sides."""

    __slots__ = ("_buckets", "_key", "_other_key", "_size")

    def __init__(self, key: Callable[[Row], Hashable], other_key: Callable[[Row], Hashable]) -> None:
        self._key = key
        self._other_key = other_key
        self._buckets: dict[Hashable, ZSet] = {}
        self._size = 0

    def add(self, row: Row, weight: int) -> int:
        """Add to the weight of a row; return the new weight."""
        key = self._key(row)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = {}
        before = bucket.get(row, 0)
        after = before + weight
        if after:
            bucket[row] = after
            self._size += not before
        else:
            bucket.pop(row, None)
            self._size -= bool(before)
            if not bucket:
                del self._buckets[key]
        return after

    def matches(self, other: Row) -> Weighted:
        """Return the rows with the same shared columns."""
        return self._buckets.get(self._other_key(other), _NOTHING).items()

    def __len__(self) -> int:
        return self._size


class CompatibleIndex:
    """Rows by what they bind of the shared columns: hashed, for each such choice, on what the other row binds too."""

    __slots__ = ("_indexes", "_other_slots", "_rows", "_slots")

    def __init__(self, slots: tuple[int, ...], other_slots: tuple[int, ...]) -> None:
        self._slots = slots
        self._other_slots = other_slots
        self._rows: dict[int, ZSet] = {}
        self._indexes: dict[tuple[int, int], dict[Row, ZSet]] = {}

    def add(self, row: Row, weight: int) -> int:
        """Add to the weight of a row; return the new weight."""
        mask = _mask(row, self._slots)
        rows = self._rows.setdefault(mask, {})
        add(rows, row, weight)
        if not rows:
            del self._rows[mask]
        for (own, common), index in self._indexes.items():
            if own == mask:
                key = _key(row, self._slots, common)
                bucket = index.setdefault(key, {})
                add(bucket, row, weight)
                if not bucket:
                    del index[key]
        return rows.get(row, 0)

    def matches(self, other: Row) -> Weighted:
        """Return the compatible rows."""
        mask = _mask(other, self._other_slots)
        found: list[tuple[Row, int]] = []
        for own in self._rows:
            common = own & mask
            bucket = self._index(own, common).get(_key(other, self._other_slots, common))
            if bucket:
                found.extend(bucket.items())
        return found

    def _index(self, own: int, common: int) -> dict[Row, ZSet]:
        if (own, common) not in self._indexes:
            made: dict[Row, ZSet] = {}
            for row, weight in self._rows[own].items():
                made.setdefault(_key(row, self._slots, common), {})[row] = weight
            self._indexes[own, common] = made
        return self._indexes[own, common]

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))


def _mask(row: Row, slots: tuple[int, ...]) -> int:
    return sum(1 << bit for bit, slot in enumerate(slots) if row[slot])


def _key(row: Row, slots: tuple[int, ...], mask: int) -> Row:
    return tuple([row[slot] for bit, slot in enumerate(slots) if mask >> bit & 1])


def index_pair(left: Plan, right: Plan) -> tuple[Index, Index]:
    """Return the indexes of both sides of a join."""
    shared = nodes.shared(left, right)
    if left.certain.issuperset(shared) and right.certain.issuperset(shared):
        keys = key_picker(left.variables, shared), key_picker(right.variables, shared)
        return HashIndex(*keys), HashIndex(keys[1], keys[0])
    slots = tuple(map(left.variables.index, shared)), tuple(map(right.variables.index, shared))
    return CompatibleIndex(*slots), CompatibleIndex(slots[1], slots[0])


class JoinOperator:
    """Join."""

    def __init__(
        self,
        left: Operator,
        right: Operator,
        indexes: tuple[Index, Index],
        merge: Callable[[Row, Row], Row],
        budget: Budget,
    ) -> None:
        self._left = left
        self._right = right
        self._left_rows, self._right_rows = indexes
        self._merge = merge
        self._budget = budget

    def pull(self) -> ZSet:
        """Return ΔA ⋈ B + A' ⋈ ΔB."""
        left, right = self._left.pull(), self._right.pull()
        out: ZSet = {}
        if not left and not right:
            return out
        merge, check = self._merge, self._budget.check
        for row, weight in left.items():
            for other, times in self._right_rows.matches(row):
                add(out, merge(row, other), weight * times)
            self._left_rows.add(row, weight)
            check(len(out))
        for other, times in right.items():
            for row, weight in self._left_rows.matches(other):
                add(out, merge(row, other), weight * times)
            self._right_rows.add(other, times)
            check(len(out))
        check(len(self._left_rows) + len(self._right_rows))
        return out

    def size(self) -> int:
        """Count the rows of both sides."""
        return len(self._left_rows) + len(self._right_rows)


class Emitter(Protocol):
    """What makes the difference between LeftJoin, SemiJoin, MarkJoin and Minus."""

    pairs: bool

    def pair(self, out: ZSet, row: Row, other: Row, weight: int) -> None:
        """A row of the left and a match of it have come or gone."""
        ...

    def row(self, out: ZSet, row: Row, weight: int, matched: bool) -> None:
        """A row of the left has come or gone, with or without matches."""
        ...


class MatchOperator:
    """LeftJoin, SemiJoin, MarkJoin and Minus: how many matches each row of the left has."""

    def __init__(
        self,
        sides: tuple[Operator, Operator],
        indexes: tuple[Index, Index],
        test: Test | None,
        emitter: Emitter,
        budget: Budget,
    ) -> None:
        self._left, self._right = sides
        self._left_rows, self._right_rows = indexes
        self._test = test
        self._emitter = emitter
        self._budget = budget
        self._counts: ZSet = {}

    def pull(self) -> ZSet:
        """Bring ΔB against A, then ΔA against B'."""
        left, right = self._left.pull(), self._right.pull()
        out: ZSet = {}
        if right:
            self._change_right(right, out)
        for row, weight in left.items():
            self._change_left(row, weight, out)
            self._budget.check(len(out))
        if left or right:
            self._budget.check(len(self._left_rows) + len(self._right_rows))
        return out

    def _change_right(self, delta: ZSet, out: ZSet) -> None:
        counts, test, emitter = self._counts, self._test, self._emitter
        touched: dict[Row, tuple[int, int]] = {}
        for other, times in delta.items():
            for row, weight in self._left_rows.matches(other):
                if test is None or test(row, other):
                    before = counts.get(row, 0)
                    touched.setdefault(row, (weight, before))
                    counts[row] = before + times
                    if emitter.pairs:
                        emitter.pair(out, row, other, weight * times)
            self._right_rows.add(other, times)
            self._budget.check(len(out))
        for row, (weight, before) in touched.items():
            after = counts[row]
            if not after:
                del counts[row]
            if bool(before) != bool(after):
                emitter.row(out, row, -weight, bool(before))
                emitter.row(out, row, weight, bool(after))

    def _change_left(self, row: Row, weight: int, out: ZSet) -> None:
        total = self._left_rows.add(row, weight)
        test, emitter = self._test, self._emitter
        if emitter.pairs or total == weight:
            count = 0
            for other, times in self._right_rows.matches(row):
                if test is None or test(row, other):
                    count += times
                    if emitter.pairs:
                        emitter.pair(out, row, other, weight * times)
        else:
            count = self._counts.get(row, 0)
        if not total:
            self._counts.pop(row, None)
        elif count:
            self._counts[row] = count
        emitter.row(out, row, weight, bool(count))

    def size(self) -> int:
        """Count the rows of both sides, and the counts."""
        return len(self._left_rows) + len(self._right_rows) + len(self._counts)


class KeyMatchOperator:
    """SemiJoin, MarkJoin and Minus where any row with the same key matches: of the right, only keys are counted."""

    def __init__(
        self,
        sides: tuple[Operator, Operator],
        keys: tuple[Callable[[Row], Hashable], Callable[[Row], Hashable]],
        emitter: Emitter,
        budget: Budget,
    ) -> None:
        self._left, self._right = sides
        self._left_key, self._right_key = keys
        self._rows: dict[Hashable, ZSet] = {}
        self._counts: dict[Hashable, int] = {}
        self._emitter = emitter
        self._budget = budget
        self._size = 0

    def pull(self) -> ZSet:
        """Turn the rows of the keys that come or go on the right, then take the changes of the left."""
        left, right = self._left.pull(), self._right.pull()
        out: ZSet = {}
        if right:
            self._change_right(right, out)
        key_of, rows, counts, emit = self._left_key, self._rows, self._counts, self._emitter.row
        for row, weight in left.items():
            key = key_of(row)
            bucket = rows.get(key)
            if bucket is None:
                bucket = rows[key] = {}
            before = len(bucket)
            add(bucket, row, weight)
            self._size += len(bucket) - before
            if not bucket:
                del rows[key]
            emit(out, row, weight, key in counts)
        self._budget.check(self._size + len(counts))
        return out

    def _change_right(self, delta: ZSet, out: ZSet) -> None:
        counts, emit = self._counts, self._emitter.row
        touched: dict[Hashable, bool] = {}
        for other, times in delta.items():
            key = self._right_key(other)
            before = counts.get(key, 0)
            touched.setdefault(key, bool(before))
            if before + times:
                counts[key] = before + times
            else:
                del counts[key]
        for key, before_ in touched.items():
            after_ = key in counts
            if before_ != after_:
                for row, weight in self._rows.get(key, _NOTHING).items():
                    emit(out, row, -weight, before_)
                    emit(out, row, weight, after_)

    def size(self) -> int:
        """Count the rows of the left and the keys of the right."""
        return self._size + len(self._counts)


class LeftJoinEmitter:
    """Joined rows, and rows of the left that have no match."""

    pairs = True

    def __init__(self, merge: Callable[[Row, Row], Row], padding: Row) -> None:
        self._merge = merge
        self._padding = padding

    def pair(self, out: ZSet, row: Row, other: Row, weight: int) -> None:
        """Report the joined row."""
        add(out, self._merge(row, other), weight)

    def row(self, out: ZSet, row: Row, weight: int, matched: bool) -> None:
        """Report the row itself if it stands alone."""
        if not matched:
            add(out, row + self._padding, weight)


class SemiEmitter:
    """Rows that have a match, or that have none."""

    pairs = False

    def __init__(self, *, anti: bool) -> None:
        self._wanted = not anti

    def pair(self, out: ZSet, row: Row, other: Row, weight: int) -> None:
        """Pairs do not matter."""

    def row(self, out: ZSet, row: Row, weight: int, matched: bool) -> None:
        """Report the row if it is of the right kind."""
        if matched is self._wanted:
            add(out, row, weight)


class MarkEmitter:
    """All rows, with a mark."""

    pairs = False

    def __init__(self, marks: tuple[int, int]) -> None:
        self._marks = marks

    def pair(self, out: ZSet, row: Row, other: Row, weight: int) -> None:
        """Pairs do not matter."""

    def row(self, out: ZSet, row: Row, weight: int, matched: bool) -> None:
        """Report the row with its mark."""
        add(out, (*row, self._marks[matched]), weight)
