"""Columns that nobody looks at, dropped where rows are made: rows that become the same add up."""

from dataclasses import replace
from typing import assert_never

from evergraph.plan import nodes
from evergraph.plan.nodes import Plan
from evergraph.sparql.algebra import Call, Expression, Function
from evergraph.sparql.scope import free, walk
from evergraph.terms import Variable

Names = frozenset[Variable]


def prune_columns(plan: Plan) -> Plan:
    """Keep only the columns that the result needs; the result keeps all of its own."""
    return _prune(plan, frozenset(plan.variables))


def _prune(plan: Plan, needed: Names) -> Plan:
    """Return a plan with at least the needed columns, perhaps in another order."""
    match plan:
        case nodes.BGP(variables=variables):
            return replace(plan, variables=tuple(one for one in variables if one in needed))
        case nodes.Path() | nodes.Nodes() | nodes.GraphNames() | nodes.Values() | nodes.Graph():
            return plan
        case nodes.Join(left, right):
            both = needed | frozenset(nodes.shared(left, right))
            return nodes.Join(_prune(left, both), _prune(right, both))
        case nodes.LeftJoin(left, right, condition):
            both = needed | frozenset(nodes.shared(left, right)) | free(condition)
            return nodes.LeftJoin(_prune(left, both), _prune(right, both), condition)
        case nodes.Minus(left, right):
            both = frozenset(nodes.shared(left, right))
            return nodes.Minus(_prune(left, needed | both), _prune(right, both))
        case nodes.SemiJoin(left, right, condition) | nodes.MarkJoin(left, right, _, condition):
            both = frozenset(nodes.shared(left, right)) | free(condition)
            return replace(plan, left=_prune(left, needed | both), right=_prune(right, both))
        case nodes.Correlate(left, _, shared):
            return replace(plan, left=_prune(left, needed | frozenset(shared)))
        case nodes.Union(operands):
            return nodes.Union(tuple(_exactly(operand, needed) for operand in operands))
        case nodes.Filter(operand, condition):
            return nodes.Filter(_prune(operand, needed | _used(condition, operand)), condition)
        case nodes.Extend(operand, variable, expression):
            if variable not in needed:
                return _prune(operand, needed)
            return replace(plan, operand=_prune(operand, (needed - {variable}) | _used(expression, operand)))
        case nodes.Tag(operand):
            return replace(plan, operand=_prune(operand, frozenset(operand.variables)))
        case nodes.Project(operand, variables):
            kept = tuple(variable for variable in variables if variable in needed)
            return nodes.Project(_prune(operand, frozenset(kept)), kept)
        case nodes.Distinct(operand):
            return nodes.Distinct(_exactly(operand, frozenset(operand.variables)))
        case nodes.Group():
            return _prune_group(plan, needed)
        case nodes.Slice(operand, conditions, variables):
            used = frozenset(variables).union(*(_used(one.expression, operand) for one in conditions))
            return replace(plan, operand=_prune(operand, used))
        case _:
            assert_never(plan)


def _prune_group(plan: nodes.Group, needed: Names) -> Plan:
    operand = plan.operand
    aggregates = tuple((variable, one) for variable, one in plan.aggregates if variable in needed)
    if any(one.expression is None and one.distinct for _, one in aggregates):
        return replace(plan, operand=_exactly(operand, frozenset(operand.variables)), aggregates=aggregates)
    used = frozenset(plan.keys).union(
        *(_used(one.expression, operand) for _, one in aggregates if one.expression is not None)
    )
    return nodes.Group(_prune(operand, used), plan.keys, aggregates)


def _exactly(plan: Plan, needed: Names) -> Plan:
    """Prune, and project away what pruning had to leave."""
    pruned = _prune(plan, needed)
    kept = tuple(variable for variable in plan.variables if variable in needed)
    return pruned if pruned.variables == kept else nodes.Project(pruned, kept)


def _used(expression: Expression, operand: Plan) -> Names:
    """Return the columns on which a value depends: BNODE(label) depends on the whole solution."""
    if any(isinstance(part, Call) and part.function is Function.BNODE for part in walk(expression)):
        return frozenset(operand.variables)
    return free(expression)
