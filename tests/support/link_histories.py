"""Random histories of two datasets, and the linkset between them from scratch."""

from collections.abc import Callable
from random import Random

from tests.support.random_rules import random_rule, random_text

from evergraph.delta import Delta, Request
from evergraph.linking.catalogue import Catalogue, catalogue
from evergraph.linking.matching import Matcher
from evergraph.linking.oracle import Links, all_pairs
from evergraph.linking.rules import Rule
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Environment
from evergraph.sparql.parser import parse_query
from evergraph.terms import Literal, NamedNode, Quad
from evergraph.views.linksets import CatalogueView, Linkset, Mode
from evergraph.views.queries import result_rows

NS = "http://example.org/"
TEMPLATE = "PREFIX : <http://example.org/> CONSTRUCT { ?x a :Thing ; :p0 ?a ; :p1 ?b ; :p2 ?c } WHERE "
VIEWS = (
    "{ ?x a :Thing ; :p0 ?a ; :p1 ?b ; :p2 ?c }",
    "{ ?x a :Thing OPTIONAL { ?x :p0 ?a } OPTIONAL { ?x :p1 ?b } OPTIONAL { ?x :p2 ?c } }",
    "{ ?x a :Thing ; :p0 ?a OPTIONAL { ?x :p1 ?b } OPTIONAL { ?x ^:of/:p2 ?c } }",
    "{ ?x a :Thing ; :p0|:p1 ?a OPTIONAL { ?x :p1 ?b ; :p2 ?c } FILTER NOT EXISTS { ?x :gone true } }",
    "{ ?x a :Thing ; :p0 ?a ; :p1 ?b OPTIONAL { ?x :p2 ?c } MINUS { ?x :of ?x } }",
    "{ ?x a :Thing OPTIONAL { ?x :of*/:p0 ?a } OPTIONAL { ?x :p1 ?b } OPTIONAL { ?x :p2 ?c } }",
)
"""With several values, missing ones, paths, closures and negation."""


def iri(name: str) -> NamedNode:
    return NamedNode(NS + name)


def random_quad(random: Random, side: str, measures: list[str]) -> Quad:
    """Make a quad that some view may use."""
    subject, kind = iri(f"{side}{random.randrange(6)}"), random.random()
    if kind < 0.25:
        return Quad(subject, NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), iri("Thing"))
    if kind < 0.35:
        return Quad(subject, iri("of"), iri(f"{side}{random.randrange(6)}"))
    if kind < 0.4:
        return Quad(subject, iri("gone"), Literal(True))
    number = random.randrange(3)
    return Quad(subject, iri(f"p{number}"), Literal(random_text(random, measures[number])))


def random_delta(random: Random, side: str, measures: list[str], state: set[Quad]) -> Delta:
    """Make an exact change of a dataset, and apply it."""
    deleted = frozenset(random.sample(sorted(state, key=str), min(len(state), random.choice([0, 1, 1, 2, 4]))))
    wanted = {random_quad(random, side, measures) for _ in range(random.choice([0, 1, 2, 5]))}
    delta = Delta(inserted=frozenset(wanted - state), deleted=deleted - wanted)
    state -= delta.deleted
    state |= delta.inserted
    return delta


def links_from_scratch(rule: Rule, views: tuple[Catalogue, Catalogue], states: tuple[set[Quad], set[Quad]]) -> Links:
    """Evaluate both views anew and compare all pairs."""
    sides = [
        view.texts(result_rows(view.query, Dataset(state), Environment()))
        for view, state in zip(views, states, strict=True)
    ]
    return all_pairs(rule, *sides)


def selected(scores: Links, accept: float, one_to_one: bool) -> Links:
    """Choose links by the definition."""
    chosen: Links = {}
    for pair, score in sorted(scores.items(), key=lambda item: (-item[1], item[0])):
        free = all(pair[0] != other[0] and pair[1] != other[1] for other in chosen)
        if score >= accept and (free or not one_to_one):
            chosen[pair] = score
    return chosen


def check_link_history(seed: int, matcher: Callable[[Rule], Matcher] = Matcher) -> None:
    """After every run, links are those from scratch, and the sum of the runs is the links."""
    random = Random(seed)
    rule, measures = random_rule(random)
    views = (
        catalogue(parse_query(TEMPLATE + random.choice(VIEWS))),
        catalogue(parse_query(TEMPLATE + random.choice(VIEWS))),
    )
    states: tuple[set[Quad], set[Quad]] = (set(), set())
    accept, one_to_one = random.choice([0.0, 0.0, 0.6]), random.random() < 0.3
    linkset = Linkset(
        rule,
        CatalogueView(views[0]),
        CatalogueView(views[1]),
        accept=accept,
        one_to_one=one_to_one,
        matcher=matcher(rule),
    )
    total: set[tuple[str, str]] = set()
    for side in (0, 1):
        states[side].update(random_quad(random, "st"[side], measures) for _ in range(25))
        linkset.views[side].take(Delta(inserted=frozenset(states[side])))
    for number in range(6):
        for _ in range(random.choice([0, 1, 1, 2, 3]) if number else 0):  # several updates are folded into one run
            side = random.randrange(2)
            delta = random_delta(random, "st"[side], measures, states[side])
            request = Request(added=delta.inserted, removed=delta.deleted)
            linkset.views[side].take(linkset.views[side].exact(request))
        run = linkset.maintain(random.choice([None, Mode.INCREMENTAL, Mode.INCREMENTAL, Mode.FULL]))
        scores = links_from_scratch(rule, views, states)
        assert linkset.candidates.scores == scores
        assert linkset.links == selected(scores, accept, one_to_one)
        assert not run.added & total
        assert run.removed <= total
        total = (total - run.removed) | run.added
        assert total == set(linkset.links)
        assert run.sequence == number + 1
