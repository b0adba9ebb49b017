"""Rebuilding of expressions and plans from new parts: what every rewrite needs."""

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from evergraph.plan import nodes
from evergraph.plan.nodes import Plan
from evergraph.sparql.algebra import (
    And,
    Bound,
    Calculate,
    Call,
    Cast,
    Coalesce,
    Compare,
    Exists,
    Expression,
    ExtensionCall,
    If,
    In,
    Negate,
    Not,
    Or,
    Plus,
)
from evergraph.terms import BlankNode, Literal, NamedNode, Triple, Variable


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Rebuild an expression from changed operands; leaves and EXISTS stay as they are."""
    match expression:
        case NamedNode() | BlankNode() | Literal() | Triple() | Variable() | Bound() | Exists():
            return expression
        case And() | Or() | Coalesce():
            return replace(expression, operands=tuple(map(change, expression.operands)))
        case Not() | Negate() | Plus() | Cast():
            return replace(expression, operand=change(expression.operand))
        case Compare() | Calculate():
            return replace(expression, left=change(expression.left), right=change(expression.right))
        case In(operand, members):
            return In(change(operand), tuple(map(change, members)))
        case If(condition, then, otherwise):
            return If(change(condition), change(then), change(otherwise))
        case Call() | ExtensionCall():
            return replace(expression, arguments=tuple(map(change, expression.arguments)))
        case _:
            assert_never(expression)


def children(plan: Plan) -> tuple[Plan, ...]:
    """Return the operands of a plan node."""
    match plan:
        case nodes.BGP() | nodes.Nodes() | nodes.GraphNames() | nodes.Values():
            return ()
        case nodes.Path():
            return (plan.step,)
        case nodes.Graph():
            return (plan.inner,)
        case nodes.Join() | nodes.LeftJoin() | nodes.Minus() | nodes.SemiJoin() | nodes.MarkJoin():
            return (plan.left, plan.right)
        case nodes.Correlate():
            return (plan.left,)
        case nodes.Union():
            return plan.operands
        case (
            nodes.Filter()
            | nodes.Extend()
            | nodes.Tag()
            | nodes.Project()
            | nodes.Distinct()
            | nodes.Group()
            | nodes.Slice()
        ):
            return (plan.operand,)
        case _:
            assert_never(plan)


def map_children(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Rebuild a plan node from changed operands."""
    match plan:
        case nodes.BGP() | nodes.Nodes() | nodes.GraphNames() | nodes.Values():
            return plan
        case nodes.Path():
            return replace(plan, step=change(plan.step))
        case nodes.Graph():
            return replace(plan, inner=change(plan.inner))
        case nodes.Join() | nodes.LeftJoin() | nodes.Minus() | nodes.SemiJoin() | nodes.MarkJoin():
            return replace(plan, left=change(plan.left), right=change(plan.right))
        case nodes.Correlate():
            return replace(plan, left=change(plan.left))
        case nodes.Union():
            return nodes.Union(tuple(map(change, plan.operands)))
        case (
            nodes.Filter()
            | nodes.Extend()
            | nodes.Tag()
            | nodes.Project()
            | nodes.Distinct()
            | nodes.Group()
            | nodes.Slice()
        ):
            return replace(plan, operand=change(plan.operand))
        case _:
            assert_never(plan)
