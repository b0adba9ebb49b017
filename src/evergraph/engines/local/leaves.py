"""The leaves of plans: where changed quads become changed rows."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from evergraph.engines.local.bgp_source import PatternShape, Shape, delta_code, full_code
from evergraph.engines.local.dictionary import ZSet, add
from evergraph.engines.local.operators import state_limit
from evergraph.engines.local.relations import EVERYTHING, Cover, Entry, Relation
from evergraph.engines.local.store import Store, Subscription
from evergraph.plan import nodes
from evergraph.plan.nodes import EachGraph, QuadPattern
from evergraph.plan.parameters import TABLE
from evergraph.terms import BlankNode, NamedNode, Variable


class QuadLeaf:
    """A leaf that quads feed. ``touch`` is what its plan wants to be told when there is something to do."""

    def __init__(self, store: Store, touch: Callable[[], None]) -> None:
        self.store = store
        self.touch = touch
        self.pending: ZSet = {}
        self.owner: Any = None
        self.top: Any = None
        """What is to be refreshed when the leaf has something; None if only `touch` knows."""
        self.is_whole = False
        """Whether its rows are those of the result, and none can be there twice."""
        self.limit = sys.maxsize
        """How many rows may wait."""
        self.subscriptions: list[Subscription] = []
        self._indexes: list[tuple[Relation, str]] = []

    @property
    def listening(self) -> Iterable[Subscription]:
        """All that it has subscribed to."""
        return self.subscriptions

    @property
    def scans(self) -> Iterable[tuple[Relation, Cover]]:
        """What it reads when it is loaded."""
        return [(one.relation, one.cover) for one in self.subscriptions]

    def pull(self) -> ZSet:
        """Hand over what has changed since the last time."""
        pending = self.pending
        delta = pending.copy()
        pending.clear()
        return delta

    def overflow(self) -> None:
        """Take note that more rows would wait than may: the next `pull` fails."""

        def pull() -> ZSet:
            raise state_limit(self.limit)

        self.pull = pull  # type: ignore[method-assign]
        self.is_whole = False

    def size(self) -> int:
        """Count the entries of state, which is what waits."""
        return len(self.pending)

    def load(self) -> None:
        """Take the quads that are there already for new ones."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what the leaf has of the store."""
        for relation, columns in self._indexes:
            relation.release(columns)
        for subscription in self.subscriptions:
            self.store.cancel(subscription)
        self._indexes, self.subscriptions = [], []

    def _index(self, relation: Relation, columns: str) -> Any:
        self._indexes.append((relation, columns))
        return relation.index(columns)

    def _subscribe(self, subscription: Subscription) -> None:
        self.subscriptions.append(subscription)
        self.store.subscribe(subscription)


@dataclass(slots=True)
class _Open:
    """A pattern with parameters, and how often which quads are wanted."""

    pattern: QuadPattern
    relation: Relation
    entry: Entry
    wanted: Counter[Cover] = field(default_factory=Counter)

    def cover(self, values: dict[object, int], store: Store) -> Cover:
        """Tell which quads match with some values of the parameters."""
        subject, object_ = self.pattern.subject, self.pattern.object
        return values.get(subject) or _constant(subject, store), values.get(object_) or _constant(object_, store)


class BGPLeaf(QuadLeaf):
    """A basic graph pattern; see `evergraph.plan.nodes.BGP` for its rule.

    A pattern with parameters sees no quads until somebody wants some values of them; see `evergraph.plan.parameters`.
    """

    def __init__(
        self, plan: nodes.BGP, store: Store, touch: Callable[[], None], parameters: frozenset[Variable] = frozenset()
    ) -> None:
        super().__init__(store, touch)
        self._open: list[_Open] = []
        self._shape, self._constants = _shape(plan, store)
        self.is_set = self._shape.is_set()
        """Whether no row can be there twice."""
        self._relations = [relation_of(pattern, store) for pattern in plan.patterns]
        code = delta_code(self._shape)
        indexes = [self._index(self._relations[number], columns) for number, columns in code.accesses]
        runs = code.make(indexes, self._constants, self.pending, self)
        for pattern, relation, run in zip(plan.patterns, self._relations, runs, strict=True):
            if pattern.predicate != TABLE and not parameters.isdisjoint((pattern.subject, pattern.object)):
                self._open.append(_Open(pattern, relation, (run, self)))
                continue
            cover = (_constant(pattern.subject, store), _constant(pattern.object, store))
            self._subscribe(Subscription(relation, cover, (run, self)))

    def want(self, values: dict[object, int]) -> None:
        """Take in the quads that patterns match with some values of the parameters; `Store.fill` brings them."""
        for one in self._open:
            cover = one.cover(values, self.store)
            one.wanted[cover] += 1
            if one.wanted[cover] == 1:
                self.store.subscribe(Subscription(one.relation, cover, one.entry))

    def unwant(self, values: dict[object, int]) -> None:
        """Take back a `want`."""
        for one in self._open:
            cover = one.cover(values, self.store)
            one.wanted[cover] -= 1
            if not one.wanted[cover]:
                del one.wanted[cover]
                self.store.cancel(Subscription(one.relation, cover, one.entry))

    @property
    def listening(self) -> Iterable[Subscription]:
        """All that it has subscribed to, for all values of its parameters."""
        return chain(
            self.subscriptions,
            (Subscription(one.relation, cover, one.entry) for one in self._open for cover in one.wanted),
        )

    @property
    def scans(self) -> Iterable[tuple[Relation, Cover]]:
        """What it reads when it is loaded: with parameters, about all that is there of a relation."""
        return chain(super().scans, ((one.relation, EVERYTHING) for one in self._open))

    def succeed(self, other: "BGPLeaf") -> None:
        """Take over what another leaf of the same pattern wants."""
        for mine, theirs in zip(self._open, other._open, strict=True):
            entries = mine.relation.entries
            for cover in theirs.wanted:
                entries[cover][entries[cover].index(theirs.entry)] = mine.entry
            mine.wanted, theirs.wanted = theirs.wanted, Counter()

    def close(self) -> None:
        """Give back what the leaf has of the store."""
        super().close()
        for one in self._open:
            for cover in one.wanted:
                self.store.cancel(Subscription(one.relation, cover, one.entry))
        self._open = []

    def load(self) -> None:
        """Join all patterns from scratch, beginning with the smallest if none has a constant."""
        patterns = self._shape.patterns
        first = None
        if all(one.s >= 0 and one.o >= 0 for one in patterns):
            first = min(range(len(patterns)), key=lambda number: len(self._relations[number]))
        code = full_code(self._shape, first)
        taken = [(self._relations[number], columns) for number, columns in code.accesses]
        code.make([relation.index(columns) for relation, columns in taken], self._constants, self)(self.pending)
        for relation, columns in taken:
            relation.release(columns)


