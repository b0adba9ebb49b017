"""Rewrites of plans: an ordered tuple of plain functions, each of which keeps the meaning."""

from collections.abc import Callable
from dataclasses import replace

from evergraph.plan import nodes
from evergraph.plan.columns import prune_columns
from evergraph.plan.exists import conjuncts
from evergraph.plan.filters import push_filters
from evergraph.plan.lower import UNIT_ROW, bgp, join_all
from evergraph.plan.nodes import Merge, Plan, QuadPattern
from evergraph.plan.rebuild import map_children
from evergraph.sparql.algebra import Expression, conjunction
from evergraph.sparql.scope import free

MAX_PATTERNS = 16
"""How many patterns one basic graph pattern may have; engines nest a loop, or a join, for each."""


def drop_disjoint_minus(plan: Plan) -> Plan:
    """Drop the right side of a MINUS that can share no variable: it removes nothing."""
    plan = map_children(plan, drop_disjoint_minus)
    if isinstance(plan, nodes.Minus) and not nodes.shared(plan.left, plan.right):
        return plan.left
    return plan


def drop_units(plan: Plan) -> Plan:
    """Drop the unit from joins, and what can only be empty from everything."""
    plan = map_children(plan, drop_units)
    match plan:
        case nodes.Join(left, right):
            if _is_empty(left) or _is_empty(right):
                return nodes.Values(plan.variables, ())
            return right if left == UNIT_ROW else left if right == UNIT_ROW else plan
        case nodes.Union(operands):
            kept = tuple(operand for operand in operands if not _is_empty(operand))
            complete = kept and nodes.Union(kept).variables == plan.variables
            return nodes.Union(kept) if complete and len(kept) > 1 else plan
        case nodes.LeftJoin() | nodes.Minus() | nodes.SemiJoin() | nodes.MarkJoin() | nodes.Correlate():
            return nodes.Values(plan.variables, ()) if _is_empty(plan.left) else plan
        case nodes.Filter() | nodes.Extend() | nodes.Project() | nodes.Distinct() | nodes.Slice():
            return nodes.Values(plan.variables, ()) if _is_empty(plan.operand) else plan
        case _:
            return plan


def _is_empty(plan: Plan) -> bool:
    return isinstance(plan, nodes.Values) and not plan.rows


def merge_basic_graph_patterns(plan: Plan) -> Plan:
    """Make a join of basic graph patterns one: it needs no state. Filters on them go on top, if they see the same."""
    plan = map_children(plan, merge_basic_graph_patterns)
    if not isinstance(plan, nodes.Join):
        return plan
    left, left_conditions = _filtered(plan.left)
    right, right_conditions = _filtered(plan.right)
    if not isinstance(left, nodes.BGP) or not isinstance(right, nodes.BGP):
        return plan
    patterns = (*left.patterns, *right.patterns)
    blind = all(free(one) & frozenset(right.variables) <= left.certain for one in left_conditions) and all(
        free(one) & frozenset(left.variables) <= right.certain for one in right_conditions
    )
    merged = {isinstance(pattern.context, Merge) for pattern in patterns}
    if not blind or len(merged) > 1 or len(patterns) > MAX_PATTERNS or not (_is_whole(left) and _is_whole(right)):
        return plan
    whole = bgp(list(patterns))
    conditions = (*left_conditions, *right_conditions)
    return nodes.Filter(whole, conjunction(*conditions)) if conditions else whole


def _filtered(plan: Plan) -> tuple[Plan, tuple[Expression, ...]]:
    if isinstance(plan, nodes.Filter):
        return plan.operand, conjuncts(plan.condition)
    return plan, ()


def _is_whole(plan: nodes.BGP) -> bool:
    return all(pattern.variables() <= plan.certain for pattern in plan.patterns)


def decompose(plan: Plan) -> Plan:
    """Take a basic graph pattern apart into those that share no variable: the answer is their product.

    Ground triples stay with the first part, where they are tests. A pattern that is too long becomes a join.
    """
    plan = map_children(plan, decompose)
    if not isinstance(plan, nodes.BGP):
        return plan
    parts = [chunk for part in _components(plan.patterns) for chunk in _chunks(part)]
    if len(parts) == 1:
        return plan
    joined = join_all([bgp(part) for part in parts])
    return joined if joined.variables == plan.variables else nodes.Project(joined, plan.variables)


def _components(patterns: tuple[QuadPattern, ...]) -> list[list[QuadPattern]]:
    parts: list[list[QuadPattern]] = []
    ground = [pattern for pattern in patterns if not pattern.variables()]
    for pattern in patterns:
        if not pattern.variables():
            continue
        linked = [part for part in parts if any(one.variables() & pattern.variables() for one in part)]
        parts = [part for part in parts if part not in linked]
        parts.append([one for part in linked for one in part] + [pattern])
    if not parts:
        return [ground]
    parts[0] = ground + parts[0]
    return parts


def _chunks(part: list[QuadPattern]) -> list[list[QuadPattern]]:
    """Cut a long pattern where it hangs together."""
    ordered: list[QuadPattern] = []
    waiting = list(part)
    known: frozenset[object] = frozenset()
    while waiting:
        following = max(waiting, key=lambda one: len(one.variables() & known))
        waiting.remove(following)
        ordered.append(following)
        known |= following.variables()
    return [ordered[start : start + MAX_PATTERNS] for start in range(0, len(ordered), MAX_PATTERNS)]


def tidy_projections(plan: Plan) -> Plan:
    """Let a basic graph pattern make the rows that a projection wants, and drop projections that change nothing."""
    plan = map_children(plan, tidy_projections)
    if not isinstance(plan, nodes.Project):
        return plan
    operand = plan.operand
    if isinstance(operand, nodes.Project):
        operand = operand.operand if frozenset(plan.variables) <= frozenset(operand.variables) else operand
        plan = nodes.Project(operand, plan.variables)
    if operand.variables == plan.variables:
        return operand
    if isinstance(operand, nodes.BGP) and frozenset(plan.variables) <= operand.certain:
        return replace(operand, variables=plan.variables)
    return plan


REWRITES: tuple[Callable[[Plan], Plan], ...] = (
    drop_disjoint_minus,
    drop_units,
    push_filters,
    merge_basic_graph_patterns,
    decompose,
    prune_columns,
    tidy_projections,
)


def optimize(plan: Plan) -> Plan:
    """Apply all rewrites, in order. The columns of the plan stay the same."""
    columns = plan.variables
    for rewrite in REWRITES:
        plan = rewrite(plan)
    return plan if plan.variables == columns else tidy_projections(nodes.Project(plan, columns))
