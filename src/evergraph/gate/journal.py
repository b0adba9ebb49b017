"""What was written to a remote endpoint and does not count yet: enough to take it back, also after a crash."""

import os
from pathlib import Path

from evergraph.delta import Delta
from evergraph.errors import StoreError
from evergraph.files import sync_folder
from evergraph.patch import read_patches, transaction


class Journal:
    """A list of deltas, in a file if there is one. A delta is recorded before it is sent."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._deltas: list[Delta] = []
        if path and path.exists():
            with path.open("rb") as stream:
                requests = [patch.request for patch in read_patches(stream, str(path), tail="ignore")]
            self._deltas = [Delta(inserted=request.added, deleted=request.removed) for request in requests]

    def unsettled(self) -> Delta:
        """Return all recorded deltas as one."""
        total = Delta()
        for delta in self._deltas:
            total = total.then(delta)
        return total

    def record(self, delta: Delta) -> None:
        """Note a delta that is about to be sent."""
        if self._path:
            try:
                with self._path.open("ab") as out:
                    out.write(transaction(delta))
                    out.flush()
                    os.fsync(out.fileno())
            except OSError as error:
                raise StoreError(f"cannot write the journal {self._path}: {error.strerror}") from error
        self._deltas.append(delta)

    def clear(self) -> None:
        """Forget everything: it counts, or it was taken back."""
        if not self._deltas:
            return
        self._deltas.clear()
        if self._path:
            self._path.unlink(missing_ok=True)
            sync_folder(self._path.parent)
