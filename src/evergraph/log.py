"""The change log: every change of a database as RDF Patch, in order, without gaps.

A folder of segments, each named after the sequence number of its first change (``000000000001.rdfp``). A change is one
``TX … TC`` with its number in a header row, and the time in another if it was noted. What a crash leaves unfinished at
the end of the last segment has no ``TC``; it never counted, and opening the log cuts it off.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from evergraph.delta import Change, Delta
from evergraph.errors import ReadOnly, StoreError, SyntaxProblem
from evergraph.files import sync_folder
from evergraph.patch import RawPatch, scan_patches, transaction
from evergraph.terms import XSD, Literal, NamedNode

_SEGMENT_BYTES = 64 * 2**20
_INTEGER, _MOMENT = NamedNode(XSD + "integer"), NamedNode(XSD + "dateTime")


class ChangeLog:
    """An append-only log with one writer and any number of readers.

    With ``sync`` a change is on the disk when `append` returns and survives a power failure; without it, it has left
    the process and survives a crash of the process.
    """

    def __init__(
        self, folder: Path, *, sync: bool = True, read_only: bool = False, segment_bytes: int = _SEGMENT_BYTES
    ) -> None:
        self.folder = folder
        self._sync = sync
        self._read_only = read_only
        self._segment_bytes = segment_bytes
        self._file: int | None = None
        self._size = 0
        self._size_before_last = 0
        if not read_only:
            self._guard(folder.mkdir, parents=True, exist_ok=True)
        self._last_before = 0
        self.last = self._find_end()
        """The sequence number of the last change; 0 if there is none."""

    # --- reading

    def read(self, after: int = 0) -> Iterator[Change]:
        """Read the changes after a sequence number."""
        for change, _ in self._scan(after):
            number = _number(change)
            if number > after:
                request = change.parse().request
                yield Change(number, Delta(inserted=request.added, deleted=request.removed), _time(change))

    def _scan(self, after: int) -> Iterator[tuple[RawPatch, Path]]:
        segments = self._segments()
        starts = [int(path.stem) for path in segments]
        first = max((place for place, start in enumerate(starts) if start <= after + 1), default=0)
        if segments and starts[first] > after + 1:
            raise StoreError(f"{self.folder}: the log begins with change {starts[0]}", hint="read from there")
        expected = starts[first] if segments else 1
        for segment in segments[first:]:
            for patch in self._patches(segment):
                if _number(patch) != expected:
                    raise StoreError(
                        f"the change log is damaged: {segment}:{patch.line}: change {expected} is missing",
                        hint="restore the file from a backup",
                    )
                expected += 1
                yield patch, segment

    def _patches(self, segment: Path) -> Iterator[RawPatch]:
        try:
            with segment.open("rb") as stream:
                yield from scan_patches(stream, str(segment), tail="ignore")
        except OSError as error:
            raise StoreError(f"{segment}: {error.strerror}") from error
        except SyntaxProblem as error:
            raise StoreError(
                f"the change log is damaged: {error.message}", hint="restore the file from a backup"
            ) from error

    def _segments(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]" * 12 + ".rdfp"))

    # --- writing

    def append(self, *changes: Change) -> None:
        """Write changes, with one wait for the disk. Each counts wholly or not at all, those before it with it."""
        for number, change in enumerate(changes, self.last + 1):
            if change.sequence != number:
                raise StoreError(f"change {change.sequence} cannot follow change {number - 1} in {self.folder}")
        data = b"".join(_entry(change) for change in changes)
        descriptor = self._segment_for(len(data), changes[0].sequence)
        try:
            _write_fully(descriptor, data)
            if self._sync:
                os.fdatasync(descriptor)
        except BaseException as error:
            self._cut_to_size()
            raise self._cannot_write(error) if isinstance(error, OSError) else error from error
        self._size_before_last, self._size = self._size, self._size + len(data)
        self._last_before, self.last = self.last, changes[-1].sequence

    def take_back(self) -> None:
        """Remove what was appended last, as if it had never been."""
        self._size = self._size_before_last
        self.last = self._last_before
        self._cut_to_size()

    def close(self) -> None:
        """Close the file that is written to."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _segment_for(self, length: int, sequence: int) -> int:
        if self._read_only:
            raise ReadOnly(f"the log {self.folder} is open read-only")
        if self._file is None and (segments := self._segments()):
            self._file = self._open_segment(segments[-1])
            self._guard(os.ftruncate, self._file, self._size)
        if self._file is None or (self._size and self._size + length > self._segment_bytes):
            self.close()
            self._file = self._open_segment(self.folder / f"{sequence:012}.rdfp")
            self._size = 0
            if self._sync:
                self._guard(sync_folder, self.folder)
        return self._file

    def _open_segment(self, path: Path) -> int:
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise self._cannot_write(error) from error

    def _find_end(self) -> int:
        """Find the last change, and cut off what follows it in the last segment."""
        segments = self._segments()
        if not segments:
            return 0
        last, end = int(segments[-1].stem) - 1, 0
        for patch, _ in self._scan(last):
            last, end = _number(patch), patch.end
        size = segments[-1].stat().st_size
        if end < size and not self._read_only:
            self._guard(os.truncate, segments[-1], end)
        self._size = self._size_before_last = end
        return last

    def _cut_to_size(self) -> None:
        """Cut off what does not count. If that fails, it is done when the segment is opened again for the next one."""
        assert self._file is not None
        try:
            os.ftruncate(self._file, self._size)
            if self._sync:
                os.fdatasync(self._file)
        except OSError:
            self.close()

    def _guard(self, call, *arguments, **options) -> None:  # type: ignore[no-untyped-def]
        try:
            call(*arguments, **options)
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> StoreError:
        return StoreError(
            f"cannot write the change log {self.folder}: {error.strerror}",
            hint="free space or mend the permissions, then send the update again; it has not been applied",
        )


def _entry(change: Change) -> bytes:
    header = {"sequence": Literal(str(change.sequence), datatype=_INTEGER)}
    if change.time is not None:
        moment = datetime.fromtimestamp(change.time, UTC).isoformat(timespec="milliseconds")
        header["time"] = Literal(moment.replace("+00:00", "Z"), datatype=_MOMENT)
    return transaction(change.delta, header)


def _time(patch: RawPatch) -> float | None:
    header = patch.header.get("time")
    try:
        return datetime.fromisoformat(header.value).timestamp() if isinstance(header, Literal) else None
    except ValueError:
        return None


def _number(patch: RawPatch) -> int:
    header = patch.header.get("sequence")
    if not isinstance(header, Literal) or not header.value.isdecimal():
        raise StoreError(
            f"the change log is damaged: {patch.where}:{patch.line}: a change without its sequence number",
            hint="restore the file from a backup",
        )
    return int(header.value)


def _write_fully(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
