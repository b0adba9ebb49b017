"""The SPARQL 1.1 Protocol, client side: queries and updates over HTTP, with errors that say what happened."""

import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import httpx
from pyoxigraph import (
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    Triple,
    parse,
    parse_query_results,
)

from evergraph.errors import EndpointError, UncertainOutcome
from evergraph.gate.dialects import Dialect, recognise
from evergraph.gate.operations import DatasetGraphs, Rows
from evergraph.gate.rows import rows_of

Answer: TypeAlias = QuerySolutions | QueryBoolean | list[Triple]

_QUERY, _UPDATE = "application/sparql-query", "application/sparql-update"
_RESULTS = "application/sparql-results+json, application/n-triples;q=0.9"
_PLAIN = "text/plain"
_SAFE_IN_FORMS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789*-._")
_NOTHING_DONE = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405, 407, 413, 415, 429})
# Virtuoso writes the type of an early draft, and labels that are none. These texts cannot stand inside a JSON string.
_VIRTUOSO_JSON = (
    (b'"type": "typed-literal"', b'"type": "literal"'),
    (b'"type": "bnode", "value": "nodeID://', b'"type": "bnode", "value": "'),
)
_VIRTUOSO_ASK = re.compile(rb'"vars":\s*\[\s*"__ASK_RETVAL"\s*\]')
_GATEWAY = frozenset({502, 504})
_CUT_SHORT = "raise the limits of the server on rows and time (Virtuoso: section SPARQL), or make the request smaller"


class NotTaken(EndpointError):
    """The endpoint did not take a request at all: nothing of it was done."""


class Endpoint:
    """A query service and an update service for the same dataset."""

    def __init__(
        self, query_url: str, update_url: str, *, timeout: float = 60.0, headers: Mapping[str, str] | None = None
    ) -> None:
        self.query_url = query_url
        self.update_url = update_url
        # Redirects are refused: a POST that follows one arrives as a GET, and an update that way does nothing.
        self._http = httpx.Client(timeout=timeout, headers=dict(headers or {}))
        try:
            # By GET, because that is what every server takes; Virtuoso hangs on a query that is posted as it is.
            first = self._ask("GET", params={"query": "ASK {}"})
            self.dialect: Dialect = recognise(first.headers)
            self._read(first)
        except BaseException:
            self._http.close()
            raise

    def query(self, text: str, graphs: DatasetGraphs | None = None) -> Answer:
        """Run a query, over the dataset of these default and named graphs; the answer is read to its end."""
        params = None
        if graphs is not None:
            names = ("default-graph-uri", "named-graph-uri")
            params = {name: [one.value for one in some] for name, some in zip(names, graphs, strict=True)}
        return self._read(self._ask("POST", params, **self._body(text, "query", _QUERY)))

    def select(self, text: str) -> Rows:
        """Run a SELECT query."""
        rows = self.select_exactly(text) if self.dialect.plain_rows else None
        return self._select(text) if rows is None else rows

    def select_exactly(self, text: str) -> Rows | None:
        """Run a SELECT query on a server that may round numbers in its answers; None if it may have done so.

        The answer comes as N-Triples: Virtuoso (7.2.5) takes seven times as long to write the same as JSON.
        """
        assert self.dialect.plain_rows
        body = self._body(text, "query", _QUERY)
        response = self._ask("POST", **{**body, "headers": {**body.get("headers", {}), "Accept": _PLAIN}})
        if _PLAIN not in response.headers.get("content-type", ""):
            return None
        rows = self.dialect.plain_rows(response.content)
        if rows is not None:
            self._check_whole(response, len(rows))
        return rows

    def _select(self, text: str) -> Rows:
        solutions = self.query(text)
        if not isinstance(solutions, QuerySolutions):
            raise EndpointError(f"{self.query_url} did not answer a SELECT query with solutions")
        return rows_of(solutions)

    def _read(self, response: httpx.Response) -> Answer:
        media_type = response.headers.get("content-type", "")
        try:
            if "json" in media_type:
                return self._solutions(response)
            if "html" in media_type:
                raise ValueError("a page for people")
            found = RdfFormat.from_media_type(media_type) or RdfFormat.TURTLE
            return [quad.triple for quad in parse(response.content, found)]
        except (SyntaxError, ValueError, MemoryError) as error:  # MemoryError: one value of 16 MB or more
            raise EndpointError(
                f"{self.query_url} answered with something unreadable ({media_type or 'no media type'}): {error}",
                hint="check that this is the address of a SPARQL query service",
            ) from error

    def _solutions(self, response: httpx.Response) -> QuerySolutions | QueryBoolean:
        content = response.content
        for theirs, ours in _VIRTUOSO_JSON:
            content = content.replace(theirs, ours)
        if _VIRTUOSO_ASK.search(content, 0, 200):
            truth = b"true" if b'"value": "1"' in content else b"false"
            content = b'{"head":{},"boolean":%s}' % truth
        self._check_whole(response, _row_count(content))  # reads to the end, because parsing is lazy
        return parse_query_results(content, QueryResultsFormat.JSON)

    def _check_whole(self, response: httpx.Response, count: int) -> None:
        """Refuse an answer that says of itself that rows are missing."""
        limit = response.headers.get("x-sparql-maxrows")
        if limit and count >= int(limit):
            raise EndpointError(f"{self.query_url} cut its answer short after {limit} rows", hint=_CUT_SHORT)
        if response.status_code == httpx.codes.PARTIAL_CONTENT or response.headers.get("x-sql-state") == "S1TAT":
            raise EndpointError(f"{self.query_url} ran out of time and answered in part", hint=_CUT_SHORT)

    def update(self, text: str) -> None:
        """Run an update request.

        :raises NotTaken: if the endpoint did nothing.
        :raises UncertainOutcome: if it is not known what the endpoint did.
        """
        try:
            response = self._http.post(self.update_url, **self._body(text, "update", _UPDATE))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise _unreachable(NotTaken, self.update_url, error) from error
        except httpx.HTTPError as error:
            raise _uncertain(self.update_url, f"broke: {str(error) or type(error).__name__}") from error
        if response.status_code in _GATEWAY:
            raise _uncertain(self.update_url, f"broke behind a gateway: {_reason(response)}")
        if not response.is_success:
            kind = NotTaken if response.status_code in _NOTHING_DONE else EndpointError
            raise _refused(kind, self.update_url, response)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _body(self, text: str, field: str, media_type: str) -> dict[str, Any]:
        if self.dialect.posts_forms:
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            return {"content": f"{field}=".encode() + _form_encoded(text), "headers": headers}
        return {"content": text.encode(), "headers": {"Content-Type": media_type}}

    def _ask(self, method: str, params: Mapping[str, str | list[str]] | None = None, **request: Any) -> httpx.Response:
        headers = {"Accept": _RESULTS} | request.pop("headers", {})
        try:
            url = httpx.URL(self.query_url).copy_merge_params(params or {})
            with self._http.stream(method, url, headers=headers, **request) as response:
                _acknowledge_at_once(response)
                response.read()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _unreachable(EndpointError, self.query_url, error) from error
        if not response.is_success:
            raise _refused(EndpointError, self.query_url, response)
        return response


