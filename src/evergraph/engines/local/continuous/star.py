"""A simple star: triple patterns that hold one variable, the centre, and constants."""

from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import NamedTuple

from evergraph.engines.local.continuous.part import (
    Encode,
    Match,
    Members,
    Routes,
    Row,
    RowDelta,
    StateSize,
    Value,
    matcher,
    rows_of,
    size_of,
    take,
)
from evergraph.plan.continuous import positions, triple_variables
from evergraph.sparql.algebra import TriplePattern

_SHARED_INTEGERS = 256
"""Python has one object for each smaller number."""


class Spoke(NamedTuple):
    """A triple pattern of a star: its test, where the centre stands in it, and its bit."""

    matches: Match
    centre: int
    bit: int


class StarMaintainer:
    """Rule: a value is an answer while all of its bits are set. A quad may set several bits, of one value or several.

    State: for each candidate, a value with at least one bit set, these bits. A candidate with all bits is kept as a
    member of the set of answers instead, so that the answers are found without looking at the other candidates.
    """

    __slots__ = ("_answers", "_candidates", "_delta", "_full", "_spokes")

    def __init__(self, triples: Sequence[TriplePattern], encode: Encode) -> None:
        [centre] = {variable for triple in triples for variable in triple_variables(triple)}
        spokes = [
            Spoke(matcher(triple, encode), positions(triple).index(centre), 1 << n) for n, triple in enumerate(triples)
        ]
        self._spokes = Routes.make(list(zip(triples, spokes, strict=True)), encode)
        self._full = (1 << len(triples)) - 1
        self._candidates: dict[Value, int] = {}
        self._answers: set[Value] = set()
        self._delta: RowDelta = {}

    def insert(self, quad: Members) -> bool:
        """Set the bits that the quad stands for."""
        changed = False
        for value, bit in self._matched(quad):
            if value in self._answers:
                continue
            bits = self._candidates.get(value, 0)
            if bits & bit:
                continue
            changed = True
            if bits | bit == self._full:
                self._candidates.pop(value, None)
                self._answers.add(value)
                self._report(value, 1)
            else:
                self._candidates[value] = bits | bit
        return changed

    def delete(self, quad: Members) -> bool:
        """Clear the bits that the quad stands for; a candidate without bits is forgotten."""
        changed = False
        for value, bit in self._matched(quad):
            if value in self._answers:
                self._answers.remove(value)
                self._report(value, -1)
                bits = self._full
            else:
                bits = self._candidates.get(value, 0)
                if not bits & bit:
                    continue
            changed = True
            if bits == bit:
                self._candidates.pop(value, None)
            else:
                self._candidates[value] = bits & ~bit
        return changed

    def _matched(self, quad: Members) -> list[tuple[Value, int]]:
        s, p, o, g = quad
        spokes = self._spokes
        found = spokes.by_predicate.get(p, spokes.others)
        return [(quad[centre], bit) for matches, centre, bit in found if matches(s, p, o, g)]

    def _report(self, value: Value, weight: int) -> None:
        row = (value,)
        total = self._delta.pop(row, 0) + weight
        if total:
            self._delta[row] = total

    @property
    def count(self) -> int:
        """The number of answers."""
        return len(self._answers)

    def answers(self) -> Iterable[Row]:
        """Iterate over the answers."""
        return rows_of(self._answers)

    def take(self) -> RowDelta:
        """Return what came and went since the last call."""
        return take(self._delta)

    def state(self) -> StateSize:
        """One entry for each candidate centre, answers included."""
        entries = len(self._candidates) + len(self._answers)
        values = sum(map(size_of, self._candidates)) + sum(map(size_of, self._answers))
        bits = sum(map(getsizeof, self._candidates.values())) if self._full > _SHARED_INTEGERS else 0
        return StateSize(entries, getsizeof(self._candidates) + getsizeof(self._answers) + values + bits)
