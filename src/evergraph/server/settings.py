"""What an operator decides about a broker. Safe by default: loopback only, nothing fetched, all bounded."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    """How much anybody may ask for; 0 means no limit, where that is said."""

    request_bytes: int = 16 * 2**20
    message_bytes: int = 2**20
    """The largest WebSocket message that a client may send."""
    result_bytes: int = 256 * 2**20
    query_seconds: float = 60.0
    queries_at_once: int = 8
    queries_waiting: int = 64
    queries_left_behind: int = 8
    """How many queries may go on after their time without keeping others from their turns."""
    updates_waiting: int = 10_000
    batch: int = 256
    """How many updates may be written together, with one wait for the disk."""
    subscriptions_per_user: int = 10_000
    absent_per_user: int = 10_000
    """How many subscriptions whose connection is gone are kept for each user."""
    rows_per_subscription: int = 1_000_000
    """The largest first result of a subscription."""
    connections: int = 10_000
    replicas: int = 100
    """How many replicas may be registered."""
    linksets: int = 20
    """How many linksets may be registered."""
    requests_per_second: float = 5_000.0
    """For each user; 0 is no limit."""
    backlog: int = 1_000
    """How many notifications may wait for a slow reader before they are put together."""
    backlog_rows: int = 100_000
    """How many rows may wait for a slow reader before they are put together."""
    replayed_changes: int = 100_000
    """How many changes a subscriber may have missed, and still be told each of them."""
    feed_changes: int = 10_000
    """The largest number of changes in one answer of the change feed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about a broker but its data."""

    host: str = "127.0.0.1"
    port: int = 8000
    ws_port: int | None = None
    certificate: Path | None = None
    key: Path | None = None
    folder: Path | None = None
    """Where subscriptions, clients and the key of tokens are kept; None keeps them in memory."""
    require_tokens: bool = False
    registration: bool = True
    """Whether anybody who can reach the broker may register as a client."""
    identities: frozenset[str] = frozenset()
    """Who may register where not everybody may."""
    token_seconds: int = 3600
    origins: tuple[str, ...] = ()
    """Web origins that browsers may send requests from; ``*`` is all of them."""
    names: frozenset[str] = frozenset()
    """Names besides those of loopback that a broker on loopback is asked under, by a proxy for example."""
    load: bool = False
    """Whether LOAD may fetch documents, from public addresses and from allowed hosts."""
    hosts: frozenset[str] = frozenset()
    """Hosts that LOAD and SERVICE may reach, wherever their addresses are."""
    keep_seconds: float = 86_400.0
    """How long a subscription is kept whose connection is gone."""
    drain_seconds: float = 5.0
    jsap: Path | None = None
    limits: Limits = field(default_factory=Limits)
