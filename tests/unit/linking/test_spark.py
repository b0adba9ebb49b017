"""Matching on Spark finds what the oracle finds, skewed keys and all pairs included."""

from random import Random
from typing import TYPE_CHECKING

import pytest
from pyspark import cloudpickle
from tests.support.link_histories import check_link_history
from tests.support.random_rules import random_rule, random_side

from evergraph.linking import spark as on_spark
from evergraph.linking.measures import MEASURES
from evergraph.linking.oracle import all_pairs
from evergraph.linking.rules import Comparison, Rule, Side
from evergraph.linking.spark import SparkMatcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_spark, "SMALL", 0)


def test_rules_go_to_other_processes() -> None:
    for seed in range(60):
        rule, measures = random_rule(Random(seed))
        random = Random(seed)
        sides = random_side(random, measures, "s", 3), random_side(random, measures, "t", 3)
        expected = all_pairs(rule, *sides)
        copy = cloudpickle.loads(cloudpickle.dumps(rule))  # type: ignore[no-untyped-call]
        assert all_pairs(copy, *sides) == expected


@pytest.mark.parametrize("few", [0, 20_000])
def test_random_rules(spark: "SparkSession", few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_spark, "FEW", few)
    random = Random(3)
    rule, measures = random_rule(random)
    sides = random_side(random, measures, "s", 9), random_side(random, measures, "t", 12)
    matcher = SparkMatcher(rule, spark)
    for number, side in enumerate(sides):
        matcher.replace(number, side)
    expected = all_pairs(rule, *sides)
    assert expected
    assert matcher.full() == expected


@pytest.mark.long
@pytest.mark.parametrize("name", MEASURES)
def test_every_measure(spark: "SparkSession", name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        monkeypatch.setattr(on_spark, "FEW", 20_000 * (seed % 2))
        random = Random(seed)
        rule, measures = random_rule(random, name)
        sides = random_side(random, measures, "s", 9), random_side(random, measures, "t", 12)
        matcher = SparkMatcher(rule, spark)
        for number, side in enumerate(sides):
            matcher.replace(number, side)
        assert matcher.full() == all_pairs(rule, *sides)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_histories(spark: "SparkSession", seed: int) -> None:
    check_link_history(seed, lambda rule: SparkMatcher(rule, spark))


def test_a_key_that_all_have_is_spread(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_spark, "SKEWED", 3)
    rule = Rule(Comparison("name", Side((0,)), Side((0,)), MEASURES["exact"]))
    sources = {f"<urn:s{number}>": (("same",),) for number in range(20)}
    targets = {f"<urn:t{number}>": (("same" if number else "other",),) for number in range(15)}
    probing, indexed = on_spark.table(spark, sources), on_spark.table(spark, targets)
    pairs = on_spark.candidates(probing, indexed, rule, ((0,),))
    assert pairs.count() == 20 * 14
    few = on_spark.candidates(probing, indexed, rule, ((0,),), few=True)
    assert sorted(few.collect()) == sorted(pairs.collect())
    plan = pairs._jdf.queryExecution().executedPlan().toString()
    assert "CartesianProduct" not in plan
    assert "BroadcastNestedLoopJoin" not in plan
