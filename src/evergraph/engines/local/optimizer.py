"""Incremental or direct: for each batch and each view, the way that costs less.

The incremental way runs the view's delta functions on each changed quad that its patterns match, then pulls the change
through its operators. The direct way lets the changes pass by, which only the shared indexes take in, evaluates the
plan from scratch over the indexes, and reports the difference to the result so far.

* incremental = matching changes × µs in delta functions per matching change + µs in operators, a line by their number
* direct = a constant + µs per unit × units; units are the quads in reach of the view's patterns, and its entries

Some changes of each batch, more as it goes on, are taken in with a clock on every view: so the number of matching
changes and their price are known early, and again when the batch turns out to be other than it began. A view is
switched to the direct way as soon as what is left of the batch would cost more; what it spent until then is lost, and
bounded: whatever exceeds the price of the direct way ends in the direct way. The other rates are averages of what was
measured before. Batches of fewer than ``smallest`` changes are always taken in incrementally, and pay nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter_ns
from typing import Any, Literal, Protocol, TypeAlias

from evergraph.delta import Delta
from evergraph.engines.local.relations import EVERYTHING, Cover, Entry, Relation
from evergraph.engines.local.store import Store, Subscription
from evergraph.terms import Quad

Way: TypeAlias = Literal["incremental", "direct"]

SMALLEST = 64
"""Batches of fewer changes are always taken in incrementally."""

_FIXED = 200.0
"""What it costs to set a plan to work, in µs, whatever the data."""

_REMEMBERED = 64

_ENOUGH = 64
"""How many matching changes say what the others cost: one of a few may have waited for something else."""


class Owner(Protocol):
    """What leaves belong to: one view, or all that share its plan."""

    costs: "Costs"

    @property
    def listening(self) -> Iterable[Subscription]:
        """What all of its leaves have subscribed to."""
        ...

    @property
    def scans(self) -> Iterable[tuple[Relation, Cover]]:
        """What a direct evaluation reads."""
        ...

    def size(self) -> int:
        """Count its entries of state, its result included."""
        ...

    def touch(self) -> None:
        """Say that there is something to do."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """What was chosen for one view and one batch; times are in µs, estimates are as of the choice.

    A change that matches two patterns of the view counts as two that match; their number is estimated, too.
    """

    batch: int
    changes: int
    matching: int
    estimated_incremental: float
    estimated_direct: float
    chosen: Way
    measured: float

    def __str__(self) -> str:
        return (
            f"batch {self.batch}: {self.matching:,} matches of {self.changes:,} changes; "
            f"incremental {self.estimated_incremental:,.0f} µs, direct {self.estimated_direct:,.0f} µs: "
            f"{self.chosen}, took {self.measured:,.0f} µs"
        )


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a batch of some size would cost, in µs, and the way that would be chosen, as far as is known now."""

    changes: int
    incremental: float
    direct: float
    chosen: Way

    def __str__(self) -> str:
        costs = f"incremental {self.incremental:,.0f} µs, direct {self.direct:,.0f} µs"
        return f"{self.changes:,} changes: {self.chosen} ({costs})"


SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
"""The sizes of batches that forecasts are made for."""


class Line:
    """A straight line through what was measured, of which the latest counts most; it never falls."""

    __slots__ = ("_sums",)

    def __init__(self, rate: float) -> None:
        self._sums = (1e-3, 1.0 * 1e-3, rate * 1e-3, 1.0 * 1e-3, rate * 1e-3)

    def learn(self, x: float, y: float) -> None:
        """Take in a point."""
        self._sums = tuple([0.7 * old + new for old, new in zip(self._sums, (1, x, y, x * x, x * y), strict=True)])  # type: ignore[assignment]

    def at(self, x: float) -> float:
        """Return the height of the line: a constant and a rate, neither below zero."""
        n, sx, sy, sxx, sxy = self._sums
        spread = sxx - sx * sx / n
        rate = sy / sx
        if spread > 0.01 * sxx:
            rate = min(max(0.0, (sxy - sx * sy / n) / spread), rate)
        return (sy - rate * sx) / n + rate * x


@dataclass(slots=True)
class Costs:
    """What a view has cost so far, as exponential averages, and the last decisions about it."""

    run: float | None = None
    """µs in delta functions per matching change."""
    pull: Line = field(default_factory=lambda: Line(1.0))
    """µs in operators, by the number of matching changes."""
    direct: float = 0.3
    """µs of a direct evaluation per unit."""
    decisions: list[Decision] = field(default_factory=list)

    def learn_incremental(self, run: float, matching: int, pull: float) -> None:
        """Take in what a matching change cost in delta functions, and all of them in operators."""
        self.run = run if self.run is None else (self.run + run) / 2
        self.pull.learn(matching, pull)

    def learn_direct(self, spent: float, units: int) -> None:
        """Take in what a direct evaluation cost."""
        if units:
            self.direct = (self.direct + max(0.0, spent - _FIXED) / units) / 2


