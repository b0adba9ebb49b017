"""The frontier: everything is asked for once, the best first, and within the limits."""

import time
from random import Random

import httpx
import pytest

from evergraph.terms import NamedNode
from evergraph.traversal.fetching import Problem
from evergraph.traversal.frontier import Frontier, State, Visit
from evergraph.traversal.iris import document_url, origin
from evergraph.traversal.options import Limits


@pytest.mark.parametrize("seed", range(40))
def test_everything_is_asked_for_once(seed: int) -> None:
    """Addresses of a few hosts come, again and better too, while others are taken and done."""
    random = Random(seed)
    limits = Limits(documents=random.choice((15, 1_000)), depth=8, per_host=random.choice((9, 1_000)))
    frontier = Frontier(limits, window=random.choice((1, 2, 5)))
    taken: list[str] = []
    busy: list[Visit] = []
    for turn in range(400):
        if turn < 200:
            iri = NamedNode(f"http://h{random.randrange(3)}.example/{random.randrange(40)}#{random.randrange(2)}")
            frontier.add(iri, random.randrange(4), random.randrange(12), None)
        if random.random() < 0.6 and (visit := frontier.next()) is not None:
            assert visit.depth <= limits.depth
            taken.append(visit.url)
            busy.append(visit)
        if busy and random.random() < 0.5:
            done = busy.pop(random.randrange(len(busy)))
            frontier.settle(done, Problem(done.url, "TEST", "", False))
    while True:
        while (visit := frontier.next()) is not None:
            taken.append(visit.url)
            busy.append(visit)
        if not busy:
            break
        done = busy.pop()
        frontier.settle(done, Problem(done.url, "TEST", "", False))
    assert len(taken) == len(set(taken)) <= limits.documents
    for visit in frontier.visits.values():
        assert visit.state is (State.FAILED if visit.url in taken else State.SKIPPED)
        assert (visit.problem == "DEPTH") is (visit.depth > limits.depth)
    assert frontier.counts[State.FAILED] == len(taken)
    assert sum(frontier.counts.values()) == len(frontier.visits)


def test_the_best_comes_first() -> None:
    frontier = Frontier(Limits(), window=10)
    for number, (rank, depth) in enumerate([(2, 1), (1, 5), (0, 0), (1, 2), (2, 0)]):
        frontier.add(NamedNode(f"http://a.example/{number}"), rank, depth, None)
    frontier.add(NamedNode("http://a.example/0"), 0, 0, None)
    order = [visit.url[-1] for visit in iter(frontier.next, None)]
    assert order == ["2", "0", "3", "1", "4"]


def test_the_short_way_to_an_address_is_right() -> None:
    random = Random(1)
    for _ in range(3_000):
        rest = "".join(random.choice("ab.~_-/:#?%A0") for _ in range(random.randrange(12)))
        iri = (
            random.choice(
                ("http://a.example", "https://b.example:8080", "http://c.example:80", "http://d.example:45678")
            )
            + "/"
            + rest
        )
        try:
            url = httpx.URL(iri)
        except httpx.InvalidURL:
            continue
        expected = str(url.copy_with(fragment=None, raw_path=url.raw_path or b"/"))
        assert document_url(iri) == expected, iri
        assert origin(expected) == f"{url.scheme}://{url.netloc.decode()}"


def test_no_address_takes_long() -> None:
    begin = time.monotonic()
    for text in ("a" * 8_000 + "%", "a/" * 4_000 + "%", "a." * 4_000 + "%"):
        document_url("http://a.example/" + text)
    assert time.monotonic() - begin < 2
