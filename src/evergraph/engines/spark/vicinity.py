"""The vicinity of a change: the quads that decide what it does to a view.

A small change can only change rows that hold its terms. So the terms are followed through the plan, from the patterns
that the change matches to those that share a variable with them: by lookups of all views at once, a round of them for
each step. With the quads found, the local engine computes exactly the change that it would compute with all quads:
every row that may change has all that it is made of, and all that might keep it out.

For a plan, `Followed.affected` gives choices of values that cover all rows that may change; `Followed.gather` fetches
what makes the rows that have certain values, before and after the change. Both speak of certain variables only.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from evergraph.engines.spark.rounds import Ask, every
from evergraph.plan import nodes
from evergraph.plan.nodes import EachGraph, Merge, Plan, QuadPattern
from evergraph.plan.reach import as_distinct
from evergraph.terms import DefaultGraph, Variable, term_text

Known: TypeAlias = Mapping[Variable, frozenset[str]]
"""Values of variables: a row is meant if each of these variables has one of its values."""

Quad: TypeAlias = tuple[str, str, str, str]
_Matching = nodes.LeftJoin | nodes.SemiJoin | nodes.MarkJoin | nodes.Minus


class TooMuch(Exception):
    """A view would need more than a vicinity can hold."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A question: the quads that match a pattern, and have one of some values in a place if there is one."""

    pattern: QuadPattern
    place: int | None = None
    values: frozenset[str] = frozenset()


