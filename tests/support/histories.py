"""Random histories of a dataset, and the check that a maintained view follows them exactly."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.support.random_queries import PROLOGUE, RandomQueries

from evergraph.delta import Bag, Delta, Request
from evergraph.engines.local.dictionary import Dictionary
from evergraph.engines.local.engine import LocalEngine, View, ViewChange
from evergraph.engines.local.optimizer import Optimizer
from evergraph.sparql.algebra import Query
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.sparql.results import Solutions, evaluate_query
from evergraph.sparql.values import boolean
from evergraph.terms import GraphName, Quad, Term


def from_scratch(query: Query, quads: frozenset[Quad]) -> Bag[Row]:
    """Evaluate a query from scratch, in the form in which views give their results."""
    result = evaluate_query(query, Dataset(quads))
    if isinstance(result, Solutions):
        return result.bag
    if isinstance(result, bool):
        return Bag([(boolean(result),)])
    return Bag((triple.subject, triple.predicate, triple.object) for triple in result)


def leave_out_small_ids(dictionary: Dictionary) -> None:
    """Begin with ids that can be given back: Python has one object for each small number, and keeps it for good."""
    dictionary.terms.extend([None] * 1_000)
    dictionary._numbers.extend([0] * 1_000)


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
            view, rows = change
            added, removed = view.added(rows), view.removed(rows)
            assert len(added) or len(removed), f"{self.where}\nno change was reported as one"
            assert added == difference.positive(), self.where
            assert removed == difference.negative(), self.where
            assert view.changed(rows) == difference, self.where
        self.total = expected


def check_history(seed: int, steps: int = 12, optimizer: Optimizer | None = None) -> None:
    """Maintain a random query over a random history; it may be registered in the middle of it."""
    source = RandomQueries(Random(seed))
    pool, text = source.dataset(most=36), source.query()
    if seed % 20 == 19:
        text = f"{PROLOGUE}DESCRIBE ?a ?b :c WHERE {source.group()}"
    check_query(seed, text, pool, steps, optimizer)


AROUND_EXISTS = (
    "?a :p ?b FILTER EXISTS {0}",
    "?a :p ?b OPTIONAL {{ ?b :q ?c }} FILTER NOT EXISTS {0}",
    "?a :p ?b OPTIONAL {{ ?b :p ?c FILTER EXISTS {0} }}",
    "?a :p ?b FILTER (?a = :c || NOT EXISTS {0})",
    "?a :p ?b BIND(EXISTS {0} AS ?e)",
    "GRAPH ?g {{ ?a :p ?b FILTER EXISTS {0} }}",
    "VALUES (?a ?d) {{ (:a 1) (:b UNDEF) (UNDEF :c) }} FILTER EXISTS {0}",
)


def check_exists(seed: int, steps: int = 10, optimizer: Optimizer | None = None) -> None:
    """Maintain a query with EXISTS of a random pattern, in one of several places."""
    source = RandomQueries(Random(seed))
    pool, group = source.dataset(most=30), source.group()
    text = f"{PROLOGUE}SELECT * {{ {source.random.choice(AROUND_EXISTS).format(group)} }}"
    check_query(seed, text, pool, steps, optimizer)


def check_query(
    seed: int, text: str, pool: frozenset[Quad], steps: int = 12, optimizer: Optimizer | None = None
) -> None:
    """Maintain a query over a random history of a pool of quads."""
    random = Random(seed + 1)
    query = parse_query(text)
    present: frozenset[Quad] = frozenset()

    def lookup(*wanted: Term | GraphName | None) -> Iterator[Quad]:
        for quad in present:
            if all(one is None or one == term for one, term in zip(wanted, quad, strict=True)):
                yield quad

    engine = LocalEngine(lambda: present, None, optimizer) if seed % 2 else LocalEngine(None, lookup, optimizer)
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


def check_many(seed: int, views: int = 5, steps: int = 14, optimizer: Optimizer | None = None) -> None:
    """Maintain several random queries in one engine; they come and go while changes flow, which may be inexact."""
    source = RandomQueries(Random(seed))
    random = Random(seed + 1)
    pool = source.dataset(most=40)
    if not pool:
        return
    present: frozenset[Quad] = frozenset()
    engine = LocalEngine(lambda: present, None, optimizer)
    followers: dict[View, Follower] = {}
    for number, delta in enumerate(random_deltas(random, pool, steps)):
        if len(followers) < views and random.random() < 0.7:
            text = source.query()
            follower = _follow(engine, parse_query(text), present, f"seed {seed}, step {number}\n{text}")
            followers[follower.view] = follower
        elif followers and random.random() < 0.2:
            view = random.choice(list(followers))
            engine.remove(view)
            del followers[view]
        if random.random() < 0.5:
            changes = engine.apply(delta)
        else:
            again = frozenset(random.sample(sorted(pool, key=str), len(pool) // 4))
            request = Request(
                removed=delta.deleted | (again - present),
                added=delta.inserted | (again & present) - delta.deleted,
            )
            changes = engine.apply_request(request)
        present = (present - delta.deleted) | delta.inserted
        reported = {change[0]: change for change in changes}
        assert len(reported) == len(changes)
        for view, follower in followers.items():
            follower.where = f"seed {seed}, step {number}\n{follower.where.splitlines()[-1]}"
            follower.check(present, reported.pop(view, None))
        assert not reported, f"seed {seed}: a removed view was reported"
    for view in followers:
        engine.remove(view)
    assert engine.is_empty(), f"seed {seed}: something is left of removed views"
