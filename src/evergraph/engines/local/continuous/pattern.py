"""A basic graph pattern that follows a stream of quads, with no store behind it."""

from collections.abc import Iterator
from dataclasses import dataclass

from evergraph.delta import Bag, Delta, Request
from evergraph.engines.local.continuous.encodings import CountedIds, Encoding, Terms
from evergraph.engines.local.continuous.maintainer import PatternMaintainer
from evergraph.engines.local.continuous.part import StateSize
from evergraph.engines.local.continuous.product import ProductDelta
from evergraph.plan.continuous import PartClass, PatternClass, Variables, decompose, describe, star_centres
from evergraph.sparql.algebra import BGP
from evergraph.sparql.expressions import Row
from evergraph.terms import Quad, Variable


@dataclass(frozen=True, slots=True)
class PartExplanation:
    """One part of a decomposition: what it is, and what its state never exceeds."""

    kind: PartClass
    variables: Variables
    triples: tuple[str, ...]
    bound: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a pattern is maintained. ``centres`` are not empty if it is a generalised star; ``answers`` is a number."""

    pattern_class: PatternClass
    centres: tuple[str, ...]
    parts: tuple[PartExplanation, ...]
    answers: int
    state: StateSize


class ContinuousPattern:
    """Maintains a basic graph pattern over messages that insert and delete quads.

    Messages need not be exact: inserting what is there, or deleting what is not, changes nothing. Every method that
    takes quads returns the net change of the answer: rows over ``variables`` with weight 1 for what came and -1 for
    what went. A pattern over a set of quads has every solution once, so that the sum of all changes is the answer, a
    set.
    """

    def __init__(self, pattern: BGP) -> None:
        self._decomposition = decompose(pattern)
        self._centres = tuple(map(str, star_centres(pattern)))
        connected = any(part.kind is PartClass.CONNECTED for part in self._decomposition.parts)
        self._encoding: Encoding = CountedIds() if connected else Terms()
        self._maintainer = PatternMaintainer(self._decomposition, self._encoding.constant)
        predicates = {triple.predicate for triple in pattern.triples}
        self._predicates = None if any(isinstance(one, Variable) for one in predicates) else predicates

    @property
    def variables(self) -> Variables:
        """The columns of all rows: the variables of the pattern, in the order of their names."""
        return self._decomposition.variables

    def insert(self, quad: Quad) -> Bag[Row]:
        """Take in one quad."""
        self._begin()
        return self._changes() if self._insert(quad) else Bag()

    def delete(self, quad: Quad) -> Bag[Row]:
        """Take out one quad."""
        self._begin()
        return self._changes() if self._delete(quad) else Bag()

    def apply(self, change: Delta | Request) -> Bag[Row]:
        """Take in a batch and return its net change."""
        self._batch(change)
        return self._changes()

    def stream(self, change: Delta | Request) -> "PatternDelta":
        """Take in a batch and return its net change as something to iterate over, before the next batch comes."""
        self._batch(change)
        return PatternDelta(self._maintainer.take(), self._encoding)

    def answers(self) -> Iterator[Row]:
        """Iterate over the current answer, which is found from the state and not stored."""
        return map(self._encoding.decode, self._maintainer.answers())

    def result(self) -> Bag[Row]:
        """Return the current answer."""
        return Bag(self.answers())

    def __len__(self) -> int:
        """Return the number of answers, known without finding them."""
        return self._maintainer.count

    def state(self) -> StateSize:
        """Measure what is kept, which takes time in proportion to it."""
        return self._maintainer.state() + StateSize(0, self._encoding.bytes())

    def explain(self) -> Explanation:
        """Tell how the pattern is maintained and what it keeps."""
        parts = tuple(
            PartExplanation(part.kind, part.variables, tuple(map(describe, part.triples)), part.bound)
            for part in self._decomposition.parts
        )
        kind = self._decomposition.pattern_class
        return Explanation(kind, self._centres, parts, len(self), self.state())

    def _batch(self, change: Delta | Request) -> None:
        removed, added = _parts(change)
        self._begin()
        for quad in removed:
            self._delete(quad)
        for quad in added:
            self._insert(quad)

    def _begin(self) -> None:
        """Forget what was kept for the rows of the last change only."""
        self._maintainer.expire()
        self._encoding.forget()

    def _insert(self, quad: Quad) -> bool:
        if self._predicates is not None and quad.predicate not in self._predicates:
            return False
        members = self._encoding.encode(quad)
        if not self._maintainer.insert(members):
            return False
        self._encoding.hold(members)
        return True

    def _delete(self, quad: Quad) -> bool:
        if self._predicates is not None and quad.predicate not in self._predicates:
            return False
        members = self._encoding.find(quad)
        if members is None or not self._maintainer.delete(members):
            return False
        self._encoding.release(members)
        return True

    def _changes(self) -> Bag[Row]:
        decode = self._encoding.decode
        bag: Bag[Row] = Bag()
        for row, weight in self._maintainer.changes().items():
            bag.add(decode(row), weight)
        return bag


@dataclass(frozen=True, slots=True)
class PatternDelta:
    """The net change of an answer, row by row: a large product is never held as a whole."""

    delta: ProductDelta
    encoding: Encoding

    def __bool__(self) -> bool:
        return bool(self.delta)

    @property
    def added_count(self) -> int:
        """The number of rows that come."""
        return self.delta.added_count

    @property
    def removed_count(self) -> int:
        """The number of rows that go."""
        return self.delta.removed_count

    def added(self) -> Iterator[Row]:
        """Iterate over the rows that come."""
        return map(self.encoding.decode, self.delta.added())

    def removed(self) -> Iterator[Row]:
        """Iterate over the rows that go."""
        return map(self.encoding.decode, self.delta.removed())


def _parts(change: Delta | Request) -> tuple[frozenset[Quad], frozenset[Quad]]:
    if isinstance(change, Delta):
        return change.deleted, change.inserted
    return change.removed - change.added, change.added
