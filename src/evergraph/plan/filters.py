"""Filters as far down as they mean the same: fewer rows to keep and to join."""

from dataclasses import replace

from evergraph.plan import nodes
from evergraph.plan.exists import conjuncts
from evergraph.plan.nodes import Plan
from evergraph.plan.rebuild import map_children
from evergraph.sparql.algebra import Call, Expression, Function, conjunction
from evergraph.sparql.scope import free, walk


def push_filters(plan: Plan) -> Plan:
    """Push every condition down; of the condition of a join, what only its right side decides."""
    match plan:
        case nodes.Filter(operand, condition):
            for part in conjuncts(condition):
                operand = _sink(operand, part)
            return _below(operand) if isinstance(operand, nodes.Filter) else push_filters(operand)
        case nodes.LeftJoin(left, right, condition) | nodes.SemiJoin(left, right, condition):
            return map_children(_split_condition(plan, left, right, condition), push_filters)
        case nodes.MarkJoin(left, right, _, condition):
            return map_children(_split_condition(plan, left, right, condition), push_filters)
        case _:
            return map_children(plan, push_filters)


def _below(plan: nodes.Filter) -> Plan:
    return nodes.Filter(push_filters(plan.operand), plan.condition)


def _split_condition(
    plan: nodes.LeftJoin | nodes.SemiJoin | nodes.MarkJoin, left: Plan, right: Plan, condition: Expression
) -> Plan:
    kept = []
    for part in conjuncts(condition):
        if _decides(part, right, left):
            right = _sink(right, part)
        else:
            kept.append(part)
    return replace(plan, right=right, condition=conjunction(*kept))


def _decides(condition: Expression, side: Plan, other: Plan) -> bool:
    """Tell whether a condition has the same value on a row of one side as on that row joined with one of the other."""
    names = free(condition)
    return bool(names & frozenset(side.variables)) and names & frozenset(other.variables) <= side.certain


def _sink(plan: Plan, condition: Expression) -> Plan:
    """Put a condition as far down as it means the same."""
    names = free(condition)
    if any(isinstance(part, Call) and part.function is Function.BNODE for part in walk(condition)):
        return _on_top(plan, condition)
    match plan:
        case nodes.Join(left, right):
            if _decides(condition, left, right):
                return nodes.Join(_sink(left, condition), right)
            if _decides(condition, right, left):
                return nodes.Join(left, _sink(right, condition))
        case nodes.LeftJoin(left, right):
            if _decides(condition, left, right):
                return replace(plan, left=_sink(left, condition))
        case nodes.Minus(left) | nodes.SemiJoin(left):
            return replace(plan, left=_sink(left, condition))
        case nodes.MarkJoin(left, mark=mark) | nodes.Correlate(left, mark=mark) if mark not in names:
            return replace(plan, left=_sink(left, condition))
        case nodes.Union(operands):
            return nodes.Union(tuple(_sink(operand, condition) for operand in operands))
        case nodes.Extend(operand, variable) if variable not in names:
            return replace(plan, operand=_sink(operand, condition))
        case nodes.Project(operand, variables) if names & frozenset(operand.variables) <= frozenset(variables):
            return nodes.Project(_sink(operand, condition), variables)
        case nodes.Distinct(operand):
            return nodes.Distinct(_sink(operand, condition))
        case nodes.Group(operand, keys) if keys and names <= frozenset(keys):
            return replace(plan, operand=_sink(operand, condition))
        case nodes.Filter(operand, own):
            below = _sink(operand, condition)
            return nodes.Filter(below, own) if not isinstance(below, nodes.Filter) else _combine(below, own)
        case _:
            pass
    return _on_top(plan, condition)


def _on_top(plan: Plan, condition: Expression) -> Plan:
    return _combine(plan, condition) if isinstance(plan, nodes.Filter) else nodes.Filter(plan, condition)


def _combine(plan: nodes.Filter, condition: Expression) -> Plan:
    return nodes.Filter(plan.operand, conjunction(*conjuncts(plan.condition), *conjuncts(condition)))
