"""What is known about the quads before they are read, and which way of computing a change costs less."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from evergraph.engines.spark import statistics
from evergraph.engines.spark.relations import Relations, predicate_of
from evergraph.engines.spark.views import SparkView
from evergraph.plan import nodes
from evergraph.plan.nodes import Plan
from evergraph.plan.rebuild import children

_SHUFFLE = 4.0
"""What a row costs that is shuffled, joined or sorted, if one that is only read costs 1."""

_FIXED = 0.3
"""Seconds that any way takes, whatever the data."""

_REMEMBERED = 64


class Quads(Protocol):
    """The quads that are there now."""

    def read(self, spark: SparkSession) -> DataFrame:
        """Return them, each once."""
        ...

    def statistics(self, spark: SparkSession) -> statistics.Statistics:
        """Tell how many there are."""
        ...


class Way(StrEnum):
    """How a view is brought up to date."""

    FOLLOWING = "following"
    WHOLE = "whole"
    SHARES = "shares"
    INCREMENTAL = "incremental"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Estimates from the statistics of a table."""

    known: statistics.Statistics

    def rows(self, predicate: str | None) -> float:
        """Tell how many quads have a predicate; None is any. One that is not listed is rarer than all that are."""
        if predicate is None:
            return float(max(1, self.known.rows))
        found = self.known.predicates.get(predicate)
        return float(found.rows) if found is not None else 1.0

    def fan_out(self, predicate: str | None, position: str) -> float:
        """Tell how many quads there are for one subject, or object, of a predicate."""
        if predicate is None:
            return max(1.0, math.sqrt(self.rows(None)))
        found = self.known.predicates.get(predicate)
        if found is None:
            return 1.0
        return found.rows / max(1, found.subjects if position == "subject" else found.objects)


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for one view and one batch, by estimated numbers of rows to read; and how long it took."""

    view: str
    changes: int
    incremental: float
    direct: float
    chosen: Way
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.view}: {self.changes:,} changes; rows to read: incremental {self.incremental:,.0f}, direct "
            f"{self.direct:,.0f}: {self.chosen}, took {self.seconds:.2f} s"
        )


class Costs:
    """What the ways have cost so far, for each view: seconds for a unit of the estimates."""

    def __init__(self) -> None:
        self._rates: dict[tuple[str, Way], float] = {}
        self.choices: list[Choice] = []

    def choose(self, view: SparkView, relations: Relations, forced: Way | None) -> Choice:
        """Choose the way that is expected to take less time; of a way that was not tried, as fast as the other."""
        incremental = incremental_cost(view.plan, relations)
        direct = direct_cost(view.plan, relations)
        rates = [self._rates.get((view.name, way)) for way in (Way.INCREMENTAL, Way.DIRECT)]
        known = [rate for rate in rates if rate is not None]
        first, second = (rate if rate is not None else sum(known) / len(known) if known else 1.0 for rate in rates)
        chosen = forced or (Way.INCREMENTAL if incremental * first <= direct * second else Way.DIRECT)
        return Choice(view.name, round(relations.size), incremental, direct, chosen)

    def record(self, choice: Choice, seconds: float) -> None:
        """Remember how long a choice took."""
        units = choice.direct if choice.chosen is Way.DIRECT else choice.incremental
        if choice.chosen in (Way.INCREMENTAL, Way.DIRECT) and units:
            key = (choice.view, choice.chosen)
            rate = max(0.0, seconds - _FIXED) / units
            self._rates[key] = (self._rates.get(key, rate) + rate) / 2
        self.choices = [*self.choices[-_REMEMBERED + 1 :], replace(choice, seconds=seconds)]


def direct_cost(plan: Plan, relations: Relations) -> float:
    """Estimate the rows that go through shuffles when a plan is run before and after the change."""
    return 2 * _SHUFFLE * (_scan(plan, relations) + relations.size)


def incremental_cost(plan: Plan, relations: Relations) -> float:
    """Estimate the rows that the delta rules read, and shuffle."""
    match plan:
        case nodes.BGP(patterns):
            sizes = [relations.statistics.rows(predicate_of(pattern)) for pattern in patterns]
            matching = [relations.matching.get(pattern, 0.0) for pattern in patterns]
            terms = [
                sum(sizes) - size + _SHUFFLE * len(patterns) * found
                for size, found in zip(sizes, matching, strict=True)
                if found
            ]
            return sum(terms)
        case nodes.Join(left, right):
            return _sides(left, right, relations, again=0)
        case nodes.LeftJoin() | nodes.SemiJoin() | nodes.MarkJoin() | nodes.Minus():
            return _sides(plan.left, plan.right, relations, again=2)
    below = sum(incremental_cost(child, relations) for child in children(plan))
    if not below:
        return 0.0
    match plan:
        case nodes.Distinct() | nodes.Group():
            return below + _scan(plan, relations)
        case nodes.Slice() | nodes.Path():
            return below + 2 * _SHUFFLE * _scan(plan, relations)
        case _:
            return below


def _sides(left: Plan, right: Plan, relations: Relations, again: int) -> float:
    first, second = incremental_cost(left, relations), incremental_cost(right, relations)
    cost = first + second
    if first:
        cost += _scan(right, relations)
    if second:
        cost += _scan(left, relations) + again * _scan(right, relations)
    return cost


def _scan(plan: Plan, relations: Relations) -> float:
    if isinstance(plan, nodes.BGP):
        return sum(relations.statistics.rows(predicate_of(pattern)) for pattern in plan.patterns)
    if isinstance(plan, nodes.Nodes | nodes.GraphNames):
        return relations.statistics.rows(None)
    return sum(_scan(child, relations) for child in children(plan))
