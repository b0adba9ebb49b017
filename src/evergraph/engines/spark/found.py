"""What was found of the quads: answers to lookups, from what is known and what has to be fetched."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from evergraph.engines.spark.relations import pattern_shape, predicate_of
from evergraph.engines.spark.vicinity import Lookup, Quad, TooMuch, matcher

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
        self._places: tuple[dict[tuple[str, str | None], list[Quad]], ...] = tuple(defaultdict(list) for _ in range(4))
        """Quads by a term in a place, and by that and their predicate."""
        self._answers: dict[tuple[object, int | None, frozenset[str]], list[Quad]] = {}
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
        """Return the quads that answer a lookup; once it has been fetched, its answer stays what it is."""
        key = pattern_shape(lookup.pattern), lookup.place, lookup.values
        if key not in self._answers:
            test = matcher(lookup.pattern)
            self._answers[key] = [quad for quad in self._candidates(lookup) if test(quad)]
        return self._answers[key]

    def _candidates(self, lookup: Lookup) -> Iterable[Quad]:
        predicate = predicate_of(lookup.pattern)
        if lookup.place is None:
            return self._all if predicate is None else self._places[1].get((predicate, None), ())
        place = self._places[lookup.place]
        return (quad for value in lookup.values for quad in place.get((value, predicate), ()))

    def _index(self, quad: Quad) -> None:
        if quad in self._all:
            return
        self._all.add(quad)
        predicate = quad[1]
        for place, value in zip(self._places, quad, strict=True):
            place[value, None].append(quad)
            place[value, predicate].append(quad)
