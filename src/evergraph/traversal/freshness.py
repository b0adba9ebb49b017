"""How long an answer is good (RFC 9111): Cache-Control, Expires, Age, and a guess from Last-Modified."""

import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

LONGEST_GUESS = 86_400.0
"""The most that a guess from Last-Modified makes of a lifetime, in seconds."""
_SHARE = 0.1


def directives(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the directives of Cache-Control, in small letters, with their values."""
    found: dict[str, str] = {}
    for part in headers.get("cache-control", "").split(","):
        name, _, value = part.strip().partition("=")
        if name:
            found.setdefault(name.lower(), value.strip('" '))
    return found


def may_store(headers: Mapping[str, str]) -> bool:
    """Tell whether an answer may be kept on disk."""
    return "no-store" not in directives(headers)


def fresh_until(headers: Mapping[str, str], received: float) -> float | None:
    """Return until when an answer is good without asking again; None if it does not say."""
    control = directives(headers)
    if "no-store" in control or "no-cache" in control or "*" in headers.get("vary", ""):
        return received
    if "max-age" in control:
        return received + max(0.0, _number(control["max-age"]) - _number(headers.get("age", "0")))
    date = http_date(headers.get("date", "")) or received
    if "expires" in headers:
        expires = http_date(headers["expires"])
        return received if expires is None else received + max(0.0, expires - date)
    modified = http_date(headers.get("last-modified", ""))
    if modified is not None:
        return received + min(max(0.0, date - modified) * _SHARE, LONGEST_GUESS)
    return None


def validators(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that asks whether an answer is still good."""
    asked = {}
    if "etag" in headers:
        asked["If-None-Match"] = headers["etag"]
    if "last-modified" in headers:
        asked["If-Modified-Since"] = headers["last-modified"]
    return asked


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return how many seconds a server asks to wait; None if it does not."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return _number(value)
    date = http_date(value)
    return None if date is None else max(0.0, date - (time.time() if now is None else now))


def http_date(text: str) -> float | None:
    """Read a date of HTTP; None if it is none."""
    try:
        parsed = parsedate_to_datetime(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _number(text: str) -> float:
    """Read a number of seconds; what is none counts as 0, and nothing as more than 68 years."""
    digits = text.strip()
    return float(min(int(digits[:12]), 2**31)) if digits.isdecimal() else 0.0
