"""Listings of folders that are asked for again and again, and when a file in them is written to its end."""

import os
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from evergraph.errors import DataError
from evergraph.files import is_gzip, open_input

_CHECKED_GZIP = 8 * 2**20
"""Compressed files up to this size are read to see whether they are whole; larger ones have to settle."""

_CLOCK = 2.0
"""Seconds within which the time of a folder may fail to show that it was changed again."""


class Listing:
    """The visible files of a folder. A folder in it is only read again after it has changed."""

    def __init__(self, root: Path, *, recursive: bool) -> None:
        self._root = root
        self._recursive = recursive
        self._known: dict[Path, tuple[int, list[Path], list[Path]]] = {}
        self._files: list[Path] = []
        self._changed = True

    def files(self) -> list[Path]:
        """List the files, in no order; the same list as long as nothing changes."""
        seen: dict[Path, tuple[int, list[Path], list[Path]]] = {}
        self._changed = False
        try:
            self._walk(self._root, seen)
        except OSError as error:
            raise DataError(f"{self._root}: cannot be listed: {error.strerror}", hint="check the folder") from error
        if self._changed or len(seen) != len(self._known):
            self._files = [file for _, files, _ in seen.values() for file in files]
        self._known = seen
        return self._files

    def _walk(self, folder: Path, seen: dict[Path, tuple[int, list[Path], list[Path]]]) -> None:
        changed = folder.stat().st_mtime_ns
        known = self._known.get(folder)
        if known is None or known[0] != changed:
            files, folders = _entries(folder)
            settled = time.time() - changed / 1e9 > _CLOCK
            known = (changed if settled else -1, files, folders)
            self._changed = True
        seen[folder] = known
        if self._recursive:
            for inner in known[2]:
                with suppress(FileNotFoundError):
                    self._walk(inner, seen)


def _entries(folder: Path) -> tuple[list[Path], list[Path]]:
    files: list[Path] = []
    folders: list[Path] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                (folders if entry.is_dir() else files).append(folder / entry.name)
    return files, folders


def is_settled(path: Path, seconds: float) -> bool:
    """Tell whether a file has not changed for a while."""
    return time.time() - path.stat().st_mtime >= seconds


def is_whole(path: Path, settle: float) -> bool:
    """Tell whether a file is written to its end, as far as that can be seen.

    A plain file is, if it ends with a line break; a compressed one, if it can be decompressed. What cannot be seen, or
    looks unfinished, counts as finished when it has not changed for ``settle`` seconds: then it is read, and the error
    that this may give is the right one.
    """
    size = path.stat().st_size
    if size and (_decompresses(path, size) if is_gzip(path) else _ends_with_line_break(path)):
        return True
    return is_settled(path, settle)


def _ends_with_line_break(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"


def _decompresses(path: Path, size: int) -> bool:
    if size > _CHECKED_GZIP:
        return False
    try:
        with open_input(path) as stream:
            while stream.read(1 << 20):
                pass
    except DataError:
        return False
    return True


def fingerprint(files: Iterator[Path]) -> str:
    """Sum up names and sizes of files."""
    total = 0
    for file in files:
        total = zlib.crc32(f"{file.name}\0{file.stat().st_size}\0".encode(), total)
    return f"{total:08x}"
