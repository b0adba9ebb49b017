"""Which pairs have to be compared: blocking, derived from the rule. It loses nothing.

A *block* is a set of comparisons that must all match; its keys are combinations of one key of each. A *blocking* is a
list of blocks, at least one of which must match if the rule is to match; two resources are compared if they share a key
of some block. None stands for all pairs.

* comparison: its own keys, unless missing values match, or its threshold lets everything through
* and: the blocking of any one part, or of two of them together
* or: those of all parts
* average, sum: those of parts without which the others cannot reach the threshold
* not: all pairs

Where there is a choice, the one with the fewest pairs and keys is taken, as far as samples of both sides can tell.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TypeAlias

from evergraph.linking.keys import Keys
from evergraph.linking.rules import Combine, Comparison, Group, Node, Prepared, Rule

Block: TypeAlias = tuple[int, ...]
"""Numbers of comparisons."""

Blocking: TypeAlias = tuple[Block, ...]

KeyFunction: TypeAlias = Callable[[Prepared], Iterable[str]]
"""Gives the keys of a resource; some may come twice."""

SAMPLE = 400
_KEY_COST = 0.25
"""What a key costs, where comparing a pair costs 1."""

_MOST_KEYS = 64
"""More keys than this are not combined with others."""


class Keyring:
    """The keys of all comparisons of a rule."""

    def __init__(self, rule: Rule) -> None:
        self.schemes: list[Keys | None] = [
            None if one.missing is not None else one.measure.keys(one.threshold) for one in rule.comparisons
        ]

    def index(self, block: Block) -> KeyFunction:
        """Return what gives the keys under which a resource is found."""
        return self._combined(block, probe=False)

    def probe(self, block: Block) -> KeyFunction:
        """Return what gives the keys under which all resources are found that match in the block's comparisons."""
        return self._combined(block, probe=True)

    def _combined(self, block: Block, *, probe: bool) -> KeyFunction:
        parts = [self._keys(number, probe=probe) for number in block]
        if len(parts) == 1:
            return parts[0]
        return lambda prepared: [
            "\0".join(choice) for choice in product(*(dict.fromkeys(part(prepared)) for part in parts))
        ]

    def _keys(self, number: int, *, probe: bool) -> KeyFunction:
        scheme = self.schemes[number]
        assert scheme is not None
        function = scheme.probe if probe else scheme.index

        def keys(prepared: Prepared) -> Iterable[str]:
            values = prepared[number]
            if len(values) == 1:
                return function(values[0])
            return {key for value in values for key in function(value)}

        return keys


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a blocking costs: pairs to compare and keys to make, for both sides as they are."""

    pairs: float
    keys: float

    @property
    def cost(self) -> float:
        """Both in one number."""
        return self.pairs + _KEY_COST * self.keys


class Planner:
    """Derives the blocking of a rule, with samples of both sides to choose by."""

    def __init__(self, rule: Rule, sources: Sequence[Prepared], targets: Sequence[Prepared]) -> None:
        self._rule = rule
        self._numbers = {comparison: number for number, comparison in enumerate(rule.comparisons)}
        self.keyring = Keyring(rule)
        self._sizes = len(sources), len(targets)
        self._samples = _sample(sources), _sample(targets)
        self._estimates: dict[Block, Estimate] = {}

    def plan(self) -> Blocking | None:
        """Return the blocking; None if all pairs have to be compared."""
        return self._plan(self._rule.root)

    def estimate(self, blocking: Blocking | None) -> Estimate:
        """Tell what a blocking costs, as far as the samples can tell."""
        if blocking is None:
            return Estimate(float(self._sizes[0] * self._sizes[1]), 0)
        parts = [self._block(block) for block in blocking]
        return Estimate(sum(part.pairs for part in parts), sum(part.keys for part in parts))

    def _plan(self, node: Node) -> Blocking | None:
        if isinstance(node, Comparison):
            number = self._numbers[node]
            return None if self.keyring.schemes[number] is None else ((number,),)
        match node.combine:
            case Combine.NOT:
                return None
            case Combine.OR:
                return _union([self._plan(part) for part in node.parts])
            case Combine.AND:
                return self._cheapest(self._either([self._plan(part) for part in node.parts]))
            case Combine.AVERAGE | Combine.SUM:
                return self._cheapest(self._reaching(node))

    def _either(self, parts: list[Blocking | None]) -> Iterator[Blocking]:
        """Return the ways to block parts that must all match: by one of them, or by two together."""
        usable = [part for part in parts if part is not None]
        yield from usable
        for one, other in combinations(usable, 2):
            if len(one) == 1 and len(other) == 1 and self._few_keys(one[0]) and self._few_keys(other[0]):
                yield (tuple(sorted({*one[0], *other[0]})),)

    def _reaching(self, node: Group) -> Iterator[Blocking]:
        """Return the ways to block parts of which enough must match, or which are required."""
        parts = [(part, self._plan(part)) for part in node.parts]
        yield from self._either([blocking for part, blocking in parts if part.required])
        total = sum(part.weight for part in node.parts) if node.combine is Combine.AVERAGE else 1.0
        for size in range(1, len(parts) + 1):
            for some in combinations(parts, size):
                chosen = {id(part) for part, _ in some}
                others = sum(part.weight for part, _ in parts if id(part) not in chosen)
                if others / total < node.least - 1e-9:
                    blocking = _union([blocking for _, blocking in some])
                    if blocking is not None:
                        yield blocking

    def _cheapest(self, options: Iterator[Blocking]) -> Blocking | None:
        return min(options, key=lambda blocking: self.estimate(blocking).cost, default=None)

    def _few_keys(self, block: Block) -> bool:
        return all(
            len(list(keys(one))) <= _MOST_KEYS
            for keys, sample in zip(self._functions(block), self._samples, strict=True)
            for one in sample[:20]
        )

    def _functions(self, block: Block) -> tuple[KeyFunction, KeyFunction]:
        return self.keyring.probe(block), self.keyring.index(block)

    def _block(self, block: Block) -> Estimate:
        if block not in self._estimates:
            probes, indexed = (
                Counter(key for one in sample for key in set(keys(one)))
                for keys, sample in zip(self._functions(block), self._samples, strict=True)
            )
            scales = [size / max(1, len(sample)) for size, sample in zip(self._sizes, self._samples, strict=True)]
            pairs = sum(count * indexed[key] for key, count in probes.items()) * scales[0] * scales[1]
            keys = probes.total() * scales[0] + indexed.total() * scales[1]
            self._estimates[block] = Estimate(pairs, keys)
        return self._estimates[block]


def _union(parts: Sequence[Blocking | None]) -> Blocking | None:
    if any(part is None for part in parts):
        return None
    return tuple(dict.fromkeys(block for part in parts if part is not None for block in part))


def _sample(side: Sequence[Prepared]) -> list[Prepared]:
    """Take every n-th of the resources."""
    return list(side[:: max(1, -(-len(side) // SAMPLE))])
