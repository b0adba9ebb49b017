"""Values of literals: numbers, dates, comparison, order."""

import math
from decimal import Decimal

import pytest

from evergraph.sparql import numbers
from evergraph.sparql.numbers import Numeric, NumericType, compare_numbers, parse_numeric, to_literal
from evergraph.sparql.temporal import DurationKind, MomentKind, compare_moments, parse_duration, parse_moment
from evergraph.sparql.values import Unknown, compare, effective_boolean_value, equal, sort_key, value_of
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Term, Triple


def typed(text: str, name: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + name))


ONE, HALF, NAN = typed("1", "integer"), typed("0.5", "decimal"), typed("NaN", "double")
UNKNOWN = Literal("x", datatype=NamedNode("urn:unknown"))
IRI = NamedNode("urn:a")


@pytest.mark.parametrize(
    ("text", "name", "canonical"),
    [
        ("007", "integer", "7"),
        ("+0", "integer", "0"),
        ("1.500", "decimal", "1.5"),
        ("2.0", "decimal", "2"),
        ("-0.0", "decimal", "0"),
        (".5", "decimal", "0.5"),
        ("1e3", "double", "1.0E3"),
        ("0.1", "float", "1.0E-1"),
        ("-INF", "double", "-INF"),
        ("NaN", "float", "NaN"),
        ("-0", "double", "-0.0E0"),
        ("9" * 5_000, "integer", "9" * 5_000),
    ],
)
def test_numbers_are_written_in_canonical_form(text: str, name: str, canonical: str) -> None:
    number = parse_numeric(XSD + name, text)
    assert number is not None
    assert to_literal(number) == typed(canonical, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1.0", "integer"),
        ("128", "byte"),
        ("-1", "unsignedInt"),
        ("0", "positiveInteger"),
        ("1e0", "decimal"),
        ("", "double"),
    ],
)
def test_ill_typed_numbers_have_no_value(text: str, name: str) -> None:
    assert isinstance(value_of(typed(text, name)), Unknown)


def test_arithmetic_promotes_and_stays_exact() -> None:
    integer = Numeric(NumericType.INTEGER, 10**30)
    decimal = Numeric(NumericType.DECIMAL, Decimal("0.1"))
    assert numbers.add(integer, decimal) == Numeric(NumericType.DECIMAL, Decimal("1000000000000000000000000000000.1"))
    assert numbers.multiply(decimal, numbers.double(2.0)) == numbers.double(0.2)
    assert numbers.add(numbers.single(0.1), decimal).type is NumericType.FLOAT
    assert numbers.divide(Numeric(NumericType.INTEGER, 1), Numeric(NumericType.INTEGER, 8)) == Numeric(
        NumericType.DECIMAL, Decimal("0.125")
    )
    assert numbers.divide(integer, Numeric(NumericType.INTEGER, 0)) is None
    infinite = numbers.divide(numbers.double(1.0), Numeric(NumericType.INTEGER, 0))
    assert infinite == numbers.double(math.inf)


@pytest.mark.parametrize(
    ("text", "rounded", "up", "down"),
    [("2.5", "3", "3", "2"), ("-2.5", "-2", "-2", "-3"), ("-1.6", "-2", "-1", "-2"), ("1.1", "1", "2", "1")],
)
def test_rounding(text: str, rounded: str, up: str, down: str) -> None:
    for name in ("decimal", "double"):
        number = parse_numeric(XSD + name, text)
        assert number is not None
        functions = (numbers.round_half_up, numbers.ceiling, numbers.floor)
        for function, expected in zip(functions, (rounded, up, down), strict=True):
            assert compare_numbers(function(number), Numeric(NumericType.INTEGER, int(expected))) == 0


@pytest.mark.parametrize(
    ("kind", "text", "written"),
    [
        (MomentKind.DATE_TIME, "2020-02-29T24:00:00Z", "2020-03-01T00:00:00Z"),
        (MomentKind.DATE_TIME, "-0001-01-01T00:00:00.500+05:30", "-0001-01-01T00:00:00.5+05:30"),
        (MomentKind.DATE, "2020-01-01-14:00", "2020-01-01-14:00"),
        (MomentKind.TIME, "23:59:59.000", "23:59:59"),
        (MomentKind.DATE, "2021-02-29", None),
        (MomentKind.DATE_TIME, "2020-01-01", None),
        (MomentKind.TIME, "24:00:01", None),
    ],
)
def test_moments(kind: MomentKind, text: str, written: str | None) -> None:
    moment = parse_moment(kind, text)
    assert (None if moment is None else str(moment)) == written


