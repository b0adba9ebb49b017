"""Ctrl-C, and handlers of other signals that raise, at any moment: what is logged is stored, and nothing hangs."""

import gc
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.support.datasets import replay

import evergraph as eg
from evergraph.terms import Quad


class Interrupted(Exception):
    """What the handler raises."""


@contextmanager
def interrupts(every: float) -> Iterator[None]:
    """Raise in the main thread, again and again, wherever it is."""

    def raise_(number: int, frame: object) -> None:
        raise Interrupted

    gc.disable()  # what is raised in its callbacks goes nowhere, and pytest complains
    before = signal.signal(signal.SIGALRM, raise_)
    signal.setitimer(signal.ITIMER_REAL, every, every)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


@pytest.mark.parametrize("sync", [True, False])
def test_interrupted_updates_leave_log_and_store_in_step(tmp_path: Path, sync: bool) -> None:
    db = eg.open(tmp_path / "db", sync=sync)
    end = time.monotonic() + 2
    number = 0
    with suppress(Interrupted), interrupts(0.003):
        while time.monotonic() < end:
            with suppress(Interrupted):
                number += 1
                db.update(f"DELETE WHERE {{ ?s <urn:p> ?o }} ; INSERT DATA {{ <urn:a> <urn:p> {number} }}")
    db.update("INSERT DATA { <urn:last> <urn:p> 1 }")
    assert replay(db.changes()) == frozenset(db.quads())
    db.close()
    with eg.open(tmp_path / "db") as again:
        assert replay(again.changes()) == frozenset(again.quads())


def test_an_interrupted_update_in_memory_counts_wholly_or_not_at_all() -> None:
    db = eg.open()
    rows = " ".join(f"<urn:s{number}> <urn:p> {number} ." for number in range(3_000))
    for delay in range(1, 40):
        db.update("DROP ALL")
        db.update(f"INSERT DATA {{ {rows} }}")
        before, sequence = frozenset(db.quads()), db.sequence
        with suppress(Interrupted), interrupts(delay / 1_000):
            db.update("DELETE { ?s <urn:p> ?o } INSERT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }")
        after = frozenset(db.quads())
        assert (after == before) == (db.sequence == sequence)
        assert len(after) == 3_000


def test_an_interrupt_while_waiting_for_another_update_leaves_the_queue_in_order() -> None:
    db = eg.open()
    started, go_on = threading.Event(), threading.Event()

    def slow(source: object, into: object) -> Iterator[Quad]:
        started.set()
        go_on.wait()
        yield from ()

    db._load = slow
    other = threading.Thread(target=db.update, args=("LOAD <urn:x>",))
    other.start()
    started.wait()
    threading.Timer(0.2, go_on.set).start()
    with pytest.raises(Interrupted), interrupts(0.05):
        db.update("INSERT DATA { <urn:a> <urn:p> 1 }")
    other.join()
    assert db.update("INSERT DATA { <urn:a> <urn:p> 2 }").sequence == 2
    assert len(list(db.quads())) == 1


def test_a_lost_store_is_filled_again_from_the_log(tmp_path: Path) -> None:
    with eg.open(tmp_path / "db") as db:
        db.update("INSERT DATA { <urn:a> <urn:p> 1, 2 }")
        quads = frozenset(db.quads())
    for path in (tmp_path / "db" / "store").iterdir():
        path.unlink()
    with eg.open(tmp_path / "db") as again:
        assert frozenset(again.quads()) == quads


@pytest.mark.parametrize("content", [b"", b"x", b"-3 a", b"\xff\xfe", b"7"])
def test_a_damaged_checkpoint_costs_time_only(tmp_path: Path, content: bytes) -> None:
    with eg.open(tmp_path / "db") as db:
        db.update("INSERT DATA { <urn:a> <urn:p> 1 }")
    (tmp_path / "db" / "checkpoint").write_bytes(content)
    with eg.open(tmp_path / "db") as again:
        assert again.sequence == 1
        assert len(list(again.quads())) == 1
