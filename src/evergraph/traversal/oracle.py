"""The dataset of Linked Data by its definition: slow, obviously right, and what everything else is compared with."""

from collections.abc import Mapping

from evergraph.delta import Bag
from evergraph.sparql.algebra import Query
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Environment, Row
from evergraph.terms import DEFAULT_GRAPH, NamedNode, Quad, Triple
from evergraph.traversal.iris import F
from evergraph.views.queries import result_rows


def dataset(documents: Mapping[NamedNode, frozenset[Triple]], f: Mapping[NamedNode, NamedNode]) -> frozenset[Quad]:
    """Build the dataset: a graph per document, their merge as default graph, and in it f.

    ``documents`` have no blank nodes in common. Only what is f(u) of some u counts.
    """
    quads: set[Quad] = set()
    for document in f.values():
        for triple in documents[document]:
            if triple.predicate == F:
                continue
            quads.add(Quad(triple.subject, triple.predicate, triple.object, document))
            quads.add(Quad(triple.subject, triple.predicate, triple.object, DEFAULT_GRAPH))
    for resource, document in f.items():
        quads.add(Quad(resource, F, document, DEFAULT_GRAPH))
    return frozenset(quads)


def answer(
    query: Query,
    documents: Mapping[NamedNode, frozenset[Triple]],
    f: Mapping[NamedNode, NamedNode],
    environment: Environment | None = None,
) -> Bag[Row]:
    """Evaluate a query from scratch over the documents so far."""
    return result_rows(query, Dataset(dataset(documents, f)), environment)