def test_the_order_of_moments_without_timezone_is_open_for_fourteen_hours() -> None:
    zoned, local, later = (
        parse_moment(MomentKind.DATE_TIME, text)
        for text in ("2020-01-01T12:00:00Z", "2020-01-01T20:00:00", "2020-01-02T03:00:00")
    )
    assert zoned and local and later
    assert compare_moments(zoned, local) is None
    assert compare_moments(zoned, later) == -1
    assert compare_moments(local, later) == -1


@pytest.mark.parametrize(
    ("kind", "text", "written"),
    [
        (DurationKind.ANY, "P1Y14M", "P2Y2M"),
        (DurationKind.DAY_TIME, "PT90061.50S", "P1DT1H1M1.5S"),
        (DurationKind.DAY_TIME, "-P0D", "PT0S"),
        (DurationKind.DAY_TIME, "P1M", None),
        (DurationKind.YEAR_MONTH, "P1D", None),
        (DurationKind.ANY, "P", None),
    ],
)
def test_durations(kind: DurationKind, text: str, written: str | None) -> None:
    duration = parse_duration(kind, text)
    assert (None if duration is None else str(duration)) == written


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (ONE, typed("01", "integer"), True),
        (ONE, typed("1.0", "decimal"), True),
        (ONE, typed("1e0", "double"), True),
        (ONE, typed("2", "byte"), False),
        (NAN, NAN, False),
        (ONE, Literal("1"), False),
        (ONE, typed("true", "boolean"), False),
        (typed("1", "boolean"), typed("true", "boolean"), True),
        (Literal("a"), Literal("a", language="en"), False),
        (Literal("a", language="en"), UNKNOWN, False),
        (UNKNOWN, UNKNOWN, True),
        (UNKNOWN, Literal("y", datatype=NamedNode("urn:unknown")), None),
        (ONE, typed("x", "integer"), None),
        (IRI, Literal("urn:a"), False),
        (BlankNode("x"), BlankNode("x"), True),
        (typed("2020-01-01T00:00:00Z", "dateTime"), typed("2020-01-01T01:00:00+01:00", "dateTime"), True),
        (typed("2020-01-01", "date"), typed("2020-01-01Z", "date"), None),
        (typed("P1Y", "duration"), typed("P12M", "yearMonthDuration"), True),
        (Triple(IRI, IRI, ONE), Triple(IRI, IRI, typed("1.0", "decimal")), True),
    ],
)
def test_equality_of_values(left: Term, right: Term, expected: bool | None) -> None:
    assert equal(left, right) is expected
    assert equal(right, left) is expected


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [
        (HALF, ONE, -1),
        (Literal("b"), Literal("a"), 1),
        (typed("false", "boolean"), typed("true", "boolean"), -1),
        (ONE, Literal("1"), None),
        (IRI, IRI, None),
        (Literal("a", language="en"), Literal("b", language="en"), None),
    ],
)
def test_order_of_values(left: Term, right: Term, sign: int | None) -> None:
    assert compare(left, right) == sign


def test_nan_is_neither_below_nor_above() -> None:
    sign = compare(NAN, ONE)
    assert sign is not None
    assert math.isnan(sign)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (typed("true", "boolean"), True),
        (typed("maybe", "boolean"), False),
        (Literal(""), False),
        (Literal("a", language="en"), True),
        (typed("0.0", "decimal"), False),
        (NAN, False),
        (typed("x", "integer"), False),
        (IRI, None),
        (UNKNOWN, None),
        (None, None),
    ],
)
def test_effective_boolean_value(term: Term | None, expected: bool | None) -> None:
    assert effective_boolean_value(term) is expected


def test_the_order_of_terms_is_total() -> None:
    ordered: list[Term | None] = [
        None,
        BlankNode("a"),
        IRI,
        NAN,
        typed("-INF", "double"),
        HALF,
        typed("01", "integer"),
        ONE,
        typed("1.5", "float"),
        typed("false", "boolean"),
        Literal("a"),
        Literal("b"),
        Literal("a", language="en"),
        typed("2020-01-01T00:00:00Z", "dateTime"),
        typed("2020-01-01", "date"),
        typed("12:00:00", "time"),
        typed("P1D", "duration"),
        typed("x", "integer"),
        UNKNOWN,
        Triple(IRI, IRI, ONE),
    ]
    assert sorted(set(ordered), key=sort_key) == ordered
    assert len({sort_key(term) for term in ordered}) == len(ordered)
