"""Every operator with state: integrate the changes of its operands, recompute, differentiate, and compare."""

from collections.abc import Callable
from random import Random

import pytest

from evergraph.engines.local.build import PlanCircuit, Workshop
from evergraph.engines.local.dictionary import Row, ZSet, add
from evergraph.engines.local.operators import Budget, Operator
from evergraph.engines.local.store import Store
from evergraph.plan import nodes
from evergraph.plan.lower import Lowering
from evergraph.plan.nodes import Plan
from evergraph.sparql.algebra import (
    Aggregate,
    AggregateFunction,
    Bound,
    Compare,
    Comparison,
    Not,
    Or,
    OrderCondition,
)
from evergraph.sparql.expressions import Environment
from evergraph.sparql.values import sort_key
from evergraph.terms import Literal, Variable

A, B, C, D, M = (Variable(name) for name in "abcdm")
LEFT, RIGHT = (A, B, C), (B, C, D)
DIFFERENT = Or((Not(Bound(A)), Not(Bound(D)), Compare(Comparison.NOT_EQUAL, A, D)))


class Feed:
    """An operand that says what it is told to say."""

    def __init__(self) -> None:
        self.delta: ZSet = {}

    def pull(self) -> ZSet:
        delta, self.delta = self.delta, {}
        return delta

    def size(self) -> int:
        return 0


class Bench:
    """Builds one operator over feeds: a `Values` without rows stands for a feed, by its columns."""

    def __init__(self) -> None:
        self.store = Store()
        self.numbers = [self.store.dictionary.encode(Literal(number)) for number in range(3)]
        self.feeds: dict[tuple[Variable, ...], Feed] = {}
        self.workshop = Workshop(self.store, Environment(), Lowering(), Budget(1_000_000))

    def operator(self, plan: Plan) -> Operator:
        bench = self

        class Circuit(PlanCircuit):
            def build(self, plan: Plan) -> Operator:
                if isinstance(plan, nodes.Values) and not plan.rows:
                    return bench.feeds.setdefault(plan.variables, Feed())
                return super().build(plan)

        return Circuit(self.workshop, lambda: None).build(plan)


def feed(columns: tuple[Variable, ...], certain: bool) -> Plan:
    """Make a feed whose columns are certainly bound, or not."""
    plan = nodes.Values(columns, ())
    if not certain:
        object.__setattr__(plan, "certain", frozenset())
    return plan


def compatible(row: Row, other: Row) -> bool:
    return all(not a or not b or a == b for a, b in zip(row[1:], other[:2], strict=True))


def merged(row: Row, other: Row) -> Row:
    return (row[0], row[1] or other[0], row[2] or other[1], other[2])


def differ(row: Row, other: Row) -> bool:
    return not row[0] or not other[2] or row[0] != other[2]


def matches(row: Row, right: ZSet, test: Callable[[Row, Row], bool]) -> int:
    return sum(weight for other, weight in right.items() if compatible(row, other) and test(row, other))


def bag(rows: list[tuple[Row, int]]) -> ZSet:
    result: ZSet = {}
    for row, weight in rows:
        add(result, row, weight)
    return result


def join(left: ZSet, right: ZSet, test: Callable[[Row, Row], bool] = lambda a, b: True) -> list[tuple[Row, int]]:
    return [(merged(a, b), v * w) for a, v in left.items() for b, w in right.items() if compatible(a, b) and test(a, b)]


def left_join(left: ZSet, right: ZSet) -> ZSet:
    alone = [((*a, 0), v) for a, v in left.items() if not matches(a, right, differ)]
    return bag(join(left, right, differ) + alone)


def shares(row: Row, other: Row) -> bool:
    return any(a and b for a, b in zip(row[1:], other[:2], strict=True))


Recompute = Callable[[ZSet, ZSet, "Bench"], ZSet]
Make = Callable[[Plan, Plan], Plan]

TWO_SIDES: dict[str, tuple[Make, Recompute]] = {
    "join": (nodes.Join, lambda left, right, _: bag(join(left, right))),
    "left join": (lambda a, b: nodes.LeftJoin(a, b, DIFFERENT), lambda left, right, _: left_join(left, right)),
    "semi-join": (
        lambda a, b: nodes.SemiJoin(a, b, DIFFERENT),
        lambda left, right, _: bag([(a, v) for a, v in left.items() if matches(a, right, differ)]),
    ),
    "anti-join": (
        lambda a, b: nodes.SemiJoin(a, b, anti=True),
        lambda left, right, _: bag([(a, v) for a, v in left.items() if not matches(a, right, lambda a, b: True)]),
    ),
    "minus": (
        nodes.Minus,
        lambda left, right, _: bag([(a, v) for a, v in left.items() if not matches(a, right, shares)]),
    ),
    "mark join": (
        lambda a, b: nodes.MarkJoin(a, b, M, DIFFERENT),
        lambda left, right, bench: bag(
            [((*a, mark(bench, bool(matches(a, right, differ)))), v) for a, v in left.items()]
        ),
    ),
}


