"""Numbers: the four numeric types of XPath, their promotion and arithmetic (https://www.w3.org/TR/sparql11-query/#OperatorMapping).

Integers and decimals are exact and unbounded. Only the division of decimals has to round, to 38 significant digits.
"""

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from enum import IntEnum
from fractions import Fraction

from evergraph.terms import XSD, Literal, NamedNode


class NumericType(IntEnum):
    """The types in the order of promotion."""

    INTEGER = 0
    DECIMAL = 1
    FLOAT = 2
    DOUBLE = 3


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number and its type. The value is an int, a Decimal, or a float for both of the floating-point types."""

    type: NumericType
    value: int | Decimal | float


_EXACT = Context(prec=100_000, Emax=999_999, Emin=-999_999)
_DIVISION = Context(prec=38, rounding=ROUND_HALF_EVEN)
_DATATYPES = {one: NamedNode(XSD + one.name.lower()) for one in NumericType}

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN", re.ASCII)

_INTEGER_RANGES: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    **{name: (-(2**bits), 2**bits - 1) for name, bits in (("long", 63), ("int", 31), ("short", 15), ("byte", 7))},
    **{f"unsigned{name}": (0, 2**bits - 1) for name, bits in (("Long", 64), ("Int", 32), ("Short", 16), ("Byte", 8))},
}


def parse_numeric(datatype: str, text: str) -> Numeric | None:
    """Parse a lexical form; None for a datatype that is not numeric, and for a text that is not in it."""
    if not datatype.startswith(XSD):
        return None
    name = datatype[len(XSD) :]
    if name in _INTEGER_RANGES:
        if not _INTEGER.fullmatch(text):
            return None
        number = _to_int(text)
        low, high = _INTEGER_RANGES[name]
        within = (low is None or low <= number) and (high is None or number <= high)
        return Numeric(NumericType.INTEGER, number) if within else None
    if name == "decimal":
        return Numeric(NumericType.DECIMAL, Decimal(text)) if _DECIMAL.fullmatch(text) else None
    if name in ("double", "float") and _DOUBLE.fullmatch(text):
        return double(float(text)) if name == "double" else single(float(text))
    return None


def _to_int(text: str) -> int:
    # int() refuses more than 4,300 digits, and is quadratic; Decimal is neither.
    return int(text) if len(text) < 4000 else int(Decimal(text))


def double(value: float) -> Numeric:
    """Make an xsd:double."""
    return Numeric(NumericType.DOUBLE, value)


def single(value: float) -> Numeric:
    """Make an xsd:float: a double rounded to 32 bits."""
    if math.isfinite(value):
        try:
            value = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            value = math.copysign(math.inf, value)
    return Numeric(NumericType.FLOAT, value)


def to_literal(number: Numeric) -> Literal:
    """Write a number in its canonical form."""
    value = number.value
    match value:
        case int():
            text = str(value) if -(10**3999) < value < 10**3999 else f"{Decimal(value):f}"
        case Decimal():
            text = decimal_text(value)
        case float():
            text = _double_text(value, single_precision=number.type is NumericType.FLOAT)
    return Literal(text, datatype=_DATATYPES[number.type])


def decimal_text(value: Decimal) -> str:
    """Write a decimal without exponent, without zeros at its end, and without a point where it is whole."""
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _double_text(value: float, *, single_precision: bool) -> str:
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    digits = shortest_single(value) if single_precision else repr(value)
    sign, figures, exponent = Decimal(digits).as_tuple()
    assert isinstance(exponent, int)
    mantissa = "".join(map(str, figures)).lstrip("0")
    if not mantissa:
        return "-0.0E0" if sign else "0.0E0"
    power = exponent + len(mantissa) - 1
    mantissa = mantissa.rstrip("0")
    return f"{'-' if sign else ''}{mantissa[0]}.{mantissa[1:] or '0'}E{power}"


def shortest_single(value: float) -> str:
    """Return the shortest decimal text that is read back as the same 32-bit number."""
    return next(text for precision in range(1, 18) if single(float(text := f"{value:.{precision}g}")).value == value)


def compare_numbers(left: Numeric, right: Numeric) -> float:
    """Return the sign of the difference after promotion; NaN, which is neither below, above nor equal, for a NaN."""
    a, b = promote(left, right)
    if a != a or b != b:
        return math.nan
    return (a > b) - (a < b)


def promote(left: Numeric, right: Numeric) -> tuple[int | Decimal | float, int | Decimal | float]:
    """Bring two numbers to the type of the higher one; integers and decimals are comparable as they are."""
    common = max(left.type, right.type)
    if common <= NumericType.DECIMAL:
        return left.value, right.value
    return as_floating(left, common), as_floating(right, common)


def as_floating(number: Numeric, target: NumericType) -> float:
    """Convert to the float or double that is nearest."""
    value = to_float(number.value)
    result = single(value).value if target is NumericType.FLOAT else value
    assert isinstance(result, float)
    return result


def to_float(value: Fraction | Decimal | float) -> float:
    """Convert to the double that is nearest; infinite, if the number is too large for any."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def add(left: Numeric, right: Numeric) -> Numeric:
    """op:numeric-add."""
    return _calculate(left, right, lambda a, b: a + b, _EXACT.add, lambda a, b: a + b)


