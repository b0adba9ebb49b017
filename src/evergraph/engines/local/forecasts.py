"""What large changes would cost for a query over some data, measured before anybody depends on it."""

from random import Random

from evergraph.delta import Delta
from evergraph.engines.local.engine import LocalEngine
from evergraph.engines.local.optimizer import Forecast, Optimizer, Way
from evergraph.engines.local.views import View
from evergraph.sparql.algebra import Query
from evergraph.terms import Quad

_SAMPLE = 1_000


def measure(query: Query, quads: frozenset[Quad]) -> tuple[View, list[Forecast]]:
    """Maintain a query over some data; take some of them out and in again both ways, and say what would be chosen.

    Changes are taken to be like the data: of the same predicates, in the same proportions.
    """
    forced: list[Way | None] = [None]
    engine = LocalEngine(optimizer=Optimizer(smallest=1, force=lambda: forced[0]))
    view = engine.register(query)
    if not quads:
        return view, []
    engine.apply(Delta(inserted=quads))
    some = frozenset(Random(1).sample(sorted(quads, key=str), min(_SAMPLE, len(quads))))
    ways: tuple[Way, ...] = ("direct", "incremental")
    for way in ways:
        forced[0] = way
        for delta in (Delta(deleted=some), Delta(inserted=some)):
            engine.apply(delta)
    return view, [] if view.failed else view.forecasts()
