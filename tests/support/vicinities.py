"""Random views and changes, computed from the vicinity of the change alone."""

from random import Random

from tests.support.engines import bag_of
from tests.support.histories import AROUND_EXISTS, from_scratch, random_deltas
from tests.support.random_queries import PROLOGUE, RandomQueries

from evergraph.engines.spark.following import SmallChange
from evergraph.engines.spark.found import Found
from evergraph.engines.spark.rounds import run
from evergraph.engines.spark.rows import row_of
from evergraph.engines.spark.vicinity import Followed, Lookup, Quad, matcher
from evergraph.engines.spark.views import SparkView
from evergraph.sparql.parser import parse_query


def answers(lookup: Lookup, quad: Quad) -> bool:
    """Tell whether a quad answers a lookup."""
    return matcher(lookup.pattern)(quad) and (lookup.place is None or quad[lookup.place] in lookup.values)


def check_vicinity(seed: int, steps: int = 10) -> int | None:
    """Follow a random history with a random view; return how many quads were not fetched, None for an island."""
    source = RandomQueries(Random(seed))
    pool = source.dataset(most=36)
    text = source.query()
    if seed % 2:
        text = f"{PROLOGUE}SELECT * {{ {source.random.choice(AROUND_EXISTS).format(source.group())} }}"
    view = SparkView("view", parse_query(text))
    if view.island is not None or not pool:
        return None
    present: frozenset[object] = frozenset()
    total = from_scratch(view.query, frozenset())
    spared = 0
    for number, delta in enumerate(random_deltas(Random(seed + 1), pool, steps)):
        there = [row_of(quad) for quad in present]  # type: ignore[arg-type]
        changed = [row_of(quad) for quad in delta.inserted | delta.deleted]
        found = Found(
            changed,
            lambda lookups, there=there: [quad for quad in there if any(answers(one, quad) for one in lookups)],  # type: ignore[misc]
            lambda lookup: 0,
        )
        assert run([Followed(changed, found.admit).view(view.plan)], found.answer) == [True]
        spared += len(there) - len(found.quads)
        change = SmallChange(delta, frozenset(found.quads), frozenset((view.name,)))
        got = bag_of(change.changes([view])[0])
        present = (present - delta.deleted) | delta.inserted
        now = from_scratch(view.query, present)  # type: ignore[arg-type]
        assert got == now - total, f"seed {seed}, step {number}\n{text}\n{delta}\nfound {found.quads}"
        total = now
    return spared
