"""The quads that connected parts need, each kept as the values of its variables, in the indexes that their joins need.

A table holds the quads that match one triple pattern, whatever its variables are called: patterns that differ in the
names of their variables alone share one. A quad is in all tables that it matches or in none, which is how the tables
tell whether a message changes anything.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from sys import getsizeof
from typing import Any, Protocol, TypeAlias

from evergraph.engines.local.continuous.part import Encode, Members, Value
from evergraph.plan.continuous import positions
from evergraph.sparql.algebra import TriplePattern
from evergraph.terms import Variable

Index: TypeAlias = dict[Value, Any]
"""Maps the values of some columns to those of the others: one value as it is, a few in a list, many in a set.

Most nodes have few neighbours, and a set of five takes six times the memory of a list of five."""

FEW = 8
SEVERAL = (list, set)

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


class Table(Protocol):
    """The quads that match a triple pattern."""

    def index(self, columns: str) -> Any:
        """Return the index by some columns, made if need be, while the table is empty; it stays the same object."""
        ...

    def holds(self, quad: Members) -> bool:
        """Tell whether a quad that matches is there."""
        ...

    def insert(self, quad: Members) -> bool:
        """Add a quad that matches; False if it is there."""
        ...

    def delete(self, quad: Members) -> None:
        """Take out a quad that is there."""
        ...

    def quads(self) -> Iterator[Members]:
        """Iterate over all quads of the table."""
        ...

    def bytes(self) -> int:
        """Measure sets, indexes and what they hold, values that stand for terms excepted."""
        ...


def make_table(triple: TriplePattern, encode: Encode) -> Table:
    """Make the table of a triple pattern."""
    return ValueTable(triple, encode) if len(columns_of(triple)) == 1 else IndexedTable(triple, encode)


class ValueTable:
    """The table of a triple pattern with one variable: the set of its values."""

    __slots__ = ("_place", "_template", "_values")

    def __init__(self, triple: TriplePattern, encode: Encode) -> None:
        self._place = "spog".index(columns_of(triple))
        self._template = _template(triple, encode)
        self._values: set[Value] = set()

    def index(self, columns: str) -> set[Value]:
        """Return the set."""
        return self._values

    def holds(self, quad: Members) -> bool:
        """Look the value up."""
        return quad[self._place] in self._values

    def insert(self, quad: Members) -> bool:
        """Add the value."""
        value = quad[self._place]
        if value in self._values:
            return False
        self._values.add(value)
        return True

    def delete(self, quad: Members) -> None:
        """Remove the value."""
        self._values.remove(quad[self._place])

    def quads(self) -> Iterator[Members]:
        """Make quads of the values."""
        return (self._template({self._place: value}) for value in self._values)

    def bytes(self) -> int:
        """Measure the set."""
        return getsizeof(self._values)


class IndexedTable:
    """The table of a triple pattern with several variables.

    Its indexes are all that there is: any of them has all quads.
    """

    __slots__ = ("_columns", "_indexes", "_parts", "_template")

    def __init__(self, triple: TriplePattern, encode: Encode) -> None:
        self._columns = columns_of(triple)
        self._template = _template(triple, encode)
        self._indexes: dict[str, Index] = {}
        self._parts: list[tuple[Index, Callable[[Members], Value], Callable[[Members], Value]]] = []

    def index(self, columns: str) -> Index:
        """Return an index."""
        if columns not in self._indexes:
            self._indexes[columns] = {}
            others = "".join(column for column in self._columns if column not in columns)
            self._parts.append((self._indexes[columns], _getter(columns), _getter(others)))
        return self._indexes[columns]

    def holds(self, quad: Members) -> bool:
        """Look the quad up in the first index."""
        index, key, value = self._parts[0]
        found = index.get(key(quad))
        return value(quad) in found if found.__class__ in SEVERAL else found == value(quad)

    def insert(self, quad: Members) -> bool:
        """Add the quad to all indexes; the first one tells whether it is there."""
        for index, key, value in self._parts:
            place, new = key(quad), value(quad)
            found = index.get(place)
            if found is None:
                index[place] = new
            elif found.__class__ not in SEVERAL:
                if found == new:
                    return False
                index[place] = [found, new]
            elif new in found:
                return False
            elif isinstance(found, set):
                found.add(new)
            elif len(found) < FEW:
                found.append(new)
            else:
                index[place] = {*found, new}
        return True

    def delete(self, quad: Members) -> None:
        """Take the quad out of all indexes."""
        for index, key, value in self._parts:
            place = key(quad)
            found = index[place]
            if found.__class__ not in SEVERAL:
                del index[place]
                continue
            found.remove(value(quad))
            if len(found) == 1:
                [index[place]] = found
            elif len(found) == FEW // 2 and found.__class__ is set:
                index[place] = list(found)

    def quads(self) -> Iterator[Members]:
        """Make quads of the first index."""
        columns, index = next(iter(self._indexes.items()))
        order = ["spog".index(name) for name in (*columns, *(one for one in self._columns if one not in columns))]
        several_keys, several_values = len(columns) > 1, len(order) - len(columns) > 1
        for key, found in index.items():
            for value in found if found.__class__ in SEVERAL else (found,):
                keys, values = key if several_keys else (key,), value if several_values else (value,)
                yield self._template(dict(zip(order, (*keys, *values), strict=True)))

    def bytes(self) -> int:
        """Measure all indexes."""
        return sum(
            getsizeof(index) + sum(_size(key) + _size(found) for key, found in index.items())
            for index in self._indexes.values()
        )


def _template(triple: TriplePattern, encode: Encode) -> Callable[[dict[int, Value]], Members]:
    """Return a function that makes a quad of the values of the variables, given by their first positions."""
    terms = positions(triple)
    constants = {n: encode(term) for n, term in enumerate(terms) if not isinstance(term, Variable)}
    first = [terms.index(term) for term in terms]

    def made(values: dict[int, Value]) -> Members:
        known = values | constants
        return known[first[0]], known[first[1]], known[first[2]], known[first[3]]

    return made


def _getter(columns: str) -> Callable[[Members], Value]:
    return itemgetter(*("spog".index(column) for column in columns))


def _size(value: Value) -> int:
    if value.__class__ in SEVERAL:
        return getsizeof(value) + sum(map(_size, value))
    return getsizeof(value) if value.__class__ is tuple else 0
