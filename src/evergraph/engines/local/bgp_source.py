"""Basic graph patterns as Python source: one function for each pattern that a changed quad may match.

A function binds the variables of its pattern to the quad, then looks up the other patterns in the shared indexes, the
most bound one first. A variable that nobody asks for is counted, not looped over. Several patterns that each leave
the same one variable open are intersected, which costs what the smallest of them costs. The quad is in the indexes
while the function runs; for the patterns after its own it does not count (see `evergraph.plan.nodes.BGP`).

More rows than the view may keep are not made; its leaf is told, and the view fails.

The source depends on the shape alone: constants and indexes are parameters, so that queries of one shape share it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any, TypeAlias

from evergraph.engines.local.relations import meet

Slot: TypeAlias = int
"""A member of a pattern: variable 0, 1, …, or constant -1, -2, …"""

MAX_PATTERNS = 16
"""Python nests at most 20 loops."""


@dataclass(frozen=True, slots=True)
class PatternShape:
    """A pattern without its constants. ``columns`` are those of its relation: ``s``, ``o``, and ``p``, ``g`` if open.

    ``g`` is None in a default graph.
    """

    s: Slot
    p: Slot
    o: Slot
    g: Slot | None
    columns: str

    def slot(self, column: str) -> Slot:
        """Return the member in a column."""
        slot = {"s": self.s, "p": self.p, "o": self.o, "g": self.g}[column]
        assert slot is not None
        return slot


@dataclass(frozen=True, slots=True)
class Shape:
    """A basic graph pattern without its constants, and the variables of its rows."""

    patterns: tuple[PatternShape, ...]
    output: tuple[int, ...]

    def is_set(self) -> bool:
        """Tell whether no row can be there twice: all variables are in it."""
        slots = {slot for one in self.patterns for slot in (one.s, one.p, one.o, one.g)}
        return all(slot is None or slot < 0 or slot in self.output for slot in slots)


Access: TypeAlias = tuple[int, str]
"""An index that the code needs: of the relation of a pattern, by some of its columns."""


@dataclass(frozen=True, slots=True)
class Code:
    """Compiled source: ``make(indexes, constants, …)`` returns functions; ``accesses`` says which indexes it wants."""

    source: str
    accesses: tuple[Access, ...]
    make: Callable[..., Any]


@lru_cache(maxsize=1024)
def delta_code(shape: Shape) -> Code:
    """Compile a function ``(s, p, o, g, w)`` for each pattern: ``make(indexes, constants, out, leaf)`` returns them."""
    writer = _Writer(shape)
    for number in range(len(shape.patterns)):
        writer.delta(number)
        if shape.is_set():
            writer.delta(number, fresh=True)
    names = "".join(f"{'fresh' if shape.is_set() else 'delta'}{number}, " for number in range(len(shape.patterns)))
    return writer.finish("out, leaf", f"return ({names})", prelude="get = out.get")


@lru_cache(maxsize=1024)
def full_code(shape: Shape, first: int | None) -> Code:
    """Compile the whole pattern: ``make(indexes, constants, leaf)`` → a function that adds all rows to a bag."""
    writer = _Writer(shape)
    writer.full(first)
    return writer.finish("leaf", "return full")


@dataclass
class _Writer:
    shape: Shape
    lines: list[str] = field(default_factory=list)
    accesses: dict[Access, str] = field(default_factory=dict)
    names: dict[Slot, str] = field(default_factory=dict)
    fetched: dict[int, str] = field(default_factory=dict)
    weight: str = "w"
    depth: int = 0
    delta_of: int | None = None
    fresh: bool = False
    """Whether each row is made once and nothing else waits, so that rows need not be added up."""

    def delta(self, number: int, *, fresh: bool = False) -> None:
        pattern = self.shape.patterns[number]
        self.names, self.fetched, self.weight, self.depth, self.delta_of = {}, {}, "w", 0, number
        self.fresh = fresh
        self._line(f"def {'fresh' if fresh else 'delta'}{number}(s, p, o, g, w):", -1)
        if fresh:
            self._line(f"if out: return delta{number}(s, p, o, g, w)")
        for column in "spog":
            slot = getattr(pattern, column)
            if slot is None or slot < 0:
                continue
            if slot in self.names:
                self._line(f"if {column} != {self.names[slot]}: return")
            else:
                self.names[slot] = column
        self._rest([one for one in range(len(self.shape.patterns)) if one != number], None)

    def full(self, first: int | None) -> None:
        self._line("def full(out):", -1)
        self._line("get = out.get")
        self._line("w = 1")
        self._rest(list(range(len(self.shape.patterns))), first)

    def finish(self, extra: str, result: str, prelude: str = "pass") -> Code:
        constants = sorted(
            {s for one in self.shape.patterns for s in (one.s, one.p, one.o, one.g) if s is not None and s < 0}
        )
        unpack = [f"{_constant(slot)} = constants[{-slot - 1}]" for slot in constants]
        unpack += [f"{name} = indexes[{number}]" for number, name in enumerate(self.accesses.values())]
        unpack += [f"{name}_get = {name}.get" for (_, columns), name in self.accesses.items() if columns]
        head = [f"def make(indexes, constants, {extra}):", *(f" {line}" for line in (*unpack, prelude))]
        source = "\n".join([*head, *self.lines, f" {result}", ""])
        space: dict[str, Any] = {"meet": meet}
        exec(compile(source, "<bgp>", "exec"), space)
        return Code(source, tuple(self.accesses), space["make"])

    def _line(self, text: str, depth: int | None = None) -> None:
        self.lines.append(" " * (2 + (self.depth if depth is None else depth)) + text)

    @property
    def _leave(self) -> str:
        return "continue" if self.depth else "return"

    def _rest(self, waiting: list[int], first: int | None) -> None:
        while waiting:
            self._fetch(waiting)
            chosen, variable = self._next(waiting) if first is None else ([first], None)
            first = None
            if variable is not None and self._is_only_counted(variable, chosen, waiting):
                self._count(chosen[0])
                waiting.remove(chosen[0])
                continue
            if variable is not None:
                self._intersect(chosen, variable)
            elif self._free(chosen[0]):
                self._scan(chosen[0])
            else:
                self._check(chosen[0])
            for number in chosen:
                waiting.remove(number)
            possible = [self._skip(number) for number in chosen]
            if not all(possible):
                return
        row = "".join(f"{self.names[slot]}, " for slot in self.shape.output)
        if self.fresh:
            self._line(f"out[({row})] = w")
            return
        self._line(f"r = ({row})")
        self._line(f"n = get(r, 0) + {self.weight}")
        self._line("if n: out[r] = n")
        self._line("else: del out[r]")

    def _fetch(self, waiting: list[int]) -> None:
        """Look up patterns with one open member as soon as it can be done: if one has no match, nothing has."""
        for number in waiting:
            pattern = self.shape.patterns[number]
            free = self._free(number)
            if pattern.columns == "so" and len(free) == 1 and number not in self.fetched:
                self.fetched[number] = free
                bound = "s" if free == "o" else "o"
                self._line(f"t{number} = {self._lookup(number, bound, '')}")
                self._line(f"if not t{number}: {self._leave}")

    def _next(self, waiting: list[int]) -> tuple[list[int], Slot | None]:
        """Choose what to look up next: checks, then the variable that most patterns leave as their only open one."""
        open_: dict[Slot, list[int]] = {}
        for number in waiting:
            free = self._free(number)
            if not free:
                return [number], None
            slots = {self.shape.patterns[number].slot(column) for column in free}
            if len(slots) == 1 and len(free) == 1:
                open_.setdefault(slots.pop(), []).append(number)
        connected = {slot: group for slot, group in open_.items() if any(map(self._is_connected, group))}
        if connected:
            best = max(connected, key=lambda slot: len(connected[slot]))
            return connected[best], best
        others = [number for number in waiting if self._is_connected(number)]
        if others:
            return [max(others, key=lambda number: -len(self._free(number)))], None
        if open_:
            best = max(open_, key=lambda slot: len(open_[slot]))
            return open_[best], best
        return [min(waiting, key=lambda number: len(self._free(number)))], None

    def _is_connected(self, number: int) -> bool:
        pattern = self.shape.patterns[number]
        return any((slot := pattern.slot(column)) >= 0 and slot in self.names for column in pattern.columns)

    def _free(self, number: int) -> str:
        pattern = self.shape.patterns[number]
        return "".join(c for c in pattern.columns if (slot := pattern.slot(c)) >= 0 and slot not in self.names)

    def _name(self, slot: Slot) -> str:
        return _constant(slot) if slot < 0 else self.names[slot]

    def _index(self, number: int, bound: str) -> str:
        return self.accesses.setdefault((number, bound), f"a{len(self.accesses)}")

    def _lookup(self, number: int, bound: str, default: str) -> str:
        pattern = self.shape.patterns[number]
        index = self._index(number, bound)
        if not bound:
            return index
        keys = [self._name(pattern.slot(column)) for column in bound]
        key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
        return f"{index}_get({key}{default})"

    def _check(self, number: int) -> None:
        """Test whether a pattern that is bound throughout is there."""
        pattern = self.shape.patterns[number]
        if number in self.fetched:
            name = self._name(pattern.slot(self.fetched[number]))
            self._line(f"if {name} not in t{number}: {self._leave}")
        elif pattern.columns == "so":
            bound, tested = ("o", "s") if pattern.o < 0 else ("s", "o")
            self._line(
                f"if {self._name(pattern.slot(tested))} not in {self._lookup(number, bound, ', ()')}: {self._leave}"
            )
        else:
            names = ", ".join(self._name(pattern.slot(column)) for column in pattern.columns)
            self._line(f"if ({names}) not in {self._index(number, '')}: {self._leave}")

    def _is_only_counted(self, variable: Slot, chosen: list[int], waiting: list[int]) -> bool:
        """Tell whether a variable occurs once and not in the result, so that only the number of its values matters."""
        others = [self.shape.patterns[number] for number in waiting if number not in chosen]
        used = any(variable in (one.s, one.p, one.o, one.g) for one in others)
        return len(chosen) == 1 and variable not in self.shape.output and not used

    def _count(self, number: int) -> None:
        """Multiply the weight with the number of matches, less the changed quad where it does not count."""
        free = self._free(number)
        found = self._matches(number)
        tests = self._sameness(number, free)
        less = "" if tests is None else f" - ({' and '.join(tests) or 'True'})"
        name = f"w{number}"
        self._line(f"{name} = {self.weight} * (len({found}){less})")
        if less:
            self._line(f"if not {name}: {self._leave}")
        self.weight = name

    def _matches(self, number: int) -> str:
        """Return the name of the matches of a pattern with one open member, which are looked up if need be."""
        if number not in self.fetched:
            free = self._free(number)
            bound = "".join(column for column in self.shape.patterns[number].columns if column not in free)
            self._line(f"t{number} = {self._lookup(number, bound, '')}")
            self._line(f"if not t{number}: {self._leave}")
        return f"t{number}"

    def _intersect(self, numbers: list[int], variable: Slot) -> None:
        """Loop over the values of one variable that all of some patterns allow."""
        name = f"v{variable}"
        parts = [self._matches(number) for number in numbers]
        self._stop()
        self._line(f"for {name} in {reduce(lambda one, other: f'meet({one}, {other})', parts)}:")
        self.names[variable] = name
        self.depth += 1

    def _scan(self, number: int) -> None:
        """Loop over the matches of a pattern with several open members."""
        pattern = self.shape.patterns[number]
        free = self._free(number)
        bound = "".join(column for column in pattern.columns if column not in free)
        targets, tests = [], []
        for column in free:
            slot = pattern.slot(column)
            if slot in self.names:
                targets.append(f"x{number}{column}")
                tests.append(f"if x{number}{column} != {self.names[slot]}: continue")
            else:
                self.names[slot] = f"v{slot}"
                targets.append(f"v{slot}")
        self._stop()
        if pattern.columns == "so":
            self._line(f"for {targets[0]}, t{number} in {self._index(number, 's')}.items():")
            self.depth += 1
            self._line(f"for {targets[1]} in t{number}:")
        else:
            looked_up = self._lookup(number, bound, ", ()")
            target = targets[0] if len(targets) == 1 else f"({', '.join(targets)})"
            self._line(f"for {target} in {looked_up}:")
        self.depth += 1
        for test in tests:
            self._line(test)

    def _stop(self) -> None:
        """Make no more rows than the view may keep: each loop makes as many as an index has already, at most."""
        if not self.fresh or self.depth:
            self._line("if len(out) > leaf.limit: return leaf.overflow()")

    def _skip(self, number: int) -> bool:
        """Leave out the changed quad for a pattern after its own; False if that leaves nothing."""
        tests = self._sameness(number)
        if tests is None:
            return True
        self._line(f"if {' and '.join(tests) or 'True'}: {self._leave}")
        return bool(tests)

    def _sameness(self, number: int, ignored: str = "") -> list[str] | None:
        """List the tests that tell the changed quad among the matches of a pattern; None if it is not to be told."""
        if self.delta_of is None or number < self.delta_of:
            return None
        own, other = self.shape.patterns[self.delta_of], self.shape.patterns[number]
        if (own.g is None) != (other.g is None):
            return None
        tests = []
        for column in "spog":
            mine, theirs = getattr(own, column), getattr(other, column)
            if mine == theirs or column in ignored:
                continue
            if mine < 0 and theirs < 0:
                return None
            name = self._name(theirs)
            if name != column:
                tests.append(f"{name} == {column}")
        return tests


def _constant(slot: Slot) -> str:
    return f"c{-slot - 1}"
