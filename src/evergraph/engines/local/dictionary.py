"""Terms as integers. Two terms have the same id if, and only if, they are the same term, to the last character.

Terms come with quads, constants and computed values, and go with them. An id is one Python object, which everybody who
has it holds: indexes, the state of operators, results, changes that nobody has read yet. So Python counts already how
many hold it, and an id that only the dictionary holds is free. Nobody may compute an id, or copy it into something that
holds no Python objects.

Free ids are looked for little by little, as new ones are given out: once as many have come as there were, a look at
all of them begins, at a few for each further id. So a dictionary is at most somewhat larger than twice what is in use,
and no pause is longer than one look at a thousand ids.
"""

import sys
from collections.abc import Hashable
from typing import TypeAlias

from evergraph.terms import Term

Row: TypeAlias = tuple[int, ...]
"""A row of ids over the columns of a plan node; `UNBOUND` where a variable has no value."""

ZSet: TypeAlias = dict[Row, int]
"""A bag of rows with signed weights, none of them 0."""

UNBOUND = 0

_AT_LEAST = 10_000
"""How many ids are given out before free ones are looked for."""

_LOOK, _PACE = 1_024, 64
"""How many ids are looked at for how many that are given out."""

SINGLES = 4_096
"""How many tuples of one id there are to share; a power of two."""


def _unheld(numbers: list[int], begin: int, end: int, references: int) -> list[int]:
    """List the numbers to which there are so many references during the look."""
    count = sys.getrefcount
    return [one for one in numbers[begin:end] if count(one) == references]


def _references() -> int:
    """Find out how many references there are to an id that only a dictionary holds; 0 if nobody counts them."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return 0
    numbers = [int("1000000007")]
    ids = {"term": numbers[0]}
    found = [references for references in range(1, 16) if _unheld(numbers, 0, 1, references)]
    return found[0] if ids and len(found) == 1 else 0


_REFERENCES = _references()


class Dictionary:
    """Gives out ids, from 1 on, those that have become free first."""

    __slots__ = ("_free", "_next", "_numbers", "_room", "_rows", "ids", "singles", "terms")

    def __init__(self) -> None:
        self.ids: dict[Hashable, int] = {}
        self.terms: list[Term | None] = [None]
        self.singles: list[Row] = [(0,)] * SINGLES
        """Tuples of one id, each at the place that the last bits of the id name, for indexes to share: most subjects
        have one value for a predicate, and many have the same one, such as a class. This saves memory, and looks at it.
        """
        self._numbers = [0]
        """Each id at its own place, so that it is found without its term; 0 where it is free."""
        self._rows: dict[int, Row] = {}
        """What tags stand for, by the negative of their ids, which is no reference to them."""
        self._free: list[int] = []
        self._next = 0
        """Where the look for free ids goes on; 0 if there is none at present."""
        self._room = _AT_LEAST
        """How many ids can be given out before something is to be done."""

    def encode(self, term: Term) -> int:
        """Return the id of a term, a new one if it has none yet."""
        found = self.ids.get(term)
        return self._new(term, term) if found is None else found

    def _new(self, key: Hashable, term: Term | None) -> int:
        if self._free:
            found = self._free.pop()
            self.terms[found] = term
            self._numbers[found] = found
        else:
            found = len(self.terms)
            self.terms.append(term)
            self._numbers.append(found)
        self.ids[key] = found
        self._room -= 1
        if self._room <= 0:
            self._look()
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
            found = self._new(row, None)
            self._rows[-found] = row
        return found

    def forget(self) -> int:
        """Give back all ids that nobody else holds; return how many there were."""
        total = 0
        self._unshare()
        while found := self._give_back(0, len(self._numbers)):  # tags hold the ids of their rows
            total += found
        self._rest()
        return total

    def _look(self) -> None:
        begin = self._next
        if not begin:
            self._unshare()
        self._next = begin + _LOOK
        self._room = _PACE
        self._give_back(begin, self._next)
        if self._next >= len(self._numbers):
            self._rest()

    def _unshare(self) -> None:
        """Let go of the ids in tuples that may be nobody's any more."""
        self.singles[:] = [(0,)] * SINGLES

    def _rest(self) -> None:
        self._next = 0
        self._room = max(_AT_LEAST, len(self.ids))

    def _give_back(self, begin: int, end: int) -> int:
        unheld = _unheld(self._numbers, begin, end, _REFERENCES)
        for number in unheld:
            term = self.terms[number]
            key = self._rows.pop(-number) if term is None else term
            self._numbers[number] = 0
            del self.ids[key]
            self.terms[number] = None
            self._free.append(number)
        return len(unheld)


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
