"""In which order a quad that matches one triple pattern of a connected part is joined with the other patterns.

The matched pattern binds its variables, and what is left decomposes again, by the variables that are still open: its
branches are independent of each other. Within a branch, again and again: a pattern that is bound throughout is tested;
else the variable that most patterns have as their only open one is found by intersecting what they allow, which costs
what the smallest of them holds; else the pattern with the fewest open variables is looked up. Each step follows a link
to what is bound already: nothing is ever scanned. Where there are several branches, each is followed once, and a branch
without solutions ends the join before another is unrolled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Slot: TypeAlias = int
"""A member of a pattern: variable 0, 1, …, or constant -1, -2, …"""


@dataclass(frozen=True, slots=True)
class JoinPattern:
    """A triple pattern over slots: its four members, the number of its table and the columns of that."""

    slots: tuple[Slot, Slot, Slot, Slot]
    table: int
    columns: str

    def slot(self, column: str) -> Slot:
        """Return the member in one of the positions ``spog``."""
        return self.slots["spog".index(column)]

    def open(self, bound: "set[Slot] | dict[Slot, str]") -> str:
        """Return the columns whose variables are not bound yet."""
        return "".join(column for column in self.columns if self.slot(column) not in bound)

    def closed(self, bound: "set[Slot] | dict[Slot, str]") -> str:
        """Return the columns whose variables are bound."""
        return "".join(column for column in self.columns if self.slot(column) in bound)


@dataclass(frozen=True, slots=True)
class Step:
    """Patterns to look up at once; ``variable`` is the one that they leave open, None if they leave none or several."""

    patterns: tuple[int, ...]
    variable: Slot | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """Steps that depend on what is bound so far and on nothing that comes later: their solutions are found at once."""

    steps: "tuple[Plan, ...]"
    variables: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Unroll:
    """A loop over the solutions of a branch."""

    branch: Branch


Plan: TypeAlias = Step | Branch | Unroll


def join_order(patterns: Sequence[JoinPattern], first: int) -> list[Plan]:
    """Return the steps after the pattern ``first`` has been matched."""
    waiting = [number for number in range(len(patterns)) if number != first]
    return _plan(patterns, waiting, {slot for slot in patterns[first].slots if slot >= 0})


def _plan(patterns: Sequence[JoinPattern], waiting: list[int], bound: set[Slot]) -> list[Plan]:
    steps: list[Plan] = []
    waiting, bound = list(waiting), set(bound)
    while waiting:
        step = _next(patterns, waiting, bound)
        groups = _independent(patterns, waiting, bound)
        if len(groups) > 1 and patterns[step.patterns[0]].open(bound):
            return steps + _branches(patterns, groups, bound)
        steps.append(step)
        for number in step.patterns:
            waiting.remove(number)
            bound.update(slot for slot in patterns[number].slots if slot >= 0)
    return steps


def _branches(patterns: Sequence[JoinPattern], groups: list[list[int]], bound: set[Slot]) -> list[Plan]:
    """Put one of the branches with several steps first, where its loops run once; find the others before."""
    plans = [(_plan(patterns, group, bound), group) for group in groups]
    longer = [(steps, group) for steps, group in plans if len(steps) > 1]
    branches = [
        Branch(tuple(steps), tuple(sorted({slot for n in group for slot in patterns[n].slots if slot >= 0} - bound)))
        for steps, group in longer[1:]
    ]
    inline = longer[0][0] if longer else []
    short = [step for steps, _ in plans if len(steps) == 1 for step in steps]
    return [*branches, *inline, *short, *map(Unroll, branches)]


def _independent(patterns: Sequence[JoinPattern], waiting: list[int], bound: set[Slot]) -> list[list[int]]:
    """Group patterns that are linked by variables that are not bound."""
    groups: list[tuple[set[Slot], list[int]]] = []
    for number in waiting:
        slots = {patterns[number].slot(column) for column in patterns[number].open(bound)}
        linked = [group for group in groups if not slots.isdisjoint(group[0])]
        groups = [group for group in groups if group not in linked]
        groups.append((slots.union(*(one for one, _ in linked)), [*(n for _, ns in linked for n in ns), number]))
    return [numbers for _, numbers in groups]


def _next(patterns: Sequence[JoinPattern], waiting: list[int], bound: set[Slot]) -> Step:
    lone: dict[Slot, list[int]] = {}
    for number in waiting:
        free = patterns[number].open(bound)
        if not free:
            return Step((number,))
        if len(free) == 1:
            lone.setdefault(patterns[number].slot(free), []).append(number)
    linked = {slot: group for slot, group in lone.items() if any(patterns[n].closed(bound) for n in group)}
    if linked:
        variable = max(linked, key=lambda slot: len(linked[slot]))
        return Step(tuple(linked[variable]), variable)
    return Step((min((n for n in waiting if patterns[n].closed(bound)), key=lambda n: len(patterns[n].open(bound))),))
