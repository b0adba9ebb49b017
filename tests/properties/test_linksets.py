"""Linksets over random histories of both sides; and rules of matching, broken on purpose, which they must notice."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties.test_linking import check_changes, check_keys, check_matching
from tests.support.link_histories import check_link_history

from evergraph.linking import blocking, keys, matching, rules
from evergraph.views.linksets import linkset, selection, view

Break = Callable[[pytest.MonkeyPatch], None]


def test_links_are_those_from_scratch_after_every_run() -> None:
    for seed in range(120):
        check_link_history(seed)


@pytest.mark.long
@given(st.integers(0, 2**32))
def test_links_are_those_from_scratch_for_long(seed: int) -> None:
    check_link_history(seed)


def _forget_what_went(patch: pytest.MonkeyPatch) -> None:
    """Links of resources that changed are not deleted."""
    patch.setattr(linkset.Linkset, "_before", lambda self, mode, changed: {})


def _follow_one_side(patch: pytest.MonkeyPatch) -> None:
    """What changes on the target side is not matched again."""
    original = linkset.Linkset._partners
    patch.setattr(linkset.Linkset, "_partners", lambda self, changed: original(self, [changed[0], {}]))


def _stamp_only_losses(patch: pytest.MonkeyPatch) -> None:
    """A resource that only got triples did not change."""
    patch.setattr(view.Affected, "all", lambda self: self.removed)


def _never_leave_the_index(patch: pytest.MonkeyPatch) -> None:
    """An index keeps the old keys of a resource and does not get the new ones."""
    patch.setattr(matching.Index, "add", _add_once(matching.Index.add))


def _add_once(original: Callable[..., None]) -> Callable[..., None]:
    def add(self: Any, name: str, prepared: Any) -> None:
        seen = self.__dict__.setdefault("seen", set())
        if name not in seen:
            seen.add(name)
            original(self, name, prepared)

    return add


def _choose_anew_only_what_changed(patch: pytest.MonkeyPatch) -> None:
    """One to one: what hangs together with a change is not chosen anew."""
    patch.setattr(selection.Candidates, "connected", lambda self, pairs: set(pairs))


def _mix_values(patch: pytest.MonkeyPatch) -> None:
    """Comparisons of one property may be about different values of it."""
    patch.setattr(rules.Rule, "_has_choice", lambda self, source, target: False)


def _block_by_the_first_part_of_or(patch: pytest.MonkeyPatch) -> None:
    """OR is blocked by its first part."""
    patch.setattr(blocking, "_union", lambda parts: parts[0] if parts else None)


def _take_missing_for_present(patch: pytest.MonkeyPatch) -> None:
    """Comparisons that match without values are blocked by values."""

    def init(self: Any, rule: rules.Rule) -> None:
        self.schemes = [one.measure.keys(one.threshold) for one in rule.comparisons]

    patch.setattr(blocking.Keyring, "__init__", init)


def _cut_too_few_pieces(patch: pytest.MonkeyPatch) -> None:
    """d edits are looked for with d pieces."""
    patch.setattr(keys, "_pieces", _one_piece_less(keys._pieces))


def _one_piece_less(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda length, count: original(length, max(1, count - 1))


def _shorten_prefixes(patch: pytest.MonkeyPatch) -> None:
    """The prefix of a set is one member too short."""
    original = keys._joined
    patch.setattr(keys, "_joined", lambda size, members, together: original(size, members[:-1], together))


def _look_into_one_bucket(patch: pytest.MonkeyPatch) -> None:
    """Numbers are only looked for in their own bucket."""
    patch.setattr(keys.Buckets, "probe", keys.Buckets.index)


def _check_any_keys(seed: int) -> None:
    for name in ("damerau", "levenshtein-similarity", "jaccard", "jaro", "geo"):
        check_keys(name, seed)


RULES: tuple[tuple[Break, Callable[[int], None]], ...] = (
    (_forget_what_went, check_link_history),
    (_follow_one_side, check_link_history),
    (_stamp_only_losses, check_link_history),
    (_never_leave_the_index, check_changes),
    (_choose_anew_only_what_changed, check_link_history),
    (_mix_values, check_matching),
    (_block_by_the_first_part_of_or, check_matching),
    (_take_missing_for_present, check_matching),
    (_cut_too_few_pieces, _check_any_keys),
    (_shorten_prefixes, _check_any_keys),
    (_look_into_one_bucket, _check_any_keys),
)


@pytest.mark.parametrize(("rule", "check"), RULES, ids=[rule.__name__.strip("_") for rule, _ in RULES])
def test_a_broken_rule_is_noticed(rule: Break, check: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    rule(monkeypatch)
    assert any(_fails(check, seed) for seed in range(60)), f"nothing notices: {rule.__doc__}"


def _fails(check: Callable[..., None], *arguments: Any) -> bool:
    try:
        check(*arguments)
    except (AssertionError, KeyError, IndexError):
        return True
    return False
