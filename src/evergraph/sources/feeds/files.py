"""Feeds whose changes are files: changeset folders and folders of versions.

While a folder is followed, a change counts as arrived when all its files are whole (`listing.is_whole`) and no further
file of it is to be expected: it has both halves, or a later change is there, or it has not changed for the time to
settle. Of a folder that is read once, everything counts that is there.

A file that was read is not looked at again. What is noticed is a file that comes before the place that was reached, be
it a late change or the late half of one, unless as many files were taken away meanwhile.

A damaged changeset is found when it is read; or when it is planned, if it is to be set aside: as a whole, and whatever
becomes of its files after that.
"""

import json
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergraph.errors import DataError
from evergraph.rdfio import read_quads
from evergraph.sources.changesets import Changeset, group_changesets, kind_of, last_published
from evergraph.sources.feeds.listing import Listing, fingerprint, is_settled, is_whole
from evergraph.sources.feeds.model import (
    ADDED,
    CLEARED,
    REMOVED,
    Limit,
    Offset,
    Piece,
    Settings,
    damage_found,
    set_aside,
)
from evergraph.sources.folders import listed
from evergraph.sources.versions import select_versions
from evergraph.terms import Quad

WEIGHTS = {"clear": CLEARED, "removed": REMOVED, "added": ADDED, "reinserted": ADDED}
"""What the kinds of files of a changeset request."""


@dataclass(frozen=True, slots=True)
class Item:
    """The files of one change: its name in offsets, what orders it, whether none of its files can be missing, and
    whether it clears something.
    """

    place: str
    key: Any
    files: tuple[Path, ...]
    whole: bool
    clears: bool = False


@dataclass(frozen=True, slots=True)
class FilePiece:
    """One file: all its quads are requested to come, or to go; or its subjects are cleared."""

    sequence: int
    weight: int
    file: Path

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self.file.stat().st_size

    def rows(self) -> Iterator[tuple[int, int, Quad]]:
        """Read the file."""
        for quad in read_quads(self.file, rename_blank_nodes=False):
            yield self.sequence, self.weight, quad


class FileFeed(ABC):
    """A feed over files in an order that their names give."""

    def __init__(self, root: Path, settings: Settings, *, recursive: bool) -> None:
        self._root = root
        self._settings = settings
        self._listing = Listing(root, recursive=recursive)
        self._frozen: list[Item] | None = None
        self._before: set[Path] = set()
        self._listed: list[Path] | None = None
        self._grouped: list[Item] = []
        self._checked: tuple[list[Item], int | str, int] = ([], "", 0)

    @abstractmethod
    def _group(self, files: list[Path]) -> list[Item]:
        """Put files together to changes, in order."""

    @abstractmethod
    def _key(self, place: str) -> Any:
        """Return what orders a place."""

    @abstractmethod
    def _pieces(self, sequence: int, item: Item, before: Item | None) -> Iterator[Piece]:
        """Return what is to be read for one change."""

    def _damage(self, item: Item) -> str:
        """Tell what is wrong with a change that is to be set aside; empty if it is to be read."""
        return ""

    def start(self) -> Offset:
        """Return the offset before the first change."""
        return {"sequence": 0, "place": "", "present": 0, "digest": "", "clears": 0}

    def freeze(self) -> None:
        """Keep to what is there now."""
        self._frozen = self._items()

    def _items(self) -> list[Item]:
        if self._frozen is not None:
            return self._frozen
        files = self._listing.files()
        if files is not self._listed:
            self._listed, self._grouped = files, self._group(files)
        return self._grouped

    def _split(self, items: list[Item], place: int | str) -> int:
        if not place:
            return 0
        return bisect_right(items, self._key(str(place)), key=lambda item: item.key)

    def latest(self, start: Offset, limit: Limit) -> Offset:
        """Return the end of the next batch."""
        items = self._items()
        done = self._split(items, start["place"])
        if self._checked[0] is not items or self._checked[1] != start["place"]:
            self._checked = items, start["place"], self._refuse_late(items[:done], start)
        present, published = self._checked[2], self._published(items)
        if published < done:
            raise DataError(
                f"{self._root} has fewer changes than have been taken in ({start['sequence']})",
                hint="keep the files of changes and what says how many are published, or begin anew",
            )
        taken: list[Item] = []
        total = 0
        for position in range(done, published):
            item = items[position]
            if self._settings.follow and not self._arrived(item, last=position + 1 == len(items)):
                break
            total += sum(file.stat().st_size for file in item.files)
            if taken and (len(taken) == limit.changes or total > limit.bytes or item.clears):
                break
            taken.append(item)
        return self._after(start, taken, present) if taken else start

    def _after(self, start: Offset, taken: list[Item], present: int) -> Offset:
        """Return the offset after some changes; damage is looked for now, if it is not for the reader to tell."""
        numbered = _numbered(start, taken)
        damaged = {number: problem for number, item in numbered.items() if (problem := self._damage(item))}
        whole = [item for number, item in numbered.items() if number not in damaged]
        end: Offset = {
            "sequence": int(start["sequence"]) + len(taken),
            "place": taken[-1].place,
            "present": present + sum(len(item.files) for item in taken),
            "digest": _digest(whole),
            "clears": int(taken[0].clears and taken[0] in whole),
        }
        return {**end, "damaged": json.dumps(damaged)} if self._settings.skip_damaged else end

    def _published(self, items: list[Item]) -> int:
        """Count the changes that may be read."""
        return len(items)

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        """Return the files of a batch, without those of changes that are set aside."""
        items = self._items()
        first, last = self._split(items, start["place"]), self._split(items, end["place"])
        batch = items[first:last]
        if len(batch) != int(end["sequence"]) - int(start["sequence"]):
            raise DataError(
                f"{self._root}: {len(batch)} changes up to {end['place']} where there were "
                f"{int(end['sequence']) - int(start['sequence'])}: files came late or are gone",
                hint="let files arrive in the order of their names, and keep them until they have been read",
            )
        numbered = _numbered(start, batch)
        aside = set_aside(end)
        self._refuse_changed([item for number, item in numbered.items() if number not in aside], batch[:1], end)
        before = items[first - 1] if first else None
        if before and before.place != start["place"]:
            before = None
        pieces: list[Piece] = []
        for sequence, item in numbered.items():
            if sequence not in aside:
                pieces += self._pieces(sequence, item, before)
            before = item
        return pieces

    def _refuse_changed(self, whole: list[Item], first: list[Item], end: Offset) -> None:
        """See that the changes of a batch which are read are what they were when it was planned, or begun."""
        if [item for item in whole if item.clears] != (first if end.get("clears") else []):
            raise DataError(
                f"{self._root}: a change up to {end['place']} clears, and did not when the batch was planned",
                hint="give the file a later name: its change is being read",
            )
        if self._settings.begun == end["sequence"] and _digest(whole) != end["digest"]:
            raise DataError(
                f"{self._root}: files up to {end['place']} are not what they were when the batch was begun",
                hint="put the files back as they were: a part of the batch has been written already",
            )

    def _arrived(self, item: Item, *, last: bool) -> bool:
        settle = self._settings.settle
        expected = last and not item.whole
        if expected and not all(is_settled(file, settle) for file in item.files):
            return False
        return all(is_whole(file, settle) for file in item.files)

    def _refuse_late(self, done: Sequence[Item], start: Offset) -> int:
        """Count the files up to an offset; more than there were are an error."""
        files = {file for item in done for file in item.files}
        late, self._before = files - self._before, files
        if len(files) <= int(start["present"]):
            return len(files)
        if len(late) == len(files):  # nothing is known of before: the newest must be it
            late = {max(files, key=lambda file: file.stat().st_mtime)}
        raise DataError(
            f"{self._root}: {listed(sorted(late))} came late: everything up to {start['place']} has been read already",
            hint="give the change a later name, or begin anew with an empty state",
        )


