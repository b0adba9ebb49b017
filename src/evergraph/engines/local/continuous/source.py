"""The joins of a connected part as Python source: one function for each triple pattern that a changed quad may match.

Rule (multilinear): ``Δ = Σᵢ P₁' ⋈ … ⋈ Pᵢ₋₁' ⋈ ΔPᵢ ⋈ Pᵢ₊₁ ⋈ … ⋈ Pₙ``. The quad is in the tables while the functions run,
for insertion and deletion alike; for the patterns after *i* it does not count, so that a solution that uses the quad in
several places is found once. The function of the last pattern therefore leaves nothing out: run for every quad of its
table, it finds all answers.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from evergraph.engines.local.continuous.joins import Branch, JoinPattern, Plan, Slot, Step, Unroll, join_order
from evergraph.engines.local.continuous.tables import SEVERAL

MAX_DEPTH = 15
"""Python nests at most 20 blocks; beyond this depth, another function goes on."""

Access: TypeAlias = tuple[int, str]
"""The index of a table by some columns."""


class Code:
    """Compiled joins.

    ``make(indexes, constants, out)`` returns the functions of all patterns and the one of all answers.
    """

    __slots__ = ("accesses", "make", "source")

    def __init__(self, patterns: Sequence[JoinPattern], variables: int) -> None:
        writer = _Writer(patterns, variables)
        self.source = writer.source()
        self.accesses = tuple(writer.accesses)
        space: dict[str, Any] = {"meet": meet, "several": SEVERAL}
        exec(compile(self.source, "<joins>", "exec"), space)
        self.make: Callable[..., Any] = space["make"]


@lru_cache(maxsize=1024)
def join_code(patterns: tuple[JoinPattern, ...], variables: int) -> Code:
    """Compile the joins of patterns over that many variables; it depends on the shape alone, not on constants."""
    return Code(patterns, variables)


def meet(*found: Any) -> Any:
    """Intersect what several indexes hold, each one value, a list or a set, starting with the smallest."""
    for value in found:
        if value.__class__ not in SEVERAL:
            held = all(value in one if one.__class__ in SEVERAL else value == one for one in found)
            return (value,) if held else ()
    smallest, *others = sorted(found, key=len)
    for other in others:
        if smallest.__class__ is set and other.__class__ is set:
            smallest = smallest & other
        else:
            smallest = [value for value in smallest if value in other]
    return smallest


class _Writer:
    def __init__(self, patterns: Sequence[JoinPattern], variables: int) -> None:
        self.patterns = patterns
        self.variables = variables
        self.orders = [join_order(patterns, first) for first in range(len(patterns))]
        self.accesses: dict[Access, str] = {}
        for first, steps in enumerate(self.orders):
            self._collect(steps, {slot for slot in patterns[first].slots if slot >= 0})
        for pattern in patterns:
            if not any(table == pattern.table for table, _ in self.accesses):
                self._access(pattern.table, pattern.columns[:1] if len(pattern.columns) > 1 else "")
        self.lines: list[str] = []
        self.branches = 0

    def _collect(self, steps: Sequence[Plan], bound: set[Slot]) -> None:
        """Ask for the indexes of all steps but tests, which take any."""
        for step in steps:
            if isinstance(step, Branch):
                self._collect(step.steps, set(bound))
            elif isinstance(step, Step):
                for pattern in (self.patterns[number] for number in step.patterns):
                    if pattern.open(bound):
                        self._access(pattern.table, pattern.closed(bound))
            bound.update(self.binds(step))

    def binds(self, step: Plan) -> set[Slot]:
        """Return the variables that are bound after a step."""
        match step:
            case Branch():
                return set()
            case Unroll(branch):
                return set(branch.variables)
            case Step(numbers):
                return {slot for number in numbers for slot in self.patterns[number].slots if slot >= 0}

    def _access(self, table: int, columns: str) -> str:
        return self.accesses.setdefault((table, columns), f"i{len(self.accesses)}")

    def source(self) -> str:
        last = len(self.patterns) - 1
        rows = tuple(range(self.variables))
        for first in range(last + 1):
            _Function(self, first, f"delta{first}", rows, skips=True, yields=False).write(self.orders[first])
        _Function(self, last, "full", rows, skips=False, yields=True).write(self.orders[last])
        constants = sorted({slot for pattern in self.patterns for slot in pattern.slots if slot < 0})
        head = ["def make(indexes, constants, out):", " get = out.get"]
        head += [f" {name} = indexes[{number}]" for number, name in enumerate(self.accesses.values())]
        head += [f" c{-slot} = constants[{-slot - 1}]" for slot in constants]
        names = "".join(f"delta{first}, " for first in range(last + 1))
        return "\n".join([*head, *self.lines, f" return ({names}), full", ""])


class _Function:
    """Writes one function, which adds rows to ``out`` with the weight ``w``, or yields them."""

    def __init__(
        self, writer: _Writer, first: int, name: str, row: Sequence[Slot], *, skips: bool, yields: bool
    ) -> None:
        self.writer, self.first, self.name, self.row, self.skips, self.yields = writer, first, name, row, skips, yields
        own = writer.patterns[first]
        self.names: dict[Slot, str] = {own.slot(column): column for column in own.columns}
        self.fetched: dict[int, str] = {}
        self.found: dict[Branch, str] = {}
        self.lines: list[str] = []
        self.depth, self.part = 0, 0

    def write(self, steps: Sequence[Plan]) -> None:
        self._head()
        for number, step in enumerate(steps):
            if self.depth >= MAX_DEPTH:
                self._continue()
            self._fetch(steps[number:])
            match step:
                case Branch():
                    self._branch(step)
                case Unroll(branch):
                    self._enter(branch.variables, self.found.pop(branch), comma=",")
                case Step(patterns, None) if patterns[0] not in self.fetched:
                    self._test(self.writer.patterns[patterns[0]])
                case Step(patterns):
                    self._loop(patterns)
            for other in step.patterns if isinstance(step, Step) and self.skips else ():
                if other > self.first:
                    self._skip(self.writer.patterns[other])
        row = "".join(f"{self.names[slot]}, " for slot in self.row)
        if self.yields:
            self._line(f"yield ({row})")
        else:
            self._line(f"r = ({row})")
            self._line("n = get(r, 0) + w")
            self._line("if n: out[r] = n")
            self._line("else: del out[r]")
        self.writer.lines += self.lines

    def _line(self, text: str) -> None:
        self.lines.append(" " * (2 + self.depth) + text)

    def _signature(self) -> str:
        inner = [name for name in self.names.values() if name not in ("s", "p", "o", "g")]
        name = f"{self.name}_{self.part}" if self.part else self.name
        return f"{name}({', '.join(['s', 'p', 'o', 'g', 'w', *inner, *self.fetched.values(), *self.found.values()])})"

    def _head(self) -> None:
        self.depth = 0
        self.lines.append(f" def {self._signature()}:")

    def _continue(self) -> None:
        self.part += 1
        self._line(("yield from " if self.yields else "") + self._signature())
        self._head()

    @property
    def _leave(self) -> str:
        return "continue" if self.depth else "return"

    def _key(self, pattern: JoinPattern, columns: str) -> str:
        names = [self.names[pattern.slot(column)] for column in columns]
        return names[0] if len(names) == 1 else f"({', '.join(names)})"

    def _fetch(self, steps: Sequence[Plan]) -> None:
        """Look up what later steps need as soon as it can be, so that no loop runs in vain."""
        bound = set(self.names)
        for step in steps:
            for number in step.patterns if isinstance(step, Step) else ():
                pattern = self.writer.patterns[number]
                closed = pattern.closed(bound)
                known = all(pattern.slot(column) in self.names for column in closed)
                if known and pattern.open(bound) and number not in self.fetched:
                    name = self.fetched[number] = f"t{number}"
                    index = self.writer.accesses[pattern.table, closed]
                    self._line(f"{name} = {index}.get({self._key(pattern, closed)})" if closed else f"{name} = {index}")
                    self._line(f"if {name} is None: {self._leave}" if closed else f"if not {name}: {self._leave}")
            bound.update(self.writer.binds(step))

    def _branch(self, branch: Branch) -> None:
        """Find the solutions of a branch, with a function of its own."""
        self.writer.branches += 1
        found = self.found[branch] = f"b{self.writer.branches}"
        function = _Function(
            self.writer, self.first, f"branch_{found}", branch.variables, skips=self.skips, yields=True
        )
        function.names = dict(self.names)
        call = function._signature()
        function.write(branch.steps)
        self._line(f"{found} = list({call})")
        self._line(f"if not {found}: {self._leave}")

    def _test(self, pattern: JoinPattern) -> None:
        index, columns = next((name, key[1]) for key, name in self.writer.accesses.items() if key[0] == pattern.table)
        if not columns:
            self._line(f"if {self._key(pattern, pattern.columns)} not in {index}: {self._leave}")
            return
        others = "".join(column for column in pattern.columns if column not in columns)
        self._line(f"t, x = {index}.get({self._key(pattern, columns)}), {self._key(pattern, others)}")
        self._line(f"if not (x in t if t.__class__ in several else x == t): {self._leave}")

    def _loop(self, numbers: tuple[int, ...]) -> None:
        """Go through what patterns hold: several that leave the same variable open, or one."""
        found = [self.fetched.pop(number) for number in numbers]
        one, pattern = found[0], self.writer.patterns[numbers[0]]
        alone = f"({one} if {one}.__class__ in several else ({one},))"
        slots = [pattern.slot(column) for column in pattern.open(self.names)]
        self._enter(slots, alone if len(found) == 1 else f"meet({', '.join(found)})")

    def _enter(self, slots: Sequence[Slot], values: str, comma: str = "") -> None:
        self._line(f"for {', '.join(f'v{slot}' for slot in slots)}{comma} in {values}:")
        self.names.update((slot, f"v{slot}") for slot in slots)
        self.depth += 1

    def _skip(self, other: JoinPattern) -> None:
        """Leave out the changed quad where it stands for a pattern after its own."""
        tests = []
        for column, mine, theirs in zip("spog", self.writer.patterns[self.first].slots, other.slots, strict=True):
            if mine < 0 and theirs < 0 and mine != theirs:
                return
            name = f"c{-theirs}" if theirs < 0 else self.names[theirs]
            if mine != theirs and name != column:
                tests.append(f"{name} == {column}")
        assert tests, "two patterns of a part are the same"
        self._line(f"if {' and '.join(tests)}: {self._leave}")
