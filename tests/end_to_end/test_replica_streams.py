"""Replicas over two real histories: what they hold is what a run from scratch gives, after every change.

There are two oracles. Plain loops over all triples say after every change what the targets and the potentially
interesting triples must be; another engine, Oxigraph, says the same by CONSTRUCT, after some changes, because it takes
seconds each time. By default the first changes of each stream are followed, of pleiades every tenth place; with
``--long`` all changes of all places.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pytest
from pyoxigraph import QueryTriples, Store
from tests.support import stream_oracles
from tests.support.stream_oracles import Followed, Mirror, Plain

from evergraph.delta import Delta, Request
from evergraph.gate.stored_form import stored_quads
from evergraph.sources import open_source
from evergraph.terms import NamedNode, Quad
from evergraph.views.replicas import ReplicaChange, Replicas, parse_interest
from evergraph.views.replicas.candidates import Catalogue, candidates

PREFIXES = """
PREFIX dct: <http://purl.org/dc/terms/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>
PREFIX nmo: <http://nomisma.org/ontology#>
PREFIX org: <http://www.w3.org/ns/org#>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
PREFIX v: <https://pleiades.stoa.org/places/vocab#>
"""


@dataclass(frozen=True, slots=True)
class Written:
    """An interest, and its oracles: plain loops, and a CONSTRUCT for each part, with its triples and the pattern."""

    name: str
    plain: Plain
    where: str
    parts: tuple[tuple[str, str], ...]

    def constructs(self) -> Iterator[str]:
        for template, pattern in self.parts:
            yield f"{PREFIXES}CONSTRUCT {{ {template} }} WHERE {{ {pattern} }}"


def simple(name: str, plain: Plain, required: str, *optional: str, condition: str = "") -> Written:
    """Write an interest of a basic graph pattern, a filter on it, and optional parts, each on its own."""
    where = f"{required} {condition} " + " ".join(f"OPTIONAL {{ {one} }}" for one in optional)
    parts = ((required, f"{required} {condition}"), *((one, f"{required} . {one} {condition}") for one in optional))
    return Written(name, plain, where, parts)


MINTS = simple(
    "mints with labels and coordinates",
    stream_oracles.MINTS,
    "?mint a nmo:Mint ; skos:prefLabel ?label",
    "?mint geo:location ?place . ?place geo:lat ?lat ; geo:long ?long",
    condition='FILTER (lang(?label) IN ("en", "de"))',
)
PERSONS = simple(
    "persons with memberships",
    stream_oracles.PERSONS,
    "?person a foaf:Person ; org:hasMembership ?membership . ?membership org:role ?role",
    "?membership nmo:hasStartDate ?start",
    "?membership nmo:hasEndDate ?end",
)
NAMES = simple(
    "places with names and year ranges",
    stream_oracles.NAMES,
    "?place a v:Place ; v:hasName ?name . ?name v:nameRomanized ?text",
    "?name v:start_date ?start",
    "?name v:end_date ?end",
    condition="FILTER EXISTS { ?place v:hasFeatureType ?type }",
)
CONNECTIONS = simple(
    "places connected to places",
    stream_oracles.CONNECTIONS,
    "?place dct:title ?title . ?place v:part_of_physical ?other . ?other dct:title ?second",
    "?place geo:lat ?lat ; geo:long ?long",
)


def expected(store: Store, interest: Written) -> set[Quad]:
    found = set()
    for text in interest.constructs():
        result = store.query(text)
        assert isinstance(result, QueryTriples)
        found |= {Quad(triple.subject, triple.predicate, triple.object) for triple in result}
    return found


def thinned(request: Request) -> Request:
    """Keep one place in ten, whole."""

    def kept(quad: Quad) -> bool:
        subject = quad.subject.value if isinstance(quad.subject, NamedNode) else ""
        digits = subject.removeprefix("https://pleiades.stoa.org/places/").partition("/")[0].partition("#")[0]
        return not digits.isdecimal() or int(digits) % 10 == 0

    return Request(frozenset(filter(kept, request.removed)), frozenset(filter(kept, request.added)))


def wanted(catalogue: Catalogue, changed: Delta) -> Delta:
    """Keep what matches some pattern of one interest."""
    return Delta(
        inserted=frozenset(quad for quad in changed.inserted if quad in catalogue),
        deleted=frozenset(quad for quad in changed.deleted if quad in catalogue),
    )


@dataclass(slots=True)
class Case:
    """An interest that is followed."""

    written: Written
    followed: Followed
    catalogue: Catalogue = field(default_factory=Catalogue)

    def take(self, mirror: Mirror, change: ReplicaChange, changed: Delta) -> None:
        """Take in what a change did, and compare with the definition."""
        self.followed.take(mirror, change.delta, wanted(self.catalogue, changed))
        self.followed.check(mirror)
        assert change.potential == self.followed.kept.count - len(self.followed.shipped)

    def check(self, mirror: Mirror, store: Store, replicas: Replicas) -> None:
        """Compare what the replicas hold themselves with the shipped changes, and those with the other engine."""
        name = self.written.name
        target, potential = replicas.target(name), replicas.potential(name)
        assert mirror.ids(target) == self.followed.shipped
        assert self.followed.is_potential(mirror.ids(potential))
        assert replicas.sizes(name) == (len(target), len(potential))
        assert stored_quads(set(target)) == expected(store, self.written)


def follow(folder: Path, interests: list[Written], most: int | None, *, thin: bool, every: int) -> None:
    """Follow a stream: the plain oracle after every change, everything else after some and in the end."""
    replicas, mirror, store = Replicas(), Mirror(), Store()
    cases = {one.name: Case(one, Followed(one.plain)) for one in interests}
    for one in interests:
        interest = parse_interest(f"{PREFIXES}SELECT * {{ {one.where} }}", one.name)
        replicas.add(interest)
        for candidate in candidates(interest):
            cases[one.name].catalogue.add(candidate)
    for change in islice(open_source(folder).changes(), most):
        request = thinned(change.request) if thin else change.request
        mirror.take(request)
        for quad in request.removed:
            store.remove(quad)
        store.extend(request.added)
        step = replicas.apply(request)
        for effect in step.changes:
            cases[effect.interest].take(mirror, effect, step.candidates)
        if change.sequence % every == 0:
            for case in cases.values():
                case.check(mirror, store, replicas)
    for case in cases.values():
        assert case.followed.shipped
        case.check(mirror, store, replicas)


def test_nomisma(shared: Path) -> None:
    follow(shared / "data/nomisma", [MINTS, PERSONS], 60, thin=False, every=12)


def test_pleiades(shared: Path) -> None:
    follow(shared / "data/pleiades", [NAMES, CONNECTIONS], 40, thin=True, every=10)


@pytest.mark.long
def test_all_of_nomisma(shared: Path) -> None:
    follow(shared / "data/nomisma", [MINTS, PERSONS], None, thin=False, every=75)


@pytest.mark.long
def test_all_of_pleiades(shared: Path) -> None:
    follow(shared / "data/pleiades", [NAMES, CONNECTIONS], None, thin=False, every=125)
