"""Comparing datasets."""

from collections.abc import Iterable

from pyoxigraph import CanonicalizationAlgorithm, Dataset

from evergraph.delta import Change, Delta
from evergraph.terms import Quad, quad_has_blank_node


def difference(before: Iterable[Quad], after: Iterable[Quad]) -> Delta:
    """Tell what really changed, by comparing all there was with all there is: what every delta must be."""
    before, after = frozenset(before), frozenset(after)
    return Delta(inserted=after - before, deleted=before - after)


def replay(changes: Iterable[Change], start: Iterable[Quad] = (), *, after: int = 0) -> frozenset[Quad]:
    """Add changes up, and see on the way that they have no gaps and that each is exact."""
    state = frozenset(start)
    for sequence, change in enumerate(changes, after + 1):
        assert change.sequence == sequence
        assert change.deleted <= state
        assert change.inserted.isdisjoint(state)
        state = (state - change.deleted) | change.inserted
    return state


def isomorphic(one: Iterable[Quad], other: Iterable[Quad]) -> bool:
    """Tell whether two sets of quads are equal but for the labels of blank nodes."""
    return canonical(one) == canonical(other)


def canonical(quads: Iterable[Quad]) -> set[Quad]:
    """Relabel blank nodes by their place in the dataset."""
    quads = set(quads)
    if not any(map(quad_has_blank_node, quads)):
        return quads
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return set(dataset)
