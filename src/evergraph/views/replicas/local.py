"""Replicas on the local engine: any number of interests, one pass over each change for all of them.

Every part of an interest is a standing query of the engine (`parts`), and so is every group of candidates
(`candidates`). The rows of the parts are counted by the triples that they put into the target; a triple comes when its
count rises from zero and goes when it falls to zero, so that a triple which another match still holds stays. Queries
that differ only in constants share their state, and interests with the same triple patterns share candidates.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from evergraph.delta import Delta, Request
from evergraph.engines.local.dictionary import Dictionary, Row, ZSet
from evergraph.engines.local.engine import LocalEngine, View
from evergraph.errors import EvergraphError, UsageError
from evergraph.ports import Forgotten, Subject
from evergraph.sparql.expressions import Environment
from evergraph.terms import NamedNode, Quad, Term, Variable, term_text
from evergraph.views.replicas.candidates import Catalogue, Group, candidates, group_part, groups
from evergraph.views.replicas.interest import Interest
from evergraph.views.replicas.parts import Part, parts

Ids: TypeAlias = tuple[int, int, int]
"""A triple, as ids of the engine."""


@dataclass(frozen=True, slots=True)
class ReplicaChange:
    """What a change of the source does to one replica: what goes to the target, exactly, and what is left aside."""

    interest: str
    delta: Delta
    potential: int
    """How many triples are potentially interesting after the change."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a change does to the replicas: ``candidates`` is what really changed among all triples that can matter."""

    candidates: Delta
    changes: list[ReplicaChange]


class _Builder:
    """Builds the triples of a part from the rows of its query."""

    def __init__(self, part: Part, dictionary: Dictionary) -> None:
        columns = part.query().variables
        self.held = [
            tuple(term if isinstance(term, Variable) else dictionary.encode(term) for term in terms)
            for terms in ((one.subject, one.predicate, one.object) for one in part.triples)
        ]
        self._slots = [
            tuple((columns.index(term), 0) if isinstance(term, Variable) else (-1, term) for term in terms)
            for terms in self.held
        ]

    def triples(self, row: Row) -> Iterator[Ids]:
        """Return the triples of one row."""
        for (s, a), (p, b), (o, c) in self._slots:
            yield (row[s] if s >= 0 else a, row[p] if p >= 0 else b, row[o] if o >= 0 else c)


@dataclass(slots=True, eq=False)
class _Candidates:
    """A group of candidates, shared by the interests that have it."""

    group: Group
    view: View
    builder: _Builder
    size: int
    holders: int = 0


@dataclass(slots=True, eq=False)
class _Replica:
    """What one interest has in its target: how many matches hold each triple."""

    interest: Interest
    shared: list[_Candidates]
    views: list[View] = field(default_factory=list)
    counts: dict[Ids, int] = field(default_factory=dict)

    def potential(self) -> int:
        return sum(one.size for one in self.shared) - len(self.counts)

    def take(self, builder: _Builder, rows: ZSet, came: dict[Ids, int]) -> None:
        """Count the triples of changed rows; note in ``came`` how those change that come or go, on the whole."""
        counts, triples = self.counts, builder.triples
        for row, weight in rows.items():
            for triple in triples(row):
                before = counts.get(triple, 0)
                after = before + weight
                if after:
                    counts[triple] = after
                else:
                    del counts[triple]
                if not before:
                    came[triple] = came.get(triple, 0) + 1
                elif not after:
                    came[triple] = came.get(triple, 0) - 1


class _Texts(dict[int, str]):
    """The texts of terms, each written once."""

    def __init__(self, terms: Sequence[Term | None]) -> None:
        super().__init__()
        self._terms = terms

    def __missing__(self, number: int) -> str:
        term = self._terms[number]
        assert term is not None
        text = self[number] = term_text(term)
        return text


