"""Rules of replicas, broken on purpose: the random histories of `make test` must notice each of them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from tests.support.replica_histories import check_history

from evergraph.delta import Delta, Request
from evergraph.engines.local.dictionary import ZSet
from evergraph.engines.local.engine import LocalEngine
from evergraph.sparql.algebra import LeftJoin, Pattern, join, path_predicates
from evergraph.views.replicas import candidates, local, parts
from evergraph.views.replicas.candidates import Candidate
from evergraph.views.replicas.local import Ids, Replicas

Break = Callable[[pytest.MonkeyPatch], None]
SEEDS = range(400)


def _demote_what_others_hold(patch: pytest.MonkeyPatch) -> None:
    """As in the paper: what was matched with a removed triple goes, even if another match holds it."""

    def take(self: Any, builder: Any, rows: ZSet, came: dict[Ids, int]) -> None:
        for row, weight in rows.items():
            for triple in builder.triples(row):
                before = triple in self.counts
                if weight > 0:
                    self.counts[triple] = 1
                else:
                    self.counts.pop(triple, None)
                came[triple] = came.get(triple, 0) + (triple in self.counts) - before

    patch.setattr(local._Replica, "take", take)


def _demand_optional_parts(patch: pytest.MonkeyPatch) -> None:
    """A match without its optional part is none."""
    original = parts._Places.of

    def of(self: Any, pattern: Pattern) -> Iterator[parts.Place]:
        return original(self, join(pattern.left, pattern.right) if isinstance(pattern, LeftJoin) else pattern)

    patch.setattr(parts._Places, "of", of)


def _prune_what_filters_read(patch: pytest.MonkeyPatch) -> None:
    """Optional parts are left out although a filter asks for their variables."""
    patch.setattr(parts, "free", lambda expression: frozenset())


def _forget_the_condition(patch: pytest.MonkeyPatch) -> None:
    """The filter of an optional part does not count."""
    patch.setattr(parts, "Filter", lambda condition, operand: operand)


def _ship_only_ends_of_paths(patch: pytest.MonkeyPatch) -> None:
    """Of a longer path, only a step that is the whole path takes part."""
    patch.setattr(parts._Places, "_closure", parts._Places._path)


def _store_nothing_that_is_tested(patch: pytest.MonkeyPatch) -> None:
    """Triples that only EXISTS or MINUS can match are not potentially interesting."""
    patch.setattr(candidates, "tested", lambda pattern: ())


def _count_candidates_twice(patch: pytest.MonkeyPatch) -> None:
    """Patterns that overlap are counted on their own."""
    patch.setattr(Candidate, "overlaps", lambda self, other: False)


def _drop_patterns_that_are_not_covered(patch: pytest.MonkeyPatch) -> None:
    """A pattern is taken to cover all that have its predicate."""
    patch.setattr(Candidate, "covers", lambda self, other: self.predicate == other.predicate)


def _mix_up_predicates(patch: pytest.MonkeyPatch) -> None:
    """A path is about the triples of its first step."""
    patch.setattr(candidates, "path_predicates", lambda path: iter([next(path_predicates(path))]))


def _believe_changesets(patch: pytest.MonkeyPatch) -> None:
    """A change is taken for exact."""

    def exact(self: LocalEngine, request: Request) -> Delta:
        return Delta(request.added, request.removed - request.added)

    patch.setattr(LocalEngine, "exact", exact)


def _clear_nothing(patch: pytest.MonkeyPatch) -> None:
    """Cleared subjects keep their triples."""

    def none(self: Replicas, subjects: Iterable[object]) -> frozenset[object]:
        return frozenset()

    patch.setattr(Replicas, "_of_subjects", none)


def _add_before_removing(patch: pytest.MonkeyPatch) -> None:
    """What a change removes and adds is removed."""

    def exact(self: LocalEngine, request: Request) -> Delta:
        return original(self, Request(request.removed, request.added - request.removed))

    original = LocalEngine.exact
    patch.setattr(LocalEngine, "exact", exact)


def _send_every_row(patch: pytest.MonkeyPatch) -> None:
    """Triples are sent again for each further match."""
    original = local._Replica.take

    def take(self: Any, builder: Any, rows: ZSet, came: dict[Ids, int]) -> None:
        original(self, builder, rows, came)
        for row, weight in rows.items():
            for triple in builder.triples(row):
                came.setdefault(triple, 1 if weight > 0 else -1)

    patch.setattr(local._Replica, "take", take)


BREAKS = [
    value for name, value in sorted(globals().items()) if name.startswith("_") and callable(value) and value.__doc__
]


@pytest.mark.parametrize("break_it", BREAKS, ids=lambda one: one.__name__.strip("_"))
def test_is_noticed(break_it: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(BREAKS) == 13
    break_it(monkeypatch)
    with pytest.raises(Exception):  # noqa: B017 - whatever the fault leads to
        for seed in SEEDS:
            check_history(seed)
