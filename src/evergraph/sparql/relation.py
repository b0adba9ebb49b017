"""Bags of rows over named columns, and the operations of the algebra that compare rows.

Two rows are compatible if they agree wherever both are bound. Rows are found by hashing the shared columns that are
bound throughout, and compared on the others: an unbound value must not be mistaken for a value.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from evergraph.delta import Bag
from evergraph.sparql.expressions import Row
from evergraph.terms import Variable


@dataclass(frozen=True, slots=True)
class Relation:
    """A bag of rows. None in a row is an unbound variable."""

    columns: tuple[Variable, ...] = ()
    rows: Bag[Row] = field(default_factory=Bag)

    def project(self, columns: tuple[Variable, ...]) -> "Relation":
        """Keep these columns, in this order; a column that is not there is unbound."""
        if columns == self.columns:
            return self
        slots = [self.columns.index(column) if column in self.columns else None for column in columns]
        projected: Bag[Row] = Bag()
        for row, weight in self.rows.items():
            projected.add(tuple(None if slot is None else row[slot] for slot in slots), weight)
        return Relation(columns, projected)


class Matcher:
    """Finds, for rows of one relation, the compatible rows of another and what both together are."""

    def __init__(self, left: Relation, right: Relation) -> None:
        self.columns = left.columns + tuple(column for column in right.columns if column not in left.columns)
        places = {column: slot for slot, column in enumerate(right.columns)}
        self._shared = [(slot, places[column]) for slot, column in enumerate(left.columns) if column in places]
        self._new = [places[column] for column in self.columns[len(left.columns) :]]
        bound = [
            (a, b)
            for a, b in self._shared
            if all(row[a] is not None for row in left.rows) and all(row[b] is not None for row in right.rows)
        ]
        self._key = [a for a, _ in bound]
        self._loose = [pair for pair in self._shared if pair not in bound]
        self._index: defaultdict[Row, list[tuple[Row, int]]] = defaultdict(list)
        for row, weight in right.rows.items():
            self._index[tuple(row[b] for _, b in bound)].append((row, weight))

    def matches(self, row: Row) -> Iterator[tuple[Row, int]]:
        """Iterate over the compatible rows of the other side, with their weights."""
        for other, weight in self._index.get(tuple(row[a] for a in self._key), ()):
            if all(row[a] is None or other[b] is None or row[a] == other[b] for a, b in self._loose):
                yield other, weight

    def merge(self, row: Row, other: Row) -> Row:
        """Return the union of two compatible rows, over ``columns``."""
        merged = list(row)
        for a, b in self._loose:
            if merged[a] is None:
                merged[a] = other[b]
        merged.extend(other[b] for b in self._new)
        return tuple(merged)

    def pad(self, row: Row) -> Row:
        """Return a row of the left side over ``columns``."""
        return row + (None,) * len(self._new)

    def share(self, row: Row, other: Row) -> bool:
        """Tell whether there is a variable that both rows bind."""
        return any(row[a] is not None and other[b] is not None for a, b in self._shared)


def join(left: Relation, right: Relation) -> Relation:
    """Join two relations; weights multiply."""
    matcher = Matcher(left, right)
    joined: Bag[Row] = Bag()
    for row, weight in left.rows.items():
        for other, other_weight in matcher.matches(row):
            joined.add(matcher.merge(row, other), weight * other_weight)
    return Relation(matcher.columns, joined)


def left_join(left: Relation, right: Relation, condition: Callable[[Matcher], Callable[[Row], bool]]) -> Relation:
    """Join, and keep the rows of the left that find no partner for which the condition holds."""
    matcher = Matcher(left, right)
    holds = condition(matcher)
    joined: Bag[Row] = Bag()
    for row, weight in left.rows.items():
        alone = True
        for other, other_weight in matcher.matches(row):
            merged = matcher.merge(row, other)
            if holds(merged):
                alone = False
                joined.add(merged, weight * other_weight)
        if alone:
            joined.add(matcher.pad(row), weight)
    return Relation(matcher.columns, joined)


def minus(left: Relation, right: Relation) -> Relation:
    """Keep the rows of the left for which no compatible row of the right shares a bound variable."""
    matcher = Matcher(left, right)
    kept: Bag[Row] = Bag()
    for row, weight in left.rows.items():
        if not any(matcher.share(row, other) for other, _ in matcher.matches(row)):
            kept.add(row, weight)
    return Relation(left.columns, kept)
