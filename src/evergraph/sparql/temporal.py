"""Dates, times and durations as XML Schema has them (https://www.w3.org/TR/xmlschema11-2/#dateTime).

Python's own types stop at the year 9999, at microseconds and before 24:00:00, so that they cannot stand in.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

_ZONE = r"(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_DAY = r"(-?(?:[1-9][0-9]{3,}|0[0-9]{3}))-([0-9]{2})-([0-9]{2})"
_CLOCK = r"([0-9]{2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]+)?)"
_DATE_TIME = re.compile(f"{_DAY}T{_CLOCK}{_ZONE}", re.ASCII)
_DATE = re.compile(f"{_DAY}{_ZONE}", re.ASCII)
_TIME = re.compile(f"{_CLOCK}{_ZONE}", re.ASCII)
_DURATION = re.compile(
    r"(-)?P(?=[0-9T])(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?",
    re.ASCII,
)
_FURTHEST_ZONE = 14 * 3600


class MomentKind(Enum):
    """The three datatypes that share one representation."""

    DATE_TIME = "dateTime"
    DATE = "date"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Moment:
    """A dateTime, date or time. ``zone`` counts minutes from UTC; None is a moment without a timezone."""

    kind: MomentKind
    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: Decimal
    zone: int | None

    def seconds(self) -> Decimal:
        """Count seconds on the time line, as if a moment without a timezone were in UTC."""
        whole = _days(self.year, self.month, self.day) * 86400 + self.hour * 3600 + self.minute * 60
        return whole - (self.zone or 0) * 60 + self.second

    def zone_text(self) -> str:
        """Write the timezone as TZ() does."""
        if self.zone is None:
            return ""
        sign = "-" if self.zone < 0 else "+"
        return f"{sign}{abs(self.zone) // 60:02}:{abs(self.zone) % 60:02}" if self.zone else "Z"

    def __str__(self) -> str:
        sign = "-" if self.year < 0 else ""
        date = f"{sign}{abs(self.year):04}-{self.month:02}-{self.day:02}"
        seconds = f"{self.second:f}"
        whole, _, fraction = seconds.partition(".")
        fraction = fraction.rstrip("0")
        clock = f"{self.hour:02}:{self.minute:02}:{whole:0>2}" + (f".{fraction}" if fraction else "")
        match self.kind:
            case MomentKind.DATE_TIME:
                return f"{date}T{clock}{self.zone_text()}"
            case MomentKind.DATE:
                return date + self.zone_text()
            case MomentKind.TIME:
                return clock + self.zone_text()


def compare_moments(left: Moment, right: Moment) -> int | None:
    """Return the sign of the difference; None where the missing timezone of one side leaves the order open."""
    difference = left.seconds() - right.seconds()
    if (left.zone is None) != (right.zone is None) and abs(difference) <= _FURTHEST_ZONE:
        return None
    return (difference > 0) - (difference < 0)


def parse_moment(kind: MomentKind, text: str) -> Moment | None:
    """Parse a lexical form; None for one that is not valid."""
    match kind:
        case MomentKind.DATE_TIME:
            found = _DATE_TIME.fullmatch(text)
            parts = found.groups() if found else None
        case MomentKind.DATE:
            found = _DATE.fullmatch(text)
            parts = (*found.groups()[:3], "00", "00", "00", found[4]) if found else None
        case MomentKind.TIME:
            found = _TIME.fullmatch(text)
            parts = ("1972", "12", "31", *found.groups()) if found else None
    return None if parts is None else _moment(kind, *parts)


def _moment(
    kind: MomentKind, year: str, month: str, day: str, hour: str, minute: str, second: str, zone: str | None
) -> Moment | None:
    y, m, d, h, n, s = int(year), int(month), int(day), int(hour), int(minute), Decimal(second)
    if not (1 <= m <= 12 and 1 <= d <= _month_length(y, m) and n < 60 and s < 60):
        return None
    if h > 23:
        if h > 24 or n or s:
            return None
        h = 0
        if kind is MomentKind.DATE_TIME:
            y, m, d = _next_day(y, m, d)
    return Moment(kind, y, m, d, h, n, s, _zone(zone))


def _zone(text: str | None) -> int | None:
    if not text:
        return None
    if text == "Z":
        return 0
    return (-1 if text[0] == "-" else 1) * (int(text[1:3]) * 60 + int(text[4:6]))


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _month_length(year: int, month: int) -> int:
    return 29 if month == 2 and _leap(year) else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def _next_day(year: int, month: int, day: int) -> tuple[int, int, int]:
    if day < _month_length(year, month):
        return year, month, day + 1
    return (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)


def _days(year: int, month: int, day: int) -> int:
    """Count days of the proleptic Gregorian calendar; the year begins in March, so that leap days come last."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year


class DurationKind(Enum):
    """The three datatypes of durations."""

    ANY = "duration"
    DAY_TIME = "dayTimeDuration"
    YEAR_MONTH = "yearMonthDuration"


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration: months and seconds, which do not convert into each other."""

    months: int
    seconds: Decimal

    def __str__(self) -> str:
        if not self.months and not self.seconds:
            return "PT0S"
        sign = "-" if self.months < 0 or self.seconds < 0 else ""
        years, months = divmod(abs(self.months), 12)
        hours, minutes = divmod(int(abs(self.seconds) // 60), 60)
        seconds = abs(self.seconds) % 60
        days, hours = divmod(hours, 24)
        date = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (days, "D")) if n)
        text = f"{seconds:f}".rstrip("0").rstrip(".") if "." in f"{seconds:f}" else f"{seconds:f}"
        time = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n) + (
            f"{text}S" if seconds else ""
        )
        return f"{sign}P{date}" + (f"T{time}" if time else "")


def parse_duration(kind: DurationKind, text: str) -> Duration | None:
    """Parse a lexical form; None for one that is not valid."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    sign = -1 if found[1] else 1
    years, months, days, hours, minutes = (int(found[index] or 0) for index in range(2, 7))
    has_months, has_seconds = bool(found[2] or found[3]), any(found[index] for index in range(4, 8))
    if (kind is DurationKind.DAY_TIME and has_months) or (kind is DurationKind.YEAR_MONTH and has_seconds):
        return None
    seconds = ((days * 24 + hours) * 60 + minutes) * 60 + Decimal(found[7] or 0)
    return Duration(sign * (years * 12 + months), sign * seconds)


def compare_durations(left: Duration, right: Duration) -> int | None:
    """Return the sign of the difference; None where it depends on the calendar."""
    months, seconds = left.months - right.months, left.seconds - right.seconds
    if months and seconds:
        return None
    difference = months or seconds
    return (difference > 0) - (difference < 0)
