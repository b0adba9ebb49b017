"""An RDF dataset in memory: exact terms, indexed well enough for evaluation from scratch."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from evergraph.sparql.algebra import DatasetClause
from evergraph.terms import DEFAULT_GRAPH, BlankNode, DefaultGraph, NamedNode, Quad, Term

Spo: TypeAlias = tuple[Term, Term, Term]


class TripleIndex:
    """A set of triples that finds those with given members."""

    def __init__(self, triples: Iterable[Spo] = ()) -> None:
        self._all: set[Spo] = set()
        self._by: tuple[dict[Term, set[Spo]], ...] = (defaultdict(set), defaultdict(set), defaultdict(set))
        for triple in triples:
            self.add(triple)

    def add(self, triple: Spo) -> None:
        """Add a triple; one that is there already changes nothing."""
        self._all.add(triple)
        for term, index in zip(triple, self._by, strict=True):
            index[term].add(triple)

    def match(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> Iterator[Spo]:
        """Iterate over the triples with the given members; None stands for any."""
        wanted = (subject, predicate, object_)
        candidates = self._all
        for term, index in zip(wanted, self._by, strict=True):
            if term is not None:
                found = index.get(term, set())
                candidates = found if len(found) < len(candidates) else candidates
        for triple in candidates:
            if all(term is None or term == member for term, member in zip(wanted, triple, strict=True)):
                yield triple

    def nodes(self) -> set[Term]:
        """Return the subjects and objects."""
        return {triple[0] for triple in self._all} | {triple[2] for triple in self._all}

    def __iter__(self) -> Iterator[Spo]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


class Dataset:
    """A default graph and named graphs. A named graph is there if it has a triple, or if its name is given."""

    def __init__(self, quads: Iterable[Quad] = (), names: Iterable[NamedNode | BlankNode] = ()) -> None:
        self.default = TripleIndex()
        named: defaultdict[Term, TripleIndex] = defaultdict(TripleIndex)
        for name in names:
            named[name] = TripleIndex()
        for quad in quads:
            graph = quad.graph_name
            index = self.default if isinstance(graph, DefaultGraph) else named[graph]
            index.add((quad.subject, quad.predicate, quad.object))
        self.named: Mapping[Term, TripleIndex] = dict(named)

    def select(self, clause: DatasetClause | None) -> "Dataset":
        """Return the dataset that FROM and FROM NAMED describe; without them, this one.

        Graphs of one store share their blank nodes, so that the merge of graphs is their union.
        """
        if clause is None:
            return self
        chosen = Dataset()
        chosen.default = TripleIndex(triple for name in clause.default for triple in self.named.get(name, ()))
        chosen.named = {name: self.named[name] for name in clause.named if name in self.named}
        return chosen

    def quads(self) -> Iterator[Quad]:
        """Iterate over all quads."""
        for triple in self.default:
            yield _quad(triple, DEFAULT_GRAPH)
        for name, index in self.named.items():
            assert isinstance(name, NamedNode | BlankNode)
            for triple in index:
                yield _quad(triple, name)


def _quad(triple: Spo, graph: NamedNode | BlankNode | DefaultGraph) -> Quad:
    subject, predicate, object_ = triple
    assert isinstance(subject, NamedNode | BlankNode)
    assert isinstance(predicate, NamedNode)
    return Quad(subject, predicate, object_, graph)
