"""Which values stand for terms in the state of a pattern."""

from sys import getsizeof
from typing import Protocol

from evergraph.engines.local.continuous.part import Members, Row, Value, size_of
from evergraph.sparql.algebra import GraphContext
from evergraph.sparql.expressions import Row as TermRow
from evergraph.terms import DEFAULT_GRAPH, Quad


class Encoding(Protocol):
    """Turns quads into values and rows back into terms."""

    def constant(self, term: GraphContext) -> Value:
        """Return the value of a constant, which is kept for good."""
        ...

    def encode(self, quad: Quad) -> Members:
        """Return the values of a quad; new ones are forgotten with the next change unless they are held."""
        ...

    def find(self, quad: Quad) -> Members | None:
        """Return the values of a quad, None if some term has none."""
        ...

    def hold(self, quad: Members) -> None:
        """Count a quad that is now in the state."""
        ...

    def release(self, quad: Members) -> None:
        """Count off a quad that has left the state."""
        ...

    def forget(self) -> None:
        """Forget the values that nothing holds."""
        ...

    def decode(self, row: Row) -> TermRow:
        """Return the terms of a row."""
        ...

    def bytes(self) -> int:
        """Measure what is kept to encode and decode."""
        ...


class Terms:
    """Terms stand for themselves: for a state that holds each of them at most once."""

    def constant(self, term: GraphContext) -> Value:
        """Return the term."""
        return term

    def encode(self, quad: Quad) -> Members:
        """Return the terms of the quad."""
        return (quad.subject, quad.predicate, quad.object, quad.graph_name)

    find = encode

    def hold(self, quad: Members) -> None:
        """Do nothing."""

    release = hold

    def forget(self) -> None:
        """Do nothing."""

    def decode(self, row: Row) -> TermRow:
        """Return the row."""
        return row

    def bytes(self) -> int:
        """Return 0."""
        return 0


class CountedIds:
    """Numbers stand for terms, as long as some quad in the state has the term; then the number is given to another.

    A number that falls out of use keeps its meaning until `forget`, so that the rows of a change can still be read.
    """

    def __init__(self) -> None:
        self._ids: dict[object, int] = {}
        self._terms: list[GraphContext | None] = []
        self._counts: list[int] = []
        self._unused: list[int] = []
        self._free: list[int] = []
        self.constant(DEFAULT_GRAPH)

    def constant(self, term: GraphContext) -> int:
        """Return the number of a constant, and count it once for good."""
        number = self._number(term)
        self._counts[number] += 1
        return number

    def _number(self, term: GraphContext) -> int:
        number = self._ids.get(term)
        if number is not None:
            return number
        if self._free:
            number = self._free.pop()
            self._terms[number] = term
        else:
            number = len(self._terms)
            self._terms.append(term)
            self._counts.append(0)
        self._ids[term] = number
        self._unused.append(number)
        return number

    def encode(self, quad: Quad) -> Members:
        """Return numbers, new ones where there are none."""
        found = self.find(quad)
        if found is not None:
            return found
        number = self._number
        return number(quad.subject), number(quad.predicate), number(quad.object), number(quad.graph_name)

    def find(self, quad: Quad) -> Members | None:
        """Return numbers, None if there is none for some term."""
        get = self._ids.get
        found = (get(quad.subject), get(quad.predicate), get(quad.object), get(quad.graph_name))
        return None if None in found else found

    def hold(self, quad: Members) -> None:
        """Count every member."""
        counts = self._counts
        s, p, o, g = quad
        counts[s] += 1
        counts[p] += 1
        counts[o] += 1
        counts[g] += 1

    def release(self, quad: Members) -> None:
        """Count off every member."""
        counts = self._counts
        for number in quad:
            counts[number] -= 1
            if not counts[number]:
                self._unused.append(number)

    def forget(self) -> None:
        """Take back the numbers that have a count of zero."""
        if not self._unused:
            return
        for number in self._unused:
            term = self._terms[number]
            if term is not None and not self._counts[number]:
                del self._ids[term]
                self._terms[number] = None
                self._free.append(number)
        self._unused.clear()

    def decode(self, row: Row) -> TermRow:
        """Return the terms of numbers."""
        terms = self._terms
        return tuple([terms[number] for number in row])  # type: ignore[misc]

    def __len__(self) -> int:
        """Return the number of terms in use, constants included."""
        return sum(1 for count in self._counts if count)

    def bytes(self) -> int:
        """Measure the dictionary, its numbers and the terms in it."""
        numbers = len(self._ids) * getsizeof(1 << 20)
        lists = getsizeof(self._terms) + getsizeof(self._counts) + getsizeof(self._free)
        return getsizeof(self._ids) + numbers + lists + sum(map(size_of, self._ids))
