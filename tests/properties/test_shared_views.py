"""Queries that differ only in constants share a circuit: each must be what it would be on its own."""

import pytest
from tests.support.shared_histories import check_shared

BLOCK = 50


@pytest.mark.parametrize("block", range(10))
def test_shared_views(block: int) -> None:
    shared = sum(check_shared(seed) for seed in range(block * BLOCK, (block + 1) * BLOCK))
    assert shared > BLOCK


@pytest.mark.long
@pytest.mark.parametrize("block", range(600))
def test_shared_views_long(block: int) -> None:
    for seed in range(100_000 + block * BLOCK, 100_000 + (block + 1) * BLOCK):
        check_shared(seed)
