import os
from pathlib import Path

import pytest

from evergraph.delta import Change, Delta
from evergraph.errors import ReadOnly, StoreError
from evergraph.log import ChangeLog
from evergraph.terms import Literal, NamedNode, Quad

S, P = NamedNode("urn:s"), NamedNode("urn:p")


def change(sequence: int, *values: str) -> Change:
    return Change(sequence, Delta(inserted=frozenset(Quad(S, P, Literal(value)) for value in values)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = ChangeLog(tmp_path / "log")
    for sequence in (1, 2, 3):
        log.append(change(sequence, f"value {sequence}", "TC .\nTX ."))
    log.close()
    return tmp_path / "log"


def test_is_a_readable_patch(folder: Path) -> None:
    assert (folder / "000000000001.rdfp").read_text().startswith(
        'H sequence "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        'TX .\nA <urn:s> <urn:p> "TC .\\nTX ." .\nA <urn:s> <urn:p> "value 1" .\nTC .\n'
    )  # fmt: skip


def test_times_come_back(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    log.append(Change(1, time=1_794_830_000.125), Change(2), Change(3, time=0.0))
    log.close()
    text = (tmp_path / "000000000001.rdfp").read_text()
    assert 'H time "2026-11-16T11:53:20.125Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n' in text
    assert [found.time for found in ChangeLog(tmp_path).read()] == [1_794_830_000.125, None, 0.0]
    (tmp_path / "000000000001.rdfp").write_text(text.replace("2026-11-16T", "once upon a time"))
    assert [found.time for found in ChangeLog(tmp_path).read()] == [None, None, 0.0]


def test_sequences_have_no_gaps(folder: Path) -> None:
    log = ChangeLog(folder)
    for sequence in (3, 5):
        with pytest.raises(StoreError, match=f"change {sequence} cannot follow change 3"):
            log.append(change(sequence))


def test_a_missing_segment_is_noticed(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path, segment_bytes=1)
    for sequence in range(1, 5):
        log.append(change(sequence))
    log.close()
    (tmp_path / "000000000002.rdfp").unlink()
    assert [found.sequence for found in ChangeLog(tmp_path).read(after=2)] == [3, 4]
    with pytest.raises(StoreError, match="change 2 is missing"):
        list(ChangeLog(tmp_path).read())
    (tmp_path / "000000000001.rdfp").unlink()
    with pytest.raises(StoreError, match="begins with change 3"):
        list(ChangeLog(tmp_path).read())


def test_damage_before_the_end_is_noticed(folder: Path) -> None:
    [segment] = folder.iterdir()
    text = segment.read_bytes()
    segment.write_bytes(text.replace(b"TC .\n", b"T\xff .\n", 1))
    with pytest.raises(StoreError, match=r"damaged: .*000000000001.rdfp:5"):
        ChangeLog(folder)


def test_a_reader_changes_nothing(folder: Path) -> None:
    [segment] = folder.iterdir()
    torn = segment.read_bytes()[:-3]
    segment.write_bytes(torn)
    log = ChangeLog(folder, read_only=True)
    assert log.last == 2
    with pytest.raises(ReadOnly):
        log.append(change(3))
    assert segment.read_bytes() == torn


def test_a_reader_sees_what_is_appended_later(folder: Path) -> None:
    writer, reader = ChangeLog(folder), ChangeLog(folder, read_only=True)
    writer.append(change(4, "new"))
    assert list(reader.read(after=3)) == [change(4, "new")]
    writer.close()


@pytest.mark.parametrize("cut_fails", [False, True])
@pytest.mark.parametrize("failing", ["write", "fdatasync"])
def test_a_failed_append_leaves_no_trace(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str, cut_fails: bool
) -> None:
    def fail(descriptor: int, *arguments: object) -> int:
        if failing == "write":
            real_write(descriptor, b"H half a rec")
        raise OSError(28, "No space left on device")

    real_write = os.write
    log = ChangeLog(folder)
    log.append(change(4, "good"))
    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        if cut_fails:
            patch.setattr(os, "ftruncate", fail)
        with pytest.raises(StoreError, match="No space left on device"):
            log.append(change(5, "bad"))
    assert log.last == 4
    log.append(change(5, "better"))
    log.close()
    assert list(ChangeLog(folder).read(after=3)) == [change(4, "good"), change(5, "better")]


def test_take_back_removes_the_last_change(folder: Path) -> None:
    log = ChangeLog(folder)
    before = (folder / "000000000001.rdfp").read_bytes()
    log.append(change(4, "x"))
    log.take_back()
    assert (folder / "000000000001.rdfp").read_bytes() == before
    log.append(change(4, "y"))
    assert list(log.read(after=3)) == [change(4, "y")]
    log.close()


def test_an_unwritable_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write the change log"):
        ChangeLog(tmp_path / "file" / "log")
