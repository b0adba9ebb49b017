"""Rewrites of plans: an ordered tuple of plain functions, each of which keeps the meaning."""

from collections.abc import Callable

from evergraph.plan import nodes
from evergraph.plan.nodes import Plan
from evergraph.plan.rebuild import map_children


def drop_disjoint_minus(plan: Plan) -> Plan:
    """Drop the right side of a MINUS that can share no variable: it removes nothing."""
    plan = map_children(plan, drop_disjoint_minus)
    if isinstance(plan, nodes.Minus) and not nodes.shared(plan.left, plan.right):
        return plan.left
    return plan


REWRITES: tuple[Callable[[Plan], Plan], ...] = (drop_disjoint_minus,)


def optimize(plan: Plan) -> Plan:
    """Apply all rewrites, in order. The columns of the plan stay the same."""
    columns = plan.variables
    for rewrite in REWRITES:
        plan = rewrite(plan)
    return plan if plan.variables == columns else nodes.Project(plan, columns)
