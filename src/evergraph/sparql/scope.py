"""Which variables a pattern binds, which it mentions, and whether it needs a graph to be there."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import assert_never

from evergraph.sparql.algebra import (
    BGP,
    AggregateFunction,
    And,
    Bound,
    Calculate,
    Call,
    Cast,
    Coalesce,
    Compare,
    Distinct,
    Exists,
    Expression,
    Extend,
    ExtensionCall,
    Filter,
    Graph,
    GraphNames,
    Group,
    If,
    In,
    Join,
    LeftJoin,
    Minus,
    Negate,
    Not,
    Or,
    OrderBy,
    Path,
    Pattern,
    Plus,
    Project,
    Reduced,
    Service,
    Slice,
    TriplePattern,
    Union,
    Values,
)
from evergraph.terms import BlankNode, Literal, NamedNode, Triple, Variable


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables of the solutions of a pattern: ``certain`` are bound in all of them, ``possible`` in some."""

    certain: frozenset[Variable] = frozenset()
    possible: frozenset[Variable] = frozenset()

    def __and__(self, other: "Scope") -> "Scope":
        """What a solution that joins one of each binds."""
        return Scope(self.certain | other.certain, self.possible | other.possible)

    def __or__(self, other: "Scope") -> "Scope":
        """What a solution of either binds."""
        return Scope(self.certain & other.certain, self.possible | other.possible)

    def only(self, variables: frozenset[Variable]) -> "Scope":
        """Keep these variables and no other; they are in scope even if nothing binds them."""
        return Scope(self.certain & variables, variables)


def variables(pattern: Pattern) -> Scope:
    """Tell what the solutions of a pattern bind, whatever the data."""
    match pattern:
        case BGP(triples):
            return _bound(term for triple in triples for term in _positions(triple))
        case Path():
            return _bound(_positions(pattern))
        case GraphNames(graph):
            return _bound((graph,))
        case Graph(graph, operand):
            return variables(operand) & _bound((graph,))
        case Join(left, right):
            return variables(left) & variables(right)
        case LeftJoin(left, right):
            return variables(left) & Scope(possible=variables(right).possible)
        case Minus(left):
            return variables(left)
        case Union(operands):
            return reduce(Scope.__or__, map(variables, operands)) if operands else Scope()
        case Extend(operand, variable, expression):
            inner = variables(operand)
            return inner & (_bound((variable,)) if _cannot_fail(expression, inner) else _maybe(variable))
        case Values(columns, rows):
            certain = (column for index, column in enumerate(columns) if all(row[index] is not None for row in rows))
            return Scope(frozenset(certain), frozenset(columns))
        case Project(operand, kept):
            return variables(operand).only(frozenset(kept))
        case Group(operand, keys, aggregates):
            scope = variables(operand).only(frozenset(keys))
            for variable, aggregate in aggregates:
                counts = aggregate.function is AggregateFunction.COUNT
                scope &= _bound((variable,)) if counts else _maybe(variable)
            return scope
        case Service(endpoint, operand, silent):
            scope = variables(operand) & _bound((endpoint,))
            return Scope(possible=scope.possible) if silent else scope
        case Filter() | Distinct() | Reduced() | OrderBy() | Slice():
            return variables(pattern.operand)
        case _:
            assert_never(pattern)


def _bound(terms: Iterator[object] | tuple[object, ...]) -> Scope:
    found = frozenset(term for term in terms if isinstance(term, Variable))
    return Scope(found, found)


def _maybe(variable: Variable) -> Scope:
    return Scope(possible=frozenset((variable,)))


def _positions(node: TriplePattern | Path) -> tuple[object, ...]:
    middle = (node.predicate,) if isinstance(node, TriplePattern) else ()
    return (node.subject, *middle, node.object, node.graph)


def _cannot_fail(expression: Expression, inner: Scope) -> bool:
    if isinstance(expression, Variable):
        return expression in inner.certain
    return isinstance(expression, NamedNode | Literal | Bound)


def children(pattern: Pattern) -> tuple[Pattern, ...]:
    """Return the operands of a pattern; not what its expressions hold."""
    match pattern:
        case BGP() | Path() | GraphNames() | Values():
            return ()
        case Join(left, right) | LeftJoin(left, right) | Minus(left, right):
            return (left, right)
        case Union(operands):
            return operands
        case (
            Graph()
            | Filter()
            | Extend()
            | Project()
            | Distinct()
            | Reduced()
            | Group()
            | OrderBy()
            | Slice()
            | Service()
        ):
            return (pattern.operand,)
        case _:
            assert_never(pattern)


