"""Who sends a request, and how often."""

from starlette.types import Scope

from evergraph.server.auth import Clients
from evergraph.server.limits import RateLimit

SECURE = "/secure"


class Access:
    """Knows users by their tokens. Those without one are guests, known by the address that they come from.

    Below ``/secure`` everybody needs a token; elsewhere too, if the operator says so.
    """

    def __init__(self, clients: Clients, rate: RateLimit, require_tokens: bool) -> None:
        self.clients = clients
        self._rate = rate
        self._require = require_tokens

    def needs_token(self, scope: Scope) -> bool:
        """Tell whether a request must come with a token."""
        path = scope["path"]
        return self._require or path == SECURE or path.startswith(SECURE + "/")

    def guest(self, scope: Scope) -> str:
        """Name somebody without a token."""
        client = scope.get("client")
        return f"@{client[0] if client else ''}"

    def user_of(self, authorization: str) -> str:
        """Return the user that a token belongs to."""
        return self.clients.user(authorization)

    def user(self, scope: Scope, authorization: str) -> str:
        """Tell who sends a request, and count it."""
        guest = self.guest(scope)
        if authorization or self.needs_token(scope):
            self.count(guest)
            return self.user_of(authorization)
        self.count(guest)
        return guest

    def count(self, user: str) -> None:
        """Count a request; raises a `Problem` if a user sends too many."""
        self._rate.check(user)
