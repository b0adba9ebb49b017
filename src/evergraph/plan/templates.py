"""Queries that differ only in names and constants: one template, and the constants as its parameters.

`canonical` names the variables of a query in the order in which they occur, and puts placeholders where a triple
pattern has a constant subject or object. Queries with the same outcome have the same template. Constants stay where
they are as predicates, graphs, classes (objects of ``rdf:type``), ends of paths, and in expressions.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar
from uuid import uuid4

from evergraph.sparql.algebra import VOLATILE, Ask, Call, Query, Select, TriplePattern
from evergraph.terms import BlankNode, Literal, NamedNode, Term, Variable

_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_UNIQUE = uuid4()
T = TypeVar("T")


@cache
def placeholder(number: int) -> NamedNode:
    """Return what stands for a constant; it occurs in no query."""
    return NamedNode(f"urn:uuid:{_UNIQUE}#{number}")


@cache
def _name(number: int) -> Variable:
    return Variable(f"v{number}")


class _NotCanonical(Exception):
    pass


def canonical(query: Query) -> tuple[Select | Ask, tuple[Term, ...]] | None:
    """Return the template of a query and its constants, each once; None if its meaning depends on more than these.

    CONSTRUCT and DESCRIBE are left out, and so are functions such as NOW(), whose value is one of the view.
    """
    if not isinstance(query, Select | Ask):
        return None
    names: dict[Variable, Variable] = {}
    constants: dict[Term, NamedNode] = {}

    def lifted(term: Any) -> Any:
        if isinstance(term, NamedNode | Literal | BlankNode):
            found = constants.get(term)
            if found is None:
                found = constants[term] = placeholder(len(constants))
            return found
        return changed(term)

    def changed(node: Any) -> Any:
        kind = type(node)
        if kind is Variable:
            found = names.get(node)
            if found is None:
                found = names[node] = _name(len(names))
            return found
        if kind is tuple:
            return tuple([changed(one) for one in node])
        if kind is TriplePattern:
            predicate, object_ = node.predicate, node.object
            is_class = predicate == _TYPE and not isinstance(object_, Variable)
            subject = lifted(node.subject)
            return TriplePattern(
                subject, changed(predicate), object_ if is_class else lifted(object_), changed(node.graph)
            )
        if kind is Call and node.function in VOLATILE:
            raise _NotCanonical
        members = _members(kind)
        return kind(*[changed(getattr(node, name)) for name in members]) if members else node

    try:
        return changed(query), tuple(constants)
    except _NotCanonical:
        return None


def _members(kind: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = _fields(kind)
    return found


@cache
def _fields(kind: Hashable) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if isinstance(kind, type) and is_dataclass(kind) else ()


def with_constants(node: T, constants: Mapping[NamedNode, Term]) -> T:
    """Put constants back in the place of some placeholders of a query."""

    def changed(one: Any) -> Any:
        kind = type(one)
        if kind is NamedNode:
            return constants.get(one, one)
        if kind is tuple:
            return tuple([changed(part) for part in one])
        members = _members(kind)
        return kind(*[changed(getattr(one, name)) for name in members]) if members else one

    result: T = changed(node)
    return result


def iris(node: Any) -> Iterator[NamedNode]:
    """Iterate over the IRIs in a pattern."""
    if isinstance(node, NamedNode):
        yield node
    for part in node if isinstance(node, tuple) else [getattr(node, name) for name in _members(type(node))]:
        yield from iris(part)
