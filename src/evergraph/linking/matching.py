"""Matching two sides that change: the resources of each, the indexes over them, and the links that a probe finds."""

import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from evergraph.linking.blocking import Blocking, Keyring, Planner
from evergraph.linking.oracle import Links
from evergraph.linking.rules import Entity, Prepared, Rule, Texts


class Index:
    """The resources of one side by the keys of the blocks. A key with one resource holds it without a set around it."""

    def __init__(self, keyring: Keyring, blocking: Blocking) -> None:
        tables: list[dict[str, str | set[str]]] = [{} for _ in blocking]
        self._indexed = [(keyring.index(block), table) for block, table in zip(blocking, tables, strict=True)]
        self._probed = [(keyring.probe(block), table.get) for block, table in zip(blocking, tables, strict=True)]

    def add(self, name: str, prepared: Prepared) -> None:
        """Enter a resource."""
        for keys, table in self._indexed:
            for key in keys(prepared):
                found = table.get(key)
                if found is None:
                    table[key] = name
                elif isinstance(found, set):
                    found.add(name)
                elif found != name:
                    table[key] = {found, name}

    def remove(self, name: str, prepared: Prepared) -> None:
        """Take a resource out."""
        for keys, table in self._indexed:
            for key in keys(prepared):
                found = table.get(key)
                if isinstance(found, set):
                    found.discard(name)
                    if not found:
                        del table[key]
                elif found == name:
                    del table[key]

    def probe(self, prepared: Prepared) -> set[str]:
        """Return the resources that may match."""
        candidates: set[str] = set()
        for keys, get in self._probed:
            for key in keys(prepared):
                found = get(key)
                if found is not None:
                    if isinstance(found, set):
                        candidates |= found
                    else:
                        candidates.add(found)
        return candidates

    def __len__(self) -> int:
        return sum(len(table) for _, table in self._indexed)


@dataclass(slots=True)
class Rates:
    """Measured costs, in seconds for each resource; newer measurements count more."""

    prepare: float = 2e-5
    index: float = 1e-5
    probe: float = 3e-5

    def note(self, kind: str, seconds: float, count: int) -> None:
        """Take a measurement in; few resources say little."""
        if count >= 50:
            setattr(self, kind, (getattr(self, kind) + 2 * seconds / count) / 3)


@dataclass(slots=True)
class _Half:
    """One side: its resources, and an index over them as soon as somebody looks for partners there."""

    entities: dict[str, Entity] = field(default_factory=dict)
    index: Index | None = None


class AllPairsWarning(UserWarning):
    """A rule leaves no choice but to compare all pairs of many resources."""


MANY_PAIRS = 10_000_000
"""Comparing so many pairs is worth a warning."""


class Matcher:
    """Finds the links of resources. ``blocking`` is None where all pairs have to be compared."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.rates = Rates()
        self.blocking: Blocking | None = None
        self._keyring = Keyring(rule)
        self._halves = _Half(), _Half()
        self._planned = (-1, -1)

    def sizes(self) -> tuple[int, int]:
        """Count the resources of both sides."""
        return len(self._halves[0].entities), len(self._halves[1].entities)

    def entity(self, side: int, name: str) -> Entity | None:
        """Return a resource, if it is there."""
        return self._halves[side].entities.get(name)

    def replace(self, side: int, changed: Mapping[str, Texts | None]) -> None:
        """Give resources of one side new texts; None takes them out."""
        half = self._halves[side]
        begin = time.perf_counter()
        prepared = {
            name: None if texts is None else (texts, self.rule.prepare(texts, source=side == 0))
            for name, texts in changed.items()
        }
        self.rates.note("prepare", time.perf_counter() - begin, len(changed))
        begin = time.perf_counter()
        for name, entity in prepared.items():
            before = half.entities.get(name)
            if half.index is not None and before is not None:
                half.index.remove(name, before[1])
            if entity is None:
                half.entities.pop(name, None)
                continue
            half.entities[name] = entity
            if half.index is not None:
                half.index.add(name, entity[1])
        if half.index is not None:
            self.rates.note("index", (time.perf_counter() - begin) / 2, len(changed))

    def full(self) -> Links:
        """Match everything with everything; plan the blocking anew."""
        self.plan()
        one, other = self.sizes()
        side = 0 if one >= other else 1  # the index of the smaller side is the smaller one
        return self._found(side, self._halves[side].entities)

    def partners(self, side: int, names: Collection[str]) -> Links:
        """Return all links of some resources of one side."""
        entities = self._halves[side].entities
        return self._found(side, {name: entities[name] for name in names if name in entities})

    def plan(self) -> None:
        """Choose the blocking by the resources that are there now; indexes are made when they are needed."""
        sides = [[prepared for _, prepared in half.entities.values()] for half in self._halves]
        before, self.blocking = self.blocking, Planner(self.rule, sides[0], sides[1]).plan()
        self._planned = self.sizes()
        pairs = self._planned[0] * self._planned[1]
        if self.blocking is None and pairs > MANY_PAIRS:
            warnings.warn(
                f"the rule leaves no choice but to compare all {pairs:,} pairs; add a comparison that must match, or "
                "raise its threshold (evergraph explain shows the blocking)",
                AllPairsWarning,
                stacklevel=3,
            )
        if self.blocking != before:
            for half in self._halves:
                half.index = None

    def has_index(self, side: int) -> bool:
        """Tell whether one side is indexed already."""
        return self.blocking is None or self._halves[side].index is not None

    def _index(self, side: int) -> Index | None:
        half = self._halves[side]
        if self.blocking is None:
            return None
        if half.index is None:
            begin = time.perf_counter()
            half.index = Index(self._keyring, self.blocking)
            for name, (_, prepared) in half.entities.items():
                half.index.add(name, prepared)
            self.rates.note("index", time.perf_counter() - begin, len(half.entities))
        return half.index

    def _found(self, side: int, entities: Mapping[str, Entity]) -> Links:
        if not entities:
            return {}
        if self._planned == (-1, -1):
            self.plan()
        index = self._index(1 - side)
        begin = time.perf_counter()
        links = dict(self._matches(side, entities.items(), index))
        self.rates.note("probe", time.perf_counter() - begin, len(entities))
        return links

    def _matches(
        self, side: int, entities: Iterable[tuple[str, Entity]], index: Index | None
    ) -> Iterator[tuple[tuple[str, str], float]]:
        others, match = self._halves[1 - side].entities, self.rule.match
        for name, entity in entities:
            for other in others if index is None else index.probe(entity[1]):
                score = match(entity, others[other]) if side == 0 else match(others[other], entity)
                if score is not None:
                    yield ((name, other) if side == 0 else (other, name)), score
