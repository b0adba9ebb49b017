"""What was written to a remote endpoint and does not count yet: enough to take it back, also after a crash."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from evergraph.delta import Delta
from evergraph.errors import StoreError
from evergraph.files import sync_folder
from evergraph.patch import read_patches, transaction
from evergraph.terms import XSD, Literal, NamedNode

_INTEGER = NamedNode(XSD + "integer")


class Journal:
    """A list of deltas, in a file if there is one. A delta is recorded before it is sent.

    Each is kept with the sequence number that its change is to get. One that the log holds already counts: the process
    died between the two.

    :param settled: the number of the last change that counts.
    """

    def __init__(self, path: Path | None = None, settled: int = 0) -> None:
        self.path = path
        self._settled = settled
        self._deltas: list[Delta] = []
        if path and path.exists():
            with path.open("rb") as stream:
                patches = list(read_patches(stream, str(path), tail="ignore"))
            self._deltas = [
                Delta(inserted=patch.request.added, deleted=patch.request.removed)
                for patch in patches
                if int(getattr(patch.header.get("sequence"), "value", settled + 1)) > settled
            ]
            if not self._deltas:
                self._remove()

    def unsettled(self) -> Delta:
        """Return all recorded deltas as one."""
        total = Delta()
        for delta in self._deltas:
            total = total.then(delta)
        return total

    def record(self, delta: Delta) -> None:
        """Note a delta that is about to be sent."""
        if self.path:
            self._append(self.path, transaction(delta, {"sequence": self._number()}))
        self._deltas.append(delta)

    def _number(self) -> Literal:
        return Literal(str(self._settled + 1), datatype=_INTEGER)

    def _append(self, path: Path, data: bytes) -> None:
        size = path.stat().st_size if path.exists() else 0
        try:
            with path.open("ab") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):
                os.truncate(path, size)
            raise StoreError(
                f"cannot write the journal {path}: {error.strerror}",
                hint="free space or mend the permissions, then send the update again; it has not been applied",
            ) from error

    def forget_last(self) -> None:
        """Forget the delta that was recorded last: it was never sent."""
        remaining = self._deltas[:-1]
        self.clear()
        for delta in remaining:
            self.record(delta)

    def settle(self, sequence: int) -> None:
        """Forget everything: it is part of the change with this number, which counts."""
        self._settled = sequence
        self.clear()

    def clear(self) -> None:
        """Forget everything: it counts, or it was taken back."""
        if self._deltas:
            self._deltas.clear()
            self._remove()

    def _remove(self) -> None:
        if self.path:
            self.path.unlink(missing_ok=True)
            sync_folder(self.path.parent)


class FolderLock:
    """Keeps other processes away from a folder for as long as this one lives."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"cannot use the folder {folder}: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise StoreError(
                f"{folder} is in use by another process", hint="wait until that one is done, or stop it"
            ) from error

    def release(self) -> None:
        """Let others in."""
        os.close(self._file)
