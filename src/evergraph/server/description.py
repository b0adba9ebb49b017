"""What the broker says about itself: OpenAPI for programmers, a SPARQL service description for SPARQL clients."""

from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

_SERVICE = """@prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
@prefix formats: <http://www.w3.org/ns/formats/> .

[] a sd:Service ;
   sd:endpoint <{address}> ;
   sd:supportedLanguage sd:SPARQL11Query, sd:SPARQL11Update ;
   sd:resultFormat formats:SPARQL_Results_JSON, formats:SPARQL_Results_XML, formats:SPARQL_Results_CSV,
      formats:SPARQL_Results_TSV, formats:Turtle, formats:N-Triples, formats:RDF_XML, formats:JSON-LD .
"""

_TEXT = {"schema": {"type": "string"}}
_ERROR = {
    "description": "What is wrong, in words.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_RESULTS = {
    "description": "The result, in the format that is asked for.",
    "content": dict.fromkeys(
        (
            "application/sparql-results+json",
            "application/sparql-results+xml",
            "text/csv",
            "text/tab-separated-values",
            "text/turtle",
            "application/n-triples",
            "application/rdf+xml",
            "application/ld+json",
        ),
        _TEXT,
    ),
}
_UPDATED = {
    "description": "The update is durable. Accept: application/rdf-patch gives the change itself.",
    "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/Updated"}},
        "application/rdf-patch": _TEXT,
    },
}


def service_description(request: Request) -> Response:
    """Describe the SPARQL service, in Turtle."""
    address = str(request.url.replace(query="", fragment=""))
    return Response(_SERVICE.format(address=address.replace(">", "%3E")), media_type="text/turtle")


def _parameter(name: str, description: str, kind: str = "string", *, many: bool = False) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": {"type": kind}} if many else {"type": kind}
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _operation(summary: str, answers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"summary": summary, "responses": answers | {"default": _ERROR}, **more}


def _body(media_type: str, name: str) -> dict[str, Any]:
    form = {"schema": {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}}
    return {"content": {media_type: _TEXT, "application/x-www-form-urlencoded": form}}


def openapi() -> dict[str, Any]:
    """Describe all addresses (https://spec.openapis.org/oas/v3.1.0)."""
    graphs = [
        _parameter("default-graph-uri", "Graphs of the default graph.", many=True),
        _parameter("named-graph-uri", "Named graphs.", many=True),
    ]
    using = [
        _parameter("using-graph-uri", "Graphs of the default graph of WHERE clauses.", many=True),
        _parameter("using-named-graph-uri", "Named graphs of WHERE clauses.", many=True),
        _parameter("quads", "true: the answer has the quads themselves.", "boolean"),
    ]
    query = _parameter("query", "The query.")
    ask = _operation("Run a query", {"200": _RESULTS}, parameters=[query, *graphs])
    ask_by_post = _operation(
        "Run a query", {"200": _RESULTS}, parameters=graphs, requestBody=_body("application/sparql-query", "query")
    )
    update = _operation(
        "Run an update", {"200": _UPDATED}, parameters=using, requestBody=_body("application/sparql-update", "update")
    )
    events = {"description": "Events without end.", "content": {"text/event-stream": _TEXT}}
    patches = {
        "description": "Changes in order.",
        "content": {"application/rdf-patch": _TEXT, "text/event-stream": _TEXT},
    }
    objects = {"description": "A JSON object.", "content": {"application/json": {"schema": {"type": "object"}}}}
    plain = {"description": "Text.", "content": {"text/plain": _TEXT}}
    paths: dict[str, Any] = {
        "/query": {"get": ask, "post": ask_by_post},
        "/update": {"post": update},
        "/sparql": {"get": ask, "post": _operation("Run a query or an update", {"200": _RESULTS})},
        "/subscribe": {
            "get": _operation(
                "Follow a query (Server-Sent Events; a WebSocket at the same address)",
                {"200": events},
                parameters=[query, *graphs, _parameter("alias", "A name that notifications repeat.")],
            )
        },
        "/changes": {
            "get": _operation(
                "Read the changes after a sequence number, or follow them (Accept: text/event-stream)",
                {"200": patches},
                parameters=[
                    _parameter("after", "The last change that is known.", "integer"),
                    _parameter("limit", "How many changes to give at most.", "integer"),
                    _parameter("wait", "How many seconds to wait for one.", "integer"),
                ],
            )
        },
        "/sparql/stream": {
            "get": _operation(
                "Read changes as Neptune Streams gives them",
                {"200": objects},
                parameters=[
                    _parameter("iteratorType", "AT_SEQUENCE_NUMBER, AFTER_SEQUENCE_NUMBER, TRIM_HORIZON or LATEST."),
                    _parameter("commitNum", "The number of a change.", "integer"),
                    _parameter("opNum", "The number of a quad in it.", "integer"),
                    _parameter("limit", "How many records to give at most.", "integer"),
                ],
            )
        },
        **_derived("replica", patches, objects),
        **_derived("linkset", patches, objects),
        "/oauth/register": {"post": _operation("Register a client", {"201": objects})},
        "/oauth/token": {"post": _operation("Get a token, with Basic authorisation", {"201": objects})},
        "/echo": {"get": _operation("See that the broker is up", {"200": objects})},
        "/metrics": {"get": _operation("Read the metrics, for Prometheus", {"200": plain})},
        "/jsap": {"get": _operation("Read the application profile", {"200": objects})},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Evergraph broker", "version": version("evergraph"), "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": {
                "Error": _object(error="string", error_description="string", status_code="integer"),
                "Updated": _object(sequence="integer", inserted="integer", deleted="integer", response="object"),
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _derived(kind: str, patches: dict[str, Any], objects: dict[str, Any]) -> dict[str, Any]:
    """Describe the addresses of what can be registered: interests, or definitions of linksets."""
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    after = _parameter("after", "The last change that is known.", "integer")
    return {
        f"/{kind}s": {"get": _operation(f"List the {kind}s", {"200": objects})},
        f"/{kind}s/{{name}}": {
            "get": _operation(f"Read what a {kind} holds", {"200": _RESULTS}, parameters=[name]),
            "put": _operation(f"Register a {kind}", {"201": objects}, parameters=[name]),
            "delete": _operation(f"End a {kind}", {"204": {"description": "Done."}}, parameters=[name]),
        },
        f"/{kind}s/{{name}}/changes": {
            "get": _operation(
                f"Read the changes of a {kind}, or follow them", {"200": patches}, parameters=[name, after]
            )
        },
    }


def _object(**members: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in members.items()}}
