"""Changes for replicas, in order and each once: from a folder, a file or a server, once or as they come.

A source that is not what it was when its changes were taken in is an error: a file that came late, before the position,
would be lost otherwise. A damaged change stops the replication before anything of it is in a target; it goes on from
there when the change is mended. With ``skip_damaged`` it is set aside, and reported.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from evergraph.delta import Request
from evergraph.errors import DataError, EmptySource, EvergraphError, StoreError, SyntaxProblem
from evergraph.files import is_address
from evergraph.ports import Source, SourceChange
from evergraph.sources import ChangesetSource, open_source, refuse_changed
from evergraph.sources.feeds.listing import is_settled, is_whole
from evergraph.sources.http import HttpChangesets
from evergraph.sources.wikidata import WikidataSource
from evergraph.terms import NamedNode

_SETTLE = 10.0
"""Seconds after which a file that does not change counts as written to its end."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source is read.

    :param follow: go on when all changes have been read, and look for more every ``poll`` seconds.
    :param skip_damaged: set changes aside that cannot be read, and tell ``report`` which.
    :param predicates: those of the triples that can matter; others are left out while files are read. None: all can.
    """

    place: str
    follow: bool = False
    poll: float = 5.0
    settle: float = _SETTLE
    skip_damaged: bool = False
    report: Callable[[str], None] = print
    pause: float = 0.5
    predicates: frozenset[NamedNode] | None = None

    @property
    def is_listed(self) -> bool:
        """Tell whether changes are files that are there, and not a stream on which the next may be long in coming."""
        return is_address(self.place) or Path(self.place).is_dir() or Path(self.place).is_file()

    def check(self) -> None:
        """Refuse what is no source, before anything is begun."""
        if not is_address(self.place):
            try:
                self.open()
            except EmptySource:
                if not self.follow:
                    raise

    def open(self) -> Source:
        """Look at what is there now."""
        source = open_source(self.place, clears=True)
        if isinstance(source, ChangesetSource):
            source = replace(source, predicates=self.predicates)
        if self.follow and isinstance(source, ChangesetSource):
            return self._arrived(source)
        if self.follow and isinstance(source, WikidataSource):
            return replace(source, grows=True)
        return source

    def _arrived(self, source: ChangesetSource) -> ChangesetSource:
        """Leave out what may still be on its way: files that are not whole, and half changes at the end."""
        count = 0
        for changeset in source.changesets:
            files = list(changeset.files.values())
            last = count + 1 == len(source.changesets)
            if last and len(files) < 2 and not all(is_settled(file, self.settle) for file in files):
                break
            if not all(is_whole(file, self.settle) for file in files):
                break
            count += 1
        return replace(source, changesets=source.changesets[:count])

    def changes(self, position: int, place: str | None, idle: Callable[[], None]) -> Iterator[SourceChange]:
        """Iterate over the changes after a position; ``idle`` is called when all have been read that can be."""
        while True:
            try:
                for change in self._present(position, place):
                    yield change
                    position, place = change.sequence, change.where
            except EvergraphError:
                idle()
                raise
            idle()
            if not self.follow:
                return
            time.sleep(self.poll)

    def _present(self, position: int, place: str | None) -> Iterator[SourceChange]:
        """Iterate over what is there now."""
        if is_address(self.place):
            if position and place is None:
                raise StoreError(
                    f"the state does not say which change of {self.place} was the last",
                    hint="begin anew with another target",
                )
            yield from self._fetched(position, place or "")
            return
        try:
            source = self.open()
        except EmptySource:
            if not self.follow or position:
                raise
            return  # what will be there is not known yet
        if place is not None and self.is_listed and not place.startswith(_DAMAGED):
            refuse_changed(source, self.place, position, place)
        yield from self._read(source, position)

    def _fetched(self, position: int, place: str) -> Iterator[SourceChange]:
        with HttpChangesets(self.place, pause=self.pause) as source:
            for sequence, pending in enumerate(source.pending(place.removeprefix(_DAMAGED)), position + 1):
                try:
                    request, cleared = pending.read(self.predicates)
                    where = pending.name
                except (DataError, SyntaxProblem) as error:
                    if not self.skip_damaged:
                        raise _stopped(error, sequence - 1) from error
                    self.report(f"change {sequence} is set aside: {error.message}")
                    request, cleared, where = Request(), frozenset(), _DAMAGED + pending.name
                yield SourceChange(sequence, request, where, cleared)

    def _read(self, source: Source, position: int) -> Iterator[SourceChange]:
        while True:
            changes = source.changes(after=position)
            try:
                for change in changes:
                    yield change
                    position = change.sequence
                return
            except (DataError, SyntaxProblem) as error:
                if not self.skip_damaged or not isinstance(source, ChangesetSource):
                    raise _stopped(error, position) from error
                self.report(f"change {position + 1} is set aside: {error.message}")
            position += 1
            yield SourceChange(position, Request(), _DAMAGED + source.changesets[position - 1].where)


_DAMAGED = "set aside: "


def _stopped(error: EvergraphError, position: int) -> EvergraphError:
    hint = f"{error.hint}; " if error.hint else ""
    hint += f"{position} changes are in the target: mend the file and run again, or set it aside with --skip-damaged"
    return DataError(error.message, hint=hint)
