"""Every error that Evergraph raises on purpose: a stable name, what went wrong, where, and what to do about it."""


class EvergraphError(Exception):
    """An error with a stable condition name, a message, and a hint that says what to do.

    ``str(error)`` is what a person reads; ``error.condition`` is what a program compares.
    """

    condition = "EVERGRAPH_ERROR"

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class UsageError(EvergraphError):
    """The caller asked for something that makes no sense; the command line exits with 2."""

    condition = "USAGE"


class SyntaxProblem(EvergraphError):
    """A text could not be parsed. ``line`` and ``column`` count from 1 and are 0 where the parser gave none."""

    condition = "SYNTAX"

    def __init__(
        self, message: str, *, where: str = "", line: int = 0, column: int = 0, text: str = "", hint: str = ""
    ) -> None:
        self.problem = message
        self.where = where
        self.line = line
        self.column = column
        place = ":".join(str(part) for part in (where, line, column) if part)
        message = f"{place}: {message}" if place else message
        super().__init__(message + _excerpt(text, line, column), hint=hint)

    def at(self, where: str, text: str) -> "SyntaxProblem":
        """Return the same problem with the name of the text, and the line that it is about."""
        return SyntaxProblem(self.problem, where=where, line=self.line, column=self.column, text=text, hint=self.hint)


def _excerpt(text: str, line: int, column: int, width: int = 100) -> str:
    """Show the line of a text that an error is about, with a mark under the column."""
    lines = text.splitlines()
    if not 0 < line <= len(lines) or column < 1:
        return ""
    start = max(0, column - width // 2)
    shown = lines[line - 1][start : start + width].replace("\t", " ")
    return f"\n  | {shown}\n  | {'^':>{column - start}}"


class UnsupportedQuery(EvergraphError):
    """A query asks for something that Evergraph does not do, and says so instead of answering wrongly."""

    condition = "UNSUPPORTED_QUERY"


class UnsupportedInterest(UnsupportedQuery):
    """An interest is not a connected pattern of triples with filters and optional parts."""

    condition = "UNSUPPORTED_INTEREST"


def nested_too_deeply() -> UnsupportedQuery:
    """Return what a query fails with that is too deep for Python's stack."""
    return UnsupportedQuery("the query is nested too deeply", hint="flatten brackets, groups and long chains.")


class StateLimit(EvergraphError):
    """A standing query needs more state than its limit allows; it is stopped, and the others go on."""

    condition = "STATE_LIMIT"


class ViewFailed(EvergraphError):
    """A standing query broke on a change, through a fault of Evergraph; it is stopped, and the others go on."""

    condition = "VIEW_FAILED"


class DataError(EvergraphError):
    """Input data is damaged or is not what its name says: truncated gzip, an unknown file ending, a wrong folder."""

    condition = "DATA"


class EmptySource(DataError):
    """A folder for changes holds none yet, so that nobody knows of which kind they will be."""


class SourceUnavailable(EvergraphError):
    """A source of changes on the network does not answer. That says nothing about what it has."""

    condition = "SOURCE_UNAVAILABLE"


class UpdateFailed(EvergraphError):
    """An operation of an update request failed; nothing of the request was applied."""

    condition = "UPDATE_FAILED"


class QueryFailed(EvergraphError):
    """A query was understood and could not be answered."""

    condition = "QUERY_FAILED"


class EndpointError(EvergraphError):
    """A remote SPARQL endpoint refused, did not answer, or answered with something unusable."""

    condition = "ENDPOINT"


class UncertainOutcome(EndpointError):
    """The connection broke during a write: the endpoint may hold all, some or none of it."""

    condition = "UNCERTAIN_OUTCOME"


class BlankNodeRefused(EvergraphError):
    """The request needs a blank node of a remote endpoint by name, which the SPARQL protocol cannot do."""

    condition = "BLANK_NODE_REFUSED"


class StoreError(EvergraphError):
    """The embedded store or its change log cannot be read or written."""

    condition = "STORE"


class ReadOnly(StoreError):
    """An update was sent to a database that was opened read-only."""

    condition = "READ_ONLY"


class TraversalFailed(EvergraphError):
    """None of the IRIs that a traversal starts from led to a document."""

    condition = "TRAVERSAL_FAILED"
