"""A folder of full versions of a dataset; the changes are the differences between them.

Versions are N-Triples or N-Quads files in the order of their names. The first change is from nothing to the first
version. Blank nodes keep their labels: a node that has another label in the next version counts as another node, so
let the versions be skolemised or written by something that keeps labels.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from evergraph.delta import Request
from evergraph.errors import DataError
from evergraph.ports import SourceChange
from evergraph.rdfio import rdf_ending, read_quads
from evergraph.sources.folders import listed, visible_files
from evergraph.terms import Quad

ENDINGS = (".nt", ".nq")
"""Syntaxes whose blank nodes all have labels, without which versions cannot be compared."""


@dataclass(frozen=True, slots=True)
class VersionSource:
    """The differences between versions. Memory holds two of them at most."""

    files: tuple[Path, ...]

    @classmethod
    def find(cls, folder: Path) -> Self | None:
        """Find the versions of a folder, not of folders in it; None where there are none."""
        files = select_versions(list(visible_files(folder)))
        return cls(tuple(files)) if files else None

    def changes(self, after: int = 0) -> Iterator[SourceChange]:
        """Iterate over the changes; of the versions up to ``after`` only the last is read."""
        if after >= len(self.files):
            return
        before = _read(self.files[after - 1]) if after else frozenset()
        for sequence, file in enumerate(self.files[after:], after + 1):
            now = _read(file)
            yield SourceChange(sequence, Request(removed=before - now, added=now - before), str(file))
            before = now

    def place(self, sequence: int) -> str | None:
        """Name a version."""
        return str(self.files[sequence - 1]) if sequence <= len(self.files) else None


def select_versions(files: list[Path]) -> list[Path]:
    """Return the versions among files, in order. Documents that cannot be one are an error."""
    documents = sorted(path for path in files if rdf_ending(path))
    versions = [path for path in documents if rdf_ending(path) in ENDINGS]
    if versions:
        _refuse_other_syntaxes([path for path in documents if rdf_ending(path) not in ENDINGS])
        _refuse_doubles(versions)
    return versions


def _read(file: Path) -> frozenset[Quad]:
    return frozenset(read_quads(file, rename_blank_nodes=False))


def _refuse_other_syntaxes(others: list[Path]) -> None:
    if others:
        raise DataError(
            f"versions in other syntaxes than N-Triples and N-Quads: {listed(others)}",
            hint="convert them to .nt or .nq with stable blank node labels, or move them elsewhere",
        )


def _refuse_doubles(files: list[Path]) -> None:
    seen: dict[str, Path] = {}
    for file in files:
        name = file.name.removesuffix(".gz")
        if name in seen:
            raise DataError(f"the same version twice: {listed([seen[name], file])}", hint="remove one of them")
        seen[name] = file
