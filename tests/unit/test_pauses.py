"""Garbage collection: what is loaded is frozen."""

import gc

from evergraph.engines.local.engine import LocalEngine
from evergraph.engines.local.pauses import LARGE, Freezer, loading, watch_collector


def test_a_load_is_frozen_and_the_collector_goes_on() -> None:
    gc.unfreeze()  # what tests before have frozen, and may let go of at any time
    with loading(LARGE - 1):
        assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    try:
        with loading(LARGE):
            assert not gc.isenabled()
            kept = [[number] for number in range(100)]
        assert gc.isenabled()
        assert gc.get_freeze_count() >= len(kept)
    finally:
        gc.unfreeze()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with loading(LARGE):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_collector_is_watched_once_and_only_where_asked_for() -> None:
    LocalEngine()
    before = list(gc.callbacks)
    watch_collector()
    watch_collector()
    assert sum(isinstance(one, Freezer) for one in gc.callbacks) == 1
    gc.callbacks[:] = before


def test_a_quick_collection_freezes_nothing() -> None:
    freezer = Freezer()
    frozen = gc.get_freeze_count()
    freezer("start", {"generation": 2})
    freezer("stop", {"generation": 2})
    freezer("stop", {"generation": 1})
    assert gc.get_freeze_count() == frozen
