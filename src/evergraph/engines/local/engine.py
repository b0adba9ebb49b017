"""The local engine: standing queries in one process."""

from collections.abc import Callable, Iterator
from functools import partial

from evergraph.delta import Bag, Delta, Request
from evergraph.engines.local.build import PlanCircuit, Workshop
from evergraph.engines.local.dictionary import Dictionary, ZSet
from evergraph.engines.local.forms import AskOperator, DescribeOperator, TemplateOperator, described_triples
from evergraph.engines.local.operators import Budget, DistinctOperator
from evergraph.engines.local.store import Lookup, Source, Store
from evergraph.errors import EvergraphError, ViewFailed
from evergraph.plan.lower import Lowering, empty, project, refuse_unmaintainable
from evergraph.plan.nodes import Plan
from evergraph.plan.optimize import optimize
from evergraph.sparql.algebra import Ask, Construct, Describe, Query, Select
from evergraph.sparql.expressions import Environment, Row
from evergraph.sparql.parser import parse_query
from evergraph.terms import DEFAULT_GRAPH, Variable

DEFAULT_LIMIT = 10_000_000
"""How many entries of state a view may have in one operator unless it is registered with a limit of its own."""

_FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""What a fault in one view may raise, and must not do to the others."""

TRIPLE_COLUMNS = (Variable("subject"), Variable("predicate"), Variable("object"))
BOOLEAN_COLUMNS = (Variable("boolean"),)


class View:
    """A standing query and its result.

    The rows of SELECT are over ``variables``; ASK has one row with a boolean; CONSTRUCT and DESCRIBE have one for each
    triple. NOW() is the moment of registration, as ``environment`` has it. A view that ``failed`` has no result, and
    follows no changes; ``on_failure`` is told.
    """

    def __init__(self, query: Query, dictionary: Dictionary) -> None:
        self.query = query
        self.environment = Environment()
        self.failed: EvergraphError | None = None
        self.on_failure: Callable[[EvergraphError], None] | None = None
        self.variables = query.variables if isinstance(query, Select) else TRIPLE_COLUMNS
        if isinstance(query, Ask):
            self.variables = BOOLEAN_COLUMNS
        self.plan: Plan
        self.circuit: PlanCircuit
        self._dictionary = dictionary
        self._result: ZSet = {}

    def result(self) -> Bag[Row]:
        """Return the current result, as a bag; raises what the view failed with."""
        if self.failed is not None:
            raise self.failed
        return _decoded(self._result, self._dictionary, 1)

    def size(self) -> int:
        """Count the entries of state of the view itself; quads are shared, and not counted."""
        return self.circuit.size() + len(self._result)

    def refresh(self) -> ZSet:
        """Bring the result up to date; return its change."""
        delta = self.circuit.root.pull()
        result = self._result
        for row, weight in delta.items():
            total = result.get(row, 0) + weight
            if total:
                result[row] = total
            else:
                del result[row]
        return delta

    def fail(self, error: EvergraphError) -> None:
        """Stop following changes."""
        self.failed = error
        self._result = {}
        self.circuit.close()
        if self.on_failure is not None:
            self.on_failure(error)


class ViewChange:
    """What a change of the data has done to one view: rows that came and rows that went, in disjoint bags."""

    __slots__ = ("_delta", "_dictionary", "view")

    def __init__(self, view: View, delta: ZSet, dictionary: Dictionary) -> None:
        self.view = view
        self._delta = delta
        self._dictionary = dictionary

    @property
    def added(self) -> Bag[Row]:
        """The rows that came."""
        return _decoded(self._delta, self._dictionary, 1)

    @property
    def removed(self) -> Bag[Row]:
        """The rows that went."""
        return _decoded(self._delta, self._dictionary, -1)

    def __repr__(self) -> str:
        return f"ViewChange(added={self.added!r}, removed={self.removed!r})"


def _decoded(rows: ZSet, dictionary: Dictionary, sign: int) -> Bag[Row]:
    decode = dictionary.decode_row
    return Bag.weighted([(decode(row), weight * sign) for row, weight in rows.items() if weight * sign > 0])


class LocalEngine:
    """Maintains standing queries under exact changes.

    ``source`` gives the quads that are there now, for queries that are registered when there are data already;
    ``lookup`` finds some of them, by subject, predicate, object and graph name, which costs less. Without
    either, queries are registered before the first change, or use what the engine already keeps for others.
    """

    def __init__(self, source: Source | None = None, lookup: Lookup | None = None) -> None:
        self._store = Store(source, lookup)
        self._views: dict[View, None] = {}
        self._dirty: dict[View, None] = {}

    def register(self, query: Query | str, *, limit: int | None = None, base: str = "") -> View:
        """Start to maintain a query. Raises `UnsupportedQuery` for what no engine could maintain."""
        if isinstance(query, str):
            query = parse_query(query, base)
        refuse_unmaintainable(query.pattern)
        dictionary = self._store.dictionary
        view = View(query, dictionary)
        lowering = Lowering(query.dataset)
        workshop = Workshop(self._store, view.environment, lowering, Budget(DEFAULT_LIMIT if limit is None else limit))
        view.plan = lower_query(query, lowering)
        view.circuit = PlanCircuit(workshop, partial(self._dirty.__setitem__, view, None))
        try:
            _build(query, view.plan, lowering, view.circuit)
            view.circuit.start()
            view.refresh()
        except BaseException:
            self._store.forget_missing()
            view.circuit.close()
            raise
        self._views[view] = None
        return view

    def remove(self, view: View) -> None:
        """Stop to maintain a query, and drop what only it needs."""
        del self._views[view]
        if view.failed is None:
            view.circuit.close()

    @property
    def views(self) -> Iterator[View]:
        """The registered views, failed ones included."""
        return iter(self._views)

    def is_empty(self) -> bool:
        """Tell whether no quads are kept for any view."""
        return not self._store.relations

    def size(self) -> int:
        """Count the quads that are kept, each once for every relation that holds it."""
        return sum(map(len, self._store.relations.values()))

    def apply(self, delta: Delta) -> list[ViewChange]:
        """Take in an exact change; return what it does to the views whose results it changes."""
        store = self._store
        store.has_seen_data = True
        change = store.change
        for quad in delta.deleted:
            change(quad, -1)
        for quad in delta.inserted:
            change(quad, 1)
        return self._refresh() if store.touched else []

    def apply_request(self, request: Request) -> list[ViewChange]:
        """Take in a change that may ask for what is already so: only the quads that really come or go count."""
        return self.apply(self.exact(request))

    def exact(self, request: Request) -> Delta:
        """Return what a request really changes among the quads that views can use."""
        find = self._store.find
        return Delta(
            inserted=frozenset(quad for quad in request.added if find(quad) is False),
            deleted=frozenset(quad for quad in request.removed - request.added if find(quad)),
        )

    def _refresh(self) -> list[ViewChange]:
        store = self._store
        touched = store.touched
        for leaf in touched:
            if leaf.pending:
                leaf.touch()
        touched.clear()
        dirty = list(self._dirty)
        self._dirty.clear()
        changes = []
        for view in dirty:
            try:
                delta = view.refresh()
            except EvergraphError as error:
                view.fail(error)
                continue
            except _FAULTS as error:
                view.fail(ViewFailed(f"a standing query failed on a change: {error!r}", hint="please report this."))
                continue
            if delta:
                changes.append(ViewChange(view, delta, store.dictionary))
        return changes


def lower_query(query: Query, lowering: Lowering) -> Plan:
    """Return the plan of the solutions that a query needs."""
    plan = lowering.lower(query.pattern)
    match query:
        case Select(variables=variables):
            plan = project(plan, variables)
        case Describe(targets=targets):
            plan = project(plan, tuple(dict.fromkeys(one for one in targets if isinstance(one, Variable))))
        case Ask():
            plan = project(plan, ())
        case Construct():
            pass
    return optimize(plan)


def _build(query: Query, plan: Plan, lowering: Lowering, circuit: PlanCircuit) -> None:
    root = circuit.build(plan)
    dictionary, store = circuit.store.dictionary, circuit.store
    match query:
        case Select():
            circuit.root = root
            return
        case Ask():
            circuit.root = AskOperator(root, dictionary)
        case Construct(template):
            triples = TemplateOperator(root, template, plan.variables, dictionary)
            circuit.operators.append(triples)
            circuit.root = DistinctOperator(triples, circuit.workshop.budget)
        case Describe(targets):
            context = lowering.context(DEFAULT_GRAPH)
            if context is None:
                circuit.root = circuit.build(empty(*TRIPLE_COLUMNS))
                return
            leaf = described_triples(context, store, circuit.touch)
            circuit.add_leaf(leaf)
            constants = {dictionary.encode(one) for one in targets if not isinstance(one, Variable)}
            circuit.root = DescribeOperator(root, constants, leaf, dictionary)
    circuit.operators.append(circuit.root)
