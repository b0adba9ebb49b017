"""What replicas over the real streams must hold, from scratch and in plain loops, fast enough for every change.

A `Mirror` has all triples of the dataset; of each interest there is a function that lists the triples of its target,
and the patterns whose triples could matter to it. Terms are numbers, so that large sets are compared quickly.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from evergraph.delta import Delta, Request
from evergraph.terms import Literal, NamedNode, Quad, Term

Ids: TypeAlias = tuple[int, int, int]

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
DCT = "http://purl.org/dc/terms/"
FOAF = "http://xmlns.com/foaf/0.1/"
GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#"
NMO = "http://nomisma.org/ontology#"
ORG = "http://www.w3.org/ns/org#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
PLEIADES = "https://pleiades.stoa.org/places/vocab#"


@dataclass(slots=True)
class Triples:
    """A set of triples, by predicate and subject: two of them are compared without looking at each triple."""

    objects: dict[int, dict[int, set[int]]] = field(default_factory=dict)
    count: int = 0

    def __contains__(self, triple: Ids) -> bool:
        subject, predicate, object_ = triple
        return object_ in self.objects.get(predicate, {}).get(subject, ())

    def add(self, triple: Ids) -> None:
        """Add what is not there."""
        assert triple not in self
        subject, predicate, object_ = triple
        self.objects.setdefault(predicate, {}).setdefault(subject, set()).add(object_)
        self.count += 1

    def remove(self, triple: Ids) -> None:
        """Remove what is there."""
        subject, predicate, object_ = triple
        found = self.objects[predicate][subject]
        found.remove(object_)
        if not found:
            del self.objects[predicate][subject]
        self.count -= 1


@dataclass(slots=True)
class Mirror:
    """All triples of a dataset, and the numbers of their terms."""

    terms: dict[Term, int] = field(default_factory=dict)
    literals: dict[int, Literal] = field(default_factory=dict)
    triples: Triples = field(default_factory=Triples)

    def number(self, term: Term) -> int:
        """Return the number of a term."""
        found = self.terms.setdefault(term, len(self.terms))
        if isinstance(term, Literal):
            self.literals[found] = term
        return found

    def ids(self, quads: Iterable[Quad]) -> set[Ids]:
        """Write quads as numbers."""
        number = self.number
        return {(number(quad.subject), number(quad.predicate), number(quad.object)) for quad in quads}

    def take(self, request: Request) -> None:
        """Make a change, exact or not."""
        for triple in self.ids(request.removed):
            if triple in self.triples:
                self.triples.remove(triple)
        for triple in self.ids(request.added):
            if triple not in self.triples:
                self.triples.add(triple)

    def of(self, predicate: str) -> tuple[int, dict[int, set[int]]]:
        """Return the number of a predicate, and the objects of its subjects."""
        number = self.number(NamedNode(predicate))
        return number, self.triples.objects.get(number, {})


Definition: TypeAlias = Callable[[Mirror], Iterator[Ids]]


@dataclass(frozen=True, slots=True)
class Plain:
    """An interest as plain loops: the triples of its target, some perhaps more than once, and its candidates."""

    target: Definition
    predicates: tuple[str, ...]
    types: tuple[str, ...]

    def candidates(self, mirror: Mirror) -> dict[int, dict[int, set[int]]]:
        """Return all triples that match some pattern: those of the predicates, and those that say a type."""
        predicate, types = mirror.of(RDF + "type")
        wanted = {mirror.number(NamedNode(name)) for name in self.types}
        typed = {subject: objects & wanted for subject, objects in types.items() if not wanted.isdisjoint(objects)}
        found = {predicate: typed} | dict(mirror.of(name) for name in self.predicates)
        return {predicate: objects for predicate, objects in found.items() if objects}


@dataclass(slots=True)
class Followed:
    """An interest, as far as it has been followed: what was shipped to its target, and what was kept for it."""

    plain: Plain
    shipped: set[Ids] = field(default_factory=set)
    kept: Triples = field(default_factory=Triples)

    def take(self, mirror: Mirror, shipped: Delta, kept: Delta) -> None:
        """Make exact changes: nothing goes that is not there, and nothing comes that is."""
        gone, come = mirror.ids(shipped.deleted), mirror.ids(shipped.inserted)
        assert gone <= self.shipped
        assert come.isdisjoint(self.shipped)
        self.shipped -= gone
        self.shipped |= come
        for triple in mirror.ids(kept.deleted):
            self.kept.remove(triple)
        for triple in mirror.ids(kept.inserted):
            self.kept.add(triple)

    def check(self, mirror: Mirror) -> None:
        """Compare with the definition."""
        assert self.shipped == set(self.plain.target(mirror))
        found = {predicate: objects for predicate, objects in self.kept.objects.items() if objects}
        assert found == self.plain.candidates(mirror)

    def is_potential(self, triples: set[Ids]) -> bool:
        """Tell whether these are the triples that are kept and were not shipped."""
        return (
            len(triples) == self.kept.count - len(self.shipped)
            and triples.isdisjoint(self.shipped)
            and all(triple in self.kept for triple in triples | self.shipped)
        )


def mints(mirror: Mirror) -> Iterator[Ids]:
    """Mints with a label in English or German; also their place, if it has coordinates."""
    is_a, types = mirror.of(RDF + "type")
    label, labels = mirror.of(SKOS + "prefLabel")
    at, places = mirror.of(GEO + "location")
    lat, lats = mirror.of(GEO + "lat")
    long, longs = mirror.of(GEO + "long")
    mint = mirror.number(NamedNode(NMO + "Mint"))
    for one, kinds in types.items():
        if mint not in kinds:
            continue
        told = [text for text in labels.get(one, ()) if mirror.literals[text].language in ("en", "de")]
        if not told:
            continue
        yield one, is_a, mint
        yield from ((one, label, text) for text in told)
        for place in places.get(one, ()):
            if lats.get(place) and longs.get(place):
                yield one, at, place
                yield from ((place, lat, value) for value in lats[place])
                yield from ((place, long, value) for value in longs[place])


def persons(mirror: Mirror) -> Iterator[Ids]:
    """Persons with a membership that has a role; also its first and last year."""
    is_a, types = mirror.of(RDF + "type")
    has, memberships = mirror.of(ORG + "hasMembership")
    role, roles = mirror.of(ORG + "role")
    years = [mirror.of(NMO + "hasStartDate"), mirror.of(NMO + "hasEndDate")]
    person = mirror.number(NamedNode(FOAF + "Person"))
    for one, kinds in types.items():
        if person not in kinds:
            continue
        for membership in memberships.get(one, ()):
            if not roles.get(membership):
                continue
            yield one, is_a, person
            yield one, has, membership
            yield from ((membership, role, value) for value in roles[membership])
            for predicate, found in years:
                yield from ((membership, predicate, value) for value in found.get(membership, ()))


def names(mirror: Mirror) -> Iterator[Ids]:
    """Places of some feature type with a name and its text; also the years of the name."""
    is_a, types = mirror.of(RDF + "type")
    has, known = mirror.of(PLEIADES + "hasName")
    text, texts = mirror.of(PLEIADES + "nameRomanized")
    years = [mirror.of(PLEIADES + "start_date"), mirror.of(PLEIADES + "end_date")]
    _, features = mirror.of(PLEIADES + "hasFeatureType")
    place = mirror.number(NamedNode(PLEIADES + "Place"))
    for one, kinds in types.items():
        if place not in kinds or not features.get(one):
            continue
        for name in known.get(one, ()):
            if not texts.get(name):
                continue
            yield one, is_a, place
            yield one, has, name
            yield from ((name, text, value) for value in texts[name])
            for predicate, found in years:
                yield from ((name, predicate, value) for value in found.get(name, ()))


def connections(mirror: Mirror) -> Iterator[Ids]:
    """Places with a title that are part of others with one; also their coordinates."""
    title, titles = mirror.of(DCT + "title")
    part, parts = mirror.of(PLEIADES + "part_of_physical")
    lat, lats = mirror.of(GEO + "lat")
    long, longs = mirror.of(GEO + "long")
    for one, others in parts.items():
        whole = [other for other in others if titles.get(other)]
        if not whole or not titles.get(one):
            continue
        yield from ((one, title, value) for value in titles[one])
        for other in whole:
            yield one, part, other
            yield from ((other, title, value) for value in titles[other])
        if lats.get(one) and longs.get(one):
            yield from ((one, lat, value) for value in lats[one])
            yield from ((one, long, value) for value in longs[one])


COORDINATES = (GEO + "lat", GEO + "long")
MINTS = Plain(mints, (SKOS + "prefLabel", GEO + "location", *COORDINATES), (NMO + "Mint",))
PERSONS = Plain(
    persons,
    (ORG + "hasMembership", ORG + "role", NMO + "hasStartDate", NMO + "hasEndDate"),
    (FOAF + "Person",),
)
NAMES = Plain(
    names,
    tuple(PLEIADES + one for one in ("hasName", "nameRomanized", "start_date", "end_date", "hasFeatureType")),
    (PLEIADES + "Place",),
)
CONNECTIONS = Plain(connections, (DCT + "title", PLEIADES + "part_of_physical", *COORDINATES), ())
