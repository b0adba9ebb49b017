"""Standing queries over two real histories: maintained = from scratch, and the sum of the steps is the result.

The queries are like those that nomisma.org and pleiades.stoa.org themselves ask. By default they follow the first
changes of each stream; of pleiades, whose first change is the whole gazetteer, every tenth place. With ``--long`` they
follow all changes of all places.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

from evergraph.delta import Bag, Request
from evergraph.engines.local.engine import LocalEngine
from evergraph.sources import open_source
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.terms import NamedNode, Quad
from evergraph.views.queries import result_rows

PREFIXES = """
PREFIX bio: <http://purl.org/vocab/bio/0.1/>
PREFIX dct: <http://purl.org/dc/terms/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>
PREFIX nm: <http://nomisma.org/id/>
PREFIX nmo: <http://nomisma.org/ontology#>
PREFIX org: <http://www.w3.org/ns/org#>
PREFIX place: <https://pleiades.stoa.org/places/>
PREFIX type: <https://pleiades.stoa.org/vocabularies/place-types/>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
PREFIX v: <https://pleiades.stoa.org/places/vocab#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""

NOMISMA = {
    "mints with coordinates, if known": """
        SELECT ?mint ?label ?lat ?long {
          ?mint a nmo:Mint ; skos:prefLabel ?label FILTER langMatches(lang(?label), "en")
          OPTIONAL { ?mint geo:location ?place . ?place geo:lat ?lat ; geo:long ?long } }""",
    "labels in the languages of the reader": """
        SELECT ?concept ?label {
          ?concept a nmo:Denomination
          OPTIONAL { ?concept skos:prefLabel ?de FILTER (lang(?de) = "de") }
          OPTIONAL { ?concept skos:prefLabel ?en FILTER (lang(?en) = "en") }
          BIND (COALESCE(?de, ?en, "?") AS ?label) }""",
    "mints without an English definition": """
        SELECT ?mint { ?mint a nmo:Mint
          FILTER NOT EXISTS { ?mint skos:definition ?text FILTER (lang(?text) = "en") } }""",
    "concepts by language, the common ones": """
        SELECT ?language (COUNT(*) AS ?labels) (COUNT(DISTINCT ?concept) AS ?concepts) {
          ?concept skos:prefLabel ?label BIND (lang(?label) AS ?language) }
        GROUP BY ?language HAVING (COUNT(*) > 100)""",
    "what a concept falls under": """
        SELECT ?concept ?above { ?concept skos:broader+ ?above . ?concept a nmo:Denomination }""",
    "all below a role, itself included": "SELECT ?role { ?role skos:broader* nm:authority }",
    "persons and the roles that they held": """
        SELECT DISTINCT ?person ?role {
          ?person a foaf:Person ; org:hasMembership/org:role ?role MINUS { ?person dct:isReplacedBy ?other } }""",
    "the longest reigns": """
        SELECT ?person ?name ?start { ?person skos:prefLabel ?name FILTER (lang(?name) = "en")
          { SELECT ?person ?start { ?person org:hasMembership ?held . ?held nmo:hasStartDate ?start ; org:role ?role }
            ORDER BY DESC(str(?start)) LIMIT 25 } }""",
    "matches elsewhere": """
        SELECT ?concept ?match { VALUES ?class { nmo:Mint nmo:Region } ?concept a ?class
          { ?concept skos:closeMatch ?match } UNION { ?concept skos:exactMatch ?match } }""",
    "mints as features": """
        CONSTRUCT { ?mint foaf:based_near [ geo:lat ?lat ; geo:long ?long ] ; foaf:name ?label }
        WHERE { ?mint a nmo:Mint ; geo:location [ geo:lat ?lat ; geo:long ?long ] ; skos:prefLabel ?label
          FILTER (lang(?label) IN ("en", "fr") && ?lat > 40.0 && ?lat < 42.0) }""",
    "is any mint without a label": "ASK { ?mint a nmo:Mint MINUS { ?mint skos:prefLabel ?label } }",
    "first and last years of closing dates": """
        SELECT (MIN(?start) AS ?first) (MAX(?end) AS ?last) (COUNT(?hoard) AS ?hoards) {
          ?hoard nmo:hasClosingDate [ nmo:hasStartDate ?start ; nmo:hasEndDate ?end ] }""",
}

