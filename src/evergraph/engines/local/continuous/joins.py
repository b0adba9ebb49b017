"""In which order a quad that matches one triple pattern of a connected part is joined with the other patterns.

The matched pattern binds its variables. Then, again and again: a pattern that is bound throughout is tested; else the
variable that most patterns have as their only open one is found by intersecting what they allow, which costs what the
smallest of them holds; else the pattern with the fewest open variables is looked up. Each step follows a link to what
is bound already: nothing is ever scanned.
"""

from collections.abc import Iterator, Sequence
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


def join_order(patterns: Sequence[JoinPattern], first: int) -> Iterator[Step]:
    """Return the steps after the pattern ``first`` has been matched."""
    waiting = [number for number in range(len(patterns)) if number != first]
    bound = {slot for slot in patterns[first].slots if slot >= 0}
    while waiting:
        step = _next(patterns, waiting, bound)
        for number in step.patterns:
            waiting.remove(number)
            bound.update(slot for slot in patterns[number].slots if slot >= 0)
        yield step


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
