"""Byte streams by name: gzip by ending, ``-`` for the standard streams, output that is there wholly or not at all."""

import contextlib
import gzip
import io
import os
import secrets
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from evergraph.errors import DataError

AnyPath: TypeAlias = str | os.PathLike[str]
STANDARD_STREAM = "-"
"""The path that means standard input or standard output."""

_CHUNK = 1 << 17


class _Guarded(io.RawIOBase):
    """A stream to read from, whose failures become `DataError` where they happen and so never blame other code."""

    def __init__(self, stream: io.BufferedIOBase, path: AnyPath, *, owned: bool = True) -> None:
        self._stream = stream
        self._path = os.fspath(path)
        self._owned = owned

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        try:
            return self._stream.readinto1(buffer)  # what there is: a reader of a live stream must not wait for more
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise _damaged(self._path, str(error)) from error
        except OSError as error:
            raise _unreadable(self._path, error) from error

    def close(self) -> None:
        if self._owned and not self.closed:
            self._stream.close()
        super().close()


def open_input(path: AnyPath, start: int = 0) -> io.BufferedReader:
    """Open a file for reading, decompressed where its name ends in ``.gz``; whatever is wrong is a `DataError`.

    ``start`` is how many bytes to skip, counted after decompression.
    """
    if os.fspath(path) == STANDARD_STREAM:
        return io.BufferedReader(
            _Guarded(cast(io.BufferedIOBase, sys.stdin.buffer), "standard input", owned=False), _CHUNK
        )
    try:
        raw = _open_raw(Path(path))
        if start:
            raw.seek(start)
        return io.BufferedReader(_Guarded(raw, path), _CHUNK)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(os.fspath(path), str(error)) from error
    except OSError as error:
        raise _unreadable(os.fspath(path), error) from error


def _open_raw(path: Path) -> io.BufferedIOBase:
    if not is_gzip(path):
        return path.open("rb")
    if path.is_file() and not path.stat().st_size:
        # For Python this is valid gzip, but no compressor writes it: it is what one leaves that died at once.
        raise _damaged(os.fspath(path), "the file is empty")
    return gzip.GzipFile(path, "rb")


@contextmanager
def open_output(path: AnyPath) -> Iterator[BinaryIO]:
    """Open a file for writing, compressed where its name ends in ``.gz``; the bytes depend on the content only.

    The file takes its name when the block ends well, after it has reached the disk. Otherwise what was there stays.
    """
    if os.fspath(path) == STANDARD_STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise DataError(
            f"cannot write {os.fspath(path)}: it is not a file", hint="name a file, or - for standard output"
        )
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as raw:
            with _compressed(raw) if is_gzip(path) else contextlib.nullcontext(raw) as out:
                yield out
            raw.flush()
            os.fsync(raw.fileno())
        draft.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        hint = (
            "create the folder first" if isinstance(error, FileNotFoundError) else "free space or choose another place"
        )
        raise DataError(f"cannot write {os.fspath(path)}: {error.strerror or error}", hint=hint) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def is_address(text: AnyPath) -> bool:
    """Tell whether a text is the address of a service, and not a path."""
    return os.fspath(text).startswith(("http://", "https://"))


def is_gzip(path: AnyPath) -> bool:
    """Tell whether the name says that the content is compressed."""
    return os.fspath(path).endswith(".gz")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; systems that cannot open folders need no such thing."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _compressed(raw: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0))


def _damaged(path: str, reason: str) -> DataError:
    return DataError(
        f"{path}: damaged gzip file: {reason}",
        hint="fetch or write the file again; if it is not compressed, take .gz off its name",
    )


def _unreadable(path: str, error: OSError) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such file", hint="check the path")
    if isinstance(error, IsADirectoryError):
        return DataError(f"{path}: a folder where a file is needed", hint="name a file in it")
    return DataError(f"{path}: cannot be read: {error.strerror or error}", hint="check the file and its permissions")
