"""The local engine on random queries and random histories: maintained = from scratch, after every change."""

from collections.abc import Callable

import pytest
from tests.support.histories import check_exists, check_history, check_many

BLOCK = 50

REGRESSIONS = (100_159,)
"""Seeds of `check_history` that failed once: a path of length zero from the variable of its graph."""


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_failed_once(seed: int) -> None:
    check_history(seed)


@pytest.mark.parametrize("block", range(16))
def test_one_view(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check_history(seed)


@pytest.mark.parametrize("block", range(8))
def test_exists(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check_exists(seed)


@pytest.mark.parametrize("block", range(5))
def test_many_views(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check_many(seed)


@pytest.mark.long
@pytest.mark.parametrize("check", [check_history, check_exists, check_many])
@pytest.mark.parametrize("block", range(600))
def test_histories_long(check: Callable[[int], None], block: int) -> None:
    for seed in range(100_000 + block * BLOCK, 100_000 + (block + 1) * BLOCK):
        check(seed)
