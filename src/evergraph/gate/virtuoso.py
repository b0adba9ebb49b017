"""How Virtuoso (7.2) stores literals: by value, where they are numbers, truth values or dates.

``1``, ``1.0``, ``1e0``, ``"1"^^xsd:int`` and ``true`` are one object there; the spelling that came first is kept, and
any of them deletes it. What Virtuoso would change beyond that, or could not find again, is refused.
"""

import re
import struct
from collections.abc import Hashable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain

from pyoxigraph import RdfFormat, parse

from evergraph.errors import UpdateFailed
from evergraph.gate.operations import Rows
from evergraph.terms import XSD, Literal, NamedNode, Quad, Term

_INTEGERS = frozenset(
    XSD + name
    for name in (
        *("integer", "int", "long", "short", "byte", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
    )
)
_DECIMAL, _DOUBLE, _FLOAT, _BOOLEAN = (XSD + name for name in ("decimal", "double", "float", "boolean"))
_STRING = XSD + "string"
DATES = frozenset(XSD + name for name in ("dateTime", "date", "gYear", "gYearMonth"))
"""Types whose spelling only the server knows."""
VALUES = _INTEGERS | {_DECIMAL, _DOUBLE, _FLOAT, _BOOLEAN} | DATES
"""Types whose literals are one object if their values are equal."""

_REFUSED = frozenset(
    {
        *(XSD + name for name in ("time", "duration", "dayTimeDuration", "yearMonthDuration")),
        "http://www.openlinksw.com/schemas/virtrdf#Geometry",
        "http://www.opengis.net/ont/geosparql#wktLiteral",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral",
    }
)
_TRUTH = {"true": "1", "1": "1", "false": "0", "0": "0"}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_FLOATING = re.compile(rf"{_NUMBER.pattern}(?:[eE][+-]?[0-9]+)?")
_LARGE = 2.0**53  # from here on a double is no integer to Virtuoso
_FRACTION_DIGITS, _DIGITS, _DOUBLE_DIGITS = 15, 30, 15
_MOMENT = re.compile(
    r"(-?\d+)(?:-(\d\d))?(?:-(\d\d))?(?:T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_DAYS_OF_400_YEARS = 146_097


def stored_quad(quad: Quad) -> Quad:
    """Write a quad as Virtuoso gives it back if it holds no equal one yet; dates excepted.

    :raises UpdateFailed: if Virtuoso would store something else, or would not find it again.
    """
    value = quad.object
    if not isinstance(value, Literal) or value.language is not None or value.datatype.value == _STRING:
        return quad
    kind = value.datatype.value
    if kind in _REFUSED:
        raise _refusal(quad, "it cannot look up literals of this type")
    if kind in _INTEGERS:
        text = _integer(quad, value.value)
    elif kind == _DECIMAL:
        text = _decimal(quad, value.value)
    elif kind in (_DOUBLE, _FLOAT):
        text = _floating(quad, value.value, single=kind == _FLOAT)
    elif kind == _BOOLEAN:
        text = _TRUTH.get(value.value, "")
    else:
        return quad
    if not text:
        raise _refusal(quad, "it is not a valid literal of its type")
    return quad if text == value.value else with_text(quad, text)


def with_text(quad: Quad, text: str) -> Quad:
    """Write the literal of a quad in another way."""
    assert isinstance(quad.object, Literal)
    return Quad(quad.subject, quad.predicate, Literal(text, datatype=quad.object.datatype), quad.graph_name)


def _integer(quad: Quad, text: str) -> str:
    if not _INTEGER.fullmatch(text):
        return ""
    if not -(2**63) < int(text) < 2**63:
        raise _refusal(quad, "it keeps 64 bits of an integer")
    return str(int(text))


def _decimal(quad: Quad, text: str) -> str:
    if not _NUMBER.fullmatch(text):
        return ""
    whole, _, fraction = format(Decimal(text), "f").partition(".")
    fraction = fraction.rstrip("0")
    if len(fraction) > _FRACTION_DIGITS or len(whole) + len(fraction) > _DIGITS:
        raise _refusal(quad, f"it keeps {_FRACTION_DIGITS} digits of a fraction, and {_DIGITS} in all")
    shown = f"{whole}.{fraction}" if fraction else whole
    return "0" if shown == "-0" else shown


def _floating(quad: Quad, text: str, *, single: bool) -> str:
    if text.lower() == "nan":
        raise _refusal(quad, "a NaN damages its index")
    if text in ("INF", "-INF"):
        return text
    if not _FLOATING.fullmatch(text):
        return ""
    if single and len(format(Decimal(text), "f").partition(".")[2].rstrip("0")) > _FRACTION_DIGITS:
        raise _refusal(quad, f"it keeps {_FRACTION_DIGITS} digits of the fraction of a float")
    shown = _shortest(float(text), single=single)
    if shown is None:
        raise _refusal(quad, f"it gives {_DOUBLE_DIGITS} digits of a double back")
    return shown


def _shortest(number: float, *, single: bool) -> str | None:
    """Write a number as Virtuoso does, with just as many digits as it takes to find it again; None if too many."""
    number = _single(number) or 0.0 if single else number
    for digits in (6, 7, 8, 9, _DOUBLE_DIGITS):
        shown = format(number, f".{digits}g")
        if (_single(float(shown)) if single else float(shown)) == number:
            return shown if re.search(r"[.en]", shown) else shown + ".0"
    return None


def _single(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return number


def exact(term: Term | None, text: Term | None) -> Term | None:
    """Mend a floating-point number: in answers Virtuoso rounds it to six digits, but not its ``STR``."""
    if not isinstance(term, Literal) or not isinstance(text, Literal) or term.datatype.value not in (_DOUBLE, _FLOAT):
        return term
    if not _FLOATING.fullmatch(text.value):
        return term  # INF
    shown = _shortest(float(text.value), single=term.datatype.value == _FLOAT)
    return Literal(shown or text.value, datatype=term.datatype)


_OF_RESULT = b" <http://www.w3.org/2005/sparql-results#"
_VALUE = _OF_RESULT + b"value> "
_MOST_COLUMNS = 1_000
_INEXACT = frozenset({_DOUBLE, _FLOAT, _BOOLEAN})


def plain_rows(content: bytes) -> Rows | None:
    """Read solutions that came as N-Triples; None if they are not written as expected, or if a value may not be exact.

    Doubles and floats are rounded, and booleans written in another way than elsewhere.
    """
    if (whole := _regular_rows(content)) is not None:
        return _with_terms(whole)
    columns: dict[bytes, int] = {}
    rows: list[list[bytes | None]] = []
    of = name = b""
    for line in content.rstrip().split(b"\n")[1:]:
        node, _, rest = line.partition(_OF_RESULT)
        relation, _, value = rest[:-2].partition(b"> ")
        if relation == b"value" and node == of and name in columns:
            rows[-1][columns[name]] = value
        elif relation == b"variable":
            of, name = node, value
        elif relation == b"resultVariable":
            columns[value] = len(columns)
        elif relation == b"solution":
            rows.append([None] * len(columns))
        elif relation != b"binding":
            return None
    return _with_terms(rows)


def _regular_rows(content: bytes) -> Sequence[Sequence[bytes | None]] | None:
    """Read solutions that bind every variable, in the order of the columns, all at once; None if some do not.

    Each takes a line, and three for each of its variables: that it has a binding, of which variable, to which value.
    """
    lines = content.rstrip().split(b"\n")
    names = [line.partition(_OF_RESULT + b"resultVariable> ") for line in lines[1:_MOST_COLUMNS]]
    columns = [name for _, is_column, name in names if is_column]
    size = 1 + 3 * len(columns)
    body = lines[1 + len(columns) :]
    if not columns or len(body) % size or not all(_OF_RESULT + b"solution> " in line for line in body[::size]):
        return None
    values = []
    for place, name in enumerate(columns):
        bindings, variables, bound = (body[number + 3 * place :: size] for number in (1, 2, 3))
        found = [line.partition(_VALUE) for line in bound]
        expected = [node + _OF_RESULT + b"variable> " + name for node, is_value, _ in found if is_value]
        if variables != expected or not all(_OF_RESULT + b"binding> " in line for line in bindings):
            return None
        values.append([value[:-2] for _, _, value in found])
    return list(zip(*values, strict=True))


def _with_terms(rows: Sequence[Sequence[bytes | None]]) -> Rows | None:
    texts = dict.fromkeys(chain.from_iterable(rows))
    texts.pop(None, None)
    triples = b"".join([b"<urn:s> <urn:p> %b .\n" % text for text in texts if text is not None])
    try:
        found = [quad.object for quad in parse(triples, format=RdfFormat.N_TRIPLES)]
    except (SyntaxError, ValueError):
        return None
    if len(found) != len(texts) or any(type(term) is Literal and term.datatype.value in _INEXACT for term in found):
        return None
    terms: dict[bytes | None, Term | None] = {None: None, **dict(zip(texts, found, strict=True))}
    return [tuple([terms[text] for text in row]) for row in rows]


def value_of(term: Term) -> Hashable:
    """Return something that is equal for literals that are one object to Virtuoso; None if that cannot be told."""
    if not isinstance(term, Literal) or term.datatype.value not in VALUES:
        return None
    kind, text = term.datatype.value, term.value
    try:
        if kind in DATES:
            return _instant(text)
        if kind in (_DOUBLE, _FLOAT) and abs(float(text)) >= _LARGE:
            return ("large", float(text))
        if kind == _FLOAT:
            return Fraction(_single(float(text)))
        return Fraction(_TRUTH.get(text, text)) if kind == _BOOLEAN else Fraction(Decimal(text))
    except (ValueError, ArithmeticError, OverflowError):
        return (kind, text)


def _instant(text: str) -> Hashable:
    """Count the microseconds since the year 0; times without a zone are apart. The calendar turns in 400 years."""
    found = _MOMENT.fullmatch(text)
    if not found:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, zone = found.groups("")
    cycle, place = divmod(int(year), 400)
    moment = datetime(place + 400, int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0))
    since = (moment - datetime(400, 1, 1)) + timedelta(days=_DAYS_OF_400_YEARS) * cycle
    offset = timedelta(hours=int(zone[:3]), minutes=int(zone[0] + zone[4:])) if len(zone) == 6 else timedelta()
    return bool(zone), (since - offset) // timedelta(microseconds=1) + int(fraction[:6].ljust(6, "0"))


def spellings(quad: Quad) -> tuple[str, ...]:
    """List the ways to write the object: ``"x"`` and ``"x"^^xsd:string`` are two to Virtuoso, and one in RDF."""
    value = quad.object
    if isinstance(value, Literal) and value.language is None and value.datatype.value == _STRING:
        return str(value), f"{value}^^<{_STRING}>"
    return (str(value),)


def _refusal(quad: Quad, reason: str) -> UpdateFailed:
    return UpdateFailed(
        f"Virtuoso cannot hold this exactly: {quad}: {reason}", hint="leave it out, or write it otherwise"
    )


SYSTEM_GRAPHS = frozenset(
    map(
        NamedNode,
        (
            "http://www.openlinksw.com/schemas/virtrdf#",
            "http://www.w3.org/ns/ldp#",
            "http://www.w3.org/2002/07/owl#",
            "http://localhost:8890/DAV/",
            "http://localhost:8890/sparql",
            "urn:activitystreams-owl:map",
            "urn:core:services:sparql",
        ),
    )
)
