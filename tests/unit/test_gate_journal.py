from pathlib import Path

import pytest

from evergraph.delta import Delta
from evergraph.errors import StoreError
from evergraph.gate.journal import FolderLock, Journal
from evergraph.terms import Literal, NamedNode, Quad


def quads(*values: str) -> frozenset[Quad]:
    return frozenset(Quad(NamedNode("urn:a"), NamedNode("urn:p"), Literal(value)) for value in values)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".unsettled"


def test_what_is_recorded_adds_up(path: Path) -> None:
    journal = Journal(path)
    journal.record(Delta(inserted=quads("a", "b")))
    journal.record(Delta(inserted=quads("c"), deleted=quads("a", "old")))
    total = Delta(inserted=quads("b", "c"), deleted=quads("old"))
    assert journal.unsettled() == Journal(path).unsettled() == total


def test_what_counts_is_forgotten(path: Path) -> None:
    journal = Journal(path, settled=4)
    journal.record(Delta(inserted=quads("a")))
    assert path.exists()
    journal.settle(5)
    assert not path.exists()
    assert not journal.unsettled()
    journal.record(Delta(inserted=quads("b")))
    assert Journal(path, settled=5).unsettled() == Delta(inserted=quads("b"))


def test_what_the_log_holds_counts(path: Path) -> None:
    Journal(path, settled=4).record(Delta(inserted=quads("a")))
    assert not Journal(path, settled=5).unsettled()
    assert not path.exists()


def test_what_was_not_sent_is_forgotten(path: Path) -> None:
    journal = Journal(path)
    journal.record(Delta(inserted=quads("a")))
    journal.record(Delta(inserted=quads("b")))
    journal.forget_last()
    assert journal.unsettled() == Journal(path).unsettled() == Delta(inserted=quads("a"))
    journal.forget_last()
    assert not path.exists()


def test_a_record_that_a_crash_cut_short_was_never_sent(path: Path) -> None:
    journal = Journal(path)
    journal.record(Delta(inserted=quads("a")))
    whole = path.read_bytes()
    journal.record(Delta(inserted=quads("b")))
    longer = path.read_bytes()
    for size in range(len(whole), len(longer)):
        path.write_bytes(longer[:size])
        assert Journal(path).unsettled() == Delta(inserted=quads("a"))


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / "new")
    with pytest.raises(StoreError, match="in use by another process"):
        FolderLock(tmp_path / "new")
    lock.release()
    FolderLock(tmp_path / "new").release()
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot use the folder"):
        FolderLock(tmp_path / "file")
