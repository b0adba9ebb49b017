"""The quads that connected parts need, each kept as the values of its variables, in the indexes that their joins need.

A table holds the quads that match one triple pattern, whatever its variables are called: patterns that differ in the
names of their variables alone share one. A quad is in all tables that it matches or in none, which is how the tables
tell whether a message changes anything.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from sys import getsizeof
from typing import Any, TypeAlias

from evergraph.engines.local.continuous.part import Encode, Members, Value, matcher
from evergraph.plan.continuous import positions
from evergraph.sparql.algebra import TriplePattern
from evergraph.terms import Variable

Index: TypeAlias = dict[Value, Any]
"""Maps the values of some columns to those of the others: one value as it is, several in a set."""

Signature: TypeAlias = tuple[object, ...]
"""A triple pattern without the names of its variables."""


def signature(triple: TriplePattern) -> Signature:
    """Return what two triple patterns have in common if they match the same quads."""
    terms = positions(triple)
    return tuple(terms.index(term) if isinstance(term, Variable) else term for term in terms)


def columns_of(triple: TriplePattern) -> str:
    """Return the positions, out of ``spog``, in which a variable stands for the first time."""
    terms = positions(triple)
    return "".join(
        name for n, name in enumerate("spog") if isinstance(terms[n], Variable) and terms.index(terms[n]) == n
    )


class Table:
    """The quads that match a triple pattern. With one column it is a set; otherwise indexes are all that there is."""

    __slots__ = ("_fixed", "_parts", "columns", "indexes", "matches", "rows")

    def __init__(self, triple: TriplePattern, encode: Encode) -> None:
        self.columns = columns_of(triple)
        self.matches = matcher(triple, encode)
        self.rows: set[Value] = set()
        self.indexes: dict[str, Index] = {}
        self._parts: list[tuple[Index, Callable[[Members], Value], Callable[[Members], Value]]] = []
        terms = positions(triple)
        self._fixed = [
            (terms.index(term), None) if isinstance(term, Variable) else (None, encode(term)) for term in terms
        ]

    def index(self, columns: str) -> Index | set[Value]:
        """Return the index by some columns, made if need be, while the table is empty."""
        if len(self.columns) == 1:
            return self.rows
        if columns not in self.indexes:
            self.indexes[columns] = {}
            others = "".join(column for column in self.columns if column not in columns)
            self._parts.append((self.indexes[columns], _getter(columns), _getter(others)))
        return self.indexes[columns]

    def holds(self, quad: Members) -> bool:
        """Tell whether a quad that matches is there."""
        if not self.indexes:
            return quad["spog".index(self.columns)] in self.rows
        index, key, value = self._parts[0]
        found, wanted = index.get(key(quad)), value(quad)
        return wanted in found if found.__class__ is set else found == wanted

    def insert(self, quad: Members) -> None:
        """Add a quad that matches and is not there."""
        if not self.indexes:
            self.rows.add(quad["spog".index(self.columns)])
        for index, key, value in self._parts:
            place, new = key(quad), value(quad)
            found = index.get(place)
            if found is None:
                index[place] = new
            elif found.__class__ is set:
                found.add(new)
            else:
                index[place] = {found, new}

    def delete(self, quad: Members) -> None:
        """Take out a quad that is there."""
        if not self.indexes:
            self.rows.remove(quad["spog".index(self.columns)])
        for index, key, value in self._parts:
            place = key(quad)
            found = index[place]
            if found.__class__ is not set:
                del index[place]
                continue
            found.remove(value(quad))
            if len(found) == 1:
                [index[place]] = found

    def quads(self) -> Iterator[Members]:
        """Iterate over all quads of the table."""
        for values in self._bindings():
            terms = [values.get(n) if n is not None else constant for n, constant in self._fixed]
            yield terms[0], terms[1], terms[2], terms[3]

    def _bindings(self) -> Iterator[dict[int, Value]]:
        """Iterate over the values of the columns, by their positions."""
        if not self.indexes:
            place = "spog".index(self.columns)
            yield from ({place: value} for value in self.rows)
            return
        columns, index = next(iter(self.indexes.items()))
        order = ["spog".index(name) for name in (*columns, *(one for one in self.columns if one not in columns))]
        several_keys, several_values = len(columns) > 1, len(order) - len(columns) > 1
        for key, found in index.items():
            for value in found if found.__class__ is set else (found,):
                keys, values = key if several_keys else (key,), value if several_values else (value,)
                yield dict(zip(order, (*keys, *values), strict=True))

    def bytes(self) -> int:
        """Measure sets, indexes and what they hold, values that stand for terms excepted."""
        total = getsizeof(self.rows)
        for index in self.indexes.values():
            total += getsizeof(index) + sum(_size(key) + _size(found) for key, found in index.items())
        return total


def _getter(columns: str) -> Callable[[Members], Value]:
    return itemgetter(*("spog".index(column) for column in columns))


def _size(value: Value) -> int:
    if value.__class__ is set:
        return getsizeof(value) + sum(map(_size, value))
    return getsizeof(value) if value.__class__ is tuple else 0
