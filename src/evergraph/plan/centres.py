"""Centres: a variable by whose values a plan falls apart, so that tasks can each maintain a share of it.

A plan has a centre if every quad that makes a row, or keeps it out, has the value of one variable in a known place.
Then its result is the sum of the results over the quads of each value, and no value needs to know of another. This is
the decomposition of generalised stars by their central node, for all operators: the sides of a join, an OPTIONAL or a
NOT EXISTS must agree on the centre, and groups and distinct rows must hold it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from evergraph.plan import nodes
from evergraph.plan.nodes import Plan, QuadPattern
from evergraph.plan.rebuild import children
from evergraph.terms import Variable, term_text

Held: TypeAlias = frozenset[Variable] | None
"""The columns that hold the value of the centre in every row; None where the plan does not fall apart."""

_CONSTANT: frozenset[Variable] = frozenset((Variable("constant··"),))
"""Stands for what a plan without quads holds: its rows are the same in every share, and never change."""

ANY = None
"""Stands for all predicates in `Places`."""

Places: TypeAlias = Mapping[str | None, int]
"""Where quads have the value of the centre, by the texts of their predicates: 0 is the subject, 3 the graph."""


@dataclass(frozen=True, slots=True)
class Centre:
    """A centre, and in which places the quads of each pattern have its value.

    ``is_held``: every row of the result holds it, so that no two shares have the same row.
    """

    variable: Variable
    patterns: tuple[tuple[QuadPattern, frozenset[int]], ...]
    is_held: bool


def centre_of(plan: Plan) -> Centre | None:
    """Find a centre of a plan: of several, one that the rows hold, and the subject of the most patterns."""
    patterns = tuple(dict.fromkeys(_patterns(plan)))
    if not patterns:
        return None
    common = frozenset.intersection(*(pattern.variables() for pattern in patterns))
    chosen = sorted(common, key=lambda one: (-sum(pattern.subject == one for pattern in patterns), one.value))
    found = []
    for variable in chosen:
        held = _held(plan, variable)
        placed = tuple((pattern, _places(pattern, variable)) for pattern in patterns)
        if held is not None and places_of(placed) is not None:
            found.append(Centre(variable, placed, bool(held & frozenset(plan.variables))))
    return next((centre for centre in found if centre.is_held), found[0] if found else None)


def places_of(patterns: Iterable[tuple[QuadPattern, frozenset[int]]]) -> Places | None:
    """Choose one place for the quads of each predicate; None if patterns that may match one quad have none in common.

    A quad that was sent to two shares, once for each of its places, would be seen there by both patterns.
    """
    found: dict[str | None, frozenset[int]] = {}
    for pattern, places in patterns:
        key = ANY if isinstance(pattern.predicate, Variable) else term_text(pattern.predicate)
        found[key] = found.get(key, places) & places
    if ANY in found:
        found = {ANY: frozenset.intersection(*found.values())}
    return {key: min(places) for key, places in found.items()} if all(found.values()) else None


def _places(pattern: QuadPattern, variable: Variable) -> frozenset[int]:
    return frozenset(place for place, term in enumerate(pattern.positions()) if term == variable)


def _patterns(plan: Plan) -> Iterator[QuadPattern]:
    if isinstance(plan, nodes.BGP):
        yield from plan.patterns
    for child in children(plan):
        yield from _patterns(child)


def _held(plan: Plan, centre: Variable) -> Held:
    match plan:
        case nodes.BGP(patterns, variables):
            if not patterns:
                return _CONSTANT
            if all(centre in pattern.variables() for pattern in patterns):
                return frozenset((centre,)) & frozenset(variables)
            return None
        case nodes.Values():
            return _CONSTANT
        case nodes.Join(left, right):
            return _held_by_join(_held(left, centre), _held(right, centre))
        case nodes.LeftJoin() | nodes.SemiJoin() | nodes.MarkJoin() | nodes.Minus():
            return _held_by_match(_held(plan.left, centre), _held(plan.right, centre))
        case nodes.Union(operands):
            return _held_by_all([_held(operand, centre) for operand in operands])
        case nodes.Filter(operand) | nodes.Tag(operand):
            return _held(operand, centre)
        case nodes.Extend(operand, variable, expression):
            held = _held(operand, centre)
            return held | {variable} if held is not None and expression in held else held
        case nodes.Project(operand, variables):
            held = _held(operand, centre)
            return held & frozenset(variables) if held is not None and held is not _CONSTANT else held
        case nodes.Distinct(operand):
            return _held(operand, centre) or None
        case nodes.Group(operand, keys):
            held = _held(operand, centre)
            return held if held is _CONSTANT else (held or frozenset()) & frozenset(keys) or None
        case _:
            return None


def _held_by_join(left: Held, right: Held) -> Held:
    """Rows of two shares never meet if both sides hold the centre; constants meet everything in every share."""
    if left is None or right is None:
        return None
    if left is _CONSTANT:
        return right
    if right is _CONSTANT:
        return left
    return left | right if left & right else None


def _held_by_match(left: Held, right: Held) -> Held:
    """Rows of the left must have all that they can meet in their own share."""
    if left is None or right is None:
        return None
    if right is _CONSTANT:
        return left
    return left if left is not _CONSTANT and left & right else None


def _held_by_all(operands: list[Held]) -> Held:
    known = [held for held in operands if held is not None]
    if len(known) < len(operands):
        return None
    changing = [held for held in known if held is not _CONSTANT]
    if not changing:
        return _CONSTANT
    return frozenset.intersection(*changing) if len(changing) == len(known) else frozenset()
