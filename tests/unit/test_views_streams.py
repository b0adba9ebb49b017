"""Queries over a stream alone: lone patterns without an engine, everything else with one, the same answers."""

from random import Random

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from evergraph.delta import Bag, Request
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.views.queries import result_rows
from evergraph.views.streams import EngineFollower, Follower, PatternFollower, follow

PATTERNS = {
    "ground": "SELECT * { <urn:s0> <urn:p> <urn:s1> }",
    "star": "SELECT ?s { ?s <urn:p> <urn:s1> ; <urn:q> <urn:s2> }",
    "loosely connected": "SELECT ?a ?b { ?a <urn:p> <urn:s1> . <urn:s1> <urn:q> ?b }",
    "connected": "SELECT ?a ?c ?none { ?a <urn:p> ?b . ?b <urn:q> ?c }",
}
OTHERS = {
    "optional": "SELECT * { ?a <urn:p> ?b OPTIONAL { ?b <urn:q> ?c } }",
    "ask": "ASK { ?a <urn:p> ?b . ?b <urn:q> ?c }",
    "dataset": "SELECT * FROM <urn:g> { ?a <urn:p> ?b }",
}


def random_request(random: Random) -> Request:
    """Messages that are not exact: what is there is added again, what is not is removed."""

    def quads() -> frozenset[Quad]:
        nodes = [NamedNode(f"urn:s{number}") for number in range(3)]
        values: list[NamedNode | Literal] = [*nodes, Literal("x")]
        predicates = [NamedNode("urn:p"), NamedNode("urn:q")]
        return frozenset(
            Quad(random.choice(nodes), random.choice(predicates), random.choice(values))
            for _ in range(random.randint(0, 3))
        )

    return Request(removed=quads(), added=quads())


@pytest.mark.parametrize(
    ("text", "kind"),
    [(text, PatternFollower) for text in PATTERNS.values()] + [(text, EngineFollower) for text in OTHERS.values()],
    ids=[*PATTERNS, *OTHERS],
)
def test_every_step_leads_to_what_a_run_from_scratch_gives(text: str, kind: type[Follower]) -> None:
    query = parse_query(text)
    for seed in range(10):
        random = Random(seed)
        view = follow(query)
        assert isinstance(view, kind)
        state: set[Quad] = set()
        total: Bag[Row] = view.result()
        for _ in range(30):
            request = random_request(random)
            state = (state - request.removed) | request.added
            total += view.take(request)
            assert total == view.result() == result_rows(query, Dataset(state), view.environment)
        view.take(Request(removed=frozenset(state)))
        assert view.entries() <= 2  # the bits of a ground pattern, the answer of ASK: nothing grows