def mark(bench: Bench, value: bool) -> int:
    return bench.store.dictionary.encode(Literal(value))


def random_delta(random: Random, state: ZSet, width: int, values: list[int]) -> ZSet:
    """Change some rows of a state, so that no weight becomes negative."""
    delta: ZSet = {}
    for _ in range(random.randint(0, 4)):
        row = tuple(random.choice(values) for _ in range(width))
        if random.random() < 0.5 and state:
            row = random.choice(list(state))
        low = -(state.get(row, 0) + delta.get(row, 0))
        add(delta, row, random.randint(low, 2) or (-1 if low else 1))
    for row, weight in delta.items():
        add(state, row, weight)
    return delta


@pytest.mark.parametrize("certain", [True, False])
@pytest.mark.parametrize("name", TWO_SIDES)
@pytest.mark.parametrize("seed", range(5))
def test_two_sides(name: str, certain: bool, seed: int) -> None:
    make, recompute = TWO_SIDES[name]
    bench, random = Bench(), Random(seed)
    operator = bench.operator(make(feed(LEFT, certain), feed(RIGHT, certain)))
    values = bench.numbers if certain else [0, *bench.numbers[:2]]
    left: ZSet = {}
    right: ZSet = {}
    before: ZSet = {}
    for _ in range(60):
        bench.feeds[LEFT].delta = random_delta(random, left, 3, values)
        bench.feeds[RIGHT].delta = random_delta(random, right, 3, values)
        after = recompute(left, right, bench)
        expected = dict(after)
        for row, weight in before.items():
            add(expected, row, -weight)
        assert operator.pull() == expected
        before = after


def window(state: ZSet, bench: Bench) -> ZSet:
    terms = bench.store.dictionary.terms

    def place(row: Row) -> tuple[object, ...]:
        return tuple(sort_key(terms[one]) for one in row)

    ordered = sorted((row for row, weight in state.items() for _ in range(weight)), key=place)
    ordered.sort(key=lambda row: sort_key(terms[row[1]]), reverse=True)
    return bag([(row, 1) for row in ordered[1:4]])


def counted(state: ZSet, bench: Bench) -> ZSet:
    encode = bench.store.dictionary.encode
    groups: dict[int, list[tuple[Row, int]]] = {}
    for row, weight in state.items():
        groups.setdefault(row[0], []).append((row, weight))
    result: list[tuple[Row, int]] = []
    for key, rows in groups.items():
        total = sum(bench.numbers.index(row[1]) * weight for row, weight in rows)
        result.append(((key, encode(Literal(sum(w for _, w in rows))), encode(Literal(total))), 1))
    return bag(result)


ONE_SIDE: dict[str, tuple[Callable[[Plan], Plan], Callable[[ZSet, Bench], ZSet]]] = {
    "distinct": (nodes.Distinct, lambda state, _: dict.fromkeys(state, 1)),
    "project": (
        lambda plan: nodes.Project(plan, (C, A)),
        lambda state, _: bag([((row[2], row[0]), weight) for row, weight in state.items()]),
    ),
    "slice": (lambda plan: nodes.Slice(plan, (OrderCondition(B, descending=True),), LEFT, 1, 3), window),
    "group": (
        lambda plan: nodes.Group(
            plan,
            (A,),
            ((C, Aggregate(AggregateFunction.COUNT, None)), (D, Aggregate(AggregateFunction.SUM, B))),
        ),
        counted,
    ),
}


@pytest.mark.parametrize("name", ONE_SIDE)
@pytest.mark.parametrize("seed", range(5))
def test_one_side(name: str, seed: int) -> None:
    make, recompute = ONE_SIDE[name]
    bench, random = Bench(), Random(seed)
    operator = bench.operator(make(feed(LEFT, certain=True)))
    state: ZSet = {}
    before: ZSet = {}
    for _ in range(60):
        bench.feeds[LEFT].delta = random_delta(random, state, 3, bench.numbers)
        after = recompute(state, bench)
        expected = dict(after)
        for row, weight in before.items():
            add(expected, row, -weight)
        assert operator.pull() == expected
        before = after
