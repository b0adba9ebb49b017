"""RDF terms and quads.

The terms are pyoxigraph's: immutable, hashable, compared by their exact lexical form (``"01"`` and ``"1"`` are two
terms). Only stores normalise literals; nothing else in Evergraph does.
"""

from collections.abc import Iterable
from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple, Variable

Term: TypeAlias = NamedNode | BlankNode | Literal | Triple
"""Anything that can be the object of a triple."""

GraphName: TypeAlias = NamedNode | BlankNode | DefaultGraph
"""The fourth member of a quad."""

DEFAULT_GRAPH = DefaultGraph()

XSD = "http://www.w3.org/2001/XMLSchema#"
SKOLEM_PREFIX = "urn:skolem:"
"""What stands before the label of a blank node that had to become an IRI."""


def has_blank_node(term: Term | GraphName) -> bool:
    """Tell whether the term is a blank node, or a triple term that holds one."""
    if isinstance(term, Triple):
        return has_blank_node(term.subject) or has_blank_node(term.object)
    return isinstance(term, BlankNode)


def quad_has_blank_node(quad: Quad) -> bool:
    """Tell whether any position of the quad holds a blank node."""
    return has_blank_node(quad.subject) or has_blank_node(quad.object) or isinstance(quad.graph_name, BlankNode)


def skolemise(term: Term) -> Term:
    """Turn blank nodes into IRIs with `SKOLEM_PREFIX`; other terms stay as they are."""
    if isinstance(term, BlankNode):
        return NamedNode(SKOLEM_PREFIX + term.value)
    if isinstance(term, Triple):
        subject = skolemise(term.subject)
        assert not isinstance(subject, Literal | Triple)
        return Triple(subject, term.predicate, skolemise(term.object))
    return term


def skolemise_quad(quad: Quad) -> Quad:
    """Skolemise subject, object and graph name of a quad."""
    if not quad_has_blank_node(quad):
        return quad
    subject, graph = skolemise(quad.subject), quad.graph_name
    assert not isinstance(subject, Literal | Triple)
    if isinstance(graph, BlankNode):
        graph = NamedNode(SKOLEM_PREFIX + graph.value)
    return Quad(subject, quad.predicate, skolemise(quad.object), graph)


def term_text(term: Term) -> str:
    """Write a term as N-Triples does. Of a triple term, ``str`` writes a bare triple."""
    return f"<<( {term} )>>" if isinstance(term, Triple) else str(term)


def sorted_quads(quads: Iterable[Quad]) -> list[Quad]:
    """Order quads by their N-Quads text: the order of every output that people compare."""
    return sorted(quads, key=str)


__all__ = [
    "DEFAULT_GRAPH",
    "SKOLEM_PREFIX",
    "XSD",
    "BlankNode",
    "DefaultGraph",
    "GraphName",
    "Literal",
    "NamedNode",
    "Quad",
    "Term",
    "Triple",
    "Variable",
    "has_blank_node",
    "quad_has_blank_node",
    "skolemise",
    "skolemise_quad",
    "sorted_quads",
    "term_text",
]
