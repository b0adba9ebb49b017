"""Interests to standing queries: each part of an interest is a pattern, and the triples that its solutions put there.

A triple is in the target if it takes part in some match. For the triple patterns of one place of the interest this is
a pattern of its own: what stands above that place, with the optional parts on the way made mandatory. Optional parts
aside from the way neither add nor remove matches, and are left out where nothing on the way reads their variables; so
parts are never multiplied with each other. The union of the parts is the target.

A step of a path ``p+`` between two ends takes part where the first end leads to it, and it leads to the second: again a
pattern, of the same path.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from typing import TypeAlias, assert_never

from evergraph.sparql.algebra import (
    BGP,
    TRUE,
    Alternative,
    Construct,
    Extend,
    Filter,
    In,
    Inverse,
    Join,
    LeftJoin,
    Minus,
    NegatedSet,
    Not,
    OneOrMore,
    Path,
    PathExpression,
    Pattern,
    PatternTerm,
    Project,
    Select,
    Sequence,
    TriplePattern,
    TripleTemplate,
    Union,
    Values,
    ZeroOrMore,
    ZeroOrOne,
    join,
    union,
)
from evergraph.sparql.rewrite import rename
from evergraph.sparql.scope import free, mentioned, variables
from evergraph.terms import DEFAULT_GRAPH, NamedNode, Variable
from evergraph.views.replicas.interest import Interest

Variables: TypeAlias = frozenset[Variable]
Place: TypeAlias = tuple[Pattern, tuple[TriplePattern, ...]]


@dataclass(frozen=True, slots=True)
class Part:
    """A pattern, and the triple patterns whose matches in its solutions belong to the target."""

    pattern: Pattern
    triples: tuple[TriplePattern, ...]

    def query(self) -> Select:
        """Return the standing query of the part: the values of the variables of its triples."""
        terms = (term for one in self.triples for term in _terms(one))
        columns = tuple(dict.fromkeys(term for term in terms if isinstance(term, Variable)))
        return Select(Project(self.pattern, columns), columns)


def parts(interest: Interest) -> tuple[Part, ...]:
    """Take an interest apart."""
    found: dict[Pattern, dict[TriplePattern, None]] = {}
    for pattern, triples in _Places().of(interest.pattern):
        wanted = [one for one in triples if interest.keeps(one)]
        if wanted:
            needed = frozenset(term for one in wanted for term in _terms(one) if isinstance(term, Variable))
            found.setdefault(_pruned(pattern, needed), {}).update(dict.fromkeys(wanted))
    return tuple(Part(pattern, tuple(triples)) for pattern, triples in found.items())


def whole_query(interest: Interest) -> Construct:
    """Return all parts as one query: the parts share no variable, so that a solution builds the triples of one part."""
    template: list[TripleTemplate] = []
    branches: list[Pattern] = []
    for number, part in enumerate(parts(interest)):
        names = {one: Variable(f"{one.value}·part{number}") for one in mentioned(part.pattern)}
        branch = rename(part.pattern, names)
        for triple in part.triples:
            subject, predicate, object_ = (
                names[term] if isinstance(term, Variable) else term for term in _terms(triple)
            )
            if not any(isinstance(term, Variable) for term in (subject, predicate, object_)):
                ground = Variable(f"ground·{len(template)}")  # or every solution of any part would build it
                branch, subject = Extend(branch, ground, subject), ground
            template.append(TripleTemplate(subject, predicate, object_))
        branches.append(branch)
    return Construct(tuple(template), union(*branches))


def _terms(one: TriplePattern) -> tuple[PatternTerm, PatternTerm, PatternTerm]:
    return one.subject, one.predicate, one.object


@dataclass(frozen=True, slots=True)
class _Places:
    """Finds the places of triple patterns in a pattern: for each, the pattern in which all of its triples match."""

    _numbers: Iterator[int] = field(default_factory=count)

    def of(self, pattern: Pattern) -> Iterator[Place]:
        """Iterate over the places; those of one basic graph pattern are one."""
        match pattern:
            case BGP(triples):
                if triples:
                    yield pattern, triples
            case Path(subject, path, object_):
                yield from self._path(subject, path, object_)
            case Values():
                return
            case Join(left, right):
                for place, triples in self.of(left):
                    yield join(place, right), triples
                for place, triples in self.of(right):
                    yield join(left, place), triples
            case LeftJoin(left, right, condition):
                for place, triples in self.of(left):
                    yield LeftJoin(place, right, condition), triples
                for place, triples in self.of(right):
                    both = join(left, place)
                    yield (both if condition == TRUE else Filter(condition, both)), triples
            case Minus(left, right):
                for place, triples in self.of(left):
                    yield Minus(place, right), triples
            case Filter(condition, operand):
                for place, triples in self.of(operand):
                    yield Filter(condition, place), triples
            case Extend(operand, variable, expression):
                for place, triples in self.of(operand):
                    yield Extend(place, variable, expression), triples
            case Union(operands):
                for operand in operands:
                    yield from self.of(operand)
            case _:
                raise AssertionError(f"no part of an interest: {pattern}")

    def _path(self, subject: PatternTerm, path: PathExpression, object_: PatternTerm) -> Iterator[Place]:
        """Find the places of the steps of a path. What is before and after a step stays a `Path`."""
        match path:
            case NamedNode() | NegatedSet():
                yield from self.of(self._pattern(subject, path, object_))
            case Inverse(inner):
                yield from self._path(object_, inner, subject)
            case Alternative(choices):
                for choice in choices:
                    yield from self._path(subject, choice, object_)
            case Sequence(steps):
                ends = (subject, *(self._fresh() for _ in steps[1:]), object_)
                whole = [self._pattern(*one) for one in zip(ends, steps, ends[1:], strict=False)]
                for number, step in enumerate(steps):
                    for place, triples in self._path(ends[number], step, ends[number + 1]):
                        yield reduce(join, [*whole[:number], place, *whole[number + 1 :]]), triples
            case ZeroOrOne(inner):
                yield from self._path(subject, inner, object_)
            case ZeroOrMore(inner) | OneOrMore(inner):
                yield from self._closure(subject, inner, object_)
            case _:
                assert_never(path)

    def _closure(self, subject: PatternTerm, inner: PathExpression, object_: PatternTerm) -> Iterator[Place]:
        """Find the places of one step among many: it may begin at the first end, and it may end at the second."""
        before, after = self._fresh(), self._fresh()
        lead = Path(subject, OneOrMore(inner), before, DEFAULT_GRAPH)
        rest = Path(after, OneOrMore(inner), object_, DEFAULT_GRAPH)
        yield from self._path(subject, inner, object_)
        for place, triples in self._path(before, inner, object_):
            yield join(lead, place), triples
        for place, triples in self._path(subject, inner, after):
            yield join(place, rest), triples
        for place, triples in self._path(before, inner, after):
            yield join(join(lead, place), rest), triples

    def _pattern(self, subject: PatternTerm, path: PathExpression, object_: PatternTerm) -> Pattern:
        """Translate a path (https://www.w3.org/TR/sparql11-query/#sparqlTranslatePathPatterns)."""
        match path:
            case NamedNode():
                return BGP((TriplePattern(subject, path, object_, DEFAULT_GRAPH),))
            case Inverse(inner):
                return self._pattern(object_, inner, subject)
            case Alternative(choices):
                return union(*(self._pattern(subject, choice, object_) for choice in choices))
            case Sequence(steps):
                ends = (subject, *(self._fresh() for _ in steps[1:]), object_)
                return reduce(join, [self._pattern(*one) for one in zip(ends, steps, ends[1:], strict=False)])
            case NegatedSet(forward, inverse):
                directions = [] if forward is None else [self._other(subject, forward, object_)]
                directions += [] if inverse is None else [self._other(object_, inverse, subject)]
                return union(*directions)
            case ZeroOrOne() | ZeroOrMore() | OneOrMore():
                return Path(subject, path, object_, DEFAULT_GRAPH)
            case _:
                assert_never(path)

    def _other(self, subject: PatternTerm, excluded: tuple[NamedNode, ...], object_: PatternTerm) -> Pattern:
        predicate = self._fresh()
        pattern = BGP((TriplePattern(subject, predicate, object_, DEFAULT_GRAPH),))
        return Filter(Not(In(predicate, excluded)), pattern) if excluded else pattern

    def _fresh(self) -> Variable:
        return Variable(f"way···{next(self._numbers)}")


def _pruned(pattern: Pattern, needed: Variables) -> Pattern:
    """Leave out optional parts that bind no needed variable: with or without them, the matches are the same."""
    match pattern:
        case BGP() | Path() | Values():
            return pattern
        case LeftJoin(left, right, condition):
            if not (variables(right).possible - variables(left).certain) & needed:
                return _pruned(left, needed)
            read = needed | free(condition)
            return LeftJoin(_pruned(left, read | mentioned(right)), _pruned(right, read | mentioned(left)), condition)
        case Join(left, right):
            return join(_pruned(left, needed | mentioned(right)), _pruned(right, needed | mentioned(left)))
        case Minus(left, right):
            return Minus(_pruned(left, needed | mentioned(right)), right)
        case Filter(condition, operand):
            return Filter(condition, _pruned(operand, needed | free(condition)))
        case Extend(operand, variable, expression):
            return Extend(_pruned(operand, needed | free(expression) | {variable}), variable, expression)
        case Union(operands):
            return Union(tuple(_pruned(operand, needed) for operand in operands))
        case _:
            raise AssertionError(f"no part of an interest: {pattern}")
