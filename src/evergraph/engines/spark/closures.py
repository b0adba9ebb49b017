"""Paths: the closure of steps, found level by level.

Every level is a join of what was reached last with the steps, kept in Spark's storage; the driver only counts.
"""

from collections.abc import Callable

from pyspark.sql import functions as sf

from evergraph.engines.spark.frames import WEIGHT, Frame, same_rows, sum_of
from evergraph.engines.spark.joins import join
from evergraph.plan import nodes
from evergraph.plan.nodes import EachGraph, Variables
from evergraph.terms import Term, Variable, term_text

ORIGIN, NODE, GRAPH, NEXT = (Variable(f"{name}··path") for name in ("origin", "node", "graph", "next"))

Steps = Callable[[Frame | None, bool], Frame]
"""Given nodes, or None for all, the steps that start there, or that end there if told so: over (NODE, NEXT, GRAPH)."""

_MOST_PARTS = 8
"""From so many levels on they are put together: Spark takes time to plan each of them, for every level that follows."""

Keep = Callable[[Frame], Frame | None]
"""Computes a frame, once; None if it has no rows."""


def closure(plan: nodes.Path, steps: Steps, keys: Frame | None, keep: Keep, start: Callable[[Term], Frame]) -> Frame:
    """Return the pairs that a path joins; where keys are given, at least those with these ends."""
    subject, object_ = plan.subject, plan.object
    known = frozenset() if keys is None else frozenset(keys.variables)
    if not isinstance(subject, Variable):
        return _ends(plan, reach(start(subject), steps, keep, backward=False), forward=True)
    if not isinstance(object_, Variable):
        return _ends(plan, reach(start(object_), steps, keep, backward=True), forward=False)
    if keys is not None and subject in known:
        return _ends(plan, reach(_seeds(keys, subject), steps, keep, backward=False), forward=True)
    if keys is not None and object_ in known:
        return _ends(plan, reach(_seeds(keys, object_), steps, keep, backward=True), forward=False)
    return _ends(plan, _all_pairs(steps, keep), forward=True)


def reach(seeds: Frame, steps: Steps, keep: Keep, *, backward: bool) -> Frame:
    """Return what can be reached from seeds (ORIGIN, NODE) in one step or more: (ORIGIN, NODE, GRAPH)."""
    first = _advance(seeds, steps(seeds.only((NODE,)), backward), backward=backward)
    return _spread(keep(first.distinct()), first, steps, keep, backward=backward)


def _all_pairs(steps: Steps, keep: Keep) -> Frame:
    all_steps = steps(None, False)
    first = Frame((ORIGIN, NODE, GRAPH), all_steps.only((NODE, NEXT, GRAPH)).data, all_steps.rows)
    return _spread(keep(first.distinct()), first, steps, keep, backward=False)


def _spread(frontier: Frame | None, empty: Frame, steps: Steps, keep: Keep, *, backward: bool) -> Frame:
    found: list[Frame] = []
    while frontier is not None:
        found.append(frontier)
        if len(found) > _MOST_PARTS and (together := keep(sum_of(found))) is not None:
            found = [together]
        following = _advance(frontier, steps(frontier.keys((NODE,)), backward), backward=backward).distinct()
        frontier = keep(same_rows(following, sum_of(found), among=False))
    return sum_of(found) if found else empty.where(sf.lit(False))


def _advance(frontier: Frame, steps: Frame, *, backward: bool) -> Frame:
    here, there = (NEXT, NODE) if backward else (NODE, NEXT)
    moved = Frame(tuple({here: NODE, there: NEXT}.get(one, one) for one in steps.variables), steps.data, steps.rows)
    joined = join(frontier, moved, frozenset((NODE, GRAPH)))
    return (
        Frame(joined.variables, joined.data, frontier.rows * 4)
        .only((ORIGIN, NEXT, GRAPH))
        .renamed((ORIGIN, NODE, GRAPH))
    )


def _seeds(keys: Frame, variable: Variable) -> Frame:
    values = keys.keys((variable,))
    column = sf.col("c0")
    return Frame((ORIGIN, NODE), values.data.select(column, column.alias("c1"), WEIGHT), values.rows)


def _ends(plan: nodes.Path, reached: Frame, *, forward: bool) -> Frame:
    """Fit what was reached to the ends of the path."""
    graph = plan.context.variable if isinstance(plan.context, EachGraph) else None
    first, last = (ORIGIN, NODE) if forward else (NODE, ORIGIN)
    places: dict[Variable, Variable] = {}
    for member, place in ((plan.subject, first), (plan.object, last), (graph, GRAPH)):
        if member is None:
            continue
        if not isinstance(member, Variable):
            reached = reached.where(reached.column(place) == term_text(member))
        elif member in places:
            reached = reached.where(reached.column(place) == reached.column(places[member]))
        else:
            places[member] = place
    wanted: Variables = tuple(places[variable] for variable in plan.variables)
    return reached.only(wanted).renamed(plan.variables).distinct()
