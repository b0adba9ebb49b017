"""What every sink does, and the record of how far a file was written."""

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from evergraph.errors import DataError, StoreError
from evergraph.files import open_output
from evergraph.pipeline.outcomes import Outcome


class SinkWriter(Protocol):
    """Takes the changes of a view, batch by batch. Writing a batch again ends where writing it once ends."""

    def check(self) -> None:
        """Refuse a target that holds something already; nothing is written."""

    def begin(self) -> None:
        """Make the target empty and ready for the first batch; what is there is our own."""

    def write(self, outcome: Outcome, batch: int, sequence: int) -> None:
        """Write a batch; when this returns, it is there to stay. The first one holds all that there is."""

    def finish(self, batch: int) -> None:
        """The run ends well, after a batch."""

    def close(self) -> None:
        """Let go of files and connections."""


class PathSink:
    """What sinks with a path share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self) -> None:
        """A sink begins with nothing."""
        if self._path.exists() and not (self._path.is_dir() and not any(self._path.iterdir())):
            raise DataError(
                f"{self._path} is there already, and not from this pipeline",
                hint="remove it, or name another place for the sink; to begin anew, a pipeline needs new targets too",
            )

    def finish(self, batch: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def empty_folder(path: Path) -> None:
    """Make an empty folder, or empty the one that a first attempt left."""
    if path.is_dir():
        shutil.rmtree(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot create {path}: {error.strerror}", hint="choose another place") from error


def save_json(path: Path, content: object) -> None:
    """Write a small file, wholly or not at all."""
    with open_output(path) as out:
        out.write(json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n")


class AppendedFile:
    """A file that grows by one piece a batch. A ledger says where the last one begins, to write it again."""

    def __init__(self, path: Path, ledger: Path) -> None:
        self._path = path
        self._ledger = ledger

    def begin(self) -> None:
        """Make the file, empty."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(b"")
        except OSError as error:
            raise DataError(f"cannot write {self._path}: {error.strerror}", hint="choose another place") from error
        self._ledger.unlink(missing_ok=True)

    def append(self, batch: int, pieces: Iterable[bytes]) -> None:
        """Add the piece of a batch; of the same batch again, replace it."""
        start = self._start(batch)
        try:
            with self._path.open("r+b") as out:
                out.truncate(start)
                out.seek(start)
                out.writelines(pieces)
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise DataError(
                f"cannot write {self._path}: {error.strerror}", hint="free space or mend permissions, then run again"
            ) from error

    def _start(self, batch: int) -> int:
        size = self._path.stat().st_size if self._path.exists() else -1
        known = json.loads(self._ledger.read_text()) if self._ledger.exists() else {"batch": -1, "start": 0}
        if size < known["start"]:
            raise StoreError(
                f"{self._path} is shorter than what was written to it",
                hint="put it back, or begin anew with an empty state and new targets",
            )
        if known["batch"] == batch:
            return int(known["start"])
        save_json(self._ledger, {"batch": batch, "start": size})
        return size
