"""Sinks for triples and quads in files: folders of changesets, and RDF Patch."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pyspark.sql import functions as sf

from evergraph.files import open_output
from evergraph.pipeline.outcomes import Outcome, lines, patch_row, statement
from evergraph.pipeline.sinks.base import AppendedFile, PathSink, empty_folder
from evergraph.sources.patches import is_patch

_GRAPH = 3


class ChangesetsWriter(PathSink):
    """A folder of changesets, named by the sequence at the end of the batch. A batch without effect has no file."""

    def __init__(self, path: Path, staging: Path, *, compress: bool) -> None:
        super().__init__(path)
        self._staging = staging
        self._compress = compress

    def begin(self) -> None:
        """Make the folder."""
        empty_folder(self._path)

    def write(self, outcome: Outcome, batch: int, sequence: int) -> None:
        """Write one file for what goes and one for what comes; each appears wholly or not at all."""
        ending = f"{'nq' if _has_named_graphs(outcome) else 'nt'}{'.gz' if self._compress else ''}"
        for kind, sign, count in (("removed", -1, outcome.removed), ("added", 1, outcome.added)):
            if count:
                with open_output(self._path / f"{sequence:06}.{kind}.{ending}") as out:
                    for line in lines(outcome, sign, statement, self._staging):
                        out.write(line + b"\n")


class PatchFolderWriter(PathSink):
    """A folder of patches, one for each batch that has an effect, named by its sequence."""

    def __init__(self, path: Path, staging: Path) -> None:
        super().__init__(path)
        self._staging = staging

    def begin(self) -> None:
        """Make the folder."""
        empty_folder(self._path)

    def write(self, outcome: Outcome, batch: int, sequence: int) -> None:
        """Write a file, which appears wholly or not at all."""
        if outcome:
            with open_output(self._path / f"{sequence:012}.rdfp") as out:
                out.writelines(patch(outcome, sequence, self._staging))


class PatchFileWriter(PathSink):
    """A patch file that grows. What a crash cuts off has no ``TC``, and is written again."""

    def __init__(self, path: Path, ledger: Path, staging: Path) -> None:
        super().__init__(path)
        self._file = AppendedFile(path, ledger)
        self._staging = staging

    def begin(self) -> None:
        """Make the file."""
        self._file.begin()

    def write(self, outcome: Outcome, batch: int, sequence: int) -> None:
        """Add a transaction."""
        if outcome:
            self._file.append(batch, patch(outcome, sequence, self._staging))


def patch_writer(path: Path, ledger: Path, staging: Path) -> PatchFileWriter | PatchFolderWriter:
    """Choose by the name: a file if it ends like a patch, else a folder."""
    return PatchFileWriter(path, ledger, staging) if is_patch(path) else PatchFolderWriter(path, staging)


def patch(outcome: Outcome, sequence: int, staging: Path) -> Iterator[bytes]:
    """Write an outcome as one transaction, with its sequence in a header."""
    yield f'H sequence "{sequence}"^^<http://www.w3.org/2001/XMLSchema#integer> .\nTX .\n'.encode()
    for operation, sign in (("D", -1), ("A", 1)):
        for line in lines(outcome, sign, partial(patch_row, operation), staging):
            yield line + b"\n"
    yield b"TC .\n"


def _has_named_graphs(outcome: Outcome) -> bool:
    """Tell whether N-Triples is not enough."""
    if len(outcome.columns) <= _GRAPH:
        return False
    graph = outcome.columns[_GRAPH]
    if outcome.rows is not None:
        return any(outcome.rows.column(graph).to_pylist())
    assert outcome.frame is not None
    return not outcome.frame.where(sf.col(graph) != "").isEmpty()