def _form_encoded(text: str) -> bytes:
    """Write a text as a form does; the ways of the standard library go character by character."""
    data = text.encode()
    unsafe = set(data) - _SAFE_IN_FORMS
    for byte in sorted(unsafe, key=lambda byte: byte != ord("%")):  # its own sign first
        data = data.replace(bytes([byte]), b"%%%02X" % byte)
    return data


def _acknowledge_at_once(response: httpx.Response) -> None:
    """Do not let the server wait for our TCP: Virtuoso sends the last piece of an answer after 40 ms otherwise."""
    stream, option = response.extensions.get("network_stream"), getattr(socket, "TCP_QUICKACK", None)
    if stream is not None and option is not None:
        with suppress(OSError):
            stream.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, option, 1)


def _row_count(content: bytes) -> int:
    found = parse_query_results(content, QueryResultsFormat.JSON)
    return sum(1 for _ in found) if isinstance(found, QuerySolutions) else 0


def _unreachable(kind: type[EndpointError], url: str, error: Exception) -> EndpointError:
    reason = str(error) or type(error).__name__
    return kind(f"{url} does not answer: {reason}", hint="check that the server runs and the address is right")


def _refused(kind: type[EndpointError], url: str, response: httpx.Response) -> EndpointError:
    hint = "check the address, the credentials and the log of the server"
    if response.has_redirect_location:
        hint = f"use the address that it names: {response.headers['location']}"
    return kind(f"{url} answered {_reason(response)}", hint=hint)


def _reason(response: httpx.Response) -> str:
    reason = " ".join(response.text.split())[:500]
    return f"{response.status_code} {response.reason_phrase}: {reason}"


def _uncertain(url: str, what: str) -> UncertainOutcome:
    return UncertainOutcome(
        f"the connection to {url} {what}, in the middle of a write",
        hint="nothing of it counts: what was written is taken back, now and again before the next update",
    )
