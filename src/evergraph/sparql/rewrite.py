"""Rewriting of patterns: renaming of variables, and substitution of values for variables.

Substitution gives EXISTS its meaning. The recommendation defines it as the replacement of variables by their values
(https://www.w3.org/TR/sparql11-query/#defn_substitute), which leaves known holes (https://w3c.github.io/sparql-exists/docs/sparql-exists.html).
They are closed here so that a variable keeps its identity while it has its value:

* A replaced variable is still bound in the solutions of the pattern, so that MINUS has the same shared variables.
* A blank node that replaces a variable is that node, not a wildcard.
* ``BOUND(?v)`` of a replaced variable is true.
* A variable that the pattern itself assigns (BIND, an aggregate, a SELECT expression) is not replaced; the value that
  it gets must be the given one.
* In a sub-select only projected variables are replaced: the others have got names of their own.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias, assert_never

from evergraph.sparql.algebra import (
    BGP,
    TRUE,
    UNIT,
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
    OrderCondition,
    Path,
    Pattern,
    PatternTerm,
    Plus,
    Project,
    Reduced,
    Service,
    Slice,
    TriplePattern,
    Union,
    Values,
    join,
)
from evergraph.sparql.scope import assigned, mentioned, variables
from evergraph.terms import BlankNode, DefaultGraph, Literal, NamedNode, Term, Triple, Variable

Bindings: TypeAlias = Mapping[Variable, Term]


def map_expression(
    expression: Expression,
    on_leaf: Callable[[Term | Variable | Bound], Expression],
    on_pattern: Callable[[Pattern], Pattern],
) -> Expression:
    """Rebuild an expression from new leaves and new EXISTS patterns."""

    def go(one: Expression) -> Expression:
        match one:
            case NamedNode() | BlankNode() | Literal() | Triple() | Variable() | Bound():
                return on_leaf(one)
            case Exists(pattern):
                return Exists(on_pattern(pattern))
            case And() | Or() | Coalesce():
                return replace(one, operands=tuple(map(go, one.operands)))
            case Not() | Negate() | Plus() | Cast():
                return replace(one, operand=go(one.operand))
            case Compare() | Calculate():
                return replace(one, left=go(one.left), right=go(one.right))
            case In(operand, members):
                return In(go(operand), tuple(map(go, members)))
            case If(condition, then, otherwise):
                return If(go(condition), go(then), go(otherwise))
            case Call() | ExtensionCall():
                return replace(one, arguments=tuple(map(go, one.arguments)))
            case _:
                assert_never(one)

    return go(expression)


def map_pattern(
    pattern: Pattern,
    on_pattern: Callable[[Pattern], Pattern],
    on_expression: Callable[[Expression], Expression],
) -> Pattern:
    """Rebuild one node from new operands and new expressions; leaves stay as they are."""
    match pattern:
        case BGP() | Path() | GraphNames() | Values():
            return pattern
        case Join(left, right):
            return join(on_pattern(left), on_pattern(right))
        case LeftJoin(left, right, condition):
            return LeftJoin(on_pattern(left), on_pattern(right), on_expression(condition))
        case Minus(left, right):
            return Minus(on_pattern(left), on_pattern(right))
        case Union(operands):
            return Union(tuple(map(on_pattern, operands)))
        case Filter(condition, operand):
            return Filter(on_expression(condition), on_pattern(operand))
        case Extend(operand, variable, expression):
            return Extend(on_pattern(operand), variable, on_expression(expression))
        case Group(operand, keys, aggregates):
            return Group(
                on_pattern(operand),
                keys,
                tuple(
                    (name, one if one.expression is None else replace(one, expression=on_expression(one.expression)))
                    for name, one in aggregates
                ),
            )
        case OrderBy(operand, conditions):
            return OrderBy(
                on_pattern(operand),
                tuple(OrderCondition(on_expression(one.expression), one.descending) for one in conditions),
            )
        case Graph() | Project() | Distinct() | Reduced() | Slice() | Service():
            return replace(pattern, operand=on_pattern(pattern.operand))
        case _:
            assert_never(pattern)


def rename(pattern: Pattern, names: Mapping[Variable, Variable]) -> Pattern:
    """Give variables other names, wherever they occur."""

    def one(term: PatternTerm) -> PatternTerm:
        return names.get(term, term) if isinstance(term, Variable) else term

    def name(variable: Variable) -> Variable:
        return names.get(variable, variable)

    def on_leaf(leaf: Term | Variable | Bound) -> Expression:
        return Bound(name(leaf.variable)) if isinstance(leaf, Bound) else one(leaf)

    def on_expression(expression: Expression) -> Expression:
        return map_expression(expression, on_leaf, on_pattern)

    def on_pattern(node: Pattern) -> Pattern:
        node = map_pattern(node, on_pattern, on_expression)
        match node:
            case BGP() | Path() | GraphNames():
                return _replace_terms(node, one)
            case Graph() if node.graph in names:
                return replace(node, graph=name(node.graph))
            case Values() | Project():
                return replace(node, variables=tuple(map(name, node.variables)))
            case Extend():
                return replace(node, variable=name(node.variable))
            case Group():
                aggregates = tuple((name(variable), aggregate) for variable, aggregate in node.aggregates)
                return replace(node, keys=tuple(map(name, node.keys)), aggregates=aggregates)
            case Service(endpoint=Variable() as endpoint):
                return replace(node, endpoint=name(endpoint))
            case _:
                return node

    return on_pattern(pattern)


def rename_expression(expression: Expression, names: Mapping[Variable, Variable]) -> Expression:
    """Give variables of an expression other names."""
    renamed = rename(Filter(expression, UNIT), names)
    assert isinstance(renamed, Filter)
    return renamed.condition


def _replace_terms(leaf: BGP | Path | GraphNames, one: Callable[[PatternTerm], PatternTerm]) -> Pattern:
    def graph(context: DefaultGraph | PatternTerm) -> DefaultGraph | PatternTerm:
        return context if isinstance(context, DefaultGraph) else one(context)

    match leaf:
        case BGP(triples):
            return BGP(
                tuple(
                    TriplePattern(one(triple.subject), one(triple.predicate), one(triple.object), graph(triple.graph))
                    for triple in triples
                )
            )
        case Path(subject, path, object_, context):
            return Path(one(subject), path, one(object_), graph(context))
        case GraphNames(context):
            return GraphNames(one(context))
        case _:
            assert_never(leaf)


def substitute(pattern: Pattern, bindings: Bindings) -> Pattern:
    """Fix variables of a pattern to values; see the head of this module. No variable may be `assigned` in it."""

    def one(term: PatternTerm) -> PatternTerm:
        return bindings.get(term, term) if isinstance(term, Variable) else term

    def on_leaf(leaf: Term | Variable | Bound) -> Expression:
        if isinstance(leaf, Bound):
            return TRUE if leaf.variable in bindings else leaf
        return one(leaf)

    def on_expression(expression: Expression) -> Expression:
        return map_expression(expression, on_leaf, lambda inner: correlate(inner, bindings))

    def on_pattern(node: Pattern) -> Pattern:
        match node:
            case BGP() | Path() | GraphNames():
                return join(_replace_terms(node, one), _given(node, bindings))
            case Values():
                return join(node, _given(node, bindings))
            case Graph(graph, operand) if graph in bindings:
                here = join(GraphNames(bindings[graph]), _row({graph: bindings[graph]}))
                return join(here, on_pattern(fix_graph(operand, graph, bindings[graph])))
            case _:
                return map_pattern(node, on_pattern, on_expression)

    return on_pattern(pattern)


def fix_graph(pattern: Pattern, graph: Variable, name: Term) -> Pattern:
    """Let a pattern look at one graph instead of at each; unlike `substitute`, nothing remembers the variable."""

    def one(term: PatternTerm) -> PatternTerm:
        return name if term == graph else term

    def on_expression(expression: Expression) -> Expression:
        return map_expression(expression, lambda leaf: leaf, on_pattern)

    def on_pattern(node: Pattern) -> Pattern:
        match node:
            case BGP() | Path() | GraphNames():
                return _replace_terms(node, one)
            case Graph() if node.graph == graph:
                return on_pattern(node.operand)
            case _:
                return map_pattern(node, on_pattern, on_expression)

    return on_pattern(pattern)


def correlate(pattern: Pattern, bindings: Bindings) -> Pattern:
    """Return the pattern that has a solution if, and only if, EXISTS of the pattern holds for the given solution."""
    wanted = mentioned(pattern)
    own = assigned(pattern)
    fixed = {variable: value for variable, value in bindings.items() if variable in wanted and variable not in own}
    checked = {variable: value for variable, value in bindings.items() if variable in own}
    return join(substitute(pattern, fixed), _row(checked))


def _given(leaf: Pattern, bindings: Bindings) -> Pattern:
    bound = variables(leaf).possible
    return _row({variable: value for variable, value in bindings.items() if variable in bound})


def _row(bindings: Bindings) -> Pattern:
    return Values(tuple(bindings), (tuple(bindings.values()),)) if bindings else UNIT
