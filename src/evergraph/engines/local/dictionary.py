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
    """Gives out ids, from 1 on, and takes none back while the engine lives."""

    __slots__ = ("ids", "terms")

    def __init__(self) -> None:
        self.ids: dict[Hashable, int] = {}
        self.terms: list[Term | None] = [None]

    def encode(self, term: Term) -> int:
        """Return the id of a term, a new one if it has none yet."""
        found = self.ids.get(term)
        if found is None:
            found = self.ids[term] = len(self.terms)
            self.terms.append(term)
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
        if found is None:
            found = self.ids[row] = len(self.terms)
            self.terms.append(None)
        return found


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
