"""Where changes come from: the protocol that every source of changes fulfils."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from evergraph.delta import Request
from evergraph.terms import BlankNode, NamedNode, Triple

Subject: TypeAlias = NamedNode | BlankNode | Triple


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A requested change and its place in its source.

    ``sequence`` counts the changes of the source, 1 for the first; ``where`` names the files behind it, for messages.
    Everything said about the ``cleared`` subjects goes before the request; sources that can have some say so when they
    are opened.
    """

    sequence: int
    request: Request
    where: str
    cleared: frozenset[Subject] = frozenset()


class Source(Protocol):
    """A finite or growing list of requested changes, which says the same every time it is asked."""

    def changes(self, after: int = 0) -> Iterator[SourceChange]:
        """Iterate over the changes with a sequence above ``after``; the others are not parsed if that is possible."""
        ...
