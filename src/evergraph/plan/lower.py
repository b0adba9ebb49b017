"""Algebra to plan: every pattern becomes delta operators, EXISTS becomes joins, datasets become contexts."""

from collections.abc import Iterator
from itertools import count
from typing import assert_never

from evergraph.errors import UnsupportedQuery
from evergraph.plan import nodes
from evergraph.plan.exists import Body, conjuncts, decorrelate
from evergraph.plan.nodes import Context, EachGraph, Merge, Plan, QuadPattern
from evergraph.plan.paths import lower_path
from evergraph.plan.rebuild import rebuild
from evergraph.sparql.algebra import (
    BGP,
    Aggregate,
    Bound,
    Call,
    DatasetClause,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Function,
    Graph,
    GraphContext,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    Minus,
    Not,
    OrderBy,
    OrderCondition,
    Path,
    Pattern,
    Project,
    Reduced,
    Service,
    Slice,
    TriplePattern,
    Union,
    Values,
    conjunction,
)
from evergraph.sparql.rewrite import fix_graph
from evergraph.sparql.scope import assigned, children, exists_in, expressions, mentioned, subexpressions, variables
from evergraph.terms import BlankNode, DefaultGraph, Literal, NamedNode, Term, Triple, Variable

_REFUSED = frozenset({Function.RAND, Function.UUID, Function.STRUUID, Function.BNODE})
ANY_GRAPH = NamedNode("urn:evergraph:any-graph")
"""Stands for any one named graph where a plan is only looked at."""

UNIT_ROW = nodes.Values((), ((),))
"""The plan with exactly one row, which binds nothing."""


def empty(*columns: Variable) -> nodes.Values:
    """Make the plan that never has a row."""
    return nodes.Values(columns, ())


