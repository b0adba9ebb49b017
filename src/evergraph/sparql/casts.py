"""The XPath constructor functions (https://www.w3.org/TR/sparql11-query/#FunctionMapping)."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import TypeAlias

from evergraph.sparql import numbers
from evergraph.sparql.numbers import Numeric, NumericType
from evergraph.sparql.temporal import Duration, DurationKind, Moment, MomentKind
from evergraph.sparql.values import LangString, Unknown, Value, boolean, moment, value_of
from evergraph.terms import XSD, Literal, NamedNode, Term

Caster: TypeAlias = Callable[[Term], Literal | None]


def caster(datatype: NamedNode) -> Caster:
    """Return the function that casts to a datatype; None is an error."""
    return _CASTERS[datatype]


def _value(term: Term, datatype: str) -> Value | None:
    """Return the value of a literal; a string is read as the datatype wants it."""
    if not isinstance(term, Literal):
        return None
    value = value_of(term)
    if isinstance(value, str):
        value = value_of(Literal(value, datatype=NamedNode(XSD + datatype)))
    return None if isinstance(value, Unknown | LangString) else value


def _to_string(term: Term) -> Literal | None:
    if isinstance(term, NamedNode):
        return Literal(term.value)
    if not isinstance(term, Literal):
        return None
    match value_of(term):
        case LangString() | Unknown():
            return None
        case Numeric(_, float() as number) as value:
            return Literal(_floating_text(number, value.type))
        case Numeric() as value:
            return Literal(numbers.to_literal(value).value)
        case bool(value):
            return Literal(boolean(value).value)
        case _:
            return Literal(term.value)


def _floating_text(number: float, kind: NumericType) -> str:
    """Write a double as a string: like a decimal, unless it is very large or very small."""
    if number and math.isfinite(number) and 1e-6 <= abs(number) < 1e6:
        return numbers.decimal_text(
            Decimal(numbers.shortest_single(number) if kind is NumericType.FLOAT else repr(number))
        )
    return {"0.0E0": "0", "-0.0E0": "-0"}.get(text := numbers.to_literal(Numeric(kind, number)).value, text)


def _to_boolean(term: Term) -> Literal | None:
    match _value(term, "boolean"):
        case bool(value):
            return boolean(value)
        case Numeric(_, number):
            return boolean(bool(number) and number == number)
        case _:
            return None


def _to_numeric(kind: NumericType) -> Caster:
    def cast(term: Term) -> Literal | None:
        match _value(term, kind.name.lower()):
            case bool(value):
                number: int | Decimal | float = int(value)
            case Numeric(_, value):
                number = value
            case _:
                return None
        converted = _convert(number, kind)
        return None if converted is None else numbers.to_literal(converted)

    return cast


def _convert(number: int | Decimal | float, kind: NumericType) -> Numeric | None:
    if kind in (NumericType.DOUBLE, NumericType.FLOAT):
        value = numbers.as_floating(Numeric(NumericType.DECIMAL, number), kind)
        return Numeric(kind, value)
    if isinstance(number, float) and not math.isfinite(number):
        return None
    return Numeric(kind, int(number) if kind is NumericType.INTEGER else Decimal(number))


def _to_moment(kind: MomentKind) -> Caster:
    def cast(term: Term) -> Literal | None:
        value = _value(term, kind.value)
        if not isinstance(value, Moment):
            return None
        if value.kind is kind:
            return moment(value)
        match value.kind, kind:
            case MomentKind.DATE_TIME, MomentKind.DATE:
                return moment(replace(value, kind=kind, hour=0, minute=0, second=Decimal(0)))
            case MomentKind.DATE_TIME, MomentKind.TIME:
                return moment(replace(value, kind=kind, year=1972, month=12, day=31))
            case MomentKind.DATE, MomentKind.DATE_TIME:
                return moment(replace(value, kind=kind))
            case _:
                return None

    return cast


def _to_duration(kind: DurationKind) -> Caster:
    def cast(term: Term) -> Literal | None:
        value = _value(term, kind.value)
        if not isinstance(value, Duration):
            return None
        months = 0 if kind is DurationKind.DAY_TIME else value.months
        seconds = Decimal(0) if kind is DurationKind.YEAR_MONTH else value.seconds
        text = str(Duration(months, seconds))
        if kind is DurationKind.YEAR_MONTH and not months:
            text = "P0M"
        return Literal(text, datatype=NamedNode(XSD + kind.value))

    return cast


_CASTERS: dict[NamedNode, Caster] = {
    NamedNode(XSD + "string"): _to_string,
    NamedNode(XSD + "boolean"): _to_boolean,
    **{NamedNode(XSD + kind.name.lower()): _to_numeric(kind) for kind in NumericType},
    **{NamedNode(XSD + kind.value): _to_moment(kind) for kind in MomentKind},
    **{NamedNode(XSD + kind.value): _to_duration(kind) for kind in DurationKind},
}
