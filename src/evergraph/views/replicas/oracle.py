"""What a replica must hold, from scratch: slow, and as close to the definition as code can be.

Every match is found together with the triples that take part in it. The target τ is all of these triples; potentially
interesting, ρ, are the triples that match some triple pattern of the interest and are not in τ.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from evergraph.sparql.algebra import (
    BGP,
    Alternative,
    Expression,
    Extend,
    Filter,
    Inverse,
    Join,
    LeftJoin,
    Minus,
    NegatedSet,
    OneOrMore,
    Path,
    PathExpression,
    Pattern,
    PatternTerm,
    Sequence,
    TriplePattern,
    Union,
    Values,
    ZeroOrMore,
    ZeroOrOne,
)
from evergraph.sparql.dataset import Dataset, Spo
from evergraph.sparql.evaluate import Evaluator
from evergraph.sparql.expressions import Environment
from evergraph.sparql.scope import children
from evergraph.terms import DEFAULT_GRAPH, BlankNode, DefaultGraph, NamedNode, Quad, Term, Variable
from evergraph.views.replicas.interest import Interest, tested

Solution: TypeAlias = dict[Variable, Term]
Used: TypeAlias = frozenset[tuple[TriplePattern | None, Spo]]
"""Triples that take part in a match, with the triple pattern that each of them matches; None for a step of a path."""
Ways: TypeAlias = dict[tuple[Term, Term], set[Spo]]
"""Pairs that a path joins, with all triples on the ways between them."""


def interesting(interest: Interest, quads: Iterable[Quad]) -> frozenset[Quad]:
    """Return τ: the triples that take part in a match, and those that an optional part adds to one."""
    matches = _Matches(Dataset(quads)).of(interest.pattern)
    return frozenset(
        _quad(triple)
        for _, used in matches
        for pattern, triple in used
        if interest.kept is None or (pattern is not None and interest.keeps(pattern))
    )


def potentially_interesting(interest: Interest, quads: Iterable[Quad]) -> frozenset[Quad]:
    """Return ρ: the triples that match some triple pattern, and are not in τ."""
    quads = frozenset(quads)
    patterns = {one for pattern in (interest.pattern, *tested(interest.pattern)) for one in _triple_patterns(pattern)}
    matching = {
        quad
        for quad in quads
        if isinstance(quad.graph_name, DefaultGraph)
        and any(_bind({}, one, (quad.subject, quad.predicate, quad.object)) is not None for one in patterns)
    }
    return frozenset(matching - interesting(interest, quads))


def _quad(triple: Spo) -> Quad:
    subject, predicate, object_ = triple
    assert isinstance(subject, NamedNode | BlankNode)
    assert isinstance(predicate, NamedNode)
    return Quad(subject, predicate, object_)


def _triple_patterns(pattern: Pattern) -> Iterator[TriplePattern]:
    match pattern:
        case BGP(triples):
            yield from triples
        case Path(path=path):
            yield from _steps(path)
        case _:
            for child in children(pattern):
                yield from _triple_patterns(child)


def _steps(path: PathExpression) -> Iterator[TriplePattern]:
    start, middle, end = Variable("start"), Variable("predicate"), Variable("end")
    match path:
        case NamedNode():
            yield TriplePattern(start, path, end, DEFAULT_GRAPH)
        case NegatedSet():
            yield TriplePattern(start, middle, end, DEFAULT_GRAPH)
        case Sequence(parts) | Alternative(parts):
            for part in parts:
                yield from _steps(part)
        case Inverse(inner) | ZeroOrOne(inner) | ZeroOrMore(inner) | OneOrMore(inner):
            yield from _steps(inner)
        case _:
            assert_never(path)


@dataclass(frozen=True, slots=True)
class _Matches:
    """Finds matches in one dataset."""

    dataset: Dataset

    def of(self, pattern: Pattern) -> list[tuple[Solution, Used]]:
        """Return all solutions of a pattern, each with the triples that it uses."""
        match pattern:
            case BGP(triples):
                found: list[tuple[Solution, Used]] = [({}, frozenset())]
                for one in triples:
                    found = _joined(found, list(self._triple(one)))
                return found
            case Path():
                return list(self._path(pattern))
            case Values(columns, rows):
                return [
                    (
                        {column: term for column, term in zip(columns, row, strict=True) if term is not None},
                        frozenset(),
                    )
                    for row in rows
                ]
            case Join(left, right):
                return _joined(self.of(left), self.of(right))
            case Union(operands):
                return [match for operand in operands for match in self.of(operand)]
            case Filter(condition, operand):
                return [match for match in self.of(operand) if self._holds(condition, match[0])]
            case LeftJoin(left, right, condition):
                return self._left_join(self.of(left), self.of(right), condition)
            case Minus(left, right):
                others = [solution for solution, _ in self.of(right)]
                return [
                    match
                    for match in self.of(left)
                    if not any(_compatible(match[0], other) and match[0].keys() & other.keys() for other in others)
                ]
            case Extend(operand, variable, expression):
                return [(self._extended(solution, variable, expression), used) for solution, used in self.of(operand)]
            case _:
                raise AssertionError(f"no part of an interest: {pattern}")

    def _triple(self, pattern: TriplePattern) -> Iterator[tuple[Solution, Used]]:
        for triple in self.dataset.default:
            solution = _bind({}, pattern, triple)
            if solution is not None:
                yield solution, frozenset([(pattern, triple)])

    def _left_join(
        self, left: list[tuple[Solution, Used]], right: list[tuple[Solution, Used]], condition: Expression
    ) -> list[tuple[Solution, Used]]:
        found = []
        for match in left:
            added = [both for both in _joined([match], right) if self._holds(condition, both[0])]
            found += added or [match]
        return found

    def _holds(self, condition: Expression, solution: Solution) -> bool:
        return len(self._evaluator().evaluate(Filter(condition, _row(solution))).rows) > 0

    def _extended(self, solution: Solution, variable: Variable, expression: Expression) -> Solution:
        relation = self._evaluator().evaluate(Extend(_row(solution), variable, expression))
        row = next(iter(relation.rows))
        return {column: term for column, term in zip(relation.columns, row, strict=True) if term is not None}

    def _evaluator(self) -> Evaluator:
        return Evaluator(self.dataset, Environment())

    def _path(self, pattern: Path) -> Iterator[tuple[Solution, Used]]:
        constants = {term for term in (pattern.subject, pattern.object) if not isinstance(term, Variable)}
        ways = self._ways(pattern.path, self.dataset.default.nodes() | constants)
        for (start, end), triples in ways.items():
            solution = _bind_terms({}, ((pattern.subject, start), (pattern.object, end)))
            if solution is not None:
                yield solution, frozenset((None, triple) for triple in triples)

    def _ways(self, path: PathExpression, nodes: set[Term]) -> Ways:
        """Return the pairs that a path joins. On the ways of a closure are all steps that lead on to its end."""
        match path:
            case NamedNode():
                return {(s, o): {(s, p, o)} for s, p, o in self.dataset.default if p == path}
            case Inverse(inner):
                return {(end, start): used for (start, end), used in self._ways(inner, nodes).items()}
            case Alternative(choices):
                return _united(self._ways(choice, nodes) for choice in choices)
            case Sequence(steps):
                total: Ways = {(node, node): set() for node in nodes}
                for step in steps:
                    total = _composed(total, self._ways(step, nodes))
                return total
            case NegatedSet(forward, inverse):
                ahead = [t for t in self.dataset.default if forward is not None and t[1] not in forward]
                behind = [t for t in self.dataset.default if inverse is not None and t[1] not in inverse]
                return _united(
                    [*({(t[0], t[2]): {t}} for t in ahead), *({(t[2], t[0]): {t}} for t in behind)],
                )
            case ZeroOrOne(inner):
                return _united([{(node, node): set() for node in nodes}, self._ways(inner, nodes)])
            case ZeroOrMore(inner):
                return self._closure(self._ways(inner, nodes), nodes)
            case OneOrMore(inner):
                one = self._ways(inner, nodes)
                more = self._closure(one, nodes)
                joined = set(_composed(one, more))
                return {pair: used for pair, used in more.items() if pair in joined}
            case _:
                assert_never(path)

    def _closure(self, step: Ways, nodes: set[Term]) -> Ways:
        reached = {node: {node} for node in nodes}
        while True:
            more = {a: ends | {d for c, d in step if c in ends} for a, ends in reached.items()}
            if more == reached:
                break
            reached = more
        return {
            (start, end): {
                triple for (a, b), used in step.items() if a in reached[start] and end in reached[b] for triple in used
            }
            for start, ends in reached.items()
            for end in ends
        }


def _row(solution: Solution) -> Values:
    return Values(tuple(solution), (tuple(solution.values()),))


def _united(parts: Iterable[Ways]) -> Ways:
    total: Ways = {}
    for part in parts:
        for pair, used in part.items():
            total.setdefault(pair, set()).update(used)
    return total


def _composed(first: Ways, second: Ways) -> Ways:
    return _united({(a, d): used | more} for (a, b), used in first.items() for (c, d), more in second.items() if b == c)


def _compatible(one: Solution, other: Solution) -> bool:
    return all(other.get(variable, term) == term for variable, term in one.items())


def _joined(left: list[tuple[Solution, Used]], right: list[tuple[Solution, Used]]) -> list[tuple[Solution, Used]]:
    return [(one | other, used | more) for one, used in left for other, more in right if _compatible(one, other)]


def _bind(solution: Solution, pattern: TriplePattern, triple: Spo) -> Solution | None:
    return _bind_terms(
        solution, ((pattern.subject, triple[0]), (pattern.predicate, triple[1]), (pattern.object, triple[2]))
    )


def _bind_terms(solution: Solution, pairs: Iterable[tuple[PatternTerm, Term]]) -> Solution | None:
    bound = dict(solution)
    for slot, term in pairs:
        expected = bound.setdefault(slot, term) if isinstance(slot, Variable) else slot
        if expected != term:
            return None
    return bound
