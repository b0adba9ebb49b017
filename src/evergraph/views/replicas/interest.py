"""Interests: which part of a dataset somebody wants, as a SPARQL query.

An interest is a connected pattern of triples *b*, with filters, and optional parts *op* that may be nested. A SELECT
wants all triples that take part in a match, whatever it projects; a CONSTRUCT wants those that its template names.
Property paths are patterns of triples too: all triples on the way take part.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from evergraph.errors import UnsupportedInterest
from evergraph.plan.lower import refuse_unmaintainable
from evergraph.sparql.algebra import (
    BGP,
    Ask,
    Construct,
    Describe,
    Distinct,
    Exists,
    Extend,
    Filter,
    Graph,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    Minus,
    OrderBy,
    Path,
    Pattern,
    PatternTerm,
    Project,
    Query,
    Reduced,
    Select,
    Service,
    Slice,
    TriplePattern,
    TripleTemplate,
    Union,
    Values,
)
from evergraph.sparql.parser import parse_query
from evergraph.sparql.scope import children, expressions, free, mentioned, walk
from evergraph.terms import DEFAULT_GRAPH, DefaultGraph


@dataclass(frozen=True, slots=True)
class Interest:
    """A named interest. ``kept`` are the triple patterns whose matches go to the target; None: all, paths included."""

    name: str
    pattern: Pattern
    kept: frozenset[TriplePattern] | None = None

    def keeps(self, pattern: TriplePattern) -> bool:
        """Tell whether the matches of a triple pattern go to the target."""
        return self.kept is None or pattern in self.kept


def parse_interest(text: str, name: str = "interest", base: str = "") -> Interest:
    """Read an interest. Raises `SyntaxProblem` and `UnsupportedInterest`."""
    return interest_of(parse_query(text, base), name)


def interest_of(query: Query, name: str = "interest") -> Interest:
    """Take a query as an interest."""
    if query.dataset is not None:
        raise _refused("FROM", "an interest looks at the default graph: leave FROM and FROM NAMED out")
    match query:
        case Select(pattern):
            pattern, kept = _without_modifiers(pattern), None
        case Construct(template, pattern):
            pattern = _without_modifiers(pattern)
            kept = _kept(template, pattern)
        case Ask() | Describe():
            form = type(query).__name__.upper()
            raise _refused(form, "write the interest as SELECT * { … } or CONSTRUCT { … } WHERE { … }")
        case _:
            assert_never(query)
    _refuse_strange(pattern)
    refuse_unmaintainable(pattern)
    _refuse_disconnected(pattern)
    return Interest(name, pattern, kept)


def _refused(what: str, hint: str) -> UnsupportedInterest:
    return UnsupportedInterest(f"an interest cannot have {what}", hint=hint)


def _without_modifiers(pattern: Pattern) -> Pattern:
    while isinstance(pattern, Project | Distinct | Reduced | OrderBy):
        pattern = pattern.operand
    return pattern


def _kept(template: tuple[TripleTemplate, ...], pattern: Pattern) -> frozenset[TriplePattern]:
    wanted = frozenset(TriplePattern(one.subject, one.predicate, one.object, DEFAULT_GRAPH) for one in template)
    known = frozenset(leaf for leaf in leaves(pattern) if isinstance(leaf, TriplePattern))
    for one in sorted(wanted - known, key=str):
        raise UnsupportedInterest(
            f"the template has a triple that the WHERE clause has not: {one.subject} {one.predicate} {one.object}",
            hint="a replica holds triples of the source; to build others, use evergraph watch",
        )
    return wanted


def leaves(pattern: Pattern) -> Iterator[TriplePattern | Path]:
    """Iterate over the triple patterns and paths whose matches take part in a match: not those that forbid or test."""
    match pattern:
        case BGP(triples):
            yield from triples
        case Path():
            yield pattern
        case Minus(left):
            yield from leaves(left)
        case _:
            for child in children(pattern):
                yield from leaves(child)


def tested(pattern: Pattern) -> Iterator[Pattern]:
    """Iterate over the patterns that only decide whether there is a match: of EXISTS, and on the right of MINUS."""
    for expression in expressions(pattern):
        for part in walk(expression):
            if isinstance(part, Exists):
                yield part.pattern
                yield from tested(part.pattern)
    for child in children(pattern):
        yield from tested(child)
    if isinstance(pattern, Minus):
        yield pattern.right


def _refuse_strange(pattern: Pattern) -> None:
    match pattern:
        case Graph() | GraphNames():
            raise _refused("GRAPH", "an interest is about triples of the default graph: leave GRAPH out")
        case Group() | Slice() | Project() | Distinct() | Reduced() | OrderBy():
            raise _refused(
                "aggregates, LIMIT, OFFSET or sub-selects",
                "what they give is not a set of triples of the source; use evergraph watch for such queries",
            )
        case Service():
            raise _refused("SERVICE", "changes elsewhere are not seen: leave it out")
        case BGP() | Path() | Values() | Join() | LeftJoin() | Filter() | Union() | Minus() | Extend():
            pass
        case _:
            assert_never(pattern)
    for leaf in leaves(pattern):
        if not isinstance(leaf.graph, DefaultGraph):
            raise _refused("GRAPH", "an interest is about triples of the default graph: leave GRAPH out")
    for child in (*children(pattern), *tested(pattern)):
        _refuse_strange(child)


def _refuse_disconnected(pattern: Pattern) -> None:
    if isinstance(pattern, Union):  # each match is of one of them alone
        for operand in pattern.operands:
            _refuse_disconnected(operand)
        return
    if next(leaves(pattern), None) is None:
        raise UnsupportedInterest(
            "an interest must have at least one triple pattern", hint="say what is wanted: ?s a <Class>, for example"
        )
    named: set[PatternTerm] = {leaf.subject for leaf in leaves(pattern)}
    groups: list[set[PatternTerm]] = []
    for linked in filter(None, _links(pattern, named)):  # a triple that nothing could connect needs no connection
        touching = [group for group in groups if group & linked]
        groups = [group for group in groups if not group & linked] + [set(linked).union(*touching)]
    if len(groups) > 1:
        names = " and ".join(min(map(str, group)) for group in groups)
        raise UnsupportedInterest(
            f"the patterns of an interest must be connected, and nothing connects {names}",
            hint="every combination would be a match: make an interest of each part",
        )


def _links(pattern: Pattern, named: set[PatternTerm]) -> Iterator[frozenset[PatternTerm]]:
    """Iterate over what connects: variables, and constants that something is said about."""
    match pattern:
        case BGP(triples):
            for one in triples:
                yield mentioned(BGP((one,))) | (named & {one.subject, one.object})
        case Path(subject=subject, object=object_):
            yield mentioned(pattern) | (named & {subject, object_})
        case Values():
            yield mentioned(pattern)
        case Extend(operand, variable, expression):
            yield free(expression) | {variable}
            yield from _links(operand, named)
        case Minus(left):
            yield from _links(left, named)
        case _:
            for child in children(pattern):
                yield from _links(child, named)
