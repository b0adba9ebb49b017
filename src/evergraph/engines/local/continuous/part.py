"""What every maintainer of a part of a decomposition does, and how a quad is matched with a triple pattern."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sys import getsizeof
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from evergraph.plan.continuous import positions
from evergraph.sparql.algebra import GraphContext, TriplePattern
from evergraph.terms import DEFAULT_GRAPH, Variable

Value: TypeAlias = Any
"""What stands for a term: the term itself, or its id. Two of them are equal if, and only if, the terms are."""

Members: TypeAlias = tuple[Value, Value, Value, Value]
"""Subject, predicate, object and graph of a quad."""

Row: TypeAlias = tuple[Value, ...]
"""A solution, over the variables of a part or of the whole pattern."""

RowDelta: TypeAlias = dict[Row, int]
"""Solutions with +1 if they came and -1 if they went."""

Match: TypeAlias = Callable[[Value, Value, Value, Value], bool]
"""Tells whether a quad with the right predicate matches the rest of a triple pattern."""

Target = TypeVar("Target")

Encode: TypeAlias = Callable[[GraphContext], Value]
"""Finds the value that stands for a constant of a pattern, and for the default graph."""


@dataclass(frozen=True, slots=True)
class StateSize:
    """How much is kept: entries as the bound of the class counts them, and what they take in memory."""

    entries: int = 0
    bytes: int = 0

    def __add__(self, other: "StateSize") -> "StateSize":
        return StateSize(self.entries + other.entries, self.bytes + other.bytes)


class Sink(Protocol):
    """What takes quads in. A quad that changes nothing, because it is there or is not there already, is ignored."""

    def insert(self, quad: Members) -> bool:
        """Take a quad in; False if it was there, or concerns no triple pattern."""
        ...

    def delete(self, quad: Members) -> bool:
        """Take a quad out; False if it was not there, or concerns no triple pattern."""
        ...

    def state(self) -> StateSize:
        """Measure the state, which takes time in proportion to it."""
        ...


class Factor(Protocol):
    """What has answers: one factor of the product that a pattern is."""

    @property
    def count(self) -> int:
        """The number of answers, known without finding them."""
        ...

    def answers(self) -> Iterable[Row]:
        """Iterate over the answers."""
        ...

    def take(self) -> RowDelta:
        """Return the net change of the answers since this was last asked."""
        ...


def matcher(triple: TriplePattern, encode: Encode) -> Match:
    """Compile the test whether a quad with the right predicate matches the rest of a triple pattern.

    Constants must be equal, the same variable must have the same value, and a variable graph is a named one.
    """
    tests: list[str] = []
    constants: list[Value] = []
    first: dict[GraphContext, str] = {}
    for name, term in zip("gops", reversed(positions(triple)), strict=True):
        if not isinstance(term, Variable):
            if name == "p":
                continue
            tests.append(f"{name} == c[{len(constants)}]")
            constants.append(encode(term))
        elif term in first:
            tests.append(f"{name} == {first[term]}")
        else:
            first[term] = name
            if name == "g":
                tests.append(f"g != c[{len(constants)}]")
                constants.append(encode(DEFAULT_GRAPH))
    made: Match = _matcher(" and ".join(tests) or "True")(tuple(constants))
    return made


@lru_cache(maxsize=1024)
def _matcher(test: str) -> Callable[[tuple[Hashable, ...]], Any]:
    function: Callable[[tuple[Hashable, ...]], Any] = eval(f"lambda c: lambda s, p, o, g: {test}", {"__builtins__": {}})
    return function


@dataclass(frozen=True, slots=True)
class Routes(Generic[Target]):
    """What a quad may concern, by its predicate; ``others`` is what any other predicate may concern."""

    by_predicate: dict[Value, tuple[Target, ...]]
    others: tuple[Target, ...]

    @classmethod
    def make(cls, targets: Sequence[tuple[TriplePattern, Target]], encode: Encode) -> "Routes[Target]":
        """Find for each predicate the targets of the triple patterns that may match, each target once."""

        def of(predicate: object) -> tuple[Target, ...]:
            found = [one for triple, one in targets if triple.predicate == predicate or _is_open(triple)]
            return tuple({id(one): one for one in found}.values())

        constants = {triple.predicate for triple, _ in targets if not _is_open(triple)}
        return cls({encode(constant): of(constant) for constant in constants}, of(None))


def _is_open(triple: TriplePattern) -> bool:
    return isinstance(triple.predicate, Variable)


def take(delta: RowDelta) -> RowDelta:
    """Empty a delta that others hold on to, and return what was in it."""
    taken = dict(delta)
    delta.clear()
    return taken


def size_of(value: Value) -> int:
    """Measure a value: its object and its text. Ids belong to whoever gave them out, and count nothing."""
    return 0 if isinstance(value, int) else getsizeof(value) + len(str(value))


def rows_of(values: Iterable[Value]) -> Iterator[Row]:
    """Make rows of single values."""
    return ((value,) for value in values)
