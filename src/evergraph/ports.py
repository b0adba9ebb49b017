"""Where changes come from: the protocol that every source of changes fulfils."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from evergraph.delta import Request


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A requested change and its place in its source.

    ``sequence`` counts the changes of the source, 1 for the first; ``where`` names the files behind it, for messages.
    """

    sequence: int
    request: Request
    where: str


class Source(Protocol):
    """A finite or growing list of requested changes, which says the same every time it is asked."""

    def changes(self, after: int = 0) -> Iterator[SourceChange]:
        """Iterate over the changes with a sequence above ``after``; the others are not parsed if that is possible."""
        ...
