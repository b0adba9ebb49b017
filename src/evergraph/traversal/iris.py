"""Names: the reserved relation between resources and documents, and what address an IRI is asked for at."""

import re

import httpx

from evergraph.terms import NamedNode

F = NamedNode("urn:evergraph:f")
"""The reserved predicate f: ``?resource f ?document`` says which document a dereferenced IRI led to."""

_PART = "[A-Za-z0-9_~-][A-Za-z0-9._~-]*"
_PORT = ":(?!80/|443/)(?:[1-9][0-9]{1,3}|[1-5][0-9]{4})"
_PLAIN = re.compile(rf"(https?://[a-z0-9.-]+(?:{_PORT})?/(?:{_PART}/)*(?:{_PART})?)(?:#.*)?")
"""Most IRIs, whose address is themselves without fragment; to take the others apart costs ten times as much."""
_ORIGIN = re.compile(r"https?://[^/?]*")

LONGEST = 8_192
"""Longer IRIs are nobody's address."""


def document_url(iri: str) -> str | None:
    """Return the address at which an IRI is dereferenced: without fragment, normalised; None if it has none.

    Two IRIs with the same address are described by the same document.
    """
    if len(iri) > LONGEST or not iri[:8].lower().startswith(("http://", "https://")):
        return None
    if plain := _PLAIN.fullmatch(iri):
        return plain[1]
    try:
        url = httpx.URL(iri)
        if not url.host or url.userinfo or not 0 < (url.port or 80) < 65_536 or "%" in url.host:
            return None
        return str(url.copy_with(fragment=None, raw_path=url.raw_path or b"/"))
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return None


def origin(url: str) -> str:
    """Return scheme, host and port of a `document_url`: what robots.txt and the limits per host are about."""
    found = _ORIGIN.match(url)
    assert found is not None, url
    return found[0]


def joined(base: str, location: str) -> str | None:
    """Return the address that a redirect leads to; None if that is none that can be asked."""
    try:
        return document_url(str(httpx.URL(base).join(location)))
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return None
