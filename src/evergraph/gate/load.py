"""Documents for LOAD: local files and the web."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
from pyoxigraph import RdfFormat

from evergraph.errors import UpdateFailed
from evergraph.rdfio import FORMATS, format_for_media_type, format_for_path, parse_quads, read_quads
from evergraph.terms import DEFAULT_GRAPH, GraphName, NamedNode, Quad

ACCEPT = "text/turtle, application/n-triples, application/rdf+xml;q=0.9, application/ld+json;q=0.8, */*;q=0.1"


def load_document(source: NamedNode, into: GraphName, *, timeout: float = 60.0) -> Iterator[Quad]:
    """Read the triples of a document, given by a file: or http(s): IRI, into one graph; its blank nodes are fresh."""
    scheme = urlsplit(source.value).scheme
    if scheme == "file":
        if urlsplit(source.value).netloc not in ("", "localhost"):
            raise UpdateFailed(f"the file is on another host: {source}", hint="use a path of this machine")
        path = Path(unquote(urlsplit(source.value).path))
        quads = read_quads(path.absolute(), base_iri=source.value)
    elif scheme in ("http", "https"):
        quads = _fetch(source.value, timeout)
    else:
        raise UpdateFailed(f"{scheme}: addresses cannot be read", hint="use a file:, http: or https: IRI")
    for quad in quads:
        if quad.graph_name != DEFAULT_GRAPH:
            raise UpdateFailed("the document holds named graphs", hint="LOAD is for documents with a single graph")
        yield Quad(quad.subject, quad.predicate, quad.object, into)


def _fetch(url: str, timeout: float) -> Iterator[Quad]:
    try:
        response = httpx.get(url, headers={"Accept": ACCEPT}, follow_redirects=True, timeout=timeout)
        response.raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UpdateFailed(str(error), hint="check that the address answers") from error
    return quads_of_response(response, url)


def quads_of_response(response: httpx.Response, where: str) -> Iterator[Quad]:
    """Read the quads of a document that was fetched."""
    return parse_quads(response.content, _format(response), where=where, base_iri=str(response.url))


def _format(response: httpx.Response) -> RdfFormat:
    """Go by the media type, or by the file ending where the server does not know RDF."""
    media_type = response.headers.get("content-type", "")
    ending = "." + response.url.path.rsplit(".", 1)[-1]
    if media_type.split(";")[0].strip() in ("", "text/plain", "application/octet-stream") and ending in FORMATS:
        return format_for_path(response.url.path)
    return format_for_media_type(media_type)