class GraphNamesLeaf(QuadLeaf):
    """The names of the named graphs; see `evergraph.plan.nodes.GraphNames`."""

    def __init__(self, plan: nodes.GraphNames, store: Store, touch: Callable[[], None]) -> None:
        super().__init__(store, touch)
        graph = plan.graph
        assert isinstance(graph, EachGraph | NamedNode | BlankNode)
        self._relation = store.relation(store.context_key(graph), 0)
        self._each = isinstance(graph, EachGraph)
        self._by_graph = self._index(self._relation, "g" if self._each else "")
        self._subscribe(Subscription(self._relation, EVERYTHING, (self._run, self)))

    def _run(self, _s: int, _p: int, _o: int, graph: int, weight: int) -> None:
        # The quad is in the index: it is the first of its graph, or the last, if it is alone there.
        if len(self._by_graph[graph] if self._each else self._by_graph) == 1:
            add(self.pending, (graph,) if self._each else (), weight)

    def load(self) -> None:
        """Report the graphs that are there."""
        rows = [(graph,) for graph in self._by_graph] if self._each else [()] if self._by_graph else []
        for row in rows:
            add(self.pending, row, 1)


class NodesLeaf(QuadLeaf):
    """The nodes of a graph; see `evergraph.plan.nodes.Nodes`."""

    def __init__(self, plan: nodes.Nodes, store: Store, touch: Callable[[], None]) -> None:
        super().__init__(store, touch)
        self._relation = store.relation(store.context_key(plan.context), 0)
        self._each = isinstance(plan.context, EachGraph)
        self._counts: ZSet = {}
        self._subscribe(Subscription(self._relation, EVERYTHING, (self._run, self)))

    def _run(self, subject: int, _p: int, object_: int, graph: int, weight: int) -> None:
        for node in (subject, object_):
            row = (node, graph) if self._each else (node,)
            before = self._counts.get(row, 0)
            add(self._counts, row, weight)
            if not before or not before + weight:
                add(self.pending, row, weight)

    def load(self) -> None:
        """Count the nodes that are there."""
        for subject, predicate, object_, graph in self._relation.quads():
            self._run(subject, predicate, object_, graph, 1)

    def size(self) -> int:
        """Count the nodes."""
        return len(self._counts)


class ValuesLeaf:
    """A table of constants, which comes once."""

    def __init__(self, plan: nodes.Values, store: Store) -> None:
        self._rows: ZSet = {}
        for row in plan.rows:
            add(self._rows, store.dictionary.encode_row(row), 1)

    def pull(self) -> ZSet:
        """Hand over the table, the first time."""
        rows, self._rows = self._rows, {}
        return rows

    def size(self) -> int:
        """Count nothing."""
        return 0


def relation_of(pattern: QuadPattern, store: Store) -> Relation:
    """Return the relation that holds the quads which a pattern can match."""
    return store.relation(store.context_key(pattern.context), _constant(pattern.predicate, store))


def _constant(term: object, store: Store) -> int:
    return 0 if isinstance(term, Variable) else store.dictionary.encode(term)  # type: ignore[arg-type]


def _shape(plan: nodes.BGP, store: Store) -> tuple[Shape, list[int]]:
    """Take the constants out of a pattern: what is left is the same for all patterns of a kind."""
    variables: dict[Variable, int] = {}
    constants: dict[int, int] = {}

    def slot(term: object) -> int:
        if isinstance(term, Variable):
            return variables.setdefault(term, len(variables))
        return constants.setdefault(_constant(term, store), -len(constants) - 1)

    shapes = []
    for pattern in plan.patterns:
        columns = "so" + ("p" if isinstance(pattern.predicate, Variable) else "")
        context = pattern.context
        columns += "g" if isinstance(context, EachGraph) else ""
        if isinstance(context, EachGraph):
            graph: int | None = slot(context.variable)
        else:
            graph = slot(context) if isinstance(context, NamedNode | BlankNode) else None
        shapes.append(
            PatternShape(slot(pattern.subject), slot(pattern.predicate), slot(pattern.object), graph, columns)
        )
    return Shape(tuple(shapes), tuple(variables[one] for one in plan.variables)), list(constants)
