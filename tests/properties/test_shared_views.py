"""Queries that differ only in constants share a circuit: each must be what it would be on its own."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.shared_histories import check_shared

from evergraph.engines.local import leaves, shared
from evergraph.engines.local.dictionary import Row
from evergraph.errors import ViewFailed
from evergraph.plan import parameters
from evergraph.plan.nodes import Plan

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


def _let_parameters_count_for_minus(patch: pytest.MonkeyPatch) -> None:
    """A MINUS that shares no bound variable takes a parameter for one; the right may have more than the left."""
    patch.setattr(parameters._Lifting, "_match", lambda self, plan: _lifted_sides(self, plan))


def _forget_the_values_of_others(patch: pytest.MonkeyPatch) -> None:
    """The table of the values that are wanted forgets that others want them, too."""
    original = shared.Table.change

    def change(self: shared.Table, key: Row, weight: int) -> None:
        original(self, key, weight)
        if weight < 0:
            self._counts.clear()

    patch.setattr(shared.Table, "change", change)


def _forget_what_others_want(patch: pytest.MonkeyPatch) -> None:
    """Quads go with the first of several views that want them."""
    original = leaves.BGPLeaf.want

    def want(self: leaves.BGPLeaf, values: dict[object, int]) -> None:
        original(self, values)
        for one in self._open:
            cover = one.cover(values, self.store)
            one.wanted[cover] = 1

    patch.setattr(leaves.BGPLeaf, "want", want)


def _lifted_sides(lifting: parameters._Lifting, plan: Any) -> Plan:
    changed: Plan = replace(plan, left=lifting.lift(plan.left), right=lifting.lift(plan.right))
    return changed


@pytest.mark.parametrize(
    "break_it", [_let_parameters_count_for_minus, _forget_the_values_of_others, _forget_what_others_want]
)
def test_broken_sharing_is_noticed(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    with pytest.raises((AssertionError, LookupError, ValueError, ViewFailed)):
        for seed in range(10 * BLOCK):
            check_shared(seed)
