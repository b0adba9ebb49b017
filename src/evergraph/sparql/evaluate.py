"""Evaluation from scratch: what a query means. Everything that is maintained incrementally is checked against this.

Bottom-up, operator by operator, as https://www.w3.org/TR/sparql11-query/#sparqlAlgebraEval has it, on bags.
"""

from collections.abc import Callable, Iterator
from typing import assert_never

from evergraph.delta import Bag
from evergraph.errors import UnsupportedQuery
from evergraph.sparql import relation
from evergraph.sparql.aggregates import aggregate
from evergraph.sparql.algebra import (
    BGP,
    Aggregate,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Graph,
    GraphContext,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    Minus,
    OrderBy,
    OrderCondition,
    Path,
    Pattern,
    PatternTerm,
    Project,
    Reduced,
    Service,
    Slice,
    TriplePattern,
    Union,
    Values,
)
from evergraph.sparql.dataset import Dataset, TripleIndex
from evergraph.sparql.expressions import Compiler, Environment, Layout, Row, is_volatile
from evergraph.sparql.reachability import pairs
from evergraph.sparql.relation import Relation
from evergraph.sparql.rewrite import correlate, fix_graph
from evergraph.sparql.scope import assigned, mentioned
from evergraph.sparql.values import SortKey, integer, sort_key
from evergraph.terms import DefaultGraph, Term, Variable