def subtract(left: Numeric, right: Numeric) -> Numeric:
    """op:numeric-subtract."""
    return _calculate(left, right, lambda a, b: a - b, _EXACT.subtract, lambda a, b: a - b)


def multiply(left: Numeric, right: Numeric) -> Numeric:
    """op:numeric-multiply."""
    return _calculate(left, right, lambda a, b: a * b, _EXACT.multiply, lambda a, b: a * b)


def divide(left: Numeric, right: Numeric) -> Numeric | None:
    """op:numeric-divide: a decimal for two integers; None for an exact division by zero."""
    if max(left.type, right.type) <= NumericType.DECIMAL:
        if not right.value:
            return None
        a, b = Decimal(left.value), Decimal(right.value)
        return Numeric(NumericType.DECIMAL, _quotient(a, b))
    return _floating(left, right, _divide_floats)


def _quotient(a: Decimal, b: Decimal) -> Decimal:
    exact = Fraction(a) / Fraction(b)
    denominator = exact.denominator
    for factor in (2, 5):
        while denominator % factor == 0:
            denominator //= factor
    context = _EXACT if denominator == 1 else _DIVISION
    return context.divide(Decimal(exact.numerator), Decimal(exact.denominator))


def _divide_floats(a: float, b: float) -> float:
    if b:
        return a / b
    if not a or a != a or b != b:
        return math.nan
    return math.copysign(math.inf, math.copysign(1.0, a) * math.copysign(1.0, b))


def _calculate(
    left: Numeric,
    right: Numeric,
    on_int: Callable[[int, int], int],
    on_decimal: Callable[[Decimal, Decimal], Decimal],
    on_float: Callable[[float, float], float],
) -> Numeric:
    a, b, common = left.value, right.value, max(left.type, right.type)
    if isinstance(a, int) and isinstance(b, int):
        return Numeric(NumericType.INTEGER, on_int(a, b))
    if common is NumericType.DECIMAL:
        return Numeric(NumericType.DECIMAL, on_decimal(Decimal(a), Decimal(b)))
    return _floating(left, right, on_float)


def _floating(left: Numeric, right: Numeric, on_float: Callable[[float, float], float]) -> Numeric:
    common = max(left.type, right.type)
    result = on_float(as_floating(left, common), as_floating(right, common))
    return double(result) if common is NumericType.DOUBLE else single(result)


def negate(number: Numeric) -> Numeric:
    """op:numeric-unary-minus."""
    value = number.value
    return Numeric(number.type, value.copy_negate() if isinstance(value, Decimal) else -value)


def absolute(number: Numeric) -> Numeric:
    """fn:abs."""
    value = number.value
    return Numeric(number.type, value.copy_abs() if isinstance(value, Decimal) else abs(value))


def ceiling(number: Numeric) -> Numeric:
    """fn:ceiling."""
    return _rounded(number, ROUND_CEILING, math.ceil)


def floor(number: Numeric) -> Numeric:
    """fn:floor."""
    return _rounded(number, ROUND_FLOOR, math.floor)


def round_half_up(number: Numeric) -> Numeric:
    """fn:round: halves go up, also below zero."""
    value = number.value
    if isinstance(value, Decimal):
        return _rounded(Numeric(number.type, _EXACT.add(value, Decimal("0.5"))), ROUND_FLOOR, math.floor)
    return _rounded(number, ROUND_FLOOR, lambda one: math.floor(Fraction(one) + Fraction(1, 2)))


def _rounded(number: Numeric, mode: str, on_float: Callable[[float], int]) -> Numeric:
    value = number.value
    if isinstance(value, Decimal):
        with localcontext(_EXACT):
            return Numeric(number.type, value.to_integral_value(rounding=mode))
    if isinstance(value, float) and math.isfinite(value):
        return Numeric(number.type, math.copysign(float(on_float(value)), value))
    return number
