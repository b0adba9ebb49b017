"""Matching rules: a tree of comparisons, and what it says about two resources.

A resource has texts for each property of its catalogue view. A comparison takes one or more properties of each side
(the texts of several are joined by a space, in every combination), transforms them and measures them. A node of the
tree *matches* with a score between 0 and 1, or does not match:

===========  ============================================================  =========================================
node         matches if                                                    score
===========  ============================================================  =========================================
comparison   the values are within the threshold                           see `evergraph.linking.measures.scorer`
and          all parts match                                               the lowest
or           some part matches                                             the highest
average      the average by weight is at least ``min``; who does not       the average
             match counts 0; what is ``required`` must match
sum          likewise with the sum by weight, which is 1 at most           the sum
not          no part matches                                               1
===========  ============================================================  =========================================

A comparison for which one side has no value does not match; with ``missing`` it matches with that score instead. A text
that the transformations leave empty, or that the measure cannot read, is no value.
If properties have several values, two resources match if **some** choice of one value for each property does, and
the best one gives the score.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

from evergraph.linking.measures import Measure, Scorer, scorer
from evergraph.linking.transformations import Transformation, apply

Texts: TypeAlias = tuple[tuple[str, ...], ...]
"""The texts of a resource, for each property of its catalogue view."""

Prepared: TypeAlias = tuple[tuple[Any, ...], ...]
"""What is compared of a resource, for each comparison of a rule."""

Entity: TypeAlias = tuple[Texts, Prepared]
"""A resource: its texts, and what is compared of them."""

Score: TypeAlias = float | None


class Combine(StrEnum):
    """How the parts of a group make one score."""

    AND = "and"
    OR = "or"
    AVERAGE = "average"
    SUM = "sum"
    NOT = "not"


@dataclass(frozen=True, slots=True)
class Side:
    """What a comparison takes from one side: properties, by their number in the view, and transformations."""

    properties: tuple[int, ...]
    transformations: tuple[Transformation, ...] = ()

    def joined(self, texts: Texts) -> Iterable[str]:
        """Return the texts of the properties, joined by spaces in every combination."""
        if len(self.properties) == 1:
            return texts[self.properties[0]]
        distinct = tuple(dict.fromkeys(self.properties))
        choices = (dict(zip(distinct, choice, strict=True)) for choice in product(*(texts[one] for one in distinct)))
        return (" ".join(choice[number] for number in self.properties) for choice in choices)

    def transformed(self, texts: Texts) -> tuple[str, ...]:
        """Return what the transformations make of the texts of a resource."""
        if len(self.properties) == 1 and len(one := texts[self.properties[0]]) == 1:
            return apply(self.transformations, one[0])
        return tuple(part for text in self.joined(texts) for part in apply(self.transformations, text))


@dataclass(frozen=True, eq=False)
class Comparison:
    """A leaf of the tree. ``name`` is how people recognise it."""

    name: str
    source: Side
    target: Side
    measure: Measure
    threshold: float = 0
    weight: float = 1
    required: bool = False
    missing: Score = None

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.copy().items() if key != "score"}

    @cached_property
    def score(self) -> Scorer:
        """What decides and scores two prepared values."""
        return scorer(self.measure, self.threshold)

    def prepare(self, texts: Sequence[str]) -> tuple[Any, ...]:
        """Return what is compared of transformed texts; nothing if none of them is a value."""
        prepare = self.measure.prepare
        if len(texts) == 1:
            return () if (value := prepare(texts[0])) is None else (value,)
        return tuple(dict.fromkeys(value for text in texts if (value := prepare(text)) is not None))

    def best(self, source: Sequence[Any], target: Sequence[Any]) -> Score:
        """Return the highest score of any two values; None if none matches."""
        if not source or not target:
            return self.missing
        score = self.score
        if len(source) == 1 and len(target) == 1:
            return score(source[0], target[0])
        return max((found for a in source for b in target if (found := score(a, b)) is not None), default=None)


@dataclass(frozen=True, eq=False)
class Group:
    """An inner node. ``least`` is what the average or the sum must reach."""

    combine: Combine
    parts: "tuple[Node, ...]"
    least: float = 0
    weight: float = 1
    required: bool = False


Node: TypeAlias = Comparison | Group
Place: TypeAlias = tuple[bool, int]
"""A property: whether it is of the source, and its number."""

Choice: TypeAlias = tuple[Score, ...]
"""One score for each comparison of a rule."""


class Rule:
    """A tree of comparisons that can be asked about two resources."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.comparisons = tuple(_leaves(root))
        self._numbers = {comparison: number for number, comparison in enumerate(self.comparisons)}
        self._negative = _negates(root)
        self.value = self._compile(root)
        """What the tree says, given something that says what a comparison says."""
        # Comparisons often differ in nothing but their measures: then texts are transformed once.
        self._sides = (
            _distinct(one.source for one in self.comparisons),
            _distinct(one.target for one in self.comparisons),
        )
        self._tied: set[Place] = set()
        _tied(root, False, self._tied)

    def __reduce__(self) -> "tuple[type[Rule], tuple[Node]]":
        return Rule, (self.root,)

    def prepare(self, texts: Texts, *, source: bool) -> Prepared:
        """Return what is compared of a resource."""
        sides, places = self._sides[0 if source else 1]
        done = [side.transformed(texts) for side in sides]
        return tuple([one.prepare(done[place]) for one, place in zip(self.comparisons, places, strict=True)])

    def match(self, source: Entity, target: Entity) -> Score:
        """Return the score of two resources; None if they do not match."""
        choice = self._has_choice(source[0], target[0])
        if not (choice and self._negative):
            one, other, comparisons = source[1], target[1], self.comparisons
            bound = self.value(lambda number: comparisons[number].best(one[number], other[number]))
            if bound is None or not choice:
                return bound
        found = [self.value(scores.__getitem__) for scores in self.choices(source, target)]
        return max((score for score in found if score is not None), default=None)

    def choices(self, source: Entity, target: Entity) -> Iterator[Choice]:
        """Return the scores of all comparisons, for every choice of one text for each property that is tied.

        The other properties are chosen by each comparison as is best for it.
        """
        sides = (source, True), (target, False)
        lefts, rights = ([self.prepare(one, source=side) for one in self._chosen(of[0], side)] for of, side in sides)
        # Who has a value is not missing it, also where the choice is for a text that is no value.
        missing = [not one or not other for one, other in zip(source[1], target[1], strict=True)]
        for one, other in product(lefts, rights):
            yield tuple(
                leaf.best(one[number], other[number]) if missing[number] or (one[number] and other[number]) else None
                for number, leaf in enumerate(self.comparisons)
            )

    def _chosen(self, texts: Texts, source: bool) -> Iterator[Texts]:
        """Return the texts of a resource with one choice for the properties that several comparisons use."""
        options = [
            [(one,) for one in several] if len(several) > 1 and (source, number) in self._tied else [several]
            for number, several in enumerate(texts)
        ]
        return product(*options)

    def _has_choice(self, source: Texts, target: Texts) -> bool:
        """Tell whether comparisons that must agree on a value could be about different ones."""
        return any(len((source if is_source else target)[number]) > 1 for is_source, number in self._tied)

    def _compile(self, node: Node) -> Callable[[Callable[[int], Score]], Score]:
        if isinstance(node, Comparison):
            number = self._numbers[node]
            return lambda leaf: leaf(number)
        parts = [self._compile(part) for part in node.parts]
        if len(parts) == 1 and node.combine in (Combine.AND, Combine.OR):
            return parts[0]
        match node.combine:
            case Combine.AND:
                return lambda leaf: _lowest(parts, leaf)
            case Combine.OR:
                return lambda leaf: max((one for part in parts if (one := part(leaf)) is not None), default=None)
            case Combine.NOT:
                return lambda leaf: 1.0 if all(part(leaf) is None for part in parts) else None
            case Combine.AVERAGE | Combine.SUM:
                total = sum(part.weight for part in node.parts) if node.combine is Combine.AVERAGE else 1.0
                weighted = [(part, one.weight, one.required) for part, one in zip(parts, node.parts, strict=True)]
                return lambda leaf: _weighted(weighted, leaf, total, node.least)