class Evaluator:
    """Evaluates patterns over one dataset."""

    def __init__(self, dataset: Dataset, environment: Environment) -> None:
        self.dataset = dataset
        self.environment = environment

    def evaluate(self, pattern: Pattern) -> Relation:
        """Return the solutions of a pattern, as a bag."""
        match pattern:
            case BGP(triples):
                return self._bgp(triples)
            case Path():
                return self._path(pattern)
            case GraphNames(graph):
                return _matched((graph,), (((name,), 1) for name in self.dataset.named))
            case Graph(graph, operand):
                return self._graph(graph, operand)
            case Join(left, right):
                return relation.join(self.evaluate(left), self.evaluate(right))
            case LeftJoin(left, right, condition):
                return self._left_join(self.evaluate(left), self.evaluate(right), condition, assigned(pattern))
            case Filter(condition, operand):
                return self._filter(self.evaluate(operand), condition, assigned(operand))
            case Union(operands):
                return _union([self.evaluate(operand) for operand in operands])
            case Minus(left, right):
                return relation.minus(self.evaluate(left), self.evaluate(right))
            case Extend(operand, variable, expression):
                return self._extend(self.evaluate(operand), variable, expression, assigned(operand))
            case Values(columns, rows):
                return Relation(columns, Bag(rows))
            case Project(operand, columns):
                return self.evaluate(operand).project(columns)
            case Distinct(operand):
                inner = self.evaluate(operand)
                return Relation(inner.columns, Bag(inner.rows))
            case Group():
                return self._group(pattern)
            case Slice():
                return Relation(self.columns(pattern), Bag(self.sequence(pattern)))
            case Reduced(operand) | OrderBy(operand):
                return self.evaluate(operand)
            case Service(endpoint):
                raise UnsupportedQuery(
                    f"SERVICE {endpoint} is not evaluated",
                    hint="load the remote data into a named graph, and use GRAPH instead.",
                )
            case _:
                assert_never(pattern)

    def sequence(self, pattern: Pattern) -> list[Row]:
        """Return the solutions in order: by ORDER BY, and where that leaves it open, by the columns themselves."""
        match pattern:
            case Slice(operand, start, length):
                rows = self.sequence(operand)
                return rows[start:] if length is None else rows[start : start + length]
            case Distinct(operand):
                return list(dict.fromkeys(self.sequence(operand)))
            case Reduced(operand):
                return self.sequence(operand)
            case Project(OrderBy(operand, conditions), columns):
                return self._ordered(self.evaluate(operand), conditions, columns, assigned(operand))
            case _:
                return sorted(self.evaluate(pattern).rows.rows(), key=_row_key)

    def columns(self, pattern: Pattern) -> tuple[Variable, ...]:
        """Return the columns of a sequence."""
        match pattern:
            case Slice(operand) | Distinct(operand) | Reduced(operand):
                return self.columns(operand)
            case Project(_, columns):
                return columns
            case _:
                raise AssertionError(f"no projection under {pattern}")

    def _ordered(
        self,
        inner: Relation,
        conditions: tuple[OrderCondition, ...],
        columns: tuple[Variable, ...],
        computed: frozenset[Variable],
    ) -> list[Row]:
        compiler = self._compiler(inner.columns, computed)
        keys = [(compiler.term(condition.expression), condition.descending) for condition in conditions]
        slots = [inner.columns.index(column) if column in inner.columns else None for column in columns]
        rows = list(inner.rows.rows())
        rows.sort(key=lambda row: _row_key(tuple(None if slot is None else row[slot] for slot in slots)))
        for key, descending in reversed(keys):
            rows.sort(key=lambda row, key=key: sort_key(key(row)), reverse=descending)  # type: ignore[misc]
        return [tuple(None if slot is None else row[slot] for slot in slots) for row in rows]

    def _compiler(self, columns: tuple[Variable, ...], computed: frozenset[Variable]) -> Compiler:
        return Compiler(Layout(columns, computed), self.environment, self._exists)

    def _exists(self, exists: Exists, layout: Layout) -> Callable[[Row], bool]:
        """Evaluate the correlated pattern, once for each choice of values for the variables that it mentions."""
        wanted = [(slot, column) for slot, column in enumerate(layout.columns) if column in mentioned(exists.pattern)]
        known: dict[Row, bool] = {}

        def holds(row: Row) -> bool:
            key = tuple(row[slot] for slot, _ in wanted)
            if key not in known:
                bindings = {column: term for slot, column in wanted if (term := row[slot]) is not None}
                known[key] = len(self.evaluate(correlate(exists.pattern, bindings)).rows) > 0
            return known[key]

        return holds

    def _indexes(self, context: GraphContext) -> Iterator[tuple[Term | None, TripleIndex]]:
        """Iterate over the graphs that a pattern looks at, with the name for its variable if it has one."""
        if isinstance(context, DefaultGraph):
            yield None, self.dataset.default
        elif isinstance(context, Variable):
            yield from self.dataset.named.items()
        elif context in self.dataset.named:
            yield None, self.dataset.named[context]

    def _bgp(self, triples: tuple[TriplePattern, ...]) -> Relation:
        """Extend solutions triple by triple, through the index; the next triple is one with the most known members."""
        solutions: list[dict[Variable, Term]] = [{}]
        bound: set[Variable] = set()
        waiting = list(triples)
        while waiting:
            triple = max(waiting, key=lambda one: sum(_is_known(term, bound) for term in _members(one)))
            waiting.remove(triple)
            solutions = [extended for solution in solutions for extended in self._triple(triple, solution)]
            bound.update(term for term in _members(triple) if isinstance(term, Variable))
        columns = tuple(sorted(bound, key=str))
        return Relation(columns, Bag(tuple(solution[column] for column in columns) for solution in solutions))

    def _triple(self, pattern: TriplePattern, solution: dict[Variable, Term]) -> Iterator[dict[Variable, Term]]:
        def known(term: PatternTerm) -> Term | None:
            return solution.get(term) if isinstance(term, Variable) else term

        context = pattern.graph
        if isinstance(context, Variable) and context in solution:
            context = solution[context]
        terms = (pattern.subject, pattern.predicate, pattern.object)
        for name, index in self._indexes(context):
            for triple in index.match(known(terms[0]), known(terms[1]), known(terms[2])):
                extended = _bind(solution, (*terms, context), (*triple, name))
                if extended is not None:
                    yield extended

    def _path(self, pattern: Path) -> Relation:
        def constant(term: PatternTerm) -> Term | None:
            return None if isinstance(term, Variable) else term

        ends = (pattern.subject, pattern.object)
        found = (
            ((*pair, name), 1)
            for name, index in self._indexes(pattern.graph)
            for pair in pairs(index, pattern.path, constant(ends[0]), constant(ends[1]))
        )
        return _matched((*ends, pattern.graph), found)

    def _graph(self, graph: Variable, operand: Pattern) -> Relation:
        parts = []
        for name in self.dataset.named:
            here = Relation((graph,), Bag([(name,)]))
            parts.append(relation.join(self.evaluate(fix_graph(operand, graph, name)), here))
        return _union(parts)

    def _left_join(
        self, left: Relation, right: Relation, condition: Expression, computed: frozenset[Variable]
    ) -> Relation:
        def compiled(matcher: relation.Matcher) -> Callable[[Row], bool]:
            test = self._compiler(matcher.columns, computed).condition(condition)
            return lambda row: test(row) is True

        return relation.left_join(left, right, compiled)

    def _filter(self, inner: Relation, condition: Expression, computed: frozenset[Variable]) -> Relation:
        test = self._compiler(inner.columns, computed).condition(condition)
        kept: Bag[Row] = Bag()
        for row, weight in _solutions(inner, condition):
            if test(row):
                kept.add(row, weight)
        return Relation(inner.columns, kept)

    def _extend(
        self, inner: Relation, variable: Variable, expression: Expression, computed: frozenset[Variable]
    ) -> Relation:
        inner = inner.project(tuple(column for column in inner.columns if column != variable))
        value = self._compiler(inner.columns, computed).term(expression)
        extended: Bag[Row] = Bag()
        for row, weight in _solutions(inner, expression):
            extended.add((*row, value(row)), weight)
        return Relation((*inner.columns, variable), extended)

    def _group(self, group: Group) -> Relation:
        inner = self.evaluate(group.operand)
        compiler = self._compiler(inner.columns, assigned(group.operand))
        key = [inner.columns.index(one) if one in inner.columns else None for one in group.keys]
        members: dict[Row, list[tuple[Row, int]]] = {} if group.keys else {(): []}
        for row, weight in inner.rows.items():
            members.setdefault(tuple(None if slot is None else row[slot] for slot in key), []).append((row, weight))
        functions = [_aggregator(definition, compiler) for _, definition in group.aggregates]
        rows = Bag((*values, *(function(rows) for function in functions)) for values, rows in members.items())
        return Relation((*group.keys, *(variable for variable, _ in group.aggregates)), rows)


