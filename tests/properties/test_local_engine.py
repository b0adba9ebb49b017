"""The local engine on random queries and random histories: maintained = from scratch, after every change."""

import pytest
from tests.support.histories import check_history

BLOCK = 50


@pytest.mark.parametrize("block", range(16))
def test_histories(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check_history(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(600))
def test_histories_long(block: int) -> None:
    for seed in range(100_000 + block * BLOCK, 100_000 + (block + 1) * BLOCK):
        check_history(seed)