class Lowering:
    """Lowers the patterns of one query; what it names itself occurs nowhere in the query."""

    def __init__(self, dataset: DatasetClause | None = None) -> None:
        self.dataset = dataset
        self._numbers = count(1)

    def lower(self, pattern: Pattern) -> Plan:
        """Return the plan that maintains a pattern."""
        match pattern:
            case BGP(triples):
                return self._bgp(triples)
            case Path(subject, path, object_, graph):
                context = self.context(graph)
                if context is None:
                    return empty(*sorted(variables(pattern).possible, key=str))
                plan = lower_path(subject, path, object_, context, self.fresh)
                # A path of length zero needs a graph to be in.
                return nodes.Join(nodes.GraphNames(graph), plan) if isinstance(graph, NamedNode | BlankNode) else plan
            case GraphNames(graph):
                return self._graph_names(graph)
            case Graph(graph, operand):
                return self._graph(graph, operand)
            case Join(left, right):
                return nodes.Join(self.lower(left), self.lower(right))
            case LeftJoin(left, right, condition):
                return self._left_join(self.lower(left), self.lower(right), condition)
            case Filter(condition, operand):
                return self._filter(self.lower(operand), condition)
            case Union(operands):
                return nodes.Union(tuple(map(self.lower, operands))) if operands else empty()
            case Minus(left, right):
                return nodes.Minus(self.lower(left), self.lower(right))
            case Extend(operand, variable, expression):
                return self._extend(self.lower(operand), variable, expression, assigned(operand))
            case Values(columns, rows):
                return nodes.Values(columns, rows)
            case Project(operand, columns):
                return project(self.lower(operand), columns)
            case Distinct(operand):
                return nodes.Distinct(self.lower(operand))
            case Group(operand, keys, aggregates):
                return self._group(self.lower(operand), keys, aggregates)
            case Slice(operand, start, length):
                return self._slice(operand, start, length)
            case Reduced(operand) | OrderBy(operand):
                return self.lower(operand)
            case Service(endpoint):
                raise UnsupportedQuery(
                    f"SERVICE {endpoint} cannot be maintained: changes of a remote dataset are not seen",
                    hint="load the remote data into a named graph, and use GRAPH instead.",
                )
            case _:
                assert_never(pattern)

    def fresh(self, name: str) -> Variable:
        """Make a variable that neither the query nor its parser has made."""
        return Variable(f"{name}··{next(self._numbers)}")

    def context(self, graph: GraphContext) -> Context | None:
        """Tell which graphs of the store a pattern looks at; None if there can be none."""
        clause = self.dataset
        match graph:
            case DefaultGraph():
                if clause is None:
                    return graph
                graphs = tuple(dict.fromkeys(clause.default))
                return graphs[0] if len(graphs) == 1 else Merge(graphs)
            case Variable():
                if clause is None:
                    return EachGraph(graph)
                return EachGraph(graph, frozenset(clause.named)) if clause.named else None
            case NamedNode() | BlankNode():
                return graph if clause is None or graph in clause.named else None
            case Literal() | Triple():
                return None
            case _:
                assert_never(graph)

    def _bgp(self, triples: tuple[TriplePattern, ...]) -> Plan:
        """Make one BGP, or a join of several: merged graphs change in their own way, and stay apart."""
        scope = variables(BGP(triples)).possible
        merged: list[QuadPattern] = []
        others: list[QuadPattern] = []
        for triple in triples:
            context = self.context(triple.graph)
            if context is None or context == Merge(()):
                return empty(*sorted(scope, key=str))
            pattern = QuadPattern(triple.subject, triple.predicate, triple.object, context)
            (merged if isinstance(context, Merge) else others).append(pattern)
        return join_all([bgp(part) for part in (others, merged) if part])

    def _graph_names(self, graph: Term | Variable) -> Plan:
        context = self.context(graph)
        if isinstance(context, EachGraph):
            return nodes.GraphNames(context)
        if isinstance(context, NamedNode | BlankNode):
            return nodes.GraphNames(context)
        return empty(graph) if isinstance(graph, Variable) else empty()

    def _graph(self, graph: Variable, operand: Pattern) -> Plan:
        context = self.context(graph)
        if not isinstance(context, EachGraph):
            return empty(*sorted(variables(operand).possible | {graph}, key=str))
        name = min(context.among, key=str) if context.among else ANY_GRAPH
        return nodes.Graph(context, operand, self.lower(fix_graph(operand, graph, name)))

    def _left_join(self, left: Plan, right: Plan, condition: Expression) -> Plan:
        if not exists_in(condition):
            return nodes.LeftJoin(left, right, condition)
        tag = self.fresh("tag")
        tagged = nodes.Tag(left, tag)
        matches = self._filter(nodes.Join(tagged, right), condition)
        alone = nodes.SemiJoin(tagged, nodes.Project(matches, (tag,)), anti=True)
        return project(nodes.Union((matches, alone)), nodes.joined(left, right))

    def _filter(self, operand: Plan, condition: Expression) -> Plan:
        """Make each EXISTS that stands alone a semi-join, all others a mark; plain conditions go first."""
        plain: list[Expression] = []
        later: list[Expression] = []
        for part in conjuncts(condition):
            (later if exists_in(part) else plain).append(part)
        plan = nodes.Filter(operand, conjunction(*plain)) if plain else operand
        for part in later:
            match part:
                case Exists(pattern):
                    plan = self._semi_join(plan, pattern, anti=False)
                case Not(Exists(pattern)):
                    plan = self._semi_join(plan, pattern, anti=True)
                case _:
                    marked, rewritten = self._mark(plan, part)
                    plan = project(nodes.Filter(marked, rewritten), plan.variables)
        return plan

    def _semi_join(self, left: Plan, pattern: Pattern, *, anti: bool) -> Plan:
        body = decorrelate(pattern, frozenset(left.variables))
        if isinstance(body, Body):
            return nodes.SemiJoin(left, self.lower(body.pattern), body.condition, anti)
        marked, condition = self._mark(left, Not(Exists(pattern)) if anti else Exists(pattern))
        return project(nodes.Filter(marked, condition), left.variables)

    def _mark(self, plan: Plan, expression: Expression) -> tuple[Plan, Expression]:
        """Add a column for each EXISTS of an expression, and let the expression look there."""
        found = list(dict.fromkeys(exists_in(expression)))
        marks: dict[Expression, Expression] = {}
        outer = plan.variables
        for one in found:
            mark = self.fresh("exists")
            marks[one] = mark
            body = decorrelate(one.pattern, frozenset(outer))
            if isinstance(body, Body):
                plan = nodes.MarkJoin(plan, self.lower(body.pattern), mark, body.condition)
            else:
                wanted = mentioned(one.pattern)
                shared = tuple(variable for variable in outer if variable in wanted)
                plan = nodes.Correlate(plan, one.pattern, shared, mark, body)
        return plan, _replace(expression, marks)

    def _extend(self, operand: Plan, variable: Variable, expression: Expression, computed: frozenset[Variable]) -> Plan:
        operand = project(operand, tuple(column for column in operand.variables if column != variable))
        marked, rewritten = self._mark(operand, expression)
        if isinstance(rewritten, Variable):
            never_fails = rewritten in marked.certain
        else:
            never_fails = isinstance(rewritten, NamedNode | Literal | Bound)
        marks = frozenset(marked.variables) - frozenset(operand.variables)
        extended = nodes.Extend(marked, variable, rewritten, never_fails, computed | marks)
        return project(extended, (*operand.variables, variable))

    def _group(
        self, operand: Plan, keys: tuple[Variable, ...], aggregates: tuple[tuple[Variable, Aggregate], ...]
    ) -> Plan:
        plain = operand.variables
        rewritten = []
        for variable, aggregate in aggregates:
            if aggregate.expression is not None:
                operand, expression = self._mark(operand, aggregate.expression)
                aggregate = Aggregate(aggregate.function, expression, aggregate.distinct, aggregate.separator)
            rewritten.append((variable, aggregate))
        if any(one.expression is None and one.distinct for _, one in rewritten) and operand.variables != plain:
            raise UnsupportedQuery(
                "COUNT(DISTINCT *) cannot stand beside an aggregate of EXISTS",
                hint="compute the EXISTS with BIND first.",
            )
        return nodes.Group(operand, keys, tuple(rewritten))

    def _slice(self, pattern: Pattern, start: int, length: int | None) -> Plan:
        distinct = False
        while isinstance(pattern, Distinct | Reduced):
            distinct = distinct or isinstance(pattern, Distinct)
            pattern = pattern.operand
        if not isinstance(pattern, Project):
            operand = self.lower(pattern)
            return nodes.Slice(operand, (), operand.variables, start, length, distinct)
        if not isinstance(pattern.operand, OrderBy):
            return nodes.Slice(self.lower(pattern), (), pattern.variables, start, length, distinct)
        operand = self.lower(pattern.operand.operand)
        conditions = []
        for condition in pattern.operand.conditions:
            operand, expression = self._mark(operand, condition.expression)
            conditions.append(OrderCondition(expression, condition.descending))
        return nodes.Slice(operand, tuple(conditions), pattern.variables, start, length, distinct)


