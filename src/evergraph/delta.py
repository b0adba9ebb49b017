"""Changes: what somebody asks for, what really happens, and bags whose multiplicities carry a sign.

Three notions, kept apart on purpose:

* `Request`: quads that a source wants removed and added. It may ask for what is already so.
* `Delta`: quads that really go and really come. Only the gate makes one, because only the gate knows what is there.
* `Bag`: a multiset with integer weights, the algebra on which everything derived is maintained.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from evergraph.terms import Quad

Row = TypeVar("Row")


class Bag(Generic[Row]):
    """A bag with signed multiplicities (a Z-set): a commutative group under ``+``.

    Weights of zero are never stored, so that equality of bags is equality of their weights.
    """

    __slots__ = ("_weights",)

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._weights: dict[Row, int] = {}
        for row in rows:
            self.add(row)

    @classmethod
    def weighted(cls, weights: Mapping[Row, int] | Iterable[tuple[Row, int]]) -> "Bag[Row]":
        """Build a bag from (row, weight) pairs; pairs of the same row add up."""
        bag = cls()
        for row, weight in weights.items() if isinstance(weights, Mapping) else weights:
            bag.add(row, weight)
        return bag

    def add(self, row: Row, weight: int = 1) -> None:
        """Add to the weight of one row."""
        total = self._weights.get(row, 0) + weight
        if total:
            self._weights[row] = total
        else:
            self._weights.pop(row, None)

    def update(self, other: "Bag[Row]") -> None:
        """Add another bag to this one, in place."""
        for row, weight in other.items():
            self.add(row, weight)

    def weight(self, row: Row) -> int:
        """Tell the weight of a row; 0 for one that is not there."""
        return self._weights.get(row, 0)

    def items(self) -> Iterable[tuple[Row, int]]:
        """Iterate over (row, weight), no weight being 0."""
        return self._weights.items()

    def rows(self) -> Iterator[Row]:
        """Iterate over the rows of a bag without negative weights, each as often as it counts."""
        for row, weight in self._weights.items():
            if weight < 0:
                raise ValueError(f"a bag of rows cannot hold {row!r} {weight} times")
            for _ in range(weight):
                yield row

    def positive(self) -> "Bag[Row]":
        """Take the part with weights above 0: what a delta adds."""
        return self.weighted((row, weight) for row, weight in self.items() if weight > 0)

    def negative(self) -> "Bag[Row]":
        """Take the part with weights below 0, with its sign turned: what a delta removes."""
        return self.weighted((row, -weight) for row, weight in self.items() if weight < 0)

    def __add__(self, other: "Bag[Row]") -> "Bag[Row]":
        total = self.weighted(self._weights)
        total.update(other)
        return total

    def __neg__(self) -> "Bag[Row]":
        return self.weighted((row, -weight) for row, weight in self.items())

    def __sub__(self, other: "Bag[Row]") -> "Bag[Row]":
        return self + -other

    def __iter__(self) -> Iterator[Row]:
        return iter(self._weights)

    def __contains__(self, row: object) -> bool:
        return row in self._weights

    def __len__(self) -> int:
        return len(self._weights)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bag) and self._weights == other._weights

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Bag.weighted({self._weights!r})"


@dataclass(frozen=True, slots=True)
class Request:
    """A requested change: first remove, then add. A quad in both is added."""

    removed: frozenset[Quad] = frozenset()
    added: frozenset[Quad] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)


@dataclass(frozen=True, slots=True)
class Delta:
    """An exact change: everything deleted was there, nothing inserted was, and the two are disjoint."""

    inserted: frozenset[Quad] = frozenset()
    deleted: frozenset[Quad] = frozenset()

    def __post_init__(self) -> None:
        if not self.inserted.isdisjoint(self.deleted):
            raise ValueError("inserted and deleted quads of a delta must be disjoint")

    def __bool__(self) -> bool:
        return bool(self.inserted or self.deleted)

    def __len__(self) -> int:
        return len(self.inserted) + len(self.deleted)

    def inverse(self) -> "Delta":
        """Return the delta that undoes this one."""
        return Delta(inserted=self.deleted, deleted=self.inserted)

    def then(self, later: "Delta") -> "Delta":
        """Compose with a delta that is exact after this one; what cancels disappears."""
        return Delta(
            inserted=(self.inserted - later.deleted) | (later.inserted - self.deleted),
            deleted=(self.deleted - later.inserted) | (later.deleted - self.inserted),
        )

    def bag(self) -> Bag[Quad]:
        """Return the delta as a bag: +1 for inserted, -1 for deleted."""
        return Bag.weighted([(quad, 1) for quad in self.inserted] + [(quad, -1) for quad in self.deleted])


@dataclass(frozen=True, slots=True)
class Change:
    """A delta with its place in the history of one database. The first change has sequence 1; there are no gaps."""

    sequence: int
    delta: Delta = field(default_factory=Delta)
    time: float | None = field(default=None, compare=False)
    """When it was made, in seconds since 1970, if that was noted."""

    @property
    def inserted(self) -> frozenset[Quad]:
        """The quads that were absent before and are present after."""
        return self.delta.inserted

    @property
    def deleted(self) -> frozenset[Quad]:
        """The quads that were present before and are absent after."""
        return self.delta.deleted

    def __bool__(self) -> bool:
        return bool(self.delta)
