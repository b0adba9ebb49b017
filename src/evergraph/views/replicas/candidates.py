"""Candidates: the triples that match some triple pattern of an interest, whether a match is complete or not.

For every interest, candidates = target + potentially interesting triples; so what is potentially interesting is the
candidates less the target, and its change is the change of the candidates less the change of the target.

Interests share many triple patterns, and few of their patterns overlap. `groups` puts patterns together that can match
the same triple; the groups of an interest are disjoint, so that their sizes add up, and each group is one standing
query for all interests that have it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from evergraph.sparql.algebra import (
    BGP,
    Construct,
    Distinct,
    Extend,
    Path,
    Pattern,
    PatternTerm,
    Project,
    TriplePattern,
    TripleTemplate,
    path_predicates,
    union,
)
from evergraph.sparql.scope import children
from evergraph.terms import DEFAULT_GRAPH, DefaultGraph, NamedNode, Quad, Term, Variable
from evergraph.views.replicas.interest import Interest, tested
from evergraph.views.replicas.parts import Part

SUBJECT, PREDICATE, OBJECT = Variable("subject"), Variable("predicate"), Variable("object")
COLUMNS = (SUBJECT, PREDICATE, OBJECT)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A triple pattern without the names of its variables: each is called after the first column that it is in."""

    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm

    @property
    def terms(self) -> tuple[PatternTerm, PatternTerm, PatternTerm]:
        """Subject, predicate and object."""
        return self.subject, self.predicate, self.object

    def overlaps(self, other: "Candidate") -> bool:
        """Tell whether some triple could match both."""
        return all(
            isinstance(one, Variable) or isinstance(two, Variable) or one == two
            for one, two in zip(self.terms, other.terms, strict=True)
        )

    def covers(self, other: "Candidate") -> bool:
        """Tell whether this one matches all triples that the other matches."""
        free = self.terms.count(SUBJECT) < 2 and self.terms.count(PREDICATE) < 2
        return free and all(
            isinstance(one, Variable) or one == two for one, two in zip(self.terms, other.terms, strict=True)
        )

    def matches(self, quad: Quad) -> bool:
        """Tell whether a triple matches."""
        members: dict[PatternTerm, Term] = {SUBJECT: quad.subject, PREDICATE: quad.predicate, OBJECT: quad.object}
        return all(members.get(term, term) == members[column] for column, term in zip(COLUMNS, self.terms, strict=True))

    def rows(self) -> Pattern:
        """Return the triples that match, over `COLUMNS`."""
        pattern: Pattern = BGP((TriplePattern(*self.terms, DEFAULT_GRAPH),))
        for column, term in zip(COLUMNS, self.terms, strict=True):
            if term != column:
                pattern = Extend(pattern, column, term)
        return pattern


Group: TypeAlias = frozenset[Candidate]


def group_part(group: Group) -> Part:
    """Return what has the triples of a group as its solutions, each once."""
    if len(group) == 1:
        (only,) = group
        triple = TriplePattern(*only.terms, DEFAULT_GRAPH)
        return Part(BGP((triple,)), (triple,))
    rows = Project(union(*(one.rows() for one in sorted(group, key=str))), COLUMNS)
    return Part(Distinct(rows), (TriplePattern(*COLUMNS, DEFAULT_GRAPH),))


def whole_query(interest: Interest) -> Construct:
    """Return the candidates of an interest as one query."""
    rows = union(*(one.rows() for one in candidates(interest)))
    return Construct((TripleTemplate(*COLUMNS),), rows)


def groups(interest: Interest) -> tuple[Group, ...]:
    """Return the candidates of an interest, those that overlap together, without those that others cover."""
    every = list(candidates(interest))
    found: list[set[Candidate]] = []
    for one in every:
        if any(other is not one and other.covers(one) for other in every):
            continue
        touching = [group for group in found if any(one.overlaps(other) for other in group)]
        found = [group for group in found if group not in touching] + [{one}.union(*touching)]
    return tuple(frozenset(group) for group in found)


def candidates(interest: Interest) -> Iterator[Candidate]:
    """Iterate over the triple patterns of an interest, each once; those that only test for a match are among them."""
    seen: set[Candidate] = set()
    for pattern in (interest.pattern, *tested(interest.pattern)):
        for triple in _triples(pattern):
            one = _normal(triple)
            if one not in seen:
                seen.add(one)
                yield one


def _triples(pattern: Pattern) -> Iterator[tuple[PatternTerm, PatternTerm, PatternTerm]]:
    match pattern:
        case BGP(triples):
            for one in triples:
                yield one.subject, one.predicate, one.object
        case Path(path=path):
            for predicate in path_predicates(path):
                yield SUBJECT, predicate or PREDICATE, OBJECT
        case _:
            for child in children(pattern):
                yield from _triples(child)


def _normal(triple: tuple[PatternTerm, PatternTerm, PatternTerm]) -> Candidate:
    names: dict[Variable, Variable] = {}
    for term, column in zip(triple, COLUMNS, strict=True):
        if isinstance(term, Variable):
            names.setdefault(term, column)
    return Candidate(*(names[term] if isinstance(term, Variable) else term for term in triple))


class Catalogue:
    """All triple patterns of many interests: tells whether a triple could matter to any of them."""

    def __init__(self) -> None:
        self._known: Counter[Candidate] = Counter()
        self._by_predicate: dict[PatternTerm, list[Candidate]] = {}
        self._open: set[PatternTerm] = set()
        """The predicates of which all triples match."""

    def add(self, one: Candidate) -> None:
        """Count a pattern in."""
        self._known[one] += 1
        if self._known[one] == 1:
            self._by_predicate.setdefault(_predicate(one), []).append(one)
            if _is_open(one):
                self._open.add(one.predicate)

    def remove(self, one: Candidate) -> None:
        """Count a pattern out."""
        self._known[one] -= 1
        if not self._known[one]:
            del self._known[one]
            self._by_predicate[_predicate(one)].remove(one)
            if _is_open(one):
                self._open.discard(one.predicate)

    def predicates(self) -> frozenset[NamedNode] | None:
        """Return the predicates of all patterns; None if one of them is a variable."""
        found = [one for one, patterns in self._by_predicate.items() if patterns]
        return None if PREDICATE in found else frozenset(one for one in found if isinstance(one, NamedNode))

    def __contains__(self, quad: Quad) -> bool:
        if quad.predicate in self._open:
            return isinstance(quad.graph_name, DefaultGraph)
        some = self._by_predicate.get(quad.predicate, ())
        other = self._by_predicate.get(PREDICATE, ())
        return isinstance(quad.graph_name, DefaultGraph) and any(one.matches(quad) for one in (*some, *other))


def _predicate(one: Candidate) -> PatternTerm:
    return PREDICATE if isinstance(one.predicate, Variable) else one.predicate


def _is_open(one: Candidate) -> bool:
    return (one.subject, one.object) == (SUBJECT, OBJECT) and isinstance(one.predicate, NamedNode)
