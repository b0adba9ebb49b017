"""When EXISTS is a join: whether substitution of values means the same as compatibility of rows.

SPARQL defines EXISTS by putting the values of a solution into the pattern (`evergraph.sparql.rewrite`). For most
patterns this is the same as asking for a compatible row of the pattern, evaluated once and for all; then a semi-join
maintains it. A filter on an outer variable at the top of the pattern may become the condition of that join. The rest,
where a value changes what an inner OPTIONAL, MINUS, filter, slice or empty path sees, needs a plan for each binding.
"""

from dataclasses import dataclass
from typing import assert_never

from evergraph.sparql.algebra import (
    BGP,
    TRUE,
    And,
    Distinct,
    Expression,
    Extend,
    Filter,
    Graph,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    Minus,
    OneOrMore,
    OrderBy,
    Path,
    PathExpression,
    Pattern,
    Project,
    Reduced,
    Service,
    Slice,
    Union,
    Values,
    ZeroOrMore,
    ZeroOrOne,
    conjunction,
    join,
)
from evergraph.sparql.algebra.paths import Alternative, Inverse, NegatedSet, Sequence
from evergraph.sparql.scope import assigned, exists_in, free, mentioned, variables
from evergraph.terms import NamedNode, Variable


@dataclass(frozen=True, slots=True)
class Body:
    """A pattern whose compatible rows decide EXISTS, with a condition on both rows together."""

    pattern: Pattern
    condition: Expression = TRUE


def decorrelate(pattern: Pattern, outer: frozenset[Variable]) -> Body | str:
    """Turn the pattern of an EXISTS under solutions that bind ``outer`` into the body of a join, or say why not."""
    own = assigned(pattern) & outer
    if not own:
        pattern = _for_existence(pattern)
    replaced = outer - own
    pattern, conditions = _hoist(pattern, replaced, own)
    return _obstacle(pattern, replaced) or Body(pattern, conjunction(*conditions))


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """Take a conjunction apart: a filter keeps a row if, and only if, all of these are true."""
    if isinstance(expression, And):
        return tuple(part for operand in expression.operands for part in conjuncts(operand))
    return () if expression == TRUE else (expression,)


def _for_existence(pattern: Pattern) -> Pattern:
    """Drop what cannot make the difference between some solutions and none."""
    match pattern:
        case Distinct(operand) | Reduced(operand) | OrderBy(operand) | Project(operand) | Extend(operand):
            return _for_existence(operand)
        case Slice(operand, 0, length) if length != 0:
            return _for_existence(operand)
        case LeftJoin(left):
            return _for_existence(left)
        case _:
            return pattern


def _hoist(
    pattern: Pattern, replaced: frozenset[Variable], own: frozenset[Variable]
) -> tuple[Pattern, list[Expression]]:
    """Take out the filters that see an outer variable which their pattern does not bind."""
    match pattern:
        case Filter(condition, operand):
            operand, found = _hoist(operand, replaced, own)
            certain = variables(operand).certain
            kept = []
            for part in conjuncts(condition):
                needed = free(part)
                if needed & replaced <= certain or exists_in(part) or not needed & own <= certain:
                    kept.append(part)
                else:
                    found.append(part)
            return (Filter(conjunction(*kept), operand) if kept else operand), found
        case Join(left, right):
            left, from_left = _hoist(left, replaced, own)
            right, from_right = _hoist(right, replaced, own)
            left, out_left = _settle(left, from_left, right)
            right, out_right = _settle(right, from_right, left)
            return join(left, right), out_left + out_right
        case _:
            return pattern, []


def _settle(pattern: Pattern, found: list[Expression], sibling: Pattern) -> tuple[Pattern, list[Expression]]:
    """Put back the filters that would see more outside of a join than inside."""
    certain, others = variables(pattern).certain, variables(sibling).possible
    back = [one for one in found if not free(one) & others <= certain]
    pattern = Filter(conjunction(*back), pattern) if back else pattern
    return pattern, [one for one in found if one not in back]


def _obstacle(pattern: Pattern, outer: frozenset[Variable]) -> str:
    """Say what in a pattern makes substitution differ from compatibility; nothing if they agree."""
    match pattern:
        case BGP() | GraphNames() | Values():
            return ""
        case Path(subject, path, object_):
            if outer & {subject, object_} and _may_be_empty(path):
                return "a path of length zero may begin at a value that the graph does not hold"
            return ""
        case Graph(graph, operand):
            return _obstacle(operand, outer - {graph})
        case Join(left, right):
            return _obstacle(left, outer) or _obstacle(right, outer)
        case Union(operands):
            return next(filter(None, (_obstacle(operand, outer) for operand in operands)), "")
        case Filter(condition, operand):
            if not free(condition) & outer <= variables(operand).certain:
                return "an inner FILTER sees a variable from outside"
            return _obstacle(operand, outer)
        case LeftJoin(left, right, condition):
            if not (mentioned(right) | free(condition)) & outer <= variables(left).certain:
                return "an inner OPTIONAL sees a variable from outside"
            return _obstacle(left, outer) or _obstacle(right, outer)
        case Minus(left, right):
            inner = variables(right)
            if not mentioned(right) & outer <= variables(left).certain or not inner.possible & outer <= inner.certain:
                return "an inner MINUS sees a variable from outside"
            return _obstacle(left, outer) or _obstacle(right, outer)
        case Extend(operand, _, expression):
            if not free(expression) & outer <= variables(operand).certain:
                return "an inner BIND sees a variable from outside"
            return _obstacle(operand, outer)
        case Group(operand, keys):
            if not mentioned(operand) & outer <= variables(operand).certain & frozenset(keys):
                return "an inner GROUP BY sees a variable from outside"
            return _obstacle(operand, outer)
        case Slice(operand):
            if mentioned(operand) & outer:
                return "an inner LIMIT or OFFSET applies to each outer solution"
            return _obstacle(operand, outer)
        case Project() | Distinct() | Reduced() | OrderBy() | Service():
            return _obstacle(pattern.operand, outer)
        case _:
            assert_never(pattern)


def _may_be_empty(path: PathExpression) -> bool:
    match path:
        case ZeroOrOne() | ZeroOrMore():
            return True
        case NamedNode() | NegatedSet():
            return False
        case Inverse(inner) | OneOrMore(inner):
            return _may_be_empty(inner)
        case Sequence(steps):
            return all(map(_may_be_empty, steps))
        case Alternative(choices):
            return any(map(_may_be_empty, choices))
        case _:
            assert_never(path)
