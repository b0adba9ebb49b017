"""What was found of the quads: answers to lookups, from what is known and what has to be fetched."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

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
        self._answers: dict[tuple[object, int | None, frozenset[str]], list[Quad]] = {}
        self._all: dict[Quad, None] = dict.fromkeys(changes)
        self._indexes: dict[tuple[int, bool], _Index] = {}
        """Quads by a term in a place, or by that and their predicate."""
        self.quads: set[Quad] = set()
        """Quads that are there, before the change."""

    def admit(self, lookup: Lookup) -> None:
        """Raise `TooMuch` for a lookup that is likely to find too much."""
        if self._missing(lookup) is not None and self._expected(lookup) > self._most:
            raise TooMuch

    def answer(self, lookups: list[Lookup]) -> list[list[Quad]]:
        """Answer lookups with as little fetching as possible."""
        wanted = [missing for lookup in lookups if (missing := self._missing(lookup)) is not None]
        if wanted:
            fetched = list(self._fetch(wanted))
            self.quads.update(fetched)
            self._all.update(dict.fromkeys(fetched))
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
            return self._all if predicate is None else self._index(1, False).get(predicate, ())
        index = self._index(lookup.place, predicate is not None)
        keys: Iterable[object] = lookup.values
        if predicate is not None:
            keys = ((value, predicate) for value in lookup.values)
        return (quad for key in keys for quad in index.get(key, ()))

    def _index(self, place: int, with_predicate: bool) -> dict[object, list[Quad]]:
        """Return an index of all quads that were found; most of the possible ones are never asked for."""
        index = self._indexes.setdefault((place, with_predicate), _Index())
        for quad in islice(self._all, index.size, None):
            index.quads[(quad[place], quad[1]) if with_predicate else quad[place]].append(quad)
        index.size = len(self._all)
        return index.quads


@dataclass(slots=True)
class _Index:
    """The first ``size`` quads by some key."""

    quads: dict[object, list[Quad]] = field(default_factory=lambda: defaultdict(list))
    size: int = 0
