"""Which links to follow: the IRIs of the query, those in solutions, those that match a pattern of the query, or all."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import IntEnum, StrEnum
from typing import TypeAlias

from evergraph.sparql.algebra import (
    BGP,
    TRIPLE_COLUMNS,
    Ask,
    Construct,
    Describe,
    Distinct,
    Exists,
    Extend,
    Filter,
    GraphNames,
    Group,
    OrderBy,
    Path,
    Pattern,
    Project,
    Query,
    Reduced,
    Select,
    Slice,
    TriplePattern,
    Values,
    path_predicates,
)
from evergraph.sparql.expressions import Row
from evergraph.sparql.scope import children, expressions, variables, walk
from evergraph.terms import DEFAULT_GRAPH, NamedNode, Quad, Variable
from evergraph.traversal.iris import F

TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_ONE, _TWO, _ANY = Variable("one"), Variable("two"), Variable("any")


class Strategy(StrEnum):
    """Which links to follow; each follows what those before it follow, and more."""

    QUERY = "query"
    """The IRIs of the query, and the seeds."""
    SOLUTIONS = "solutions"
    """Those in solutions of the query's pattern, too."""
    PATTERNS = "patterns"
    """Those that a variable stands for where a triple matches some triple pattern of the query."""
    ALL = "all"
    """Every IRI that a document mentions as subject or object."""


class Rank(IntEnum):
    """Why a link is followed; the lowest is followed first."""

    SEED = 0
    SOLUTION = 1
    PATTERN = 2
    MENTION = 3


Link: TypeAlias = tuple[NamedNode, Rank]


def query_iris(query: Query, *, vocabulary: bool = False) -> list[NamedNode]:
    """List the IRIs of a query, each once; predicates and classes only with ``vocabulary``."""
    found: dict[NamedNode, None] = {}
    if isinstance(query, Describe):
        found |= dict.fromkeys(term for term in query.targets if isinstance(term, NamedNode))
    if query.dataset is not None:
        found |= dict.fromkeys((*query.dataset.default, *query.dataset.named))
    for pattern in _patterns(query.pattern):
        match pattern:
            case BGP(triples):
                for triple in triples:
                    terms: list[object] = [triple.subject, triple.graph]
                    if vocabulary or triple.predicate != TYPE:
                        terms.append(triple.object)
                    if vocabulary:
                        terms.append(triple.predicate)
                    found |= dict.fromkeys(term for term in terms if isinstance(term, NamedNode))
            case Path(subject, path, object_, graph):
                found |= dict.fromkeys(term for term in (subject, object_, graph) if isinstance(term, NamedNode))
                if vocabulary:
                    found |= dict.fromkeys(one for one in path_predicates(path) if one is not None)
            case GraphNames(graph):
                found |= dict.fromkeys([graph] if isinstance(graph, NamedNode) else [])
            case Values(rows=rows):
                found |= dict.fromkeys(term for row in rows for term in row if isinstance(term, NamedNode))
            case _:
                pass
        for expression in expressions(pattern):
            found |= dict.fromkeys(part for part in walk(expression) if isinstance(part, NamedNode))
    return [iri for iri in found if iri != F]


def solutions_query(query: Query) -> Select:
    """Return the query for all variables of the solutions behind the result, also those that it does not show."""
    pattern = inner = query.pattern
    while isinstance(inner, Project | Distinct | Reduced | Slice | OrderBy | Group | Extend | Filter):
        if isinstance(inner, Group) or (not isinstance(inner, Extend | Filter) and inner is pattern):
            pattern = inner.operand
        inner = inner.operand
    names = tuple(sorted(variables(pattern).possible, key=str))
    return Select(Project(pattern, names), names, query.dataset)