def expressions(pattern: Pattern) -> tuple[Expression, ...]:
    """Return the expressions of a pattern itself; not those of its operands."""
    match pattern:
        case Filter(condition) | LeftJoin(condition=condition):
            return (condition,)
        case Extend(expression=expression):
            return (expression,)
        case Group(aggregates=aggregates):
            return tuple(one.expression for _, one in aggregates if one.expression is not None)
        case OrderBy(conditions=conditions):
            return tuple(condition.expression for condition in conditions)
        case (
            BGP()
            | Path()
            | GraphNames()
            | Graph()
            | Join()
            | Minus()
            | Union()
            | Values()
            | Project()
            | Distinct()
            | Reduced()
            | Slice()
            | Service()
        ):
            return ()
        case _:
            assert_never(pattern)


def subexpressions(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of an expression; not the pattern of an EXISTS."""
    match expression:
        case NamedNode() | BlankNode() | Literal() | Triple() | Variable() | Exists():
            return ()
        case Bound(variable):
            return (variable,)
        case And(operands) | Or(operands) | Coalesce(operands):
            return operands
        case Not(operand) | Negate(operand) | Plus(operand) | Cast(operand=operand):
            return (operand,)
        case Compare() | Calculate():
            return (expression.left, expression.right)
        case In(operand, members):
            return (operand, *members)
        case If(condition, then, otherwise):
            return (condition, then, otherwise)
        case Call() | ExtensionCall():
            return expression.arguments
        case _:
            assert_never(expression)


def walk(expression: Expression) -> Iterator[Expression]:
    """Iterate over an expression and all that it is made of; an EXISTS is one expression."""
    yield expression
    for part in subexpressions(expression):
        yield from walk(part)


def exists_in(expression: Expression) -> tuple[Exists, ...]:
    """Return the EXISTS of an expression, not those within one."""
    return tuple(part for part in walk(expression) if isinstance(part, Exists))


def mentioned(pattern: Pattern) -> frozenset[Variable]:
    """Return every variable that occurs in a pattern, in any position, expressions and EXISTS included."""
    own: set[Variable] = set()
    for expression in expressions(pattern):
        own |= free(expression)
    match pattern:
        case BGP() | Path() | GraphNames() | Values():
            own |= variables(pattern).possible
        case Graph(graph=name) | Extend(variable=name) | Service(endpoint=name):
            own |= {name} if isinstance(name, Variable) else set()
        case Group(keys=keys, aggregates=aggregates):
            own |= {*keys, *(variable for variable, _ in aggregates)}
        case Project(variables=kept):
            own |= set(kept)
        case _:
            pass
    return frozenset(own).union(*map(mentioned, children(pattern)))


def free(expression: Expression) -> frozenset[Variable]:
    """Return every variable that occurs in an expression, those of its EXISTS patterns included."""
    found: set[Variable] = set()
    for part in walk(expression):
        if isinstance(part, Variable):
            found.add(part)
        elif isinstance(part, Exists):
            found |= mentioned(part.pattern)
    return frozenset(found)


def assigned(pattern: Pattern) -> frozenset[Variable]:
    """Return the variables that a pattern computes: by BIND, SELECT expressions and aggregates."""
    inner = frozenset[Variable]().union(*map(assigned, children(pattern)))
    match pattern:
        case Extend(variable=variable):
            return inner | {variable}
        case Group(aggregates=aggregates):
            return inner | {variable for variable, _ in aggregates}
        case _:
            return inner


def needs_graph(pattern: Pattern, graph: NamedNode | Variable) -> bool:
    """Tell whether the pattern has solutions only in a graph of that name, and binds it if it is a variable."""
    match pattern:
        case BGP(triples):
            return any(triple.graph == graph for triple in triples)
        case Path() | GraphNames() | Graph():
            return pattern.graph == graph
        case Join(left, right):
            return needs_graph(left, graph) or needs_graph(right, graph)
        case LeftJoin(left) | Minus(left):
            return needs_graph(left, graph)
        case Union(operands):
            return all(needs_graph(operand, graph) for operand in operands)
        case Group(operand, keys):
            return bool(keys) and (graph in keys or isinstance(graph, NamedNode)) and needs_graph(operand, graph)
        case Project(operand, kept):
            return (graph in kept or isinstance(graph, NamedNode)) and needs_graph(operand, graph)
        case Filter() | Extend() | Distinct() | Reduced() | OrderBy() | Slice():
            return needs_graph(pattern.operand, graph)
        case Values() | Service():
            return False
        case _:
            assert_never(pattern)