def bgp(patterns: list[QuadPattern]) -> Plan:
    """Make a basic graph pattern with all its variables, in the order in which they occur."""
    if not patterns:
        return UNIT_ROW
    terms = (term for pattern in patterns for term in pattern.positions())
    return nodes.BGP(tuple(patterns), tuple(dict.fromkeys(term for term in terms if isinstance(term, Variable))))


def join_all(plans: list[Plan]) -> Plan:
    """Join any number of plans, from left to right; none is the unit."""
    if not plans:
        return UNIT_ROW
    first, *rest = plans
    for plan in rest:
        first = nodes.Join(first, plan)
    return first


def project(plan: Plan, columns: tuple[Variable, ...]) -> Plan:
    """Cut a plan down to some columns, unless it has just these."""
    return plan if plan.variables == columns else nodes.Project(plan, columns)


def _replace(expression: Expression, marks: dict[Expression, Expression]) -> Expression:
    """Put marks in the place of the EXISTS; nothing else in an expression holds a pattern."""
    if expression in marks:
        return marks[expression]
    if not exists_in(expression):
        return expression
    return rebuild(expression, lambda part: _replace(part, marks))


def refuse_unmaintainable(pattern: Pattern) -> None:
    """Raise `UnsupportedQuery` for functions whose value does not follow from the solution."""
    for expression, is_bound in _all_expressions(pattern):
        if isinstance(expression, Call) and expression.function in _REFUSED:
            if expression.function is Function.BNODE and expression.arguments:
                if is_bound:
                    continue
                raise UnsupportedQuery(
                    "BNODE with a label can stand in BIND and in SELECT only: elsewhere no solution is whole",
                    hint="bind it to a variable first, and use that.",
                )
            raise UnsupportedQuery(
                f"{expression.function.name}() has another value each time, so that a standing query cannot use it",
                hint="leave it out, or compute it when the data are written.",
            )


def _all_expressions(pattern: Pattern) -> Iterator[tuple[Expression, bool]]:
    """Iterate over all expressions in a pattern; each comes with whether its value is bound to a variable."""
    waiting: list[Expression] = list(expressions(pattern))
    while waiting:
        one = waiting.pop()
        yield one, isinstance(pattern, Extend)
        waiting.extend(subexpressions(one))
        if isinstance(one, Exists):
            yield from _all_expressions(one.pattern)
    for child in children(pattern):
        yield from _all_expressions(child)


__all__ = ["ANY_GRAPH", "UNIT_ROW", "Lowering", "bgp", "empty", "join_all", "project", "refuse_unmaintainable"]
