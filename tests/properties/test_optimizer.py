"""The optimiser on random queries and random histories: whatever it chooses, and when, the result is the same."""

from random import Random

import pytest
from tests.support.histories import check_exists, check_history, check_many

from evergraph.engines.local.optimizer import Optimizer, Way

BLOCK = 50


def at_random(seed: int) -> Optimizer:
    """Return an optimiser that is asked after every quad, and switches to the direct way when it likes."""
    random = Random(seed)
    ways: tuple[Way, ...] = ("direct", "incremental", "incremental")
    return Optimizer(smallest=1, sample=1, force=lambda: random.choice(ways))


def always_direct() -> Optimizer:
    return Optimizer(smallest=1, sample=1, force=lambda: "direct")


@pytest.mark.parametrize("block", range(6))
def test_one_view(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check_history(seed, optimizer=at_random(seed) if seed % 3 else always_direct())


@pytest.mark.parametrize("block", range(4))
def test_exists(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check_exists(seed, optimizer=at_random(seed))


@pytest.mark.parametrize("block", range(4))
def test_many_views(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check_many(seed, optimizer=at_random(seed))


@pytest.mark.long
@pytest.mark.parametrize("block", range(200))
def test_long(block: int) -> None:
    for seed in range(200_000 + block * BLOCK, 200_000 + (block + 1) * BLOCK):
        check_history(seed, optimizer=at_random(seed))
        check_exists(seed, optimizer=at_random(seed))
        check_many(seed, optimizer=at_random(seed))
