"""Compressed bodies, taken apart in small pieces: a few bytes can stand for gigabytes."""

import zlib
from collections.abc import Iterator

_PIECE = 65_536
_GZIP, _ZLIB, _RAW = 31, 15, -15
_MAGIC = b"\x1f\x8b"
CODINGS = ("gzip", "x-gzip", "deflate")


class Inflater:
    """Takes gzip, or deflate with or without a header, apart."""

    def __init__(self, coding: str) -> None:
        if coding not in CODINGS:
            raise zlib.error(f"{coding!r} was not asked for")
        self._is_gzip = coding != "deflate"
        self._inner = zlib.decompressobj(_GZIP) if self._is_gzip else None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take some of the body; raises `zlib.error` if it is not compressed as declared."""
        if self._inner is None and data:
            self._inner = zlib.decompressobj(_ZLIB if data[0] & 15 == zlib.DEFLATED else _RAW)
        while data and self._inner is not None:
            if self._inner.eof:
                if not self._is_gzip or not data.startswith(_MAGIC[: len(data)]):
                    return  # what follows is padding
                self._inner = zlib.decompressobj(_GZIP)
            yield self._inner.decompress(data, _PIECE)
            data = self._inner.unused_data if self._inner.eof else self._inner.unconsumed_tail

    def end(self) -> bytes:
        """Return the rest; raises `zlib.error` if something is missing."""
        if self._inner is None:
            return b""
        rest = self._inner.flush()
        if not self._inner.eof:
            raise zlib.error("it ends early")
        return rest
