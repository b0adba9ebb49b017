"""Where changes come from: the protocol that every source of changes fulfils."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from evergraph.delta import Request
from evergraph.terms import BlankNode, NamedNode, Quad, Triple

Subject: TypeAlias = NamedNode | BlankNode | Triple


class Forgotten(Protocol):
    """Something that goes with all its triples; which these are can only be told among those that are known."""

    def among(self, known: Mapping[Subject, Iterable[Quad]]) -> Iterable[Quad]:
        """Find what goes, among all triples that are known, by their subjects."""


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A requested change and its place in its source.

    ``sequence`` counts the changes of the source, 1 for the first; ``where`` names the files behind it, for messages.
    Everything said about the ``cleared`` subjects goes before the request, and so does what is ``forgotten``; only
    sources that are opened by somebody who can do that have such changes.
    """

    sequence: int
    request: Request
    where: str
    cleared: frozenset[Subject] = frozenset()
    forgotten: Forgotten | None = None


class Source(Protocol):
    """A finite or growing list of requested changes, which says the same every time it is asked."""

    def changes(self, after: int = 0) -> Iterator[SourceChange]:
        """Iterate over the changes with a sequence above ``after``; the others are not parsed if that is possible."""
        ...

    def place(self, sequence: int) -> str | None:
        """Name the files behind a change, as it does itself, as far as it is there: a source should only grow."""
        ...
