"""The SPARQL 1.1 Protocol, client side: queries and updates over HTTP, with errors that say what happened."""

from collections.abc import Mapping
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

Answer: TypeAlias = QuerySolutions | QueryBoolean | list[Triple]

_QUERY, _UPDATE = "application/sparql-query", "application/sparql-update"
_RESULTS = "application/sparql-results+json, application/n-triples;q=0.9"


class Endpoint:
    """A query service and an update service for the same dataset."""

    def __init__(
        self, query_url: str, update_url: str, *, timeout: float = 60.0, headers: Mapping[str, str] | None = None
    ) -> None:
        self.query_url = query_url
        self.update_url = update_url
        self._http = httpx.Client(timeout=timeout, headers=dict(headers or {}), follow_redirects=True)
        # By GET, because that is what every server takes; Virtuoso hangs on a query that is posted as it is.
        self.dialect: Dialect = recognise(self._ask("GET", params={"query": "ASK {}"}).headers)

    def query(self, text: str) -> Answer:
        """Run a query; the answer is read to its end before this returns."""
        response = self._ask("POST", **self._body(text, "query", _QUERY))
        media_type = response.headers.get("content-type", "")
        try:
            if "json" in media_type:
                return self._solutions(response)
            found = RdfFormat.from_media_type(media_type) or RdfFormat.TURTLE
            return [quad.triple for quad in parse(response.content, found)]
        except (SyntaxError, ValueError) as error:
            raise EndpointError(
                f"{self.query_url} answered with something unreadable ({media_type}): {error}",
                hint="check that this is the address of a SPARQL query service",
            ) from error

    def _solutions(self, response: httpx.Response) -> QuerySolutions | QueryBoolean:
        # Virtuoso writes the type of an early draft; the quoted text cannot occur inside a JSON string.
        content = response.content.replace(b'"typed-literal"', b'"literal"')
        if b'"__ASK_RETVAL"' in content:  # Virtuoso's answer to ASK
            truth = b"true" if b'"value": "1"' in content else b"false"
            content = b'{"head":{},"boolean":%s}' % truth
        limit = response.headers.get("x-sparql-maxrows")
        if limit and _row_count(content) >= int(limit):
            raise EndpointError(
                f"{self.query_url} cut its answer short after {limit} rows",
                hint="raise ResultSetMaxRows in the server's settings, or make the request smaller",
            )
        return parse_query_results(content, QueryResultsFormat.JSON)

    def select(self, text: str) -> QuerySolutions:
        """Run a SELECT query."""
        solutions = self.query(text)
        if not isinstance(solutions, QuerySolutions):
            raise EndpointError(f"{self.query_url} did not answer a SELECT query with solutions")
        return solutions

    def update(self, text: str) -> None:
        """Run an update request.

        :raises UncertainOutcome: if the connection broke after the request was sent.
        """
        try:
            response = self._http.post(self.update_url, **self._body(text, "update", _UPDATE))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
            raise self._unreachable(self.update_url, error) from error
        except httpx.HTTPError as error:
            raise UncertainOutcome(
                f"the connection to {self.update_url} broke during a write: {error or type(error).__name__}",
                hint="the endpoint may hold all, some or none of it",
            ) from error
        if not response.is_success:
            raise self._refused(self.update_url, response)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _body(self, text: str, field: str, media_type: str) -> dict[str, Any]:
        if self.dialect.posts_forms:
            return {"data": {field: text}}
        return {"content": text.encode(), "headers": {"Content-Type": media_type}}

    def _ask(self, method: str, **request: Any) -> httpx.Response:
        headers = {"Accept": _RESULTS} | request.pop("headers", {})
        try:
            response = self._http.request(method, self.query_url, headers=headers, **request)
        except httpx.HTTPError as error:
            raise self._unreachable(self.query_url, error) from error
        if not response.is_success:
            raise self._refused(self.query_url, response)
        return response

    def _unreachable(self, url: str, error: Exception) -> EndpointError:
        reason = str(error) or type(error).__name__
        return EndpointError(
            f"{url} does not answer: {reason}", hint="check that the server runs and the address is right"
        )

    def _refused(self, url: str, response: httpx.Response) -> EndpointError:
        reason = " ".join(response.text.split())[:500]
        return EndpointError(
            f"{url} answered {response.status_code} {response.reason_phrase}: {reason}",
            hint="check the address, the credentials and the log of the server",
        )


def _row_count(content: bytes) -> int:
    found = parse_query_results(content, QueryResultsFormat.JSON)
    return sum(1 for _ in found) if isinstance(found, QuerySolutions) else 0