def _aggregator(definition: Aggregate, compiler: Compiler) -> Callable[[list[tuple[Row, int]]], Term | None]:
    if definition.expression is None:
        return lambda rows: integer(sum(1 if definition.distinct else weight for _, weight in rows))
    value = compiler.term(definition.expression)
    return lambda rows: aggregate(definition, ((value(row), weight) for row, weight in rows))


def _solutions(inner: Relation, expression: Expression) -> Iterator[tuple[Row, int]]:
    """Iterate over rows and weights; one by one where two equal solutions may differ in what is computed for them."""
    if is_volatile(expression):
        return ((row, 1) for row in inner.rows.rows())
    return iter(inner.rows.items())


def _row_key(row: Row) -> tuple[SortKey, ...]:
    return tuple(map(sort_key, row))


def _members(triple: TriplePattern) -> tuple[GraphContext, ...]:
    return (triple.subject, triple.predicate, triple.object, triple.graph)


def _is_known(term: GraphContext, bound: set[Variable]) -> bool:
    return not isinstance(term, Variable) or term in bound


def _bind(
    solution: dict[Variable, Term], pattern: tuple[GraphContext, ...], terms: tuple[Term | None, ...]
) -> dict[Variable, Term] | None:
    """Extend a solution by what variables matched; None if one of them matched two different terms."""
    extended = dict(solution)
    for variable, term in zip(pattern, terms, strict=True):
        if isinstance(variable, Variable) and term is not None and extended.setdefault(variable, term) != term:
            return None
    return extended


def _matched(pattern: tuple[GraphContext, ...], found: Iterator[tuple[tuple[Term | None, ...], int]]) -> Relation:
    """Keep what fits a pattern of constants and variables, as a relation over its variables."""
    columns = tuple(dict.fromkeys(term for term in pattern if isinstance(term, Variable)))
    rows: Bag[Row] = Bag()
    for terms, weight in found:
        fits = all(
            isinstance(one, Variable | DefaultGraph) or term is None or one == term
            for one, term in zip(pattern, terms, strict=True)
        )
        solution = _bind({}, pattern, terms) if fits else None
        if solution is not None:
            rows.add(tuple(solution[column] for column in columns), weight)
    return Relation(columns, rows)


def _union(parts: list[Relation]) -> Relation:
    columns = tuple(dict.fromkeys(column for part in parts for column in part.columns))
    rows: Bag[Row] = Bag()
    for part in parts:
        rows.update(part.project(columns).rows)
    return Relation(columns, rows) if parts else Relation()
