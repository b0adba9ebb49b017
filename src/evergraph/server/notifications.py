"""Notifications as text: what a step adds and removes, in SPARQL results JSON.

SELECT has its rows; CONSTRUCT and DESCRIBE have rows over ``subject``, ``predicate`` and ``object``; ASK has one row
with a boolean, and the member ``boolean`` of SPARQL results JSON besides.
"""

from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any

from evergraph.engines.local.dictionary import ZSet
from evergraph.engines.local.views import View
from evergraph.sparql.algebra import Ask
from evergraph.sparql.values import XSD_STRING
from evergraph.terms import BlankNode, Literal, NamedNode, Term, Triple

quoted: Any = encode_basestring
"""Write a text as a JSON string."""


def term_json(term: Term) -> str:
    """Write a term in SPARQL results JSON."""
    match term:
        case NamedNode():
            return f'{{"type":"uri","value":{quoted(term.value)}}}'
        case BlankNode():
            return f'{{"type":"bnode","value":{quoted(term.value)}}}'
        case Literal(language=str(language)):
            return f'{{"type":"literal","value":{quoted(term.value)},"xml:lang":{quoted(language)}}}'
        case Literal() if term.datatype == XSD_STRING:
            return f'{{"type":"literal","value":{quoted(term.value)}}}'
        case Literal():
            return f'{{"type":"literal","value":{quoted(term.value)},"datatype":{quoted(term.datatype.value)}}}'
        case Triple():
            parts = (("subject", term.subject), ("predicate", term.predicate), ("object", term.object))
            inner = ",".join(f'"{name}":{term_json(part)}' for name, part in parts)
            return f'{{"type":"triple","value":{{{inner}}}}}'


def step_json(view: View, step: ZSet) -> str:
    """Write the members ``addedResults`` and ``removedResults`` of a notification."""
    names = [quoted(variable.value) for variable in view.variables]
    head = f'{{"head":{{"vars":[{",".join(names)}]}},'
    is_ask = isinstance(view.query, Ask)
    return (
        f'"addedResults":{head}{_results(names, view.decoded(step, 1).items(), is_ask)}}},'
        f'"removedResults":{head}{_results(names, view.decoded(step, -1).items(), is_ask)}}}'
    )


def _results(names: list[str], rows: Iterable[tuple[tuple[Term | None, ...], int]], is_ask: bool) -> str:
    bindings: list[str] = []
    boolean = ""
    for row, weight in rows:
        members = [f"{name}:{term_json(term)}" for name, term in zip(names, row, strict=True) if term is not None]
        bindings += ["{" + ",".join(members) + "}"] * weight
        if is_ask and isinstance(row[0], Literal):
            boolean = f'"boolean":{row[0].value},'
    return f'{boolean}"results":{{"bindings":[{",".join(bindings)}]}}'


def notification(head: str, sequence: int, change: int, step: str) -> str:
    """Write a notification. ``head`` has the members that are the same in all notifications of a subscription."""
    return f'{{"notification":{{{head},"sequence":{sequence},"change":{change},{step}}}}}'


def notification_head(spuid: str, alias: str | None) -> str:
    """Write the members ``spuid`` and ``alias``."""
    return f'"spuid":{quoted(spuid)}' + (f',"alias":{quoted(alias)}' if alias is not None else "")
