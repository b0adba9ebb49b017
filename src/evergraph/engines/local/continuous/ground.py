"""The ground part: it has an answer, the empty one, while all of its triples are there."""

from collections.abc import Iterable, Sequence
from sys import getsizeof

from evergraph.engines.local.continuous.part import Encode, Members, Row, RowDelta, StateSize
from evergraph.plan.continuous import positions
from evergraph.sparql.algebra import TriplePattern


class GroundMaintainer:
    """Rule: an answer comes when the last bit is set and goes when the first is cleared.

    State: one bit for each triple.
    """

    __slots__ = ("_bits", "_full", "_reported", "_triples")

    def __init__(self, triples: Sequence[TriplePattern], encode: Encode) -> None:
        self._triples = {tuple(map(encode, positions(triple))): 1 << n for n, triple in enumerate(triples)}
        self._full = (1 << len(self._triples)) - 1
        self._bits = 0
        self._reported = self.count

    def insert(self, quad: Members) -> bool:
        """Set the bit of a triple."""
        bit = self._triples.get(quad, 0)
        changed = bit & ~self._bits
        self._bits |= bit
        return changed != 0

    def delete(self, quad: Members) -> bool:
        """Clear the bit of a triple."""
        bit = self._triples.get(quad, 0)
        changed = bit & self._bits
        self._bits &= ~bit
        return changed != 0

    @property
    def count(self) -> int:
        """1 or 0."""
        return int(self._bits == self._full)

    def answers(self) -> Iterable[Row]:
        """The empty solution, or none."""
        return [()] * self.count

    def take(self) -> RowDelta:
        """Compare with what was reported last."""
        change = self.count - self._reported
        self._reported += change
        return {(): change} if change else {}

    def state(self) -> StateSize:
        """One entry for each bit."""
        return StateSize(len(self._triples), getsizeof(self._bits))