class Optimizer:
    """Chooses, and remembers what came of it.

    ``force`` overrides the choice, for tests and measurements: asked for a view, it names a way or leaves it open.
    """

    def __init__(
        self,
        *,
        smallest: int = SMALLEST,
        sample: int = 16,
        clock: Callable[[], int] = perf_counter_ns,
        force: Callable[[], Way | None] = lambda: None,
    ) -> None:
        self.smallest = smallest
        self.sample = sample
        self.clock = clock
        self.force = force
        self.batches = 0

    def begin(self, store: Store) -> "Batch":
        """Start with a batch."""
        self.batches += 1
        return Batch(self, store, self.batches)


class _Meter:
    """What one view costs in one batch."""

    __slots__ = ("calls", "cap", "costs", "direct", "estimates", "matching", "owner", "settled", "spent", "switched")

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.costs = owner.costs
        self.calls = 0
        self.spent = 0
        self.switched = False
        self.settled = False
        self.cap = 1000 * self.direct_price(0, exact=False)
        self.direct = False
        self.matching = 0.0
        self.estimates = (0.0, 0.0)

    def quads(self, *, exact: bool) -> int:
        """Count the quads that a direct evaluation reads; if not exact, at least what is quickly counted."""
        return sum(_reach(relation, cover, exact) for relation, cover in self.owner.scans)

    def direct_price(self, growth: float, *, exact: bool) -> float:
        """Estimate a direct evaluation, in µs, after some more quads have come or gone.

        The entries of the view are taken to grow and shrink with the square of its quads, as a join does.
        """
        quads, entries = self.quads(exact=exact), self.owner.size()
        after = max(0.0, quads + growth)
        if quads:
            entries = round(entries * (after / quads) ** 2)
        return _FIXED + self.costs.direct * (after + entries)

    def run_rate(self) -> float:
        """Return the price of a matching change in delta functions, in µs: what was measured, and known before."""
        known = self.costs.run
        if known is None:
            return self.spent / 1000 / self.calls
        return (self.spent / 1000 + 8 * known) / (self.calls + 8)

    def timed(self, run: Callable[..., object], clock: Callable[[], int]) -> Callable[..., object]:
        """Return a delta function with the clock on."""

        def timed_run(*change: int) -> None:
            if self.switched:
                return
            begin = clock()
            run(*change)
            self.spent += clock() - begin
            self.calls += 1
            if self.spent > self.cap:
                self._overrun()

        return timed_run

    def _overrun(self) -> None:
        exact = 1000 * self.direct_price(0, exact=True)
        self.switched = self.spent > exact
        self.cap = max(2 * self.cap, exact)


