"""Replicas over two real histories: what they hold is what a CONSTRUCT from scratch gives, after every change.

The oracle here is another engine: Oxigraph, over all triples. By default the first changes of each stream are followed,
of pleiades every tenth place; with ``--long`` all changes of all places.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest
from pyoxigraph import QueryTriples, Store

from evergraph.delta import Request
from evergraph.gate.stored_form import stored_quads
from evergraph.sources import open_source
from evergraph.terms import NamedNode, Quad
from evergraph.views.replicas import Replicas, parse_interest

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
    """An interest, and the parts of the CONSTRUCT that is its oracle: for each part, its triples and the pattern."""

    name: str
    where: str
    parts: tuple[tuple[str, str], ...]

    def constructs(self) -> Iterator[str]:
        for template, pattern in self.parts:
            yield f"{PREFIXES}CONSTRUCT {{ {template} }} WHERE {{ {pattern} }}"


def simple(name: str, required: str, *optional: str, condition: str = "") -> Written:
    """Write an interest of a basic graph pattern, a filter on it, and optional parts, each on its own."""
    where = f"{required} {condition} " + " ".join(f"OPTIONAL {{ {one} }}" for one in optional)
    parts = ((required, f"{required} {condition}"), *((one, f"{required} . {one} {condition}") for one in optional))
    return Written(name, where, parts)


MINTS = simple(
    "mints with labels and coordinates",
    "?mint a nmo:Mint ; skos:prefLabel ?label",
    "?mint geo:location ?place . ?place geo:lat ?lat ; geo:long ?long",
    condition='FILTER (lang(?label) IN ("en", "de"))',
)
PERSONS = simple(
    "persons with memberships",
    "?person a foaf:Person ; org:hasMembership ?membership . ?membership org:role ?role",
    "?membership nmo:hasStartDate ?start",
    "?membership nmo:hasEndDate ?end",
)
NAMES = simple(
    "places with names and year ranges",
    "?place a v:Place ; v:hasName ?name . ?name v:nameRomanized ?text",
    "?name v:start_date ?start",
    "?name v:end_date ?end",
    condition="FILTER EXISTS { ?place v:hasFeatureType ?type }",
)
CONNECTIONS = simple(
    "places connected to places",
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


def follow(folder: Path, interests: list[Written], most: int | None, *, thin: bool, every: int) -> None:
    replicas, store = Replicas(), Store()
    for one in interests:
        replicas.add(parse_interest(f"{PREFIXES}SELECT * {{ {one.where} }}", one.name))
    shipped: dict[str, set[Quad]] = {one.name: set() for one in interests}
    for change in islice(open_source(folder).changes(), most):
        request = thinned(change.request) if thin else change.request
        for quad in request.removed:
            store.remove(quad)
        store.extend(request.added)
        for effect in replicas.apply(request).changes:
            assert effect.delta.deleted <= shipped[effect.interest]
            assert effect.delta.inserted.isdisjoint(shipped[effect.interest])
            shipped[effect.interest] = (shipped[effect.interest] - effect.delta.deleted) | effect.delta.inserted
        if change.sequence % every == 0:
            for one in interests:
                assert stored_quads(shipped[one.name]) == expected(store, one), f"{one.name}, {change.where}"
    for one in interests:
        assert shipped[one.name] == replicas.target(one.name)
        assert shipped[one.name]
        assert stored_quads(shipped[one.name]) == expected(store, one)


def test_nomisma(shared: Path) -> None:
    follow(shared / "data/nomisma", [MINTS, PERSONS], 60, thin=False, every=6)


def test_pleiades(shared: Path) -> None:
    follow(shared / "data/pleiades", [NAMES, CONNECTIONS], 40, thin=True, every=8)


@pytest.mark.long
def test_all_of_nomisma(shared: Path) -> None:
    follow(shared / "data/nomisma", [MINTS, PERSONS], None, thin=False, every=1)


@pytest.mark.long
def test_all_of_pleiades(shared: Path) -> None:
    follow(shared / "data/pleiades", [NAMES, CONNECTIONS], None, thin=False, every=1)