def _lowest(parts: "list[Callable[[Callable[[int], Score]], Score]]", leaf: Callable[[int], Score]) -> Score:
    lowest = 1.0
    for part in parts:
        found = part(leaf)
        if found is None:
            return None
        if found < lowest:
            lowest = found
    return lowest


def _weighted(
    parts: "list[tuple[Callable[[Callable[[int], Score]], Score], float, bool]]",
    leaf: Callable[[int], Score],
    total: float,
    least: float,
) -> Score:
    sum_ = 0.0
    for part, weight, required in parts:
        found = part(leaf)
        if found is None and required:
            return None
        sum_ += weight * (found or 0.0)
    # Ten equal parts of weight 0.1 must reach 1, whatever their sum in floating point.
    result = min(1.0, round(sum_ / total, 12))
    return result if result >= least else None


def _tied(node: Node, negative: bool, tied: set[Place]) -> set[Place]:
    """Collect the properties on whose values several comparisons must agree; return those that the node uses.

    The parts of an ``or`` need not agree: that some value makes one of them match is the same as that one of them has
    some value that makes it match. Under a ``not``, every comparison needs one value that does not match.
    """
    if isinstance(node, Comparison):
        sides = (True, node.source), (False, node.target)
        places = {(is_source, number) for is_source, side in sides for number in side.properties}
        if negative:
            tied |= places
        return places
    inside = negative != (node.combine is Combine.NOT)
    used: set[Place] = set()
    for part in node.parts:
        places = _tied(part, inside, tied)
        if node.combine is not Combine.OR or negative:
            tied |= used & places
        used |= places
    return used


def _distinct(sides: Iterable[Side]) -> tuple[list[Side], list[int]]:
    """Return each side once, and where each of them stands there."""
    every = list(sides)
    once = list(dict.fromkeys(every))
    return once, [once.index(side) for side in every]


def _leaves(node: Node) -> Iterator[Comparison]:
    if isinstance(node, Comparison):
        yield node
    else:
        for part in node.parts:
            yield from _leaves(part)


def _negates(node: Node) -> bool:
    return isinstance(node, Group) and (node.combine is Combine.NOT or any(map(_negates, node.parts)))
