"""RDF Patch as a source: a file, standard input, or a folder of files in the order of their names."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Self

from evergraph.files import STANDARD_STREAM, AnyPath, open_input
from evergraph.patch import RawPatch, Tail, scan_patches
from evergraph.ports import SourceChange
from evergraph.sources.folders import visible_files

ENDINGS = (".rdfp", ".rdfpatch", ".patch")
"""What patch files are called; each may be followed by ``.gz``."""


def is_patch(path: AnyPath) -> bool:
    """Tell by its name whether a file is an RDF Patch."""
    return str(path).removesuffix(".gz").endswith(ENDINGS)


@dataclass(frozen=True, slots=True)
class PatchSource:
    """The changes of patch files, one after the other. Each file must be complete unless ``tail`` is ``"ignore"``."""

    files: tuple[AnyPath, ...]
    tail: Tail = "error"

    @classmethod
    def find(cls, folder: Path) -> Self | None:
        """Find the patches of a folder, not of folders in it; None where there are none."""
        files = sorted(path for path in visible_files(folder) if is_patch(path))
        return cls(tuple(files)) if files else None

    def changes(self, after: int = 0) -> Iterator[SourceChange]:
        """Iterate over the changes; those up to ``after`` are read but not parsed."""
        sequence = count(1)
        for file in self.files:
            for raw in self._scan(file):
                number = next(sequence)
                if number > after:
                    yield SourceChange(number, raw.parse().request, f"{raw.where}:{raw.line}")

    def place(self, sequence: int) -> str | None:
        """Name the place of a change: its file, and the line."""
        raw = next(islice((raw for file in self.files for raw in self._scan(file)), sequence - 1, None), None)
        return None if raw is None else f"{raw.where}:{raw.line}"

    def _scan(self, file: AnyPath) -> Iterator[RawPatch]:
        where = "standard input" if file == STANDARD_STREAM else str(file)
        with open_input(file) as stream:
            yield from scan_patches(stream, where, tail=self.tail)
