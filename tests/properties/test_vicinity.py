"""What a small change does follows from its vicinity alone."""

import pytest
from tests.support.vicinities import answers, check_vicinity

from evergraph.engines.spark import vicinity
from evergraph.engines.spark.found import Found
from evergraph.engines.spark.rounds import run
from evergraph.engines.spark.vicinity import Followed
from evergraph.engines.spark.views import SparkView
from evergraph.sparql.parser import parse_query

BLOCK = 50
REGRESSIONS = (1_050,)
"""Seeds that failed once: a triple that another of several merged graphs holds."""


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_failed_once(seed: int) -> None:
    check_vicinity(seed)


@pytest.mark.parametrize("block", range(8))
def test_vicinity(block: int) -> None:
    spared = [check_vicinity(seed) for seed in range(block * BLOCK, (block + 1) * BLOCK)]
    assert sum(1 for one in spared if one) > BLOCK / 4, "much should not be fetched"


@pytest.mark.long
@pytest.mark.parametrize("block", range(400))
def test_vicinity_long(block: int) -> None:
    for seed in range(10_000 + block * BLOCK, 10_000 + (block + 1) * BLOCK):
        check_vicinity(seed)


def _forget_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vicinity, "_others", lambda patterns, changed: (*patterns[:changed], *patterns[changed + 1 :]))


def _forget_the_right(monkeypatch: pytest.MonkeyPatch) -> None:
    async def from_right(self: Followed, plan: object) -> list[object]:
        return []

    monkeypatch.setattr(Followed, "_from_right", from_right)


def _forget_what_keeps_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gather_match(self: Followed, left: object, right: object, known: object) -> object:
        return await self.gather(left, vicinity._cut(known, left))  # type: ignore[arg-type]

    monkeypatch.setattr(Followed, "_gather_match", gather_match)


def _forget_other_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Followed.gather

    async def gather(self: Followed, plan: object, known: object) -> object:
        if len(known) > 1:  # type: ignore[arg-type]
            return known
        return await original(self, plan, known)  # type: ignore[arg-type]

    monkeypatch.setattr(Followed, "gather", gather)


@pytest.mark.parametrize("fault", [_forget_merges, _forget_the_right, _forget_what_keeps_out, _forget_other_ways])
def test_faults_are_noticed(fault: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(fault)
    fault(monkeypatch)
    noticed = 0
    for seed in (*REGRESSIONS, *range(400)):
        try:
            check_vicinity(seed)
        except AssertionError:
            noticed += 1
            break
    assert noticed


def test_a_plan_that_comes_to_the_same_quads_in_many_ways_is_not_followed() -> None:
    """What is fetched is little; to look at it for each part of the plan may be much."""
    changed = [("<urn:a>", "<urn:p>", "<urn:b>", "")]
    there = [("<urn:b>", "<urn:q>", f"<urn:{number}>", "") for number in range(50)]
    parts = " UNION ".join(f"{{ ?x <urn:p> ?y . ?y <urn:q> ?z{number} }}" for number in range(20))
    view = SparkView("view", parse_query(f"SELECT * {{ {parts} }}"))

    def follows(most: int) -> list[bool]:
        found = Found(
            changed, lambda lookups: [quad for quad in there if any(answers(one, quad) for one in lookups)], lambda _: 0
        )
        return run([Followed(changed, found.admit, most).view(view.plan)], found.answer)

    assert follows(20 * 50) == [True]
    assert follows(20 * 50 - 1) == [False]
