"""The dataset of discovered documents, and how it changes: exact deltas of any number of documents at once.

The construction of Schmedding, *Incremental SPARQL Evaluation for Query Answering on Linked Data* (2011): a named graph
⟨f(u)⟩ for the document of each dereferenced u, a default graph that is the merge of all of them, and in it the
triples (u, f, f(u)). Beyond the paper, a change may hold several documents, and documents that were known.
"""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from types import MappingProxyType

from evergraph.delta import Bag, Delta
from evergraph.terms import DEFAULT_GRAPH, NamedNode, Quad, Triple
from evergraph.traversal.iris import F
from evergraph.traversal.spill import Spill


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A resource was dereferenced: its document, and what that says now; None if that is what is known of it."""

    resource: NamedNode
    document: NamedNode
    triples: frozenset[Triple] | None


@dataclass(frozen=True, slots=True)
class Lost:
    """A resource leads to no document any more; what it led to is named."""

    resource: NamedNode
    document: NamedNode


class LinkedDataset:
    """What has been discovered so far. Holds the documents f(u) of all u that were dereferenced, and no others.

    The documents are in memory, or in ``spill`` on disk.
    """

    def __init__(self, spill: Spill | None = None) -> None:
        self._documents: MutableMapping[NamedNode, frozenset[Triple]] = {} if spill is None else spill.documents
        self._f: dict[NamedNode, NamedNode] = {}
        self._resources: dict[NamedNode, dict[NamedNode, None]] = {}
        """The resources that lead to a document; without any, it is forgotten."""
        self._said: MutableMapping[Triple, int] = {} if spill is None else spill.said
        """How many documents say a triple; the default graph has it once."""

    @property
    def documents(self) -> Mapping[NamedNode, frozenset[Triple]]:
        """The triples of each document."""
        return MappingProxyType(self._documents)

    @property
    def f(self) -> Mapping[NamedNode, NamedNode]:
        """The document of each dereferenced resource."""
        return MappingProxyType(self._f)

    def resources(self, document: NamedNode) -> tuple[NamedNode, ...]:
        """Return the resources that lead to a document."""
        return tuple(self._resources.get(document, ()))

    def take(self, batch: Iterable[Retrieved | Lost]) -> Delta:
        """Take in documents, and losses of them, in order; return the exact change of the whole dataset."""
        change: Bag[Quad] = Bag()
        for one in batch:
            if isinstance(one, Lost):
                self._leave(one.resource, change)
            else:
                self._take(one, change)
        return Delta(
            inserted=frozenset(quad for quad, weight in change.items() if weight > 0),
            deleted=frozenset(quad for quad, weight in change.items() if weight < 0),
        )

    def quads(self) -> Iterator[Quad]:
        """Iterate over the whole dataset."""
        for triple in self._said:
            yield Quad(triple.subject, triple.predicate, triple.object, DEFAULT_GRAPH)
        for resource, document in self._f.items():
            yield Quad(resource, F, document, DEFAULT_GRAPH)
        for document, triples in self._documents.items():
            for triple in triples:
                yield Quad(triple.subject, triple.predicate, triple.object, document)

    def _take(self, one: Retrieved, change: Bag[Quad]) -> None:
        before, after = self._f.get(one.resource), one.document
        if one.triples is None and after not in self._documents:
            raise ValueError(f"nothing is known of {after}")
        if one.triples is not None:
            self._replace(after, one.triples, change)
        if before == after:
            return
        self._leave(one.resource, change)
        self._f[one.resource] = after
        self._resources.setdefault(after, {})[one.resource] = None
        change.add(Quad(one.resource, F, after, DEFAULT_GRAPH))

    def _leave(self, resource: NamedNode, change: Bag[Quad]) -> None:
        """Let a resource lead nowhere; a document that nothing leads to is forgotten."""
        before = self._f.pop(resource, None)
        if before is None:
            return
        change.add(Quad(resource, F, before, DEFAULT_GRAPH), -1)
        del self._resources[before][resource]
        if not self._resources[before]:
            self._replace(before, frozenset(), change)
            del self._resources[before], self._documents[before]

    def _replace(self, document: NamedNode, triples: frozenset[Triple], change: Bag[Quad]) -> None:
        before = self._documents.get(document, frozenset())
        self._documents[document] = triples
        for triple in before - triples:
            change.add(Quad(triple.subject, triple.predicate, triple.object, document), -1)
            self._count(triple, -1, change)
        for triple in triples - before:
            change.add(Quad(triple.subject, triple.predicate, triple.object, document))
            self._count(triple, 1, change)

    def _count(self, triple: Triple, weight: int, change: Bag[Quad]) -> None:
        before = self._said.get(triple, 0)
        after = before + weight
        if after:
            self._said[triple] = after
        else:
            del self._said[triple]
        if not before or not after:
            change.add(Quad(triple.subject, triple.predicate, triple.object, DEFAULT_GRAPH), weight)
