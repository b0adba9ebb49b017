"""Delta rules, broken on purpose: the random histories of `make test` must notice each of them."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.histories import check_exists, check_history

from evergraph.engines.local import bgp_source, build, groups, joins, operators, paths, relations, slices
from evergraph.engines.local.dictionary import ZSet
from evergraph.plan import exists, filters, lower

Break = Callable[[pytest.MonkeyPatch], None]
SEEDS = range(800)
EXISTS_SEEDS = range(400)


def _count_twice(patch: pytest.MonkeyPatch) -> None:
    """A triple that matches several patterns of a BGP counts for the later ones, too."""
    patch.setattr(bgp_source._Writer, "_skip", lambda self, number: True)


def _forget_lonely_rows(patch: pytest.MonkeyPatch) -> None:
    """OPTIONAL does not bring a row back when its last match goes."""
    original = joins.MatchOperator._change_right

    def change(self: joins.MatchOperator, delta: ZSet, out: ZSet) -> None:
        gains: ZSet = {}
        original(self, delta, gains)
        out.update({row: weight for row, weight in gains.items() if weight < 0 or row[-1]})

    patch.setattr(joins.MatchOperator, "_change_right", change)


def _ignore_what_comes_on_the_right(patch: pytest.MonkeyPatch) -> None:
    """NOT EXISTS and MINUS do not look at what changes on their right side."""
    patch.setattr(joins.KeyMatchOperator, "_change_right", lambda self, delta, out: None)


def _keep_duplicates(patch: pytest.MonkeyPatch) -> None:
    """DISTINCT passes on what it gets."""
    patch.setattr(operators.DistinctOperator, "pull", lambda self: self._operand.pull())


def _drop_duplicates(patch: pytest.MonkeyPatch) -> None:
    """UNION keeps one of equal rows."""
    original = operators.UnionOperator.pull

    def pull(self: operators.UnionOperator) -> ZSet:
        return {row: 1 if weight > 0 else -1 for row, weight in original(self).items()}

    patch.setattr(operators.UnionOperator, "pull", pull)


def _let_minus_remove_strangers(patch: pytest.MonkeyPatch) -> None:
    """MINUS removes rows that share no bound variable with the other side."""
    patch.setattr(build, "_share_a_variable", lambda left, right: None)


def _take_unbound_for_a_value(patch: pytest.MonkeyPatch) -> None:
    """Joins hash unbound columns like values."""
    original = joins.index_pair

    def index_pair(left: Any, right: Any) -> Any:
        class Certain:
            def __init__(self, plan: Any) -> None:
                self.variables = plan.variables
                self.certain = frozenset(plan.variables)

        return original(Certain(left), Certain(right))  # type: ignore[arg-type]

    patch.setattr(joins, "index_pair", index_pair)


def _keep_empty_groups(patch: pytest.MonkeyPatch) -> None:
    """A group without rows stays."""
    original = groups.GroupOperator._report

    def report(self: groups.GroupOperator, key: Any, group: Any, out: ZSet) -> None:
        if group.count or self._always:
            original(self, key, group, out)

    patch.setattr(groups.GroupOperator, "_report", report)


def _never_leave_a_window(patch: pytest.MonkeyPatch) -> None:
    """A slice reports what comes into its window, and not what leaves it."""
    original = slices.SliceOperator.pull
    patch.setattr(slices.SliceOperator, "pull", lambda self: {row: w for row, w in original(self).items() if w > 0})


def _never_cut_a_path(patch: pytest.MonkeyPatch) -> None:
    """What was once reached stays reached."""
    patch.setattr(paths.Reach, "_cut_off", lambda self, removed: set())


def _count_a_merged_triple_for_each_graph(patch: pytest.MonkeyPatch) -> None:
    """The merge of graphs is their sum."""

    def insert(self: relations.MergedRelation, quad: relations.Ids) -> bool:
        self._graphs.setdefault(quad[:3], set()).add(quad[3])
        return relations.Relation.insert(self, quad)

    patch.setattr(relations.MergedRelation, "insert", insert)


def _join_every_exists(patch: pytest.MonkeyPatch) -> None:
    """EXISTS is a semi-join, whatever its pattern."""
    patch.setattr(exists, "_obstacle", lambda pattern, outer: "")


def _push_every_filter(patch: pytest.MonkeyPatch) -> None:
    """Filters go to the left side of a join, whatever they see there."""
    patch.setattr(filters, "_decides", lambda condition, side, other: True)


def _overlook_from(patch: pytest.MonkeyPatch) -> None:
    """FROM is overlooked."""
    patch.setattr(lower.Lowering, "__init__", _forgetful_lowering(lower.Lowering.__init__))


def _forgetful_lowering(original: Callable[..., None]) -> Callable[..., None]:
    return lambda self, dataset=None: original(self)


RULES: tuple[Break, ...] = (
    _count_twice,
    _forget_lonely_rows,
    _ignore_what_comes_on_the_right,
    _keep_duplicates,
    _drop_duplicates,
    _let_minus_remove_strangers,
    _take_unbound_for_a_value,
    _keep_empty_groups,
    _never_leave_a_window,
    _never_cut_a_path,
    _count_a_merged_triple_for_each_graph,
    _join_every_exists,
    _push_every_filter,
    _overlook_from,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__.strip("_"))
def test_a_broken_rule_is_noticed(rule: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    bgp_source.delta_code.cache_clear()
    rule(monkeypatch)
    try:
        noticed = any(_fails(check_history, seed) for seed in SEEDS)
        noticed = noticed or any(_fails(check_exists, seed) for seed in EXISTS_SEEDS)
        assert noticed, f"nothing notices: {rule.__doc__}"
    finally:
        bgp_source.delta_code.cache_clear()


def _fails(check: Callable[[int], None], seed: int) -> bool:
    try:
        check(seed)
    except (AssertionError, KeyError, IndexError):
        return True
    return False
