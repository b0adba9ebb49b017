"""Random histories of a dataset, and the check that a maintained view follows them exactly."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.support.random_queries import RandomQueries

from evergraph.delta import Bag, Delta
from evergraph.engines.local.engine import LocalEngine, View, ViewChange
from evergraph.sparql.algebra import Query
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.sparql.results import Solutions, evaluate_query
from evergraph.sparql.values import boolean
from evergraph.terms import Quad


def from_scratch(query: Query, quads: frozenset[Quad]) -> Bag[Row]:
    """Evaluate a query from scratch, in the form in which views give their results."""
    result = evaluate_query(query, Dataset(quads))
    if isinstance(result, Solutions):
        return result.bag
    if isinstance(result, bool):
        return Bag([(boolean(result),)])
    return Bag((triple.subject, triple.predicate, triple.object) for triple in result)


def random_deltas(random: Random, pool: frozenset[Quad], steps: int) -> Iterator[Delta]:
    """Make exact deltas, single and batched, that insert, delete and insert again quads of a pool."""
    present: set[Quad] = set()
    ordered = sorted(pool, key=str)
    for _ in range(steps):
        size = 1 if random.random() < 0.6 else random.randint(2, max(2, len(ordered) // 2))
        chosen = set(random.sample(ordered, min(size, len(ordered))))
        if random.random() < 0.5 and size > 1:
            chosen -= present if random.random() < 0.5 else set(ordered) - present
        delta = Delta(frozenset(chosen - present), frozenset(chosen & present))
        present = (present | chosen) - delta.deleted
        yield delta


@dataclass(slots=True)
class Follower:
    """A view and what it should be: checks every change."""

    view: View
    query: Query
    total: Bag[Row]
    where: str

    def check(self, quads: frozenset[Quad], change: ViewChange | None) -> None:
        """Compare the view with an evaluation from scratch, and its change with the difference."""
        expected = from_scratch(self.query, quads)
        result = self.view.result()
        assert result == expected, f"{self.where}\nmaintained {result}\nexpected   {expected}"
        difference = expected - self.total
        if change is None:
            assert not len(difference), f"{self.where}\nnothing was reported"
        else:
            assert len(change.added) or len(change.removed), f"{self.where}\nno change was reported as one"
            assert change.added == difference.positive(), self.where
            assert change.removed == difference.negative(), self.where
        self.total = expected


def check_history(seed: int, steps: int = 12) -> None:
    """Maintain a random query over a random history; it may be registered in the middle of it."""
    source = RandomQueries(Random(seed))
    pool, text = source.dataset(most=36), source.query()
    check_query(seed, text, pool, steps)


def check_query(seed: int, text: str, pool: frozenset[Quad], steps: int = 12) -> None:
    """Maintain a query over a random history of a pool of quads."""
    random = Random(seed + 1)
    query = parse_query(text)
    present: frozenset[Quad] = frozenset()
    engine = LocalEngine(source=lambda: present)
    late = random.choice((0, 0, 0, 3))
    follower: Follower | None = None
    deltas: list[Delta] = []
    if not late:
        follower = _follow(engine, query, present, f"seed {seed}\n{text}")
    if not pool:
        return
    for number, delta in enumerate(random_deltas(random, pool, steps)):
        deltas.append(delta)
        changes = engine.apply(delta)
        present = (present - delta.deleted) | delta.inserted
        if follower is None:
            if number == late:
                follower = _follow(engine, query, present, f"seed {seed}\n{text}")
            continue
        follower.where = f"seed {seed}, step {number}\n{text}\n{delta}"
        follower.check(present, changes[0] if changes else None)
    assert follower is not None
    engine.remove(follower.view)
    assert engine.is_empty(), f"seed {seed}: something is left of a removed view\n{text}"


def _follow(engine: LocalEngine, query: Query, quads: frozenset[Quad], where: str) -> Follower:
    view = engine.register(query)
    expected = from_scratch(query, quads)
    assert view.result() == expected, f"{where}\nat first {view.result()}\nexpected {expected}"
    return Follower(view, query, expected, where)
