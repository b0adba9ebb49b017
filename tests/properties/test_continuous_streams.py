"""Basic graph patterns maintained without a store over a real history, against evaluation from scratch."""

from itertools import islice
from pathlib import Path

import pytest
from tests.support.patterns import bgp

from evergraph.delta import Bag, Request
from evergraph.engines.local.continuous import ContinuousPattern
from evergraph.plan.continuous import PatternClass
from evergraph.sources.changesets import ChangesetSource
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.evaluate import Evaluator
from evergraph.sparql.expressions import Environment, Row
from evergraph.terms import Quad

PREFIXES = """
PREFIX skos: <http://www.w3.org/2004/02/skos/core#> PREFIX nmo: <http://nomisma.org/ontology#>
PREFIX nm: <http://nomisma.org/id/> PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>
PREFIX dct: <http://purl.org/dc/terms/> PREFIX org: <http://www.w3.org/ns/org#>
"""

PATTERNS = {
    "ground": ("nm:rome a nmo:Mint . nm:rome skos:prefLabel 'Rome'@en", PatternClass.GROUND),
    "star": ("?mint a nmo:Mint ; a skos:Concept ; dct:isPartOf nm:greek_numismatics", PatternClass.SIMPLE_STAR),
    "loose": (
        "?material a nmo:Material ; a skos:Concept . ?region a nmo:Region . nm:rome a nmo:Mint",
        PatternClass.LOOSELY_CONNECTED,
    ),
    "labelled star": (
        "?mint a nmo:Mint ; skos:prefLabel ?label ; geo:location ?place",
        PatternClass.CONNECTED_VARIABLE,
    ),
    "path": (
        "?mint a nmo:Mint ; geo:location ?place . ?place geo:lat ?lat ; geo:long ?long",
        PatternClass.CONNECTED_VARIABLE,
    ),
    "role": (
        "?person org:hasMembership ?m . ?m org:role ?role ; nmo:hasStartDate ?from . ?role skos:prefLabel ?label",
        PatternClass.CONNECTED_VARIABLE,
    ),
    "up and up": ("?a skos:broader ?b . ?b skos:broader ?c", PatternClass.CONNECTED_VARIABLE),
    "any predicate": ("?a ?how nmo:Region ; skos:broader ?b", PatternClass.CONNECTED_VARIABLE),
    "any": ("?a skos:broader ?b . ?object a nmo:ObjectType", PatternClass.ANY),
}
CHANGESETS = 100
COMPARED = {1, 10, CHANGESETS}


class Follower:
    def __init__(self, text: str) -> None:
        self.pattern = bgp(text, PREFIXES)
        self.continuous = ContinuousPattern(self.pattern)
        self.sum: Bag[Row] = Bag()

    def apply(self, request: Request) -> None:
        self.sum.update(self.continuous.apply(request))

    def compare(self, evaluator: Evaluator, quads: int) -> None:
        expected = evaluator.evaluate(self.pattern).rows
        assert self.sum == expected
        assert len(self.continuous) == len(expected)
        assert self.continuous.state().entries <= quads


def test_nomisma(shared: Path) -> None:
    folder = shared / "data" / "nomisma"
    source = ChangesetSource.find(folder) if folder.is_dir() else None
    if source is None:
        pytest.skip("needs the change stream of nomisma in the folder `shared` next to the repository")
    followers = {name: Follower(text) for name, (text, _) in PATTERNS.items()}
    for name, (_, expected) in PATTERNS.items():
        assert followers[name].continuous.explain().pattern_class is expected
    quads: set[Quad] = set()
    for change in islice(source.changes(), CHANGESETS):
        quads -= change.request.removed
        quads |= change.request.added
        for follower in followers.values():
            follower.apply(change.request)
            if change.sequence % 7 == 0:
                assert not follower.continuous.apply(change.request)
        if change.sequence in COMPARED:
            evaluator = Evaluator(Dataset(quads), Environment())
            for follower in followers.values():
                follower.compare(evaluator, len(quads))
    assert {name: len(follower.sum) > 0 for name, follower in followers.items()} == dict.fromkeys(PATTERNS, True)
