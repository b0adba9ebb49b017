"""Exact deltas as SPARQL Update requests."""

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from evergraph.gate.extract import Effect
from evergraph.gate.own import OWN
from evergraph.terms import (
    DEFAULT_GRAPH,
    BlankNode,
    GraphName,
    NamedNode,
    Quad,
    Term,
    Triple,
    has_blank_node,
    term_text,
)

Functions = dict[NamedNode, Callable[..., Term | None]]
"""Custom functions, as pyoxigraph takes them."""


def data_row(quad: Quad, value: str) -> str:
    """Write a quad without blank nodes for the body of a DATA operation, its object as given."""
    triple = f"{quad.subject} {quad.predicate} {value}"
    return f"{triple} ." if quad.graph_name == DEFAULT_GRAPH else f"GRAPH {quad.graph_name} {{ {triple} }}"


def data_block(quads: Iterable[Quad]) -> str:
    """Write quads without blank nodes as the body of a DATA operation."""
    graphs: dict[GraphName, list[str]] = {}
    for quad in quads:
        value = quad.object
        text = term_text(value) if type(value) is Triple else str(value)
        graphs.setdefault(quad.graph_name, []).append(f"{quad.subject} {quad.predicate} {text} .")
    default = " ".join(graphs.pop(DEFAULT_GRAPH, ()))
    return " ".join([default, *(f"GRAPH {graph} {{ {' '.join(rows)} }}" for graph, rows in graphs.items())])


def is_nameless(quad: Quad) -> bool:
    """Tell whether a quad has a blank node, as `quad_has_blank_node` does, with fewer calls."""
    value = quad.object
    kind = type(value)
    if kind is BlankNode or type(quad.subject) is BlankNode or type(quad.graph_name) is BlankNode:
        return True
    return kind is Triple and has_blank_node(value)


def data_operation(keyword: str, graph: GraphName, triples: Iterable[str]) -> str:
    """Write a DATA operation on one graph. (With more GRAPH blocks than one, Virtuoso fails to delete literals.)"""
    text = " ".join(triples)
    return (
        f"{keyword} DATA {{ {text} }}" if graph == DEFAULT_GRAPH else f"{keyword} DATA {{ GRAPH {graph} {{ {text} }} }}"
    )


def chunks(texts: Iterable[str], most: int, size: int) -> Iterator[list[str]]:
    """Put texts together, at most so many and so long, but at least one."""
    chunk: list[str] = []
    total = 0
    for text in texts:
        length = sent_length(text)
        if chunk and (len(chunk) == most or total + length > size):
            yield chunk
            chunk, total = [], 0
        chunk.append(text)
        total += length
    if chunk:
        yield chunk


def sent_length(text: str) -> int:
    """Tell how many bytes a text takes in a request; in a form, a byte that is not ASCII takes three."""
    return len(text) if text.isascii() else 3 * len(text.encode())


def embedded_update(effect: Effect) -> tuple[str, Functions]:
    """Write an effect as one request for a pyoxigraph store.

    Blank nodes of the store have no name in SPARQL; quads with them go through custom functions that return the nodes.
    Graphs that are named by them are emptied, but not dropped.
    """
    operations: list[str] = []
    nameless: list[Quad] = []
    for keyword, quads in (("DELETE", effect.delta.deleted), ("INSERT", effect.delta.inserted)):
        first = len(nameless)
        named: list[Quad] = []
        for quad in quads:
            (nameless if is_nameless(quad) else named).append(quad)
        if named:
            operations.append(f"{keyword} DATA {{ {data_block(named)} }}")
        operations += _nameless_operations(keyword, nameless, first)
    filled = {quad.graph_name for quad in effect.delta.inserted}
    operations += [f"DROP SILENT GRAPH {name}" for name in effect.dropped if isinstance(name, NamedNode)]
    operations += [f"CREATE SILENT GRAPH {name}" for name in effect.created - filled if isinstance(name, NamedNode)]
    functions: Functions = {
        NamedNode(OWN + "s"): lambda index: nameless[int(index.value)].subject,
        NamedNode(OWN + "p"): lambda index: nameless[int(index.value)].predicate,
        NamedNode(OWN + "o"): lambda index: nameless[int(index.value)].object,
        NamedNode(OWN + "g"): lambda index: cast(NamedNode, nameless[int(index.value)].graph_name),
    }
    return "".join(f"{operation};\n" for operation in operations), functions if nameless else {}


def _nameless_operations(keyword: str, quads: list[Quad], first: int) -> Iterator[str]:
    places = range(first, len(quads))
    bind = " ".join(f"BIND(<{OWN}{name}>(?i) AS ?{name})" for name in "spo")
    if default := [str(place) for place in places if quads[place].graph_name == DEFAULT_GRAPH]:
        yield f"{keyword} {{ ?s ?p ?o }} WHERE {{ VALUES ?i {{ {' '.join(default)} }} {bind} }}"
    if named := [str(place) for place in places if quads[place].graph_name != DEFAULT_GRAPH]:
        values = f"VALUES ?i {{ {' '.join(named)} }}"
        yield f"{keyword} {{ GRAPH ?g {{ ?s ?p ?o }} }} WHERE {{ {values} {bind} BIND(<{OWN}g>(?i) AS ?g) }}"