class Followed:
    """One view and one change, whose quads are given; ``admit`` refuses lookups that would find too much.

    ``most`` bounds how many quads are looked at, each as often as it is: a plan with many parts may come to the same
    quads in many ways.
    """

    def __init__(self, changes: Iterable[Quad], admit: Callable[[Lookup], None], most: int = 1_000_000) -> None:
        self._changes = list(changes)
        self._admit = admit
        self._left = most

    async def view(self, plan: Plan) -> bool:
        """Fetch all that decides what the change does to a view; False if that would be too much."""
        try:
            await self.affected(plan)
        except TooMuch:
            return False
        return True

    async def all_of(self, patterns: Iterable[QuadPattern]) -> bool:
        """Fetch everything that matches some patterns; False if that would be too much."""
        lookups = [Lookup(pattern) for pattern in patterns]
        try:
            for lookup in lookups:
                self._admit(lookup)
        except TooMuch:
            return False
        await every(_asked(lookup) for lookup in lookups)
        return True

    async def affected(self, plan: Plan) -> list[Known]:
        """Return values that cover all rows of a plan that may change, and fetch what decides on them."""
        match plan:
            case nodes.BGP(patterns):
                seeds = [(number, self._seed(pattern)) for number, pattern in enumerate(patterns)]
                spread = await every(
                    self._spread(_others(patterns, number), seed) for number, seed in seeds if seed is not None
                )
                return [_cut(known, plan) for known in spread if known is not None]
            case nodes.Values():
                return []
            case nodes.Nodes() | nodes.GraphNames():
                return await self.affected(as_distinct(plan))
            case nodes.Join(left, right):
                sides = await every((self._across(left, right), self._across(right, left)))
                return [known for side in sides for known in side]
            case nodes.LeftJoin() | nodes.SemiJoin() | nodes.MarkJoin() | nodes.Minus():
                sides = await every((self._from_left(plan), self._from_right(plan)))
                return [_cut(known, plan) for side in sides for known in side]
            case nodes.Union(operands):
                parts = await every(self.affected(operand) for operand in operands)
                return [_cut(known, plan) for part in parts for known in part]
            case nodes.Filter(operand) | nodes.Project(operand) | nodes.Tag(operand) | nodes.Extend(operand):
                return [_cut(_extended(plan, known), plan) for known in await self.affected(operand)]
            case nodes.Distinct(operand):
                found = await self.affected(operand)
                await every(self.gather(operand, known) for known in found)
                return found
            case nodes.Group(operand, keys):
                found = [_only(known, keys) for known in await self.affected(operand)]
                await every(self.gather(operand, known) for known in found)
                return [_cut(known, plan) for known in found]
            case nodes.Slice(operand) | nodes.Path(step=operand):
                if not await self.affected(operand):
                    return []
                await self.gather(operand, {})
                return [{}]
            case nodes.Graph() | nodes.Correlate():
                raise TooMuch
            case _:
                assert_never(plan)

    async def gather(self, plan: Plan, known: Known) -> Known | None:
        """Fetch what makes, or keeps out, the rows of a plan with these values; return what values they have.

        None means that there are no such rows.
        """
        match plan:
            case nodes.BGP(patterns):
                found = await self._spread(patterns, known)
                return None if found is None else _cut(found, plan)
            case nodes.Values():
                return _rows_of(plan, known)
            case nodes.Nodes() | nodes.GraphNames():
                return await self.gather(as_distinct(plan), known)
            case nodes.Join(left, right):
                first, second = (left, right) if _only(known, left.certain) else (right, left)
                found = await self.gather(first, _cut(known, first))
                if found is None:
                    return None
                other = await self.gather(second, _only({**known, **found}, second.certain))
                return None if other is None else {**found, **other}
            case nodes.LeftJoin(left, right) | nodes.Minus(left, right):
                return await self._gather_match(left, right, known)
            case nodes.SemiJoin(left, right) | nodes.MarkJoin(left, right):
                return await self._gather_match(left, right, known)
            case nodes.Union(operands):
                parts = await every(self.gather(operand, _cut(known, operand)) for operand in operands)
                there = [part for part in parts if part is not None]
                return _either([_cut(part, plan) for part in there]) if there else None
            case nodes.Filter(operand) | nodes.Project(operand) | nodes.Tag(operand) | nodes.Extend(operand):
                below = await self.gather(operand, _cut(_copied(plan, known), operand))
                return None if below is None else _cut(_extended(plan, below), plan)
            case nodes.Distinct(operand):
                return await self.gather(operand, known)
            case nodes.Group(operand, keys):
                below = await self.gather(operand, _cut(_only(known, keys), operand))
                return _cut(below or {}, plan)
            case nodes.Slice(operand) | nodes.Path(step=operand):
                await self.gather(operand, {})
                return {}
            case nodes.Graph() | nodes.Correlate():
                raise TooMuch
            case _:
                assert_never(plan)

    async def _affected_ahead(self, plan: Plan, other: Plan) -> list[Known]:
        """As `affected`, and fetch at the same time what will be wanted of another plan, as far as that can be told."""
        keys = [_cut(seed, other) for seed in self._seeds(plan)]
        found, *_ = await every((self.affected(plan), *(self._fetch_ahead(other, known) for known in keys if known)))
        return found

    async def _fetch_ahead(self, plan: Plan, known: Known) -> list[Known]:
        """Fetch what may be wanted, unless it is too much: it will be asked for again."""
        with suppress(TooMuch):
            await self.gather(plan, known)
        return []

    def _seeds(self, plan: Plan) -> list[Known]:
        """Return values that cover all rows of a plan that may change, as far as the change itself tells them."""
        match plan:
            case nodes.BGP(patterns):
                return [_cut(seed, plan) for pattern in patterns if (seed := self._seed(pattern)) is not None]
            case nodes.Filter(operand) | nodes.Project(operand) | nodes.Tag(operand) | nodes.Extend(operand):
                return [_cut(_extended(plan, known), plan) for known in self._seeds(operand)]
            case _:
                return []

    async def _across(self, changed: Plan, other: Plan) -> list[Known]:
        """Return what the changes of one side of a join do."""
        found = await self._affected_ahead(changed, other)
        met = await every(self.gather(other, _cut(known, other)) for known in found)
        return [{**known, **more} for known, more in zip(found, met, strict=True) if more is not None]

    async def _from_left(self, plan: _Matching) -> list[Known]:
        found = await self._affected_ahead(plan.left, plan.right)
        await every(self.gather(plan.right, _cut(known, plan.right)) for known in found)
        return found

    async def _from_right(self, plan: _Matching) -> list[Known]:
        shared = plan.left.certain & plan.right.certain
        changed = [_only(known, shared) for known in await self.affected(plan.right)]
        met = await every(self._gather_match(plan.left, plan.right, known) for known in changed)
        return [known for known in met if known is not None]

    async def _gather_match(self, left: Plan, right: Plan, known: Known) -> Known | None:
        """Fetch rows of the left, and all that they meet on the right."""
        found = await self.gather(left, _cut(known, left))
        if found is not None:
            await self.gather(right, _only(found, left.certain & right.certain))
        return found

    async def _spread(self, patterns: tuple[QuadPattern, ...], known: Known) -> Known | None:
        """Follow values from pattern to pattern; those that share a variable with what is known go first."""
        values = dict(known)
        waiting = list(patterns)
        while waiting:
            linked = [pattern for pattern in waiting if pattern.variables() & values.keys()]
            ground = [pattern for pattern in waiting if not pattern.variables()]
            chosen = linked or ground or waiting[:1]
            for found in await every(self._find(pattern, values) for pattern in chosen):
                if found is None:
                    return None
                for variable, some in found.items():
                    values[variable] = values[variable] & some if variable in values else some
            if not all(values.values()):
                return None
            waiting = [pattern for pattern in waiting if pattern not in chosen]
        return values

    async def _find(self, pattern: QuadPattern, known: Known) -> Known | None:
        """Look a pattern up with the variable of which the fewest values are known."""
        choices = [
            (len(known[term]), place, term)
            for place, term in enumerate(pattern.positions())
            if isinstance(term, Variable) and term in known
        ]
        lookup = Lookup(pattern)
        if choices:
            _, place, term = min(choices, key=lambda one: one[:2])
            lookup = Lookup(pattern, place, known[term])
        self._admit(lookup)
        quads = await Ask(lookup)
        self._left -= len(quads)
        if self._left < 0:
            raise TooMuch
        fitting = [quad for quad in quads if all(quad[place] in known[term] for _, place, term in choices)]
        return _values(pattern, fitting) if fitting else None

    def _seed(self, pattern: QuadPattern) -> Known | None:
        matched = list(filter(matcher(pattern), self._changes))
        return _values(pattern, matched) if matched else None