class Links:
    """Finds the links to follow in what a change inserts and in the solutions that come of it."""

    def __init__(self, query: Query, strategy: Strategy, *, vocabulary: bool = False) -> None:
        self.strategy = strategy
        self._vocabulary = vocabulary
        shown = solutions_query(query) if strategy is Strategy.SOLUTIONS else query
        columns = shown.variables if isinstance(shown, Select) else () if isinstance(shown, Ask) else TRIPLE_COLUMNS
        places = _places(shown)
        self._columns = [() if vocabulary else _exceptions(column, columns, places) for column in columns]
        self._by_predicate: defaultdict[NamedNode | None, list[TriplePattern]] = defaultdict(list)
        for pattern in _triple_patterns(query.pattern):
            predicate = pattern.predicate if isinstance(pattern.predicate, NamedNode) else None
            if predicate != F:
                self._by_predicate[predicate].append(pattern)

    def in_rows(self, rows: Iterable[Row]) -> Iterator[Link]:
        """Find the IRIs in solutions."""
        if self.strategy is Strategy.QUERY:
            return
        followed = [(place, one) for place, one in enumerate(self._columns) if one is not None]
        for row in rows:
            for place, exceptions in followed:
                term = row[place]
                if isinstance(term, NamedNode) and not (exceptions and all(row[other] == TYPE for other in exceptions)):
                    yield term, Rank.SOLUTION

    def in_quads(self, inserted: Iterable[Quad]) -> Iterator[tuple[NamedNode, Rank, NamedNode]]:
        """Find the links in what documents newly say, each with its document."""
        if self.strategy not in (Strategy.PATTERNS, Strategy.ALL):
            return
        for quad in inserted:
            document = quad.graph_name
            if not isinstance(document, NamedNode):
                continue
            for key in (quad.predicate, None):
                for pattern in self._by_predicate.get(key, ()):
                    for iri in self._matched(pattern, quad):
                        yield iri, Rank.PATTERN, document
            if self.strategy is Strategy.ALL:
                for iri in self._mentioned(quad):
                    yield iri, Rank.MENTION, document

    def _matched(self, pattern: TriplePattern, quad: Quad) -> Iterator[NamedNode]:
        bound: dict[Variable, object] = {}
        for wanted, term in zip((pattern.subject, pattern.predicate, pattern.object), quad, strict=False):
            if not isinstance(wanted, Variable):
                if wanted != term:
                    return
            elif bound.setdefault(wanted, term) != term:
                return
        words = () if self._vocabulary else _words(quad)
        for place, wanted in enumerate((pattern.subject, pattern.predicate, pattern.object)):
            term = quad[place]
            if isinstance(wanted, Variable) and isinstance(term, NamedNode) and place not in words:
                yield term

    def _mentioned(self, quad: Quad) -> Iterator[NamedNode]:
        words = () if self._vocabulary else _words(quad)
        for place in range(3):
            term = quad[place]
            if isinstance(term, NamedNode) and place not in words:
                yield term


def _words(quad: Quad) -> tuple[int, ...]:
    """Return the places of a triple that hold words of a vocabulary: the predicate, and the class after rdf:type."""
    return (1, 2) if quad.predicate == TYPE else (1,)


def _places(query: Query) -> list[tuple[object, object, object]]:
    """List where the variables of rows stand in triples; a path is a triple with no predicate."""
    if isinstance(query, Construct | Describe):
        return [TRIPLE_COLUMNS]
    places: list[tuple[object, object, object]] = []
    for one in _patterns(query.pattern):
        match one:
            case BGP(triples):
                places += ((triple.subject, triple.predicate, triple.object) for triple in triples)
            case Path(subject=subject, object=object_):
                places.append((subject, None, object_))
            case _:
                pass
    return places


def _exceptions(
    column: Variable, columns: tuple[Variable, ...], places: list[tuple[object, object, object]]
) -> tuple[int, ...] | None:
    """Say when IRIs of a column are words of a vocabulary: never (), always (None), or if all of these are rdf:type.

    They are where the column stands for predicates, or for classes after rdf:type, and for nothing else.
    """
    known = [place for place in places if column in place]
    if any(subject == column for subject, _, _ in known) or not known:
        return ()
    exceptions: set[int] = set()
    for _, predicate, object_ in known:
        if object_ == column and predicate in columns:
            exceptions.add(columns.index(predicate))
        elif object_ == column and predicate != TYPE:
            return ()
    return tuple(sorted(exceptions)) or None


def _patterns(pattern: Pattern) -> Iterator[Pattern]:
    """Iterate over a pattern and all within it, those of EXISTS too."""
    yield pattern
    for child in children(pattern):
        yield from _patterns(child)
    for expression in expressions(pattern):
        for part in walk(expression):
            if isinstance(part, Exists):
                yield from _patterns(part.pattern)


def _triple_patterns(pattern: Pattern) -> Iterator[TriplePattern]:
    for one in _patterns(pattern):
        match one:
            case BGP(triples):
                yield from triples
            case Path(path=path):
                for predicate in path_predicates(path):
                    yield TriplePattern(_ONE, predicate or _ANY, _TWO, DEFAULT_GRAPH)
            case _:
                pass
