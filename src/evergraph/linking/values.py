"""What the lexical forms of values mean to measures: texts, tokens, q-grams, numbers, dates, years and points.

Each reader takes a text and returns what the measure compares, or None where the text is no such thing: then it is as
if the value were not there.
"""

import math
import re
import unicodedata
from typing import TypeAlias

Point: TypeAlias = tuple[float, float, float]
"""A point on the globe, in kilometres from its centre along three axes."""

EARTH_RADIUS = 6371.0088
"""The mean radius of the earth, in kilometres."""

_NUMBER = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_DATE = re.compile(r"\s*(-?\d{4,})-(\d\d)-(\d\d)(?:T[0-9:.]+)?(?:Z|[+-]\d\d:\d\d)?\s*", re.ASCII)
_YEAR = re.compile(r"\s*(-?\d{1,})(?:-\d\d(?:-\d\d(?:T[0-9:.]+)?)?)?(?:Z|[+-]\d\d:\d\d)?\s*", re.ASCII)
_DECIMAL = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_WKT = re.compile(rf"\s*(?:<[^>]*>\s*)?POINT\s*\(\s*({_DECIMAL})\s+({_DECIMAL})\s*\)\s*", re.ASCII | re.IGNORECASE)
_PAIR = re.compile(rf"\s*({_DECIMAL})\s*[,;\s]\s*({_DECIMAL})\s*", re.ASCII)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def nfc(text: str) -> str:
    """Bring a text to Unicode's form C, in which all measures see it; lengths count code points."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def tokens(text: str) -> frozenset[str]:
    """Return the words of a text: what white space separates, each once."""
    return frozenset(text.split())


def qgrams(text: str, size: int) -> frozenset[str]:
    """Return all parts of ``size`` code points of the text, each once, with ``size`` - 1 ``#`` before and after it."""
    padding = "#" * (size - 1)
    padded = f"{padding}{text}{padding}"
    return frozenset(padded[start : start + size] for start in range(len(padded) - size + 1))


def number(text: str) -> float | None:
    """Read a decimal number, as XML Schema writes integers, decimals and finite doubles."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def day(text: str) -> int | None:
    """Read an ``xsd:date`` or ``xsd:dateTime`` as the number of its day; times and time zones do not count."""
    found = _DATE.fullmatch(text)
    if not found:
        return None
    year, month, date = int(found[1]), int(found[2]), int(found[3])
    if not 1 <= month <= 12 or not 1 <= date <= _DAYS[month - 1]:
        return None
    if month == 2 and date == 29 and not _is_leap(year):
        return None
    return _days_from_civil(year, month, date)


def year(text: str) -> int | None:
    """Read the year of an ``xsd:gYear``, ``gYearMonth``, date or dateTime, or a plain whole number."""
    found = _YEAR.fullmatch(text)
    return int(found[1]) if found else None


def point(text: str) -> Point | None:
    """Read ``latitude longitude`` in degrees (WGS 84; also with a comma), or WKT, ``POINT(longitude latitude)``."""
    if found := _WKT.fullmatch(text):
        longitude, latitude = float(found[1]), float(found[2])
    elif found := _PAIR.fullmatch(text):
        latitude, longitude = float(found[1]), float(found[2])
    else:
        return None
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 360):
        return None
    up, round_ = math.radians(latitude), math.radians(longitude)
    flat = EARTH_RADIUS * math.cos(up)
    return (flat * math.cos(round_), flat * math.sin(round_), EARTH_RADIUS * math.sin(up))


def arc(one: Point, other: Point) -> float:
    """Return the length of the great circle between two points on a sphere, in kilometres."""
    chord = math.dist(one, other)
    return 2 * EARTH_RADIUS * math.asin(min(1.0, chord / (2 * EARTH_RADIUS)))


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_from_civil(year: int, month: int, date: int) -> int:
    """Count the days from 1970-01-01 in the proleptic Gregorian calendar, also before the year 1."""
    shifted = year - (month <= 2)
    era, in_era = divmod(shifted, 400)
    in_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + date - 1
    return era * 146_097 + in_era * 365 + in_era // 4 - in_era // 100 + in_year - 719_468
