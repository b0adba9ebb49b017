"""Changeset folders as DBpedia Live publishes them.

A change is one or more files, ``NNNNNN.clear.nt``, ``.removed.nt``, ``.added.nt`` and ``.reinserted.nt``, which count
in this order; N-Triples or N-Quads, with or without ``.gz``, at any depth (usually ``YYYY/MM/DD/HH/``). Folders come in
the order of their names and changes of one folder in the order of their numbers; gaps are normal. Blank nodes keep
their labels, which are identifiers here.

``clear`` removes every triple of its subjects, whatever there is. Only those who know what is there can do that; they
open the source with ``clears``. For them, a file ``lastPublishedFile.txt`` at the top (``2015-06-01-12-000007``) names
the last change that is complete: what comes after it is not read yet. It may be ahead of the files.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self, TypeAlias

from evergraph.delta import Delta, Request
from evergraph.errors import DataError, UsageError
from evergraph.patch import removed_and_added
from evergraph.ports import SourceChange, Subject
from evergraph.rdfio import rdf_ending, read_quads, write_quads
from evergraph.sources.folders import listed, make_folder, visible_files
from evergraph.terms import DEFAULT_GRAPH, NamedNode, Quad

KINDS = ("clear", "removed", "added", "reinserted")
"""The kinds of files, in the order in which they count."""
LAST_PUBLISHED = "lastPublishedFile.txt"

_NAME = re.compile(rf"(?P<number>[0-9]+)\.(?P<kind>{'|'.join(KINDS)})\.(?:nt|nq)(?:\.gz)?")
_LOOKS_LIKE_ONE = re.compile(rf".*\.(?:{'|'.join(KINDS)})\.(?:nt|nq)(?:\.gz)?")
_PUBLISHED = re.compile(r"(?P<folders>(?:[^-/\s]+[-/])*)(?P<number>[0-9]+)(?:\.[a-z.]*)?")

Place: TypeAlias = tuple[tuple[str, ...], int, str]
"""What orders changesets: the folders that one is in, its number, and the number as it is written."""


@dataclass(frozen=True, slots=True)
class Changeset:
    """The files of one change, by kind."""

    files: Mapping[str, Path]

    @property
    def where(self) -> str:
        """The names of the files."""
        return ", ".join(str(path) for path in self.files.values())

    def read(self, predicates: frozenset[NamedNode] | None = None) -> Request:
        """Read what is removed, and what is added or inserted again: all of it, or what has some ``predicates``."""
        removed, added, again = (self._quads(kind, predicates) for kind in ("removed", "added", "reinserted"))
        return Request(removed=removed, added=added | again if again else added)

    def cleared(self) -> frozenset[Subject]:
        """Read the subjects whose triples all go."""
        return frozenset(quad.subject for quad in self._quads("clear"))

    def check(self) -> None:
        """Read everything, in the order in which a source does, and keep nothing: what is wrong is raised."""
        self.read(frozenset())
        self.cleared()

    def _quads(self, kind: str, predicates: frozenset[NamedNode] | None = None) -> frozenset[Quad]:
        path = self.files.get(kind)
        return with_predicates(read_quads(path, rename_blank_nodes=False) if path else (), predicates)


def with_predicates(quads: Iterable[Quad], predicates: frozenset[NamedNode] | None) -> frozenset[Quad]:
    """Keep the quads with some predicates; None is all. The others are parsed too, so that no damage is overlooked."""
    if predicates is None:
        return frozenset(quads)
    return frozenset([quad for quad in quads if quad.predicate in predicates])


@dataclass(frozen=True, slots=True)
class ChangesetSource:
    """The changes of a changeset folder; with ``predicates``, only the triples that have one of them."""

    changesets: tuple[Changeset, ...]
    predicates: frozenset[NamedNode] | None = None

    @classmethod
    def find(cls, folder: Path, *, clears: bool = False) -> Self | None:
        """Find the changesets of a folder; None where there are none. Data files that fit nowhere are an error."""
        groups = group_changesets(list(visible_files(folder, recursive=True)), folder, clears=clears)
        last = last_published(folder) if clears else None
        if groups and last is not None:
            groups = [(place, group) for place, group in groups if place[:2] <= last]
        return cls(tuple(Changeset(group) for _, group in groups)) if groups or last is not None else None

    def changes(self, after: int = 0) -> Iterator[SourceChange]:
        """Iterate over the changes; those up to ``after`` are not opened."""
        for sequence, changeset in islice(enumerate(self.changesets, 1), after, None):
            yield SourceChange(sequence, changeset.read(self.predicates), changeset.where, changeset.cleared())

    def place(self, sequence: int) -> str | None:
        """Name the files of a change."""
        return self.changesets[sequence - 1].where if sequence <= len(self.changesets) else None


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


def _refuse(candidates: list[Path], misfits: list[Path], clears: bool) -> None:
    clearing = [] if clears else [path for path in candidates if ".clear." in path.name]
    if clearing:
        raise DataError(
            f"changesets of a kind that is not supported: {listed(clearing)}",
            hint="'clear' needs to know what is there: use evergraph replicate, or express it as 'removed'",
        )
    if misfits:
        raise DataError(
            f"data files among changesets that are no changesets: {listed(misfits)}",
            hint="name them NNNNNN.removed.nt or NNNNNN.added.nt (.nq, .gz allowed), or move them elsewhere",
        )


def parse_published(text: str, where: str) -> tuple[tuple[str, ...], int]:
    """Read the place of a change as ``lastPublishedFile.txt`` has it: with dashes or with slashes."""
    found = _PUBLISHED.fullmatch(text.strip())
    if not found:
        raise DataError(
            f"{where}: {text.strip()[:40]!r} is not the place of a changeset",
            hint="it should look like 2015-06-01-12-000007",
        )
    return tuple(re.split("[-/]", found["folders"])[:-1]), int(found["number"])


def last_published(folder: Path) -> tuple[tuple[str, ...], int] | None:
    """Read the place of the last change that is complete; None if nobody says so."""
    path = folder / LAST_PUBLISHED
    try:
        text = path.read_text()
        return parse_published(text, str(path)) if text.strip() else None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}", hint="mend it, or remove it") from error


def kind_of(name: str) -> tuple[int, str] | None:
    """Tell number and kind of a changeset file by its name; None if it is no such file."""
    found = _NAME.fullmatch(name)
    return (int(found["number"]), found["kind"]) if found else None


def group_changesets(
    files: list[Path], folder: Path, *, clears: bool = False
) -> list[tuple[Place, Mapping[str, Path]]]:
    """Put the files of each change together, in the order of the changes. Data files that fit nowhere are an error."""
    candidates = [path for path in files if _LOOKS_LIKE_ONE.fullmatch(path.name)]
    if not candidates:
        return []
    _refuse(candidates, [path for path in files if rdf_ending(path) and not _NAME.fullmatch(path.name)], clears)
    groups: dict[Place, dict[str, Path]] = {}
    named = [(name, path) for path in candidates if (name := _NAME.fullmatch(path.name))]
    for name, path in sorted(named, key=lambda one: (KINDS.index(one[0]["kind"]), one[1].name)):
        place = (path.relative_to(folder).parent.parts, int(name["number"]), name["number"])
        group = groups.setdefault(place, {})
        if name["kind"] in group:
            twice = [group[name["kind"]], path]
            raise DataError(f"a changeset has two files of one kind: {listed(twice)}", hint="remove one of them")
        group[name["kind"]] = path
    return sorted(groups.items())