class Batch:
    """One batch on its way into the store."""

    def __init__(self, optimizer: Optimizer, store: Store, number: int) -> None:
        self._optimizer = optimizer
        self.clock = optimizer.clock
        self._store = store
        self._number = number
        self._meters: dict[Owner, _Meter] = {}
        self._lists: dict[int, tuple[list[Entry], list[Entry]]] = {}
        """Lists of entries that have been replaced, and what was in them."""
        self._sampled = 0
        self._changes = 0
        self._undecided = False
        """Whether a view seems to be worth switching, but too little is known as yet."""

    def feed(self, delta: Delta) -> None:
        """Take in the quads: into the indexes all of them, to the views those that they still follow."""
        self._changes = len(delta)
        inserted = len(delta.inserted)
        try:
            self._feed(delta.deleted, -1, inserted)
            self._feed(delta.inserted, 1, 0)
        finally:
            for entries, original in self._lists.values():
                entries[:] = original

    def _feed(self, quads: Iterable[Quad], weight: int, then: int) -> None:
        left = len(quads)  # type: ignore[arg-type]
        iterator = iter(quads)
        change, size = self._store.change, self._optimizer.sample
        while left:
            some = list(islice(iterator, size))
            left -= len(some)
            self._sample(some, weight)
            self._decide(left * weight, then)
            if self._undecided:
                continue
            limit = self._patience(size)
            begin = self._optimizer.clock()
            taken = 0
            while taken < 16 * size and left:
                some = list(islice(iterator, min(64, 16 * size)))
                for quad in some:
                    change(quad, weight)
                taken += len(some)
                left -= len(some)
                if self._optimizer.clock() - begin > limit * taken:
                    break
            size = min(2 * size, 256)

    def _patience(self, size: int) -> float:
        """Return how long a change may take until there is reason to look again, in ns."""
        spent = sum(meter.spent for meter in self._meters.values() if not meter.switched)
        return 20_000 + 4 * spent / max(1, self._sampled)

    def _sample(self, quads: list[Quad], weight: int) -> None:
        """Take in some quads with the clock on."""
        change, concerned = self._store.change, self._store.concerned
        metered: dict[int, list[Entry]] = {}
        for quad in quads:
            for entries in concerned(quad):
                if id(entries) not in metered:
                    metered[id(entries)] = entries
                    self._meter(entries)
            change(quad, weight)
        self._sampled += len(quads)
        for entries in metered.values():
            self._restore(entries)

    def _meter(self, entries: list[Entry]) -> None:
        _, original = self._lists.setdefault(id(entries), (entries, list(entries)))
        clock, meters = self._optimizer.clock, self._meters
        made: list[Entry] = []
        for run, leaf in original:
            owner: Any = leaf.owner
            if owner is None:
                made.append((run, leaf))
                continue
            meter = meters.get(owner)
            if meter is None:
                meter = meters[owner] = _Meter(owner)
            if not meter.switched:
                made.append((meter.timed(run, clock), leaf))
        entries[:] = made

    def _restore(self, entries: list[Entry]) -> None:
        """Put back the functions of the views that still follow the batch."""
        _, original = self._lists[id(entries)]
        entries[:] = [one for one in original if not self.is_direct(one[1].owner)]

    def _decide(self, left: int, then: int) -> None:
        """Switch the views for which the rest of the batch would cost more than a direct evaluation."""
        force = self._optimizer.force
        switched = []
        self._undecided = False
        for meter in self._meters.values():
            if meter.direct:
                continue
            meter.matching = meter.calls / self._sampled * self._changes
            if not meter.switched:
                way = force()
                if way is None and meter.calls:
                    way = self._cheaper(meter, left, then)
                meter.switched = way == "direct"
            if meter.switched:
                meter.direct = True
                switched.append(meter)
        touched: dict[int, list[Entry]] = {}
        for meter in switched:
            for one in meter.owner.listening:
                if one.entry is not None:
                    entries = one.relation.entries[one.cover]
                    touched[id(entries)] = entries
                    self._lists.setdefault(id(entries), (entries, list(entries)))
        for entries in touched.values():
            self._restore(entries)

    def _cheaper(self, meter: _Meter, left: int, then: int) -> Way:
        share = meter.calls / self._sampled
        costs = meter.costs
        follow = share * (abs(left) + then) * meter.run_rate() + costs.pull.at(share * self._changes)
        growth = share * (left + then)
        direct = meter.direct_price(growth, exact=False)
        if follow > direct:
            direct = meter.direct_price(growth, exact=True)
        known = meter.calls >= _ENOUGH or 8 * meter.spent > 1000 * direct
        way: Way = "direct" if follow > direct and known else "incremental"
        self._undecided |= follow > direct and not known
        if way == "direct" or not meter.settled:
            meter.estimates = (follow, direct)
            meter.settled = known
        return way

    def is_direct(self, owner: Owner) -> bool:
        """Tell whether a view has let changes of the batch pass by."""
        meter = self._meters.get(owner)
        return meter is not None and meter.switched

    def directs(self) -> list[Owner]:
        """List the views that need a direct evaluation."""
        return [owner for owner, meter in self._meters.items() if meter.switched]

    def record(self, owner: Owner, spent: int) -> None:
        """Take in how many ns the operators, or the direct evaluation, of a view took."""
        meter = self._meters.pop(owner, None)
        if meter is None:
            return
        costs, micros = meter.costs, spent / 1000
        matching = round(meter.matching)
        if meter.switched:
            costs.learn_direct(micros, meter.quads(exact=True) + meter.owner.size())
            micros += meter.spent / 1000
        elif meter.calls:
            run = meter.spent / 1000 / meter.calls
            costs.learn_incremental(run, max(1, matching), micros)
            micros += run * matching
        way: Way = "direct" if meter.switched else "incremental"
        costs.decisions.append(Decision(self._number, self._changes, matching, *meter.estimates, way, micros))
        del costs.decisions[:-_REMEMBERED]

    def finish(self) -> None:
        """Take in that nothing was left to do for the other views that changes matched."""
        for owner in [owner for owner, meter in self._meters.items() if not meter.switched]:
            self.record(owner, 0)


def forecast(owner: Owner, smallest: int) -> list[Forecast]:
    """Say which way batches of several sizes would go, if they were like the last one; nothing if there was none."""
    costs = owner.costs
    if costs.run is None:
        return []
    last = costs.decisions[-1]
    share = last.matching / last.changes
    meter = _Meter(owner)
    quads = meter.quads(exact=True)
    made = []
    for size in SIZES:
        # As many come as go, but no more can go than are there.
        direct = meter.direct_price(max(0.0, share * size - quads), exact=True)
        follow = share * size * costs.run + costs.pull.at(share * size)
        way: Way = "direct" if size >= smallest and follow > direct else "incremental"
        made.append(Forecast(size, follow, direct, way))
    return made


def _reach(relation: Relation, cover: tuple[int, int], exact: bool) -> int:
    """Count the quads that a pattern can match; at least, unless it has to be exact."""
    indexes = relation.indexes
    if cover != EVERYTHING:
        subject, object_ = cover
        if subject and object_:
            return 1
        column, key = ("s", subject) if subject else ("o", object_)
        if column in indexes:
            return len(indexes[column].get(key, ()))
    if exact:
        return len(relation)
    return max(map(len, indexes.values()), default=0)
