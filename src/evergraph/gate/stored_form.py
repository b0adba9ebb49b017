"""How Oxigraph stores literals: it keeps the value of a number or a date, not the way it was written.

``"01"^^xsd:integer`` and ``"1"^^xsd:int`` both come back as ``"1"^^xsd:integer``. A delta that named them otherwise
would not be what happened.
"""

from functools import lru_cache
from typing import cast

from pyoxigraph import QuerySolutions, Store

from evergraph.terms import XSD, Literal, NamedNode, Quad, Term, Triple

_PROBE = Store()
_STRING_TYPES = frozenset({XSD + "string", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"})


def stored_quads(quads: set[Quad]) -> set[Quad]:
    """Write the literals of quads as an Oxigraph store gives them back."""
    changed: dict[Quad, Quad] = {}
    for quad in quads:
        value = quad.object
        if type(value) is NamedNode or (type(value) is Literal and value.language is not None):
            continue
        stored = _stored_term(value)
        if stored is not value:
            changed[quad] = Quad(quad.subject, quad.predicate, stored, quad.graph_name)
    return (quads - changed.keys()) | set(changed.values()) if changed else quads


def _stored_term(term: Term) -> Term:
    if isinstance(term, Literal):
        return term if term.datatype.value in _STRING_TYPES else _stored_literal(term) or term
    if isinstance(term, Triple):
        value = _stored_term(term.object)
        return term if value == term.object else Triple(term.subject, term.predicate, value)
    return term


@lru_cache(maxsize=1 << 16)
def _stored_literal(literal: Literal) -> Literal | None:
    """Ask Oxigraph how it stores a literal; None if as it is."""
    [[stored]] = cast(QuerySolutions, _PROBE.query(f"SELECT ?x {{ VALUES ?x {{ {literal} }} }}"))
    return None if stored == literal else cast(Literal, stored)
