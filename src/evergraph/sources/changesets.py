"""Changeset folders as DBpedia Live publishes them.

A change is one or two files, ``NNNNNN.removed.nt`` and ``NNNNNN.added.nt``, N-Triples or N-Quads, with or without
``.gz``, at any depth (usually ``YYYY/MM/DD/HH/``). Folders come in the order of their names and changes of one folder
in the order of their numbers; gaps are normal. Blank nodes keep their labels, which are identifiers here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self, TypeAlias

from evergraph.delta import Delta, Request
from evergraph.errors import DataError, UsageError
from evergraph.patch import removed_and_added
from evergraph.ports import SourceChange
from evergraph.rdfio import rdf_ending, read_quads, write_quads
from evergraph.sources.folders import listed, make_folder, visible_files
from evergraph.terms import DEFAULT_GRAPH, Quad

_NAME = re.compile(r"(?P<number>[0-9]+)\.(?P<kind>removed|added)\.(?:nt|nq)(?:\.gz)?")
_LOOKS_LIKE_ONE = re.compile(r".*\.(?:removed|added|clear|reinserted)\.(?:nt|nq)(?:\.gz)?")
_UNSUPPORTED_KINDS = re.compile(r".*\.(?:clear|reinserted)\..*")

Place: TypeAlias = tuple[tuple[str, ...], int, str]
"""What orders changesets: the folders that one is in, its number, and the number as it is written."""


@dataclass(frozen=True, slots=True)
class Changeset:
    """The files of one change, by kind: ``removed``, ``added`` or both."""

    files: Mapping[str, Path]

    @property
    def where(self) -> str:
        """The names of the files."""
        return ", ".join(str(path) for path in self.files.values())

    def read(self) -> Request:
        """Read both files."""
        return Request(removed=self._quads("removed"), added=self._quads("added"))

    def _quads(self, kind: str) -> frozenset[Quad]:
        path = self.files.get(kind)
        return frozenset(read_quads(path, rename_blank_nodes=False) if path else ())


@dataclass(frozen=True, slots=True)
class ChangesetSource:
    """The changes of a changeset folder."""

    changesets: tuple[Changeset, ...]

    @classmethod
    def find(cls, folder: Path) -> Self | None:
        """Find the changesets of a folder; None where there are none. Data files that fit nowhere are an error."""
        groups = group_changesets(list(visible_files(folder, recursive=True)), folder)
        return cls(tuple(Changeset(group) for _, group in groups)) if groups else None

    def changes(self, after: int = 0) -> Iterator[SourceChange]:
        """Iterate over the changes; those up to ``after`` are not opened."""
        for sequence, changeset in islice(enumerate(self.changesets, 1), after, None):
            yield SourceChange(sequence, changeset.read(), changeset.where)


def write_changeset(folder: Path, number: int, change: Request | Delta, *, compress: bool = True) -> list[Path]:
    """Write a change to a folder and return its files; files that the number had before go away.

    A kind without quads gets no file, and N-Quads are written only where there are named graphs.
    """
    if number < 0:
        raise UsageError(f"a changeset cannot have the number {number}", hint="count from 1")
    make_folder(folder)
    written = []
    for kind, quads in zip(("removed", "added"), removed_and_added(change), strict=True):
        if quads:
            ending = "nt" if all(quad.graph_name == DEFAULT_GRAPH for quad in quads) else "nq"
            path = folder / f"{number:06}.{kind}.{ending}{'.gz' if compress else ''}"
            write_quads(path, quads)
            written.append(path)
    for path in folder.glob(f"{number:06}.*"):
        if path not in written and _NAME.fullmatch(path.name):
            path.unlink()
    return written


def _refuse(candidates: list[Path], misfits: list[Path]) -> None:
    unsupported = [path for path in candidates if _UNSUPPORTED_KINDS.fullmatch(path.name)]
    if unsupported:
        raise DataError(
            f"changesets of a kind that is not supported: {listed(unsupported)}",
            hint="'clear' and 'reinserted' files cannot be replayed yet; express them as 'removed' and 'added'",
        )
    if misfits:
        raise DataError(
            f"data files among changesets that are no changesets: {listed(misfits)}",
            hint="name them NNNNNN.removed.nt or NNNNNN.added.nt (.nq, .gz allowed), or move them elsewhere",
        )


def group_changesets(files: list[Path], folder: Path) -> list[tuple[Place, Mapping[str, Path]]]:
    """Put the files of each change together, in the order of the changes. Data files that fit nowhere are an error."""
    candidates = [path for path in files if _LOOKS_LIKE_ONE.fullmatch(path.name)]
    if not candidates:
        return []
    _refuse(candidates, [path for path in files if rdf_ending(path) and not _NAME.fullmatch(path.name)])
    groups: dict[Place, dict[str, Path]] = {}
    for path in sorted(candidates, key=lambda path: path.name, reverse=True):  # removed before added
        name = _NAME.fullmatch(path.name)
        assert name is not None
        place = (path.relative_to(folder).parent.parts, int(name["number"]), name["number"])
        group = groups.setdefault(place, {})
        if name["kind"] in group:
            twice = [group[name["kind"]], path]
            raise DataError(f"a changeset has two files of one kind: {listed(twice)}", hint="remove one of them")
        group[name["kind"]] = path
    return sorted(groups.items())
