"""Joins of frames: compatible rows, and rows with and without a match."""

from functools import reduce
from operator import and_, or_
from typing import assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from evergraph.engines.spark.expressions import Expressions
from evergraph.engines.spark.frames import WEIGHT, Frame, for_join, same_rows, sum_of
from evergraph.plan import nodes
from evergraph.sparql.algebra import TRUE
from evergraph.sparql.values import FALSE as FALSE_TERM
from evergraph.sparql.values import TRUE as TRUE_TERM
from evergraph.terms import Variable, term_text

Certain = frozenset[Variable]
"""Variables that are bound in every row of both sides."""


def join(left: Frame, right: Frame, certain: Certain, *, growth: float = 1.0) -> Frame:
    """Join compatible rows; ``growth`` is how many rows of the right a row of the left is expected to meet."""
    variables = tuple(dict.fromkeys((*left.variables, *right.variables)))
    pairs = _pairs(left, right, compatible(left, right, certain))
    columns = [_merged(left, right, variable, certain).alias(f"c{n}") for n, variable in enumerate(variables)]
    weight = (sf.col(WEIGHT) * sf.col(f"r{WEIGHT}")).alias(WEIGHT)
    return Frame(variables, pairs.select(*columns, weight), min(left.rows, right.rows) * growth)


def match(
    plan: nodes.LeftJoin | nodes.SemiJoin | nodes.MarkJoin | nodes.Minus,
    left: Frame,
    right: Frame,
    expressions: Expressions,
) -> Frame:
    """OPTIONAL, EXISTS, a mark or MINUS: linear in the left, whose weights may be negative; the right is a bag."""
    certain = plan.left.certain & plan.right.certain
    condition = compatible(left, right, certain)
    if isinstance(plan, nodes.Minus):
        condition = condition if certain & shared(left, right) else condition & _share_a_variable(left, right)
    elif plan.condition != TRUE:
        return _match_by_pairs(plan, left, right, expressions)
    if isinstance(plan, nodes.LeftJoin):
        alone = _exists(left, right, condition, "left_anti").only(plan.variables)
        return sum_of([join(left, right, certain).only(plan.variables), alone])
    if not shared(left, right):  # any row of the right will do
        right = Frame((), right.only(()).data.limit(1), 1)
    return _answer(plan, *(_exists(left, right, condition, how) for how in ("left_semi", "left_anti")))


def _match_by_pairs(
    plan: nodes.LeftJoin | nodes.SemiJoin | nodes.MarkJoin, left: Frame, right: Frame, expressions: Expressions
) -> Frame:
    """Find the matches of which a condition holds: only pairs of rows can tell."""
    certain = plan.left.certain & plan.right.certain
    merged = tuple(dict.fromkeys((*left.variables, *right.variables)))
    values = {one: _merged(left, right, one, certain) for one in merged}
    pairs = _pairs(left, right, compatible(left, right, certain))
    pairs = pairs.where(expressions.condition(plan.condition, values))
    matched = Frame(left.variables, pairs.select(*left.columns(), WEIGHT), left.rows)
    lost = same_rows(left, matched, among=False)
    if isinstance(plan, nodes.LeftJoin):
        weight = (sf.col(WEIGHT) * sf.col(f"r{WEIGHT}")).alias(WEIGHT)
        joined = pairs.select(*(values[one].alias(f"c{n}") for n, one in enumerate(merged)), weight)
        return sum_of([Frame(merged, joined, left.rows).only(plan.variables), lost.only(plan.variables)])
    return _answer(plan, same_rows(left, matched, among=True), lost)


def _answer(plan: nodes.SemiJoin | nodes.MarkJoin | nodes.Minus, found: Frame, lost: Frame) -> Frame:
    match plan:
        case nodes.SemiJoin(anti=anti):
            return lost if anti else found
        case nodes.Minus():
            return lost
        case nodes.MarkJoin(mark=mark):
            yes, no = sf.lit(term_text(TRUE_TERM)), sf.lit(term_text(FALSE_TERM))
            return sum_of([found.extended(mark, yes), lost.extended(mark, no)])
        case _:
            assert_never(plan)


def shared(left: Frame, right: Frame) -> frozenset[Variable]:
    """The variables that both sides have."""
    return frozenset(left.variables) & frozenset(right.variables)


def compatible(left: Frame, right: Frame, certain: Certain) -> Column:
    """Tell whether two rows agree wherever both are bound; the columns of the right begin with ``r``."""
    tests = []
    for variable in left.variables:
        if variable in right.variables:
            one, other = left.column(variable), _right(right, variable)
            tests.append(one == other if variable in certain else (one == other) | one.isNull() | other.isNull())
    return reduce(and_, tests) if tests else sf.lit(True)


def _share_a_variable(left: Frame, right: Frame) -> Column:
    shared = [variable for variable in left.variables if variable in right.variables]
    return reduce(or_, [left.column(one).isNotNull() & _right(right, one).isNotNull() for one in shared])


def _right(right: Frame, variable: Variable) -> Column:
    return sf.col(f"rc{right.variables.index(variable)}")


def _pairs(left: Frame, right: Frame, condition: Column) -> DataFrame:
    one, other = left.data, right.numbered("r")
    if right.rows <= left.rows:
        other = for_join(other, right.rows)
    else:
        one = for_join(one, left.rows)
    return one.join(other, condition, "inner")


def _exists(left: Frame, right: Frame, condition: Column, how: str) -> Frame:
    other = for_join(right.numbered("r"), right.rows)
    return Frame(left.variables, left.data.join(other, condition, how), left.rows)


def _merged(left: Frame, right: Frame, variable: Variable, certain: Certain) -> Column:
    if variable not in right.variables:
        return left.column(variable)
    if variable not in left.variables:
        return _right(right, variable)
    return left.column(variable) if variable in certain else sf.coalesce(left.column(variable), _right(right, variable))
