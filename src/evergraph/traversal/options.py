"""What a traversal may use, and what it may not."""

from dataclasses import dataclass, field, fields

from evergraph.errors import UsageError


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a traversal. What they keep out is listed as skipped."""

    documents: int = 10_000
    """Addresses that are asked."""
    depth: int = 20
    """Links from a seed; 0 is the seeds alone."""
    document_bytes: int = 20_000_000
    """The size of one document, decompressed."""
    bytes: int = 1_000_000_000
    """The size of all documents together."""
    seconds: float | None = 3_600.0
    """The time of the whole traversal; none with ``follow`` unless it is given."""
    per_host: int = 10_000
    """Addresses that are asked at one host."""
    known: int = 1_000_000
    """Addresses that are listed at all; links beyond are only counted."""
    entries: int | None = None
    """Entries of state that the view may need."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None and value < 0:
                raise UsageError(f"a limit cannot be below 0: {one.name} is {value}")


@dataclass(frozen=True, slots=True)
class Manners:
    """How servers are treated."""

    concurrency: int = 16
    """Requests at a time, over all hosts."""
    per_host: int = 4
    """Requests at a time at one host."""
    delay: float = 0.0
    """Seconds between the starts of two requests at one host; robots.txt may ask for more."""
    timeout: float = 30.0
    """Seconds until a request is given up."""
    redirects: int = 10
    retries: int = 3
    """How often a request is repeated after 429, 503 or a broken connection."""
    longest_wait: float = 60.0
    """Seconds of Retry-After that are waited for; a server that asks for more is given up."""
    robots: bool = True
    """Whether robots.txt counts."""
    allowed: frozenset[str] = field(default_factory=frozenset)
    """Hosts (``HOST`` or ``HOST:PORT``) that may be at loopback, private or link-local addresses."""
    agent: str = "evergraph (Linked Data traversal)"

    def __post_init__(self) -> None:
        for name in ("concurrency", "per_host"):
            if getattr(self, name) < 1:
                raise UsageError(f"at least one request at a time is needed: {name} is {getattr(self, name)}")
        for name in ("delay", "timeout", "redirects", "retries", "longest_wait"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} cannot be below 0: it is {getattr(self, name)}")
