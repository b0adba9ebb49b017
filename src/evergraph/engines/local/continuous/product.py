"""The product of the answers of the parts, and its change, neither of which is ever stored.

With ``Aᵢ`` the old answers of part *i*, ``Aᵢ'`` the new ones and ``Kᵢ = Aᵢ ∩ Aᵢ'`` those that stay:

* ``Δ⁺ = Σᵢ K₁ × … × Kᵢ₋₁ × Δ⁺Aᵢ × Aᵢ₊₁' × … × Aₙ'``
* ``Δ⁻ = Σᵢ K₁ × … × Kᵢ₋₁ × Δ⁻Aᵢ × Aᵢ₊₁ × … × Aₙ``

All terms are disjoint: no row comes twice, and none comes and goes, so that rows can be handed on as they are made.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product

from evergraph.engines.local.continuous.part import Factor, Row, RowDelta

Order = Callable[[Row], Row]


@dataclass(frozen=True, slots=True)
class ChangedFactor:
    """A part after a change, and what the change did to its answers."""

    factor: Factor
    added: tuple[Row, ...]
    removed: tuple[Row, ...]

    @classmethod
    def of(cls, factor: Factor, delta: RowDelta) -> "ChangedFactor":
        """Split a delta into what came and what went."""
        added = tuple(row for row, weight in delta.items() if weight > 0)
        return cls(factor, added, tuple(row for row, weight in delta.items() if weight < 0))

    @property
    def kept(self) -> int:
        """The number of answers that were there and still are."""
        return self.factor.count - len(self.added)

    def before(self) -> Iterator[Row]:
        """Iterate over the old answers."""
        return chain(self.stayed(), self.removed)

    def stayed(self) -> Iterator[Row]:
        """Iterate over the answers that were there and still are."""
        if not self.added:
            return iter(self.factor.answers())
        added = set(self.added)
        return (row for row in self.factor.answers() if row not in added)


@dataclass(frozen=True, slots=True)
class ProductDelta:
    """The change of a product, made row by row when asked for. It must be used before the next change is applied."""

    factors: Sequence[ChangedFactor]
    order: Order
    check: Callable[[], None]
    """Raises once another change has been applied."""

    def __bool__(self) -> bool:
        return self.added_count > 0 or self.removed_count > 0

    @property
    def added_count(self) -> int:
        """The number of rows that come, found without making them."""
        now, kept = 1, 1
        for one in self.factors:
            now, kept = now * one.factor.count, kept * one.kept
        return now - kept

    @property
    def removed_count(self) -> int:
        """The number of rows that go, found without making them."""
        before, kept = 1, 1
        for one in self.factors:
            before, kept = before * (one.kept + len(one.removed)), kept * one.kept
        return before - kept

    def added(self) -> Iterator[Row]:
        """Iterate over the rows that come."""
        self.check()
        if self.added_count:
            for n, one in enumerate(self.factors):
                if one.added:
                    yield from self._term(n, one.added, [later.factor.answers for later in self.factors[n + 1 :]])

    def removed(self) -> Iterator[Row]:
        """Iterate over the rows that go."""
        self.check()
        if self.removed_count:
            for n, one in enumerate(self.factors):
                if one.removed:
                    yield from self._term(n, one.removed, [later.before for later in self.factors[n + 1 :]])

    def items(self) -> Iterator[tuple[Row, int]]:
        """Iterate over rows and weights."""
        yield from ((row, 1) for row in self.added())
        yield from ((row, -1) for row in self.removed())

    def _term(self, n: int, changed: tuple[Row, ...], later: Sequence[Callable[[], object]]) -> Iterator[Row]:
        earlier = [one.stayed() for one in self.factors[:n]]
        for rows in product(*earlier, changed, *(answers() for answers in later)):  # type: ignore[call-overload]
            self.check()
            yield self.order(tuple(chain.from_iterable(rows)))


def all_rows(factors: Sequence[Factor], order: Order) -> Iterator[Row]:
    """Iterate over the product of the answers."""
    if all(factor.count for factor in factors):
        for rows in product(*(factor.answers() for factor in factors)):
            yield order(tuple(chain.from_iterable(rows)))
