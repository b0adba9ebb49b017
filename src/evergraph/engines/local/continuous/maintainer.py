"""A whole basic graph pattern: its parts, maintained independently, and the product of their answers."""

from collections.abc import Callable, Iterator
from operator import itemgetter

from evergraph.engines.local.continuous.components import ConnectedMaintainer
from evergraph.engines.local.continuous.ground import GroundMaintainer
from evergraph.engines.local.continuous.part import Encode, Factor, Members, Routes, Row, RowDelta, Sink, StateSize
from evergraph.engines.local.continuous.product import ChangedFactor, ProductDelta, all_rows
from evergraph.engines.local.continuous.star import StarMaintainer
from evergraph.errors import UsageError
from evergraph.plan.continuous import Decomposition, Part, PartClass
from evergraph.sparql.algebra import GraphContext, TriplePattern
from evergraph.terms import Variable

_CENTRE = Variable("centre")


class PatternMaintainer:
    """Maintains a decomposed pattern over values that stand for terms; ``encode`` gives those of the constants.

    Rule: each part takes the quad; the change of the answer is that of the product (see `product`). Stars that differ
    in the name of the centre alone are kept once and counted as often as they occur. State: that of the parts.
    """

    __slots__ = ("_factors", "_order", "_routes", "_sinks", "_version", "variables")

    def __init__(self, decomposition: Decomposition, encode: Encode) -> None:
        self.variables = decomposition.variables
        parts = decomposition.parts
        sinks: dict[object, tuple[Sink, list[TriplePattern]]] = {}
        factors: dict[int, Factor] = {}
        connected = [part for part in parts if part.kind is PartClass.CONNECTED]
        if connected:
            together = ConnectedMaintainer(connected, encode)
            sinks[PartClass.CONNECTED] = (together, [triple for part in connected for triple in part.triples])
            factors.update((id(part), one) for part, one in zip(connected, together.components, strict=True))
        for part in parts:
            if part.kind is PartClass.GROUND:
                ground = factors[id(part)] = GroundMaintainer(part.triples, encode)
                sinks[PartClass.GROUND] = (ground, list(part.triples))
            elif part.kind is PartClass.STAR:
                key = _anonymous(part)
                if key not in sinks:
                    sinks[key] = (StarMaintainer(part.triples, encode), list(part.triples))
                star = sinks[key][0]
                assert isinstance(star, StarMaintainer)
                factors[id(part)] = star
        self._sinks = [sink for sink, _ in sinks.values()]
        self._factors = [factors[id(part)] for part in parts]
        self._order = _reordering([variable for part in parts for variable in part.variables], self.variables)
        targets = [(triple, sink) for sink, triples in sinks.values() for triple in triples]
        self._routes = Routes.make(targets, encode)
        self._version = 0

    def insert(self, quad: Members) -> bool:
        """Take a quad in; False if that changes nothing."""
        changed = False
        for sink in self._routes.by_predicate.get(quad[1], self._routes.others):
            changed |= sink.insert(quad)
        self._version += changed
        return changed

    def delete(self, quad: Members) -> bool:
        """Take a quad out; False if that changes nothing."""
        changed = False
        for sink in self._routes.by_predicate.get(quad[1], self._routes.others):
            changed |= sink.delete(quad)
        self._version += changed
        return changed

    def expire(self) -> None:
        """Say that what `take` returned before must no longer be read."""
        self._version += 1

    def changes(self) -> RowDelta:
        """Return the net change of the answers since the last call, as a dictionary of rows and weights."""
        if len(self._factors) == 1:
            return self._factors[0].take()
        return dict(self.take().items())

    def take(self) -> ProductDelta:
        """Return the same as something to iterate over; use it before the next quad is taken in or out."""
        version = self._version
        distinct = {id(factor): factor for factor in self._factors}
        changes = {key: ChangedFactor.of(factor, factor.take()) for key, factor in distinct.items()}
        changed = [changes[id(factor)] for factor in self._factors]

        def check() -> None:
            if version != self._version:
                raise UsageError(
                    "the change of an answer was read after the next one had been applied",
                    hint="read it at once, or keep its rows in a list",
                )

        return ProductDelta(changed, self._order, check)

    @property
    def count(self) -> int:
        """The number of answers, known without finding them."""
        total = 1
        for factor in self._factors:
            total *= factor.count
        return total

    def answers(self) -> Iterator[Row]:
        """Iterate over the current answers, over ``variables``."""
        return all_rows(self._factors, self._order)

    def state(self) -> StateSize:
        """Measure the state of all parts."""
        return sum((sink.state() for sink in self._sinks), StateSize())


def _anonymous(part: Part) -> frozenset[TriplePattern]:
    """Return the triple patterns of a star with a centre that has no name of its own."""

    def hidden(term: GraphContext) -> GraphContext:
        return _CENTRE if isinstance(term, Variable) else term

    return frozenset(
        TriplePattern(*map(hidden, (one.subject, one.predicate, one.object, one.graph)))  # type: ignore[arg-type]
        for one in part.triples
    )


def _reordering(have: list[Variable], want: tuple[Variable, ...]) -> Callable[[Row], Row]:
    if tuple(have) == want:
        return _same
    return itemgetter(*(have.index(variable) for variable in want))


def _same(row: Row) -> Row:
    return row
