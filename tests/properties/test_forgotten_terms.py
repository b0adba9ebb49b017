"""Terms are forgotten before every change: no view may notice, whatever its query."""

from collections.abc import Callable

import pytest
from tests.support.histories import check_exists, check_history, check_many

from evergraph.delta import Delta
from evergraph.engines.local.dictionary import Dictionary
from evergraph.engines.local.engine import LocalEngine, ViewChange

BLOCK = 50


@pytest.mark.parametrize("block", range(3))
@pytest.mark.parametrize("check", [check_history, check_exists, check_many])
def test_no_view_notices(check: Callable[[int], None], block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original, forgotten = LocalEngine.apply, []
    begin = Dictionary.__init__

    def start_high(self: Dictionary) -> None:
        """Give out ids that are no weights: those are taken for ids that are in use."""
        begin(self)
        self.terms.extend([None] * 10_000)

    def apply(self: LocalEngine, delta: Delta) -> list[ViewChange]:
        forgotten.append(self.forget_terms())
        return original(self, delta)

    monkeypatch.setattr(Dictionary, "__init__", start_high)
    monkeypatch.setattr(LocalEngine, "apply", apply)
    for seed in range(10_000 + block * BLOCK, 10_000 + (block + 1) * BLOCK):
        check(seed)
    assert sum(forgotten) > 10
