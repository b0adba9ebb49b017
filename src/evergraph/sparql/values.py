"""What literals mean: their values, the comparison of values, and the total order of terms.

Terms are compared by their exact form wherever SPARQL compares terms (patterns, joins, DISTINCT, GROUP BY); values
count in expressions only. A literal whose datatype is unknown, or whose text is not in it, has no value that could be
compared: it is `Unknown`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from evergraph.sparql.numbers import Numeric, NumericType, compare_numbers, parse_numeric
from evergraph.sparql.temporal import (
    Duration,
    DurationKind,
    Moment,
    MomentKind,
    compare_durations,
    compare_moments,
    parse_duration,
    parse_moment,
)
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Term, Triple

XSD_STRING = NamedNode(XSD + "string")
XSD_BOOLEAN = NamedNode(XSD + "boolean")
XSD_INTEGER = NamedNode(XSD + "integer")
XSD_DECIMAL = NamedNode(XSD + "decimal")

TRUE = Literal("true", datatype=XSD_BOOLEAN)
FALSE = Literal("false", datatype=XSD_BOOLEAN)


@dataclass(frozen=True, slots=True)
class LangString:
    """A text with a language tag, in small letters."""

    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The value of a literal that Evergraph does not know, or that has none."""

    text: str
    datatype: str


Value: TypeAlias = bool | str | Numeric | LangString | Moment | Duration | Unknown

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def _parsers() -> dict[str, Callable[[str], Value | None]]:
    parsers: dict[str, Callable[[str], Value | None]] = {"string": str, "boolean": _BOOLEANS.get}
    for moment in MomentKind:
        parsers[moment.value] = lambda text, kind=moment: parse_moment(kind, text)  # type: ignore[misc]
    for duration in DurationKind:
        parsers[duration.value] = lambda text, kind=duration: parse_duration(kind, text)  # type: ignore[misc]
    return {XSD + name: parser for name, parser in parsers.items()}


_PARSERS = _parsers()


@lru_cache(maxsize=1 << 16)
def value_of(literal: Literal) -> Value:
    """Return the value of a literal."""
    text, datatype = literal.value, literal.datatype.value
    if literal.language is not None:
        return LangString(text, literal.language.lower())
    if datatype == XSD_STRING.value:
        return text
    collapsed = re.sub("[ \t\r\n]+", " ", text).strip(" ")
    parser = _PARSERS.get(datatype)
    value = parser(collapsed) if parser else parse_numeric(datatype, collapsed)
    return Unknown(text, datatype) if value is None else value


def boolean(value: bool) -> Literal:
    """Make a boolean literal."""
    return TRUE if value else FALSE


def integer(value: int) -> Literal:
    """Make an xsd:integer."""
    return Literal(str(value), datatype=XSD_INTEGER)


def moment(value: Moment) -> Literal:
    """Make a dateTime, date or time."""
    return Literal(str(value), datatype=NamedNode(XSD + value.kind.value))


def effective_boolean_value(term: Term | None) -> bool | None:
    """Return the effective boolean value (https://www.w3.org/TR/sparql11-query/#ebv); None is an error."""
    if not isinstance(term, Literal):
        return None
    match value_of(term):
        case bool(value):
            return value
        case str(text) | LangString(text):
            return bool(text)
        case Numeric(_, number):
            return bool(number) and number == number
        case Unknown(datatype=datatype) if datatype == XSD_BOOLEAN.value or parse_numeric(datatype, "1"):
            return False
        case _:
            return None


def equal(left: Term, right: Term) -> bool | None:
    """Compare with ``=`` (https://www.w3.org/TR/sparql11-query/#func-RDFterm-equal); None is an error.

    Values of different kinds are known to differ, and a text with a language is like nothing else. A literal without a
    known value equals itself, and whether it equals another is an error.
    """
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        if isinstance(left, Triple) and isinstance(right, Triple):
            return _equal_triples(left, right)
        return left == right
    a, b = value_of(left), value_of(right)
    if isinstance(a, LangString) or isinstance(b, LangString):
        return left == right
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return True if left == right else None
    if isinstance(a, Numeric) and isinstance(b, Numeric):
        return compare_numbers(a, b) == 0
    if isinstance(a, Moment) and isinstance(b, Moment) and a.kind is b.kind:
        sign = compare_moments(a, b)
        return None if sign is None else sign == 0
    return type(a) is type(b) and a == b


def _equal_triples(left: Triple, right: Triple) -> bool | None:
    parts = (equal(left.subject, right.subject), left.predicate == right.predicate, equal(left.object, right.object))
    return False if False in parts else None if None in parts else True


def compare(left: Term, right: Term) -> float | None:
    """Return the sign of the difference for ``<`` and its like; None is an error, NaN compares like nothing."""
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return None
    a, b = value_of(left), value_of(right)
    if isinstance(a, Numeric) and isinstance(b, Numeric):
        return compare_numbers(a, b)
    if isinstance(a, Moment) and isinstance(b, Moment) and a.kind is b.kind:
        return compare_moments(a, b)
    if isinstance(a, Duration) and isinstance(b, Duration):
        return compare_durations(a, b)
    if isinstance(a, bool) and isinstance(b, bool):
        return a - b
    if isinstance(a, str) and isinstance(b, str):
        return (a > b) - (a < b)
    return None


SortKey: TypeAlias = tuple[object, ...]


def sort_key(term: Term | None) -> SortKey:
    """Return the place of a term in the total order of terms that ORDER BY, MIN, MAX and slices use.

    Unbound first, then blank nodes, IRIs, literals, triples, as the recommendation has it
    (https://www.w3.org/TR/sparql11-query/#modOrderBy). Among literals: numbers by value, then booleans, strings, texts
    with a language, dateTimes, dates, times, durations, and what has no known value. What is equal by value is ordered
    by its exact form.
    """
    if term is None:
        return (0,)
    if isinstance(term, BlankNode):
        return (1, term.value)
    if isinstance(term, NamedNode):
        return (2, term.value)
    if isinstance(term, Literal):
        return _literal_key(term)
    return (4, sort_key(term.subject), sort_key(term.predicate), sort_key(term.object))


@lru_cache(maxsize=1 << 16)
def _literal_key(literal: Literal) -> SortKey:
    exact = (literal.datatype.value, literal.value)
    match value_of(literal):
        case Numeric(_, number):
            nan = number != number
            return (3, 0, not nan, 0 if nan else number, *exact)
        case bool(value):
            return (3, 1, value, *exact)
        case str(text):
            return (3, 2, text)
        case LangString(text, language):
            return (3, 3, text, language, literal.direction or "", *exact)
        case Moment(kind=kind, zone=zone) as value:
            rank = list(MomentKind).index(kind)
            return (3, 4 + rank, value.seconds(), zone is not None, *exact)
        case Duration(months, seconds):
            return (3, 7, months * Decimal("2629746") + seconds, months, *exact)
        case Unknown():
            return (3, 8, *exact)


__all__ = [
    "FALSE",
    "TRUE",
    "LangString",
    "Numeric",
    "NumericType",
    "Unknown",
    "Value",
    "boolean",
    "compare",
    "effective_boolean_value",
    "equal",
    "integer",
    "moment",
    "sort_key",
    "value_of",
]
