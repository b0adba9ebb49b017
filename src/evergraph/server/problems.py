"""What goes wrong for a client, as SEPA's clients and the SPARQL protocol want to hear it."""

import json
from typing import Any

from evergraph.errors import (
    BlankNodeRefused,
    EndpointError,
    EvergraphError,
    QueryFailed,
    StateLimit,
    StoreError,
    SyntaxProblem,
    UnsupportedQuery,
    UpdateFailed,
    UsageError,
)

PROTOCOL = "SPARQL11ProtocolException"
PARSING = "parsing failed"
JSON = "JsonParseException"
WRONG_PATH = "wrong_path"
UNKNOWN_SUBSCRIPTION = "sid_not_found"
TOO_MANY = "too_many_requests"
TOO_LARGE = "too_large"
UPDATE = "update_processing"
QUERY = "query_processing"
INVALID_CLIENT = "invalid_client"
INVALID_GRANT = "invalid_grant"
FORBIDDEN = "forbidden"
CLOSING = "shutting_down"


class Problem(Exception):
    """An answer that is an error: a code for programs, a text for people, and an HTTP status."""

    def __init__(self, code: str, description: str, status: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.status = status
        self.headers = headers or {}

    def members(self, alias: str | None = None) -> dict[str, Any]:
        """Return the JSON object of the answer."""
        found: dict[str, Any] = {
            "error": self.code,
            "error_description": self.description,
            "status_code": self.status,
        }
        if alias is not None:
            found["alias"] = alias
        return found

    def text(self, alias: str | None = None) -> str:
        """Return the answer as JSON."""
        return json.dumps(self.members(alias), ensure_ascii=False)


class Forbidden(UpdateFailed, UnsupportedQuery):
    """The operator of the broker does not allow it."""

    condition = "FORBIDDEN"


def problem_of(error: EvergraphError, code: str = QUERY) -> Problem:
    """Word an error of Evergraph; ``code`` is for what the request itself is not to blame for."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Forbidden):
            return Problem(FORBIDDEN, str(error), 403)
        cause = cause.__cause__
    match error:
        case SyntaxProblem():
            return Problem(PARSING, str(error), 400)
        case UnsupportedQuery() | StateLimit() | UsageError() | BlankNodeRefused():
            return Problem(PROTOCOL, str(error), 400)
        case EndpointError():
            return Problem(code, str(error), 502)
        case UpdateFailed() | QueryFailed() | StoreError():
            return Problem(code, str(error), 500)
        case _:
            return Problem(code, str(error), 500)