class Replicas:
    """Maintains replicas under changes, exact or not.

    ``source`` gives the triples that are there now, for interests that come later than the first change. NOW() is the
    moment of the ``environment``.
    """

    def __init__(
        self, source: Callable[[], Iterable[Quad]] | None = None, environment: Environment | None = None
    ) -> None:
        self._engine = LocalEngine(source)
        self._environment = environment or Environment()
        self._replicas: dict[str, _Replica] = {}
        self._groups: dict[Group, _Candidates] = {}
        self._parts: dict[View, tuple[_Replica, _Builder]] = {}
        self._shared: dict[View, _Candidates] = {}
        self._catalogue = Catalogue()
        self._failures: list[EvergraphError] = []
        self._by_subject: dict[Subject, set[Quad]] | None = None

    # --- interests come and go

    def add(self, interest: Interest) -> None:
        """Begin to maintain an interest; it has what is there already, as far as the source or other interests know."""
        if interest.name in self._replicas:
            raise UsageError(f"two interests are called {interest.name!r}", hint="give each a name of its own")
        replica = _Replica(interest, [])
        self._replicas[interest.name] = replica
        try:
            for group in groups(interest):
                replica.shared.append(self._hold(group))
            for one in candidates(interest):
                self._catalogue.add(one)
            for part in parts(interest):
                self._begin(replica, part)
        except BaseException:
            self._drop(replica)
            raise
        self._by_subject = None

    def remove(self, name: str) -> None:
        """Stop to maintain an interest, and drop what only it needs."""
        if name not in self._replicas:
            raise UsageError(f"no interest is called {name!r}", hint=f"there are {', '.join(self._replicas) or 'none'}")
        for one in candidates(self._replicas[name].interest):
            self._catalogue.remove(one)
        self._drop(self._replicas[name])

    @property
    def interests(self) -> list[Interest]:
        """The interests that are maintained, in the order in which they came."""
        return [one.interest for one in self._replicas.values()]

    def _hold(self, group: Group) -> _Candidates:
        shared = self._groups.get(group)
        if shared is None:
            part = group_part(group)
            view = self._engine.register(part.query(), environment=self._environment)
            view.on_failure = self._failures.append
            shared = _Candidates(group, view, _Builder(part, self._engine.dictionary), len(view.result()))
            self._groups[group] = self._shared[view] = shared
        shared.holders += 1
        return shared

    def _begin(self, replica: _Replica, part: Part) -> None:
        view = self._engine.register(part.query(), environment=self._environment)
        view.on_failure = self._failures.append
        builder = _Builder(part, self._engine.dictionary)
        replica.views.append(view)
        self._parts[view] = (replica, builder)
        encoded = self._engine.dictionary.encode_row
        replica.take(builder, {encoded(row): weight for row, weight in view.result().items()}, {})

    def _drop(self, replica: _Replica) -> None:
        del self._replicas[replica.interest.name]
        for view in replica.views:
            self._parts.pop(view, None)
            self._engine.remove(view)
        for shared in replica.shared:
            shared.holders -= 1
            if not shared.holders:
                self._engine.remove(shared.view)
                del self._shared[shared.view]
                del self._groups[shared.group]
        self._by_subject = None

    # --- changes

    def wants(self, quad: Quad) -> bool:
        """Tell whether a triple matches some triple pattern of some interest: all others are never stored."""
        return quad in self._catalogue

    def predicates(self) -> frozenset[NamedNode] | None:
        """Return the predicates of all triples that can match a pattern; None where those of any predicate can."""
        return self._catalogue.predicates()

    def apply(self, request: Request, cleared: Iterable[Subject] = (), forgotten: Forgotten | None = None) -> Step:
        """Take in a requested change; all triples of the ``cleared`` subjects, and what is ``forgotten``, go first.

        There is a `ReplicaChange` for every interest whose target or candidates change. Raises what a view fails with.
        """
        gone = self._of_subjects(cleared)
        if forgotten is not None:
            gone |= frozenset(forgotten.among(self._known()))
        if gone:
            request = Request(removed=request.removed | gone, added=request.added)
        return self._take(self._engine.exact(request))

    def _take(self, delta: Delta) -> Step:
        came: dict[_Replica, dict[Ids, int]] = {}
        for view, rows in self._engine.apply(delta):
            found = self._parts.get(view)
            if found is None:
                self._shared[view].size += sum(rows.values())
            else:
                replica, builder = found
                replica.take(builder, rows, came.setdefault(replica, {}))
        if self._failures:
            raise self._failures[0]
        if self._by_subject is not None:
            self._index(delta)
        changes = [
            ReplicaChange(one.interest.name, self._delta(came.get(one, {})), one.potential())
            for one in self._replicas.values()
        ]
        return Step(delta, changes)

    def _delta(self, came: dict[Ids, int]) -> Delta:
        if not came:
            return _NOTHING
        quad = self._quad
        return Delta(
            inserted=frozenset([quad(triple) for triple, weight in came.items() if weight > 0]),
            deleted=frozenset([quad(triple) for triple, weight in came.items() if weight < 0]),
        )

    def _quad(self, triple: Ids) -> Quad:
        return Quad(*self._engine.dictionary.decode_row(triple))  # type: ignore[arg-type]

    # --- reading

    def target(self, name: str) -> frozenset[Quad]:
        """Return τ: what the target of an interest holds."""
        return frozenset(map(self._quad, self._replicas[name].counts))

    def potential(self, name: str) -> frozenset[Quad]:
        """Return ρ: what is potentially interesting."""
        return frozenset(map(self._quad, self._potential(name)))

    def sizes(self, name: str) -> tuple[int, int]:
        """Count the triples of the target, and the potentially interesting ones."""
        replica = self._replicas[name]
        return len(replica.counts), replica.potential()

    def candidates(self) -> frozenset[Quad]:
        """Return all triples that are kept: those of all targets, and the potentially interesting ones."""
        return frozenset(map(self._quad, (triple for one in self._groups.values() for triple in self._members(one))))

    def size(self) -> int:
        """Count all triples that are kept; those in several groups count several times."""
        return sum(one.size for one in self._groups.values())

    def statements(self) -> list[str]:
        """Return all triples that are kept as N-Triples has them, in no order: much faster than as quads."""
        return self._texts(triple for one in self._groups.values() for triple in self._members(one))

    def target_statements(self, name: str) -> list[str]:
        """Return what the target of an interest holds, as text."""
        return self._texts(self._replicas[name].counts)

    def potential_statements(self, name: str) -> list[str]:
        """Return what is potentially interesting, as text."""
        return self._texts(self._potential(name))

    def _texts(self, triples: Iterable[Ids]) -> list[str]:
        texts = _Texts(self._engine.dictionary.terms)
        return [f"{texts[s]} {texts[p]} {texts[o]}" for s, p, o in dict.fromkeys(triples)]

    def _potential(self, name: str) -> Iterator[Ids]:
        replica = self._replicas[name]
        for one in replica.shared:
            for triple in self._members(one):
                if triple not in replica.counts:
                    yield triple

    def _members(self, shared: _Candidates) -> Iterator[Ids]:
        for row in shared.view.rows():
            yield from shared.builder.triples(row)

    def _of_subjects(self, subjects: Iterable[Subject]) -> frozenset[Quad]:
        wanted = frozenset(subjects)
        if not wanted:
            return frozenset()
        known = self._known()
        return frozenset(quad for one in wanted for quad in known.get(one, ()))

    def _known(self) -> dict[Subject, set[Quad]]:
        """Return the candidates by subject; from the first time on, they are kept that way too."""
        if self._by_subject is None:
            self._by_subject = {}
            self._index(Delta(inserted=self.candidates()))
        return self._by_subject

    def _index(self, delta: Delta) -> None:
        assert self._by_subject is not None
        for quad in delta.deleted:
            self._by_subject.get(quad.subject, set()).discard(quad)
        for quad in delta.inserted:
            self._by_subject.setdefault(quad.subject, set()).add(quad)


_NOTHING = Delta()
