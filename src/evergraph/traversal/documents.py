"""Documents as they come over the wire, to triples that nobody else can be mistaken for.

* Blank nodes are kept apart per document, and have the same names when the document is read again: a label that the
  document gives stays, what has no label is counted. So a document that is as it was changes nothing.
* Triples with the reserved predicate f are dropped: only Evergraph says which document a resource led to.
* Only the default graph of a document counts. It cannot put words into the graph of another document.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyoxigraph import RdfFormat

from evergraph.errors import DataError
from evergraph.rdfio import FORMATS, format_for_media_type, parse_quads, rdf_ending
from evergraph.terms import BlankNode, DefaultGraph, Literal, NamedNode, Term, Triple
from evergraph.traversal.depth import refuse_deep
from evergraph.traversal.iris import F

ACCEPT = ", ".join(
    (
        "text/turtle",
        "application/n-triples;q=0.95",
        "application/trig;q=0.9",
        "application/n-quads;q=0.9",
        "application/ld+json;q=0.8",
        "application/rdf+xml;q=0.8",
        "text/n3;q=0.7",
        "*/*;q=0.1",
    )
)
"""Every RDF syntax, those first that are read fastest and say most."""

_VAGUE = ("", "text/plain", "application/octet-stream", "application/xml", "text/xml", "application/json")
"""Media types of servers that do not know RDF: the file ending tells more."""
_ANONYMOUS = re.compile(r"[0-9a-f]{20,32}")
"""The labels that the parser makes up, by chance, for blank nodes without one."""
_LINK = re.compile(r"<([^>]*)>(.*)", re.DOTALL)
_PARAMETER = re.compile(r";\s*([\w*-]+)\s*=\s*(?:\"([^\"]*)\"|([^\s;,]+))")
_CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Content:
    """What a document says. ``forged`` triples with the reserved predicate and those ``elsewhere`` are only counted."""

    triples: frozenset[Triple]
    forged: int = 0
    elsewhere: int = 0


def read_document(body: bytes, content_type: str, url: str) -> Content:
    """Read a document that came from an address. Raises `DataError` and `SyntaxProblem`."""
    syntax = document_format(content_type, url)
    text = _utf8(body, content_type, syntax)
    refuse_deep(text, syntax, url)
    names = _Names(url)
    triples: set[Triple] = set()
    forged = elsewhere = 0
    for quad in parse_quads(text, syntax, where=url, base_iri=url, rename_blank_nodes=False):
        if not isinstance(quad.graph_name, DefaultGraph):
            elsewhere += 1
        elif quad.predicate == F:
            forged += 1
        else:
            subject = names.apart(quad.subject)
            assert isinstance(subject, NamedNode | BlankNode)
            triples.add(Triple(subject, quad.predicate, names.apart(quad.object)))
    return Content(frozenset(triples), forged, elsewhere)


def document_format(content_type: str, url: str) -> RdfFormat:
    """Go by the media type, or by the file ending where the media type says too little."""
    media_type = content_type.split(";")[0].strip().lower()
    if media_type in _VAGUE and (ending := rdf_ending(url.split("?")[0])):
        return FORMATS[ending]
    if media_type in _VAGUE[:3]:
        given = f"{media_type!r} as media type" if media_type else "no media type"
        raise DataError(f"{url}: the server gives {given}, which names no RDF syntax")
    try:
        return format_for_media_type(media_type)
    except DataError as error:
        raise DataError(f"{url}: {error.message}") from None


def alternate(headers: Mapping[str, str]) -> str | None:
    """Return where RDF is, according to a ``Link`` header, for a document that is none; None if it does not say."""
    for part in re.split(r",\s*(?=<)", headers.get("link", "")):
        found = _LINK.match(part.strip())
        if found is None:
            continue
        parameters = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(found[2])}
        kinds = parameters.get("rel", "").lower().split()
        if "alternate" in kinds and RdfFormat.from_media_type(parameters.get("type", "")) is not None:
            return found[1]
    return None


def is_rdf(content_type: str, url: str) -> bool:
    """Tell whether a document says that it is RDF."""
    try:
        document_format(content_type, url)
    except DataError:
        return False
    return True


def _utf8(body: bytes, content_type: str, syntax: RdfFormat) -> bytes:
    """Recode what is declared to be in another encoding; XML declares its own."""
    found = _CHARSET.search(content_type)
    if syntax == RdfFormat.RDF_XML or not found or found[1].lower() in ("utf-8", "utf8", "us-ascii"):
        return body
    try:
        return body.decode(found[1]).encode()
    except (LookupError, UnicodeError) as error:
        raise DataError(f"the document is not in its declared encoding {found[1]!r}: {error}") from None


class _Names:
    """Names for the blank nodes of one document."""

    def __init__(self, url: str) -> None:
        self._prefix = "d" + hashlib.sha256(url.encode()).hexdigest()[:32]
        self._counted: dict[str, str] = {}

    def apart(self, term: Term) -> Term:
        if isinstance(term, BlankNode):
            label = term.value
            if _ANONYMOUS.fullmatch(label):
                label = self._counted.setdefault(label, f"c{len(self._counted)}")
            else:
                label = f"l{label}"
            return BlankNode(self._prefix + label)
        if isinstance(term, Triple):
            subject = self.apart(term.subject)
            assert not isinstance(subject, Literal | Triple)
            return Triple(subject, term.predicate, self.apart(term.object))
        return term
