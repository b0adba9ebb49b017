"""Which web pages may use the broker: those that it serves itself, and those of origins that the operator names.

A page of any other origin cannot read answers, and its WebSockets are refused: otherwise any page that somebody opens
could talk to a broker on their own machine.
"""

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

_HEADERS = "Accept, Authorization, Content-Type, Last-Event-ID"
_EXPOSED = "X-Last-Sequence, X-Newest-Sequence, X-Sequence"


class Cors:
    """Cross-origin resource sharing (https://fetch.spec.whatwg.org/#http-cors-protocol)."""

    def __init__(self, origins: tuple[str, ...]) -> None:
        self._all = "*" in origins
        self._origins = frozenset(origin.rstrip("/") for origin in origins)

    def allows(self, origin: str, scope: Scope) -> bool:
        """Tell whether pages of an origin may use the broker."""
        return self._all or origin in self._origins or urlsplit(origin).netloc == _header(scope, b"host")

    def allows_socket(self, scope: Scope) -> bool:
        """Tell whether a WebSocket may be opened; only browsers say which origin they come from.

        A page that the broker serves may use the WebSocket port too, so that the port is not compared.
        """
        origin = _header(scope, b"origin")
        if not origin or self.allows(origin, scope):
            return True
        host = urlsplit(f"//{_header(scope, b'host')}").hostname
        return host is not None and urlsplit(origin).hostname == host

    def preflight(self, request: Request, methods: tuple[str, ...]) -> Response:
        """Tell a browser what it may send."""
        headers = {"Allow": ", ".join(methods)}
        origin = request.headers.get("origin", "")
        if origin and self.allows(origin, request.scope):
            headers |= {
                "Access-Control-Allow-Methods": ", ".join(methods),
                "Access-Control-Allow-Headers": _HEADERS,
                "Access-Control-Max-Age": "600",
            }
        return Response(status_code=204, headers=headers)

    def mark(self, request: Request, response: Response) -> None:
        """Let a page of an allowed origin read an answer."""
        origin = request.headers.get("origin")
        if origin is None:
            return
        response.headers["Vary"] = "Origin"
        if self.allows(origin, request.scope):
            response.headers["Access-Control-Allow-Origin"] = "*" if self._all else origin
            response.headers["Access-Control-Expose-Headers"] = _EXPOSED

    def refuses(self, request: Request) -> bool:
        """Tell whether a request comes from a page of an origin that may not use the broker.

        A form of any page can be posted anywhere without being asked: answers that it cannot read do not help then.
        """
        origin = request.headers.get("origin")
        return origin is not None and not self.allows(origin, request.scope)


class Hosts:
    """Names that the broker is asked under.

    A broker on loopback is only asked under names of loopback: a name of somebody else that points there (DNS
    rebinding) would make pages of that name belong to the broker.
    """

    def __init__(self, host: str, names: frozenset[str]) -> None:
        self._names = names | LOOPBACK | {host} if is_loopback(host) else None

    def knows(self, scope: Scope) -> bool:
        """Tell whether a request is meant for this broker."""
        if self._names is None:
            return True
        given = _header(scope, b"host")
        return not given or urlsplit(f"//{given}").hostname in self._names


LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Tell whether a host can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _header(scope: Scope, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return ""