class ChangesetFeed(FileFeed):
    """The changes of a changeset folder."""

    def __init__(self, root: Path, settings: Settings) -> None:
        super().__init__(root, settings, recursive=True)

    def _group(self, files: list[Path]) -> list[Item]:
        return [
            Item("/".join([*place[0], place[2]]), place, tuple(group.values()), _is_whole(group), "clear" in group)
            for place, group in group_changesets(files, self._root, clears=True)
        ]

    def _damage(self, item: Item) -> str:
        return damage_found(Changeset(_by_kind(item)).check) if self._settings.skip_damaged else ""

    def _published(self, items: list[Item]) -> int:
        last = last_published(self._root)
        return len(items) if last is None else bisect_right(items, last, key=lambda item: item.key[:2])

    def _key(self, place: str) -> Any:
        *folders, numeral = place.split("/")
        return tuple(folders), int(numeral), numeral

    def _pieces(self, sequence: int, item: Item, before: Item | None) -> Iterator[Piece]:
        for kind, file in _by_kind(item).items():
            yield FilePiece(sequence, WEIGHTS[kind], file)


class VersionFeed(FileFeed):
    """The differences between versions: the version before is requested to go, and then the next one to come.

    Removals count before additions, so that what is in both stays. Nothing has to be compared here, and no version has
    to fit into memory.
    """

    def __init__(self, root: Path, settings: Settings) -> None:
        super().__init__(root, settings, recursive=False)

    def _group(self, files: list[Path]) -> list[Item]:
        return [Item(file.name, file.name, (file,), whole=True) for file in select_versions(files)]

    def _key(self, place: str) -> Any:
        return place

    def _pieces(self, sequence: int, item: Item, before: Item | None) -> Iterator[Piece]:
        if sequence > 1:
            if before is None:
                raise DataError(
                    f"{self._root}: the version before {item.place} is gone", hint="keep the version that was read last"
                )
            yield FilePiece(sequence, REMOVED, before.files[0])
        yield FilePiece(sequence, ADDED, item.files[0])


def _is_whole(group: Mapping[str, Path]) -> bool:
    return {"removed", "added"} <= group.keys()


def _by_kind(item: Item) -> dict[str, Path]:
    return {named[1]: file for file in item.files if (named := kind_of(file.name))}


def _numbered(start: Offset, items: Sequence[Item]) -> dict[int, Item]:
    """Number the changes of a batch."""
    return dict(enumerate(items, int(start["sequence"]) + 1))


def _digest(items: Sequence[Item]) -> str:
    return fingerprint(file for item in items for file in item.files)
