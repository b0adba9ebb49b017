"""The yardstick is tested too: see tests/support/datasets.py."""

import pytest
from pyoxigraph import BlankNode, NamedNode, Quad, Triple
from tests.support.datasets import isomorphic

P = NamedNode("urn:p")


def chain(count: int, *, closed: bool = False) -> set[Quad]:
    """Make a chain of fresh blank nodes, in one graph with a fresh name."""
    nodes, graph = [BlankNode() for _ in range(count)], BlankNode()
    links = zip(nodes, [*nodes[1:], nodes[0]] if closed else nodes[1:], strict=False)
    return {Quad(one, P, Triple(other, P, other), graph) for one, other in links}


def star(count: int) -> set[Quad]:
    """Make many fresh blank nodes around one, which nothing tells apart."""
    hub = BlankNode()
    return {Quad(hub, P, BlankNode()) for _ in range(count)}


@pytest.mark.parametrize("count", [3, 30])
def test_only_labels_may_differ(count: int) -> None:
    assert isomorphic(chain(count), chain(count))
    assert isomorphic(chain(count) | chain(2), chain(2) | chain(count))
    assert not isomorphic(chain(count), chain(count, closed=True))
    assert not isomorphic(chain(count), chain(count + 1))
    assert not isomorphic(chain(count) | chain(2), chain(count) | chain(3))
    assert not isomorphic(chain(count), [Quad(q.subject, P, q.object) for q in chain(count)])


def test_many_like_nodes_take_no_time() -> None:
    assert isomorphic(star(200), star(200))
    assert not isomorphic(star(200), star(199))
