"""Compressed bodies: all ways to write them, in pieces of any size, and none larger than a few kilobytes."""

import gzip
import zlib

import pytest

from evergraph.traversal.compression import Inflater

TEXT = bytes(range(256)) * 400


def raw(data: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-15)
    return deflater.compress(data) + deflater.flush()


def inflated(coding: str, data: bytes, step: int) -> list[bytes]:
    inflater = Inflater(coding)
    pieces = [piece for at in range(0, len(data), step) for piece in inflater.feed(data[at : at + step])]
    return [*pieces, inflater.end()]


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("coding", "data"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("x-gzip", gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:])),
        ("gzip", gzip.compress(TEXT) + bytes(20)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw(TEXT)),
    ],
)
def test_all_forms(coding: str, data: bytes, step: int) -> None:
    assert b"".join(inflated(coding, data, step)) == TEXT


def test_nothing_at_all() -> None:
    assert inflated("deflate", b"", 1) == [b""]
    with pytest.raises(zlib.error, match="early"):
        inflated("gzip", b"", 1)


def test_pieces_are_small() -> None:
    pieces = inflated("gzip", gzip.compress(bytes(20_000_000)), 1_000_000)
    assert max(map(len, pieces)) <= 65_536
    assert sum(map(len, pieces)) == 20_000_000


@pytest.mark.parametrize(
    ("coding", "data"), [("gzip", b"plain"), ("deflate", b"plain"), ("gzip", gzip.compress(TEXT)[:-1])]
)
def test_what_is_broken(coding: str, data: bytes) -> None:
    with pytest.raises(zlib.error):
        inflated(coding, data, 3)


def test_other_codings() -> None:
    with pytest.raises(zlib.error, match="not asked for"):
        Inflater("br")
