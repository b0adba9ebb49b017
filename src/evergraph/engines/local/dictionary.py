"""Terms as integers. Two terms have the same id if, and only if, they are the same term, to the last character."""

from collections.abc import Hashable
from typing import TypeAlias

from evergraph.terms import Term

Row: TypeAlias = tuple[int, ...]
"""A row of ids over the columns of a plan node; `UNBOUND` where a variable has no value."""

ZSet: TypeAlias = dict[Row, int]
"""A bag of rows with signed weights, none of them 0."""

UNBOUND = 0


class Dictionary:
    """Gives out ids, from 1 on; those that a sweep gives back first. See `evergraph.engines.local.sweeping`."""

    __slots__ = ("_free", "ids", "terms")

    def __init__(self) -> None:
        self.ids: dict[Hashable, int] = {}
        self.terms: list[Term | None] = [None]
        self._free: list[int] = []

    def encode(self, term: Term) -> int:
        """Return the id of a term, a new one if it has none yet."""
        found = self.ids.get(term)
        return self._new(term, term) if found is None else found

    def _new(self, key: Hashable, term: Term | None) -> int:
        if self._free:
            found = self._free.pop()
            self.terms[found] = term
        else:
            found = len(self.terms)
            self.terms.append(term)
        self.ids[key] = found
        return found

    def encode_row(self, row: tuple[Term | None, ...]) -> Row:
        """Return the ids of a row of terms."""
        return tuple(UNBOUND if term is None else self.encode(term) for term in row)

    def decode_row(self, row: Row) -> tuple[Term | None, ...]:
        """Return the terms of a row of ids."""
        terms = self.terms
        return tuple([terms[one] for one in row])

    def tag(self, row: Row) -> int:
        """Return an id for a row as a whole; it stands for no term."""
        found = self.ids.get(row)
        return self._new(row, None) if found is None else found

    def forget(self, live: set[int]) -> int:
        """Give back all ids but these, and those in the rows that live tags stand for; return how many."""
        for key, number in reversed(self.ids.items()):
            if type(key) is tuple and number in live:
                live.update(key)
        gone = [key for key, number in self.ids.items() if number not in live]
        for key in gone:
            number = self.ids.pop(key)
            self.terms[number] = None
            self._free.append(number)
        return len(gone)


def add(bag: ZSet, row: Row, weight: int) -> None:
    """Add to the weight of a row; what becomes 0 is dropped."""
    total = bag.get(row, 0) + weight
    if total:
        bag[row] = total
    else:
        bag.pop(row, None)


def difference(before: ZSet, after: ZSet) -> ZSet:
    """Return what has to be added to one bag to make another."""
    get = before.get
    out = {row: weight - get(row, 0) for row, weight in after.items() if get(row) != weight}
    for row, weight in before.items():
        if row not in after:
            out[row] = -weight
    return out
