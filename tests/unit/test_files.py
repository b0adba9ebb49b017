import gzip
import io
import os
import sys
from pathlib import Path

import pytest

from evergraph.errors import DataError
from evergraph.files import open_input, open_output

CONTENT = b"".join(b"line %d\n" % number for number in range(50_000))


@pytest.mark.parametrize("name", ["x", "x.gz"])
def test_output_reads_back(tmp_path: Path, name: str) -> None:
    with open_output(tmp_path / name) as out:
        out.write(CONTENT)
    with open_input(tmp_path / name) as stream:
        assert stream.read() == CONTENT
    assert os.listdir(tmp_path) == [name]  # noqa: PTH208


def test_compressed_output_depends_on_the_content_only(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with open_output(tmp_path / name) as out:
            out.write(CONTENT)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert (tmp_path / "a.gz").read_bytes()[4:8] == b"\0\0\0\0"


@pytest.mark.parametrize("name", ["x", "x.gz"])
def test_a_failure_leaves_what_was_there(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"before")
    with pytest.raises(RuntimeError), open_output(tmp_path / name) as out:
        out.write(CONTENT)
        raise RuntimeError
    assert (tmp_path / name).read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DataError, match=r"cannot write .*x: No space left"), open_output(tmp_path / "x") as out:
        out.write(CONTENT)
    assert list(tmp_path.iterdir()) == []


def test_output_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with open_output(tmp_path / "link") as out:
        out.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.parametrize("place", [".", "missing/x", "file/x"])
def test_impossible_places_for_output(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="cannot write"), open_output(tmp_path / place):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_output_never_replaces_what_is_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="not a file"), open_output(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()


def test_standard_streams_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    standard_input = io.TextIOWrapper(io.BytesIO(b"in"))
    standard_output = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdin", standard_input)
    monkeypatch.setattr(sys, "stdout", standard_output)
    with open_input("-") as stream, open_output("-") as out:
        out.write(stream.read())
    assert not standard_input.closed
    assert standard_output.buffer.getvalue() == b"in"


def test_a_live_stream_is_read_as_it_comes() -> None:
    receiver, sender = os.pipe()
    saved = sys.stdin
    try:
        os.write(sender, b"first\n")
        with open(receiver, closefd=True) as standard_input:  # noqa: PTH123
            sys.stdin = standard_input
            with open_input("-") as stream:
                assert stream.readline() == b"first\n"  # would wait for ever if it wanted a full buffer
    finally:
        sys.stdin = saved
        os.close(sender)


_COMPRESSED = gzip.compress(CONTENT)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"plain text", "Not a gzipped file"),
        (_COMPRESSED[:-10], "ended before"),
        (_COMPRESSED[: len(_COMPRESSED) // 2], "ended before"),
        (_COMPRESSED[:12] + b"\xff\xff\xff" + _COMPRESSED[15:], "decompressing"),
        (_COMPRESSED[:-8] + b"\0\0\0\0" + _COMPRESSED[-4:], "CRC"),
        (_COMPRESSED + b"garbage", "Not a gzipped file"),
    ],
)
def test_damaged_gzip_is_said(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x.gz").write_bytes(content)
    with (
        pytest.raises(DataError, match=rf"x\.gz: damaged gzip file: .*{reason}") as caught,
        open_input(tmp_path / "x.gz") as stream,
    ):
        stream.read()
    assert "again" in caught.value.hint


def test_missing_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "folder.gz").mkdir()
    for path, reason in ((tmp_path / "no", "no such file"), (tmp_path, "folder"), (tmp_path / "folder.gz", "folder")):
        with pytest.raises(DataError, match=reason):
            open_input(path)
