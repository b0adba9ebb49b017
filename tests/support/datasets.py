"""Comparing datasets."""

from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping
from hashlib import md5

from pyoxigraph import CanonicalizationAlgorithm, Dataset

from evergraph.delta import Change, Delta
from evergraph.terms import BlankNode, GraphName, Quad, Term, Triple


def difference(before: Iterable[Quad], after: Iterable[Quad]) -> Delta:
    """Tell what really changed, by comparing all there was with all there is: what every delta must be."""
    before, after = frozenset(before), frozenset(after)
    return Delta(inserted=after - before, deleted=before - after)


def replay(changes: Iterable[Change]) -> frozenset[Quad]:
    """Add changes up from the first on, and see on the way that they have no gaps and that each is exact."""
    state: frozenset[Quad] = frozenset()
    for sequence, change in enumerate(changes, 1):
        assert change.sequence == sequence
        assert change.deleted <= state
        assert change.inserted.isdisjoint(state)
        state = (state - change.deleted) | change.inserted
    return state


def isomorphic(one: Iterable[Quad], other: Iterable[Quad]) -> bool:
    """Tell whether two sets of quads are equal but for the labels of blank nodes."""
    return canonical(one) == canonical(other)


def canonical(quads: Iterable[Quad]) -> Counter[str]:
    """Write quads with blank nodes named by their place in the dataset.

    The names are exact for a few blank nodes. For many, where that could take for ever, nodes are told apart by what
    is said about them and their neighbours, near and far; only regular structures could be mixed up.
    """
    quads = set(quads)
    nodes = {node for quad in quads for node in _blank_nodes(quad)}
    if len(nodes) > 8:
        return _refined(quads, nodes)
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return Counter(map(str, dataset))


def _refined(quads: set[Quad], nodes: set[BlankNode]) -> Counter[str]:
    mentions: dict[BlankNode, list[Quad]] = {node: [] for node in nodes}
    for quad in quads:
        for node in _blank_nodes(quad):
            mentions[node].append(quad)
    names, known = dict.fromkeys(nodes, "_:"), 0
    while known < len(set(names.values())):
        known = len(set(names.values()))
        said = {
            node: "\n".join(sorted(_written(quad, ChainMap({node: "_:self"}, names)) for quad in mentions[node]))
            for node in nodes
        }
        names = {node: f"_:{md5(said[node].encode()).hexdigest()}" for node in nodes}
    return Counter(_written(quad, names) for quad in quads)


def _blank_nodes(quad: Quad | Triple) -> set[BlankNode]:
    found = {term for term in (quad.subject, quad.object) if isinstance(term, BlankNode)}
    if isinstance(quad.object, Triple):
        found |= _blank_nodes(quad.object)
    return found | ({quad.graph_name} if isinstance(quad, Quad) and isinstance(quad.graph_name, BlankNode) else set())


def _written(term: Quad | Term | GraphName, names: Mapping[BlankNode, str]) -> str:
    match term:
        case BlankNode():
            return names[term]
        case Triple() | Quad():
            return f"<<( {' '.join(_written(part, names) for part in term)} )>>"
        case _:
            return str(term)
