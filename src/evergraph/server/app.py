"""The application: which address does what, who may use it, and how errors are told."""

import json
import logging
import time
from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from evergraph.server import events, feed, problems, shelf_routes, sparql_protocol
from evergraph.server.access import SECURE, Access
from evergraph.server.broker import Broker
from evergraph.server.cors import Cors, Hosts
from evergraph.server.description import openapi, service_description
from evergraph.server.logs import NAME, tell
from evergraph.server.problems import Problem
from evergraph.server.sepa import Socket

Handler = Callable[[Request], Awaitable[Response]]
_REGISTRATION_BYTES = 16 * 1024
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"  # noqa: E501


class App:
    """The broker as an ASGI application."""

    def __init__(self, broker: Broker, access: Access, jsap: bytes | None = None) -> None:
        self._broker = broker
        self._access = access
        self._jsap = jsap
        self._cors = Cors(broker.settings.origins)
        self._hosts = Hosts(broker.settings.host, broker.settings.names)
        self._page = files("evergraph.server").joinpath("page", "index.html").read_bytes()
        self._script = files("evergraph.server").joinpath("page", "page.js").read_bytes()
        self._debugging = logging.getLogger(NAME).isEnabledFor(logging.DEBUG)
        self._routes: dict[str, dict[str, Handler]] = {
            "/query": {"GET": self._query, "POST": self._query},
            "/update": {"POST": self._update},
            "/sparql": {"GET": self._sparql, "POST": self._sparql},
            "/subscribe": {"GET": self._subscribe},
            "/changes": {"GET": lambda request: feed.changes(broker, request)},
            "/sparql/stream": {"GET": lambda request: feed.neptune(broker, request)},
            "/oauth/register": {"POST": self._oauth},
            "/oauth/token": {"POST": self._oauth},
            "/echo": {"GET": self._echo, "POST": self._echo},
            "/metrics": {"GET": self._metrics},
            "/openapi.json": {"GET": self._openapi},
            "/jsap": {"GET": self._profile},
            "/": {"GET": self._show_page},
            "/page.js": {"GET": self._show_script},
        }
        self._free = {"/oauth/register", "/oauth/token", "/echo", "/openapi.json", "/", "/page.js"}
        """What needs no token."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request or a WebSocket connection."""
        if scope["type"] == "websocket":
            known = self._hosts.knows(scope) and self._cors.allows_socket(scope)
            if _path(scope) != "/subscribe" or not known:
                await send({"type": "websocket.close", "code": 1008})
                return
            await Socket(self._broker, self._access, scope, receive, send).serve()
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        begin = time.perf_counter()
        self._broker.metrics.count("requests")
        try:
            response = await self._answer(request)
        except Problem as problem:
            self._broker.metrics.count("refused")
            response = JSONResponse(problem.members(), problem.status, problem.headers)
        except Exception as error:
            logging.getLogger(NAME).exception("a request failed through a fault of the broker")
            members = Problem("internal_error", f"a fault of the broker ({type(error).__name__})", 500).members()
            response = JSONResponse(members, 500)
        self._cors.mark(request, response)
        response.headers["X-Content-Type-Options"] = "nosniff"
        if self._debugging:
            took = round(1000 * (time.perf_counter() - begin), 2)
            tell(
                "request",
                logging.DEBUG,
                method=request.method,
                path=scope["path"],
                status=response.status_code,
                ms=took,
            )
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = _path(request.scope)
        methods = self._routes.get(path) or shelf_routes.route(self._broker, path)
        if methods is None:
            raise Problem(problems.WRONG_PATH, f"there is nothing at {request.scope['path']}", 404)
        if not self._hosts.knows(request.scope):
            raise Problem(problems.FORBIDDEN, "the broker is not known under this name; see --name", 421)
        if request.method == "OPTIONS":
            return self._cors.preflight(request, tuple(methods))
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            allowed = ", ".join(methods)
            raise Problem(problems.PROTOCOL, f"{path} takes {allowed}, not {request.method}", 405, {"Allow": allowed})
        if self._cors.refuses(request):
            raise Problem(problems.FORBIDDEN, "pages of this origin may not use the broker; see --origin", 403)
        authorization = "" if path in self._free else request.headers.get("authorization", "")
        if path in self._free:
            self._access.count(self._access.guest(request.scope))
            request.state.user = ""
        else:
            request.state.user = self._access.user(request.scope, authorization)
        return await handler(request)

    # --- SPARQL

    async def _query(self, request: Request) -> Response:
        return await sparql_protocol.answer(self._broker, request, ("query",))

    async def _update(self, request: Request) -> Response:
        return await sparql_protocol.answer(self._broker, request, ("update",))

    async def _sparql(self, request: Request) -> Response:
        if request.method != "POST" and not request.url.query:
            return service_description(request)
        return await sparql_protocol.answer(self._broker, request, ("query", "update"))

    async def _subscribe(self, request: Request) -> Response:
        return await events.subscribe(self._broker, request, request.state.user)

    # --- clients

    async def _oauth(self, request: Request) -> Response:
        """Register a client, or give it a token, whichever address was taken: sepy 0.43 mixes them up in queries."""
        body = await sparql_protocol.read_body(request, _REGISTRATION_BYTES)
        authorization = request.headers.get("authorization", "")
        if authorization or (not body.strip() and _path(request.scope) == "/oauth/token"):
            return JSONResponse(self._access.clients.token(authorization), 201, {"Cache-Control": "no-store"})
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Problem(problems.JSON, f"the request is not JSON: {error}", 400) from error
        return JSONResponse(self._access.clients.register(message), 201, {"Cache-Control": "no-store"})

    # --- about the broker

    async def _echo(self, request: Request) -> Response:
        if self._broker.closing:
            raise Problem(problems.CLOSING, "the broker is shutting down", 503)
        return JSONResponse({"status": "up", "sequence": self._broker.database.sequence})

    async def _metrics(self, request: Request) -> Response:
        return Response(self._broker.metrics.text(), media_type="text/plain; version=0.0.4")

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(openapi())

    async def _profile(self, request: Request) -> Response:
        if self._jsap is None:
            raise Problem(problems.WRONG_PATH, "the broker was started without --jsap", 404)
        return Response(self._jsap, media_type="application/json")

    async def _show_page(self, request: Request) -> Response:
        headers = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer"}
        return Response(self._page, media_type="text/html; charset=utf-8", headers=headers)

    async def _show_script(self, request: Request) -> Response:
        return Response(self._script, media_type="text/javascript; charset=utf-8")


def _path(scope: Scope) -> str:
    """Return the path without the prefix of the addresses that need a token, and without a slash at the end."""
    path: str = scope["path"]
    if path.startswith(SECURE + "/"):
        path = path.removeprefix(SECURE)
    return path.rstrip("/") or "/"