PLEIADES = {
    "places with their names, if any": """
        SELECT ?place ?title ?name {
          ?place a v:Place ; dct:title ?title ; v:hasFeatureType type:settlement-modern
          OPTIONAL { ?place v:hasName/v:nameAttested ?name FILTER langMatches(lang(?name), "el") } }""",
    "names in Greek or Latin": """
        SELECT ?place ?name ?language {
          { ?place v:hasName [ v:nameAttested ?name ] FILTER (lang(?name) = "grc") BIND ("Greek" AS ?language) }
          UNION
          { ?place v:hasName [ v:nameAttested ?name ] FILTER (lang(?name) = "la") BIND ("Latin" AS ?language) } }""",
    "places without coordinates": """
        SELECT ?place ?title { ?place a v:Place ; dct:title ?title
          FILTER NOT EXISTS { ?place geo:lat ?lat . ?place geo:long ?long } }""",
    "how many of each type": """
        SELECT ?type (COUNT(DISTINCT ?place) AS ?places) (AVG(?lat) AS ?middle) {
          ?place a v:Place ; v:hasFeatureType ?type OPTIONAL { ?place geo:lat ?lat } }
        GROUP BY ?type HAVING (COUNT(DISTINCT ?place) >= 10)""",
    "what is part of what": """
        SELECT ?part ?whole { ?part (v:part_of_admin|v:part_of_regional|v:part_of_physical)+ ?whole }""",
    "what leads to Athens": "SELECT ?place { ?place (v:connection|v:at|v:near)* place:579885 }",
    "the oldest names": """
        SELECT ?place ?name ?start { ?place v:hasName ?name
          { SELECT ?name ?start { ?name v:nameRomanized ?text ; v:start_date ?start }
            ORDER BY ?start ?text LIMIT 40 } }""",
    "places of Roman times that are not settlements": """
        SELECT DISTINCT ?place ?type { ?place v:hasFeatureType ?type ; v:hasLocation ?location .
          ?location v:start_date ?start ; v:end_date ?end FILTER (?start <= -30 && ?end >= 300)
          MINUS { ?place v:hasFeatureType type:settlement } }""",
    "a box on the map": """
        CONSTRUCT { ?place foaf:name ?title ; geo:lat_long ?point }
        WHERE { ?place dct:title ?title ; geo:lat ?lat ; geo:long ?long
          FILTER (?lat > 36 && ?lat < 38 && ?long > 22 && ?long < 25)
          BIND (CONCAT(str(?lat), ",", str(?long)) AS ?point) }""",
    "is there a place that is part of itself": """
        ASK { ?place a v:Place ; (v:part_of_admin|v:part_of_regional|v:part_of_physical)+ ?place }""",
    "one title, several places": """
        SELECT ?title (COUNT(*) AS ?places) (GROUP_CONCAT(STR(?place); separator=" ") AS ?which) {
          ?place a v:Place ; dct:title ?title } GROUP BY ?title HAVING (COUNT(*) > 3)""",
}


@dataclass
class Followed:
    """How far a stream was followed, how often results were compared, and how many steps were reported."""

    changes: int = 0
    compared: int = 0
    steps: int = 0


def every_tenth(quads: frozenset[Quad]) -> frozenset[Quad]:
    """Keep the places whose number ends in 5: some of those near Athens, which has number 579885."""
    kept = []
    for quad in quads:
        assert isinstance(quad.subject, NamedNode)
        if quad.subject.value.removeprefix("https://pleiades.stoa.org/places/").split("/")[0].endswith("5"):
            kept.append(quad)
    return frozenset(kept)


def requests(folder: Path, count: int | None, sample: bool) -> Iterator[Request]:
    for change in islice(open_source(folder).changes(), count):
        request = change.request
        yield Request(every_tenth(request.removed), every_tenth(request.added)) if sample else request


def follow(queries: dict[str, str], stream: Iterator[Request], compare_at: range) -> Followed:
    """Maintain queries over a stream; compare at some of its changes, and after the last one."""
    engine = LocalEngine()
    parsed = {name: parse_query(PREFIXES + text) for name, text in queries.items()}
    views = {name: engine.register(query) for name, query in parsed.items()}
    names = {view: name for name, view in views.items()}
    sums: dict[str, Bag[Row]] = {name: view.result() for name, view in views.items()}
    state: set[Quad] = set()
    followed = Followed()

    def compare() -> None:
        dataset = Dataset(state)
        followed.compared += 1
        for name, view in views.items():
            result = view.result()
            assert sums[name] == result, f"{name}: the steps do not add up after change {followed.changes}"
            difference = result - result_rows(parsed[name], dataset)
            assert not difference, f"{name}: wrong after change {followed.changes}: {difference}"

    for request in stream:
        effects = engine.apply_request(request)
        state.difference_update(request.removed)
        state.update(request.added)
        followed.changes += 1
        followed.steps += len(effects)
        for view, rows in effects:
            added, removed = view.added(rows), view.removed(rows)
            assert added or removed, f"{names[view]}: a step without an effect"
            assert not any(row in added for row in removed), f"{names[view]}: added and removed overlap"
            sums[names[view]].update(added - removed)
        if followed.changes in compare_at:
            compare()
    compare()
    return followed


def test_nomisma(shared: Path) -> None:
    followed = follow(NOMISMA, requests(shared / "data" / "nomisma", 150, sample=False), range(60, 61))
    assert (followed.changes, followed.compared) == (150, 2)
    assert followed.steps > 250


def test_pleiades(shared: Path) -> None:
    followed = follow(PLEIADES, requests(shared / "data" / "pleiades", 60, sample=True), range(1, 2))
    assert (followed.changes, followed.compared) == (60, 2)
    assert followed.steps > 50


@pytest.mark.long
@pytest.mark.parametrize(("name", "queries"), [("nomisma", NOMISMA), ("pleiades", PLEIADES)])
def test_whole_streams(name: str, queries: dict[str, str], shared: Path) -> None:
    followed = follow(queries, requests(shared / "data" / name, None, sample=False), range(1, 10_000, 300))
    assert followed.changes > 800
