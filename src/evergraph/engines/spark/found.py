"""What was found of the quads: answers to lookups, from what is known and what has to be fetched."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from evergraph.engines.spark.relations import pattern_shape
from evergraph.engines.spark.vicinity import Lookup, Quad, TooMuch, matches
from evergraph.terms import Variable

Fetch = Callable[[list[Lookup]], Iterable[Quad]]
"""Returns at least the quads that answer some lookups."""


class Found:
    """Quads around a change, which lookups see together with the changed quads.

    ``most`` bounds how many quads are held; a lookup that may exceed it, by what ``expected`` says, is `TooMuch`.
    """

    def __init__(
        self, changes: Iterable[Quad], fetch: Fetch, expected: Callable[[Lookup], float], most: int = 200_000
    ) -> None:
        self._fetch = fetch
        self._expected = expected
        self._most = most
        self._asked: dict[tuple[object, int | None], set[str]] = defaultdict(set)
        self._places: tuple[dict[str, set[Quad]], ...] = tuple(defaultdict(set) for _ in range(4))
        self._all: set[Quad] = set()
        self.quads: set[Quad] = set()
        """Quads that are there, before the change."""
        for quad in changes:
            self._index(quad)

    def admit(self, lookup: Lookup) -> None:
        """Raise `TooMuch` for a lookup that is likely to find too much."""
        if self._missing(lookup) is not None and self._expected(lookup) > self._most:
            raise TooMuch

    def answer(self, lookups: list[Lookup]) -> list[list[Quad]]:
        """Answer lookups with as little fetching as possible."""
        wanted = [missing for lookup in lookups if (missing := self._missing(lookup)) is not None]
        if wanted:
            for quad in self._fetch(wanted):
                self.quads.add(quad)
                self._index(quad)
            for lookup in wanted:
                self._asked[pattern_shape(lookup.pattern), lookup.place] |= lookup.values or {""}
        return [self._matching(lookup) for lookup in lookups]

    def _missing(self, lookup: Lookup) -> Lookup | None:
        """Return the part of a lookup that was not fetched before."""
        shape = pattern_shape(lookup.pattern)
        if self._asked.get((shape, None)):
            return None
        if lookup.place is None:
            return lookup
        values = lookup.values - self._asked[shape, lookup.place]
        return Lookup(lookup.pattern, lookup.place, values) if values else None

    def _matching(self, lookup: Lookup) -> list[Quad]:
        if lookup.place is None:
            terms = lookup.pattern.positions()
            constant = None if isinstance(terms[1], Variable) else str(terms[1])
            candidates: Iterable[Quad] = self._all if constant is None else self._places[1].get(constant, ())
        else:
            place = self._places[lookup.place]
            candidates = [quad for value in lookup.values for quad in place.get(value, ())]
        return [quad for quad in candidates if matches(lookup.pattern, quad)]

    def _index(self, quad: Quad) -> None:
        if quad not in self._all:
            self._all.add(quad)
            for place, value in zip(self._places, quad, strict=True):
                place[value].add(quad)