def _others(patterns: tuple[QuadPattern, ...], changed: int) -> tuple[QuadPattern, ...]:
    """Return the patterns to look at besides one that changes; of merged graphs, another may hold the same triple."""
    if isinstance(patterns[changed].context, Merge):
        return patterns
    return (*patterns[:changed], *patterns[changed + 1 :])


async def _asked(lookup: Lookup) -> None:
    await Ask(lookup)


def _values(pattern: QuadPattern, quads: list[Quad]) -> Known:
    return {
        term: frozenset([quad[place] for quad in quads])
        for place, term in enumerate(pattern.positions())
        if isinstance(term, Variable)
    }


def matcher(pattern: QuadPattern) -> Callable[[Quad], bool]:
    """Return a function that tells whether a quad matches a pattern."""
    first: dict[Variable, int] = {}
    constants: list[tuple[int, str]] = []
    repeated: list[tuple[int, int]] = []
    for place, term in enumerate(pattern.positions()):
        if isinstance(term, Variable):
            if term in first:
                repeated.append((first[term], place))
            first.setdefault(term, place)
        elif not isinstance(term, DefaultGraph | Merge):
            constants.append((place, term_text(term)))
    graphs: frozenset[str] | None = None
    is_named = False
    match pattern.context:
        case DefaultGraph():
            graphs = frozenset(("",))
        case EachGraph(among=None):
            is_named = True
        case EachGraph(among=names) | Merge(graphs=names):
            graphs = frozenset(map(term_text, names or ()))

    def test(quad: Quad) -> bool:
        for place, text in constants:
            if quad[place] != text:
                return False
        for one, other in repeated:
            if quad[one] != quad[other]:
                return False
        return (graphs is None or quad[3] in graphs) and (not is_named or bool(quad[3]))

    return test


def _only(known: Known, variables: Iterable[Variable]) -> Known:
    wanted = frozenset(variables)
    return {variable: values for variable, values in known.items() if variable in wanted}


def _cut(known: Known, plan: Plan) -> Known:
    return _only(known, plan.certain)


def _extended(plan: Plan, known: Known) -> Known:
    """Add the values of a copy."""
    match plan:
        case nodes.Extend(_, variable, Variable() as original) if original in known:
            return {**known, variable: known[original]}
        case _:
            return known


def _copied(plan: Plan, known: Known) -> Known:
    """Say of an original what is known of its copy."""
    match plan:
        case nodes.Extend(_, variable, Variable() as original) if variable in known and original not in known:
            return {**known, original: known[variable]}
        case _:
            return known


def _rows_of(plan: nodes.Values, known: Known) -> Known | None:
    rows = [
        row
        for row in plan.rows
        if all(
            (term := row[plan.variables.index(variable)]) is not None and term_text(term) in values
            for variable, values in known.items()
            if variable in plan.certain
        )
    ]
    if not rows:
        return None
    return {
        variable: frozenset([term_text(term) for row in rows if (term := row[number]) is not None])
        for number, variable in enumerate(plan.variables)
        if variable in plan.certain
    }


def _either(parts: list[Known]) -> Known:
    first, *rest = parts
    common = [variable for variable in first if all(variable in part for part in rest)]
    return {variable: frozenset().union(*(part[variable] for part in parts)) for variable in common}
