"""What a feed is: offsets, limits, and the pieces that a batch consists of."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from evergraph.errors import DataError, SyntaxProblem
from evergraph.terms import Quad

Offset: TypeAlias = dict[str, int | str]
"""A place in a feed, as JSON: ``sequence``, ``place``, ``present``, and what a kind of feed adds.

``clears`` tells that the batch which ends there begins with a change that clears something. ``damaged`` is there if the
batch was planned to do without changes that cannot be read (`set_aside`).
"""

REMOVED, ADDED = -1, 1
"""The weights of requested quads."""
CLEARED, FORGOTTEN = 0, 2
"""The weights of rows that are no quads: of their subject, or of the Wikidata entity that it is, everything goes first.

What that is can only be told where it is known what is there: a change with such rows is the first of its batch.
"""


@dataclass(frozen=True, slots=True)
class Limit:
    """How much one batch may hold; a single change may be larger, and then it is a batch of its own."""

    changes: int = 1_000
    bytes: int = 64 * 2**20

    def __post_init__(self) -> None:
        if self.changes < 1 or self.bytes < 1:
            raise ValueError("a batch holds at least one change")


ALL = Limit(changes=2**62, bytes=2**62)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a feed is read.

    :param follow: more is to come, so that what may still be on its way is left for later.
    :param settle: seconds after which a file that does not change counts as written to its end.
    :param poll: seconds between looks at a server for more.
    :param pause: seconds before a request to a server is repeated that failed; twice as long each time.
    :param begun: the sequence at the end of a batch that was begun before; it must be read exactly as it was then.
    :param skip_damaged: set changesets aside that cannot be read; to know which, each is read when it is planned.
    """

    follow: bool = False
    settle: float = 10.0
    poll: float = 5.0
    pause: float = 0.5
    begun: int = -1
    skip_damaged: bool = False


class Piece(Protocol):
    """A part of a batch that one task reads; it can be sent to another process."""

    @property
    def size(self) -> int:
        """About how many bytes there are to read."""

    def rows(self) -> Iterator[tuple[int, int, Quad]]:
        """Iterate over the requested rows: sequence of the change, weight, quad."""


class Feed(Protocol):
    """A change source that is read from offset to offset."""

    def start(self) -> Offset:
        """Return the offset before the first change."""

    def freeze(self) -> None:
        """From now on, pretend that nothing new comes."""

    def latest(self, start: Offset, limit: Limit) -> Offset:
        """Return the end of the next batch; ``start`` itself if there is none."""

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        """Return what a batch consists of."""


def set_aside(end: Offset) -> dict[int, str]:
    """Return what the batch that ends at an offset does without: numbers of changes, and what is wrong with each.

    This is settled when the batch is planned: a file that is mended after that does not change it.
    """
    found: dict[str, str] = json.loads(str(end.get("damaged", "{}")))
    return {int(number): problem for number, problem in found.items()}


def damage_found(read: Callable[[], object]) -> str:
    """Read a change, and tell what is wrong with it; empty if nothing is."""
    try:
        read()
    except (DataError, SyntaxProblem) as error:
        return error.message
    return ""
