"""The local engine: standing queries in one process."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from evergraph.delta import Delta, Request
from evergraph.engines.local.build import PlanCircuit, Workshop
from evergraph.engines.local.dictionary import Dictionary, ZSet
from evergraph.engines.local.forms import AskOperator, DescribeOperator, TemplateOperator, described_triples
from evergraph.engines.local.leaves import BGPLeaf
from evergraph.engines.local.operators import Budget, DistinctOperator
from evergraph.engines.local.optimizer import Batch, Optimizer
from evergraph.engines.local.pauses import MANY, loading, sweep
from evergraph.engines.local.shared import Template
from evergraph.engines.local.sharing import Sharing
from evergraph.engines.local.store import Lookup, Source, Store
from evergraph.engines.local.views import View, ViewChange
from evergraph.errors import EvergraphError, ViewFailed, nested_too_deeply
from evergraph.plan.lower import Lowering, empty, refuse_unmaintainable
from evergraph.plan.nodes import Plan
from evergraph.plan.queries import lower_query
from evergraph.sparql.algebra import TRIPLE_COLUMNS, Ask, Construct, Describe, Query, Select
from evergraph.sparql.expressions import Environment
from evergraph.sparql.parser import parse_query
from evergraph.terms import DEFAULT_GRAPH, Variable

DEFAULT_LIMIT = 10_000_000
"""How many entries of state a view may have, its result included, unless it is registered with a limit of its own."""

_FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""What a fault in one view may raise, and must not do to the others."""


class LocalEngine:
    """Maintains standing queries under exact changes.

    ``source`` gives the quads that are there now, for queries that are registered when there are data already;
    ``lookup`` finds some of them, by subject, predicate, object and graph name, which costs less. Without
    either, queries are registered before the first change, or use what the engine already keeps for others.
    ``optimizer`` chooses between the incremental and the direct way when many quads change at once.
    """

    def __init__(
        self, source: Source | None = None, lookup: Lookup | None = None, optimizer: Optimizer | None = None
    ) -> None:
        self._store = Store(source, lookup)
        self._optimizer = optimizer or Optimizer()
        self._smallest = self._optimizer.smallest
        self._change, self._touched = self._store.change, self._store.touched
        self._young = 0
        self._views: dict[View, None] = {}
        self._dirty: dict[View | Template, None] = {}
        self._sharing = Sharing(self._store, self._dirty.__setitem__, DEFAULT_LIMIT)

    def register(
        self,
        query: Query | str,
        *,
        limit: int | None = None,
        base: str = "",
        environment: Environment | None = None,
    ) -> View:
        """Start to maintain a query. Raises `UnsupportedQuery` for what no engine could maintain.

        ``environment`` is that of a query that began elsewhere: its NOW() stays what it was.
        """
        if isinstance(query, str):
            query = parse_query(query, base)
        try:
            return self._register(query, limit, environment)
        except RecursionError as error:
            raise nested_too_deeply() from error

    def _register(self, query: Query, limit: int | None, environment: Environment | None) -> View:
        refuse_unmaintainable(query.pattern)
        place = self._sharing.place(query) if limit is None else None  # queries with NOW() have none
        if place is not None and not place.is_first():
            shared = self._sharing.join(query, place)
            shared.environment = environment or shared.environment
            self._views[shared] = None
            return shared
        view = self._prepare(query, limit, environment)
        self._begin(view)
        if place is not None:
            self._sharing.keep_alone(view, place)
        return view

    def register_all(self, queries: Iterable[tuple[Query, Environment]], limit: int = DEFAULT_LIMIT) -> list[View]:
        """Start to maintain queries that began elsewhere; the source is read once for all of them."""
        views: list[View] = []
        for query, environment in queries:
            refuse_unmaintainable(query.pattern)
            views.append(self._prepare(query, limit, environment))
        for view in views:
            self._begin(view)
        return views

    def _prepare(self, query: Query, limit: int | None, environment: Environment | None) -> View:
        """Build the plan of a query, which has seen nothing yet."""
        view = View(query, self._store.dictionary)
        if environment is not None:
            view.environment = environment
        lowering = Lowering(query.dataset)
        workshop = Workshop(self._store, view.environment, lowering, Budget(DEFAULT_LIMIT if limit is None else limit))
        view.plan = lower_query(query, lowering)
        workshop.size, workshop.touch = view.size, partial(self._dirty.__setitem__, view, None)
        view.circuit = PlanCircuit(workshop, workshop.touch, view)
        with self._closed_on_failure(view):
            _build(query, view.plan, lowering, view.circuit)
        return view

    def _begin(self, view: View) -> None:
        """Let a plan take in what is there."""
        with self._closed_on_failure(view):
            _start(view.circuit)
            view.refresh()
        self._views[view] = None

    @contextmanager
    def _closed_on_failure(self, view: View) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._store.forget_missing()
            view.circuit.close()
            raise

    def remove(self, view: View) -> None:
        """Stop to maintain a query, and drop what only it needs."""
        del self._views[view]
        if self._sharing.remove(view) and view.failed is None:
            view.circuit.close()

    @property
    def dictionary(self) -> Dictionary:
        """What the ids in the rows of changes stand for."""
        return self._store.dictionary

    @property
    def views(self) -> Iterator[View]:
        """The registered views, failed ones included."""
        return iter(self._views)

    def forget_terms(self) -> int:
        """Give back the memory of all terms that nothing holds any more; return how many there were.

        This happens by and by as new terms come. Changes that were returned before hold their terms until they go.
        """
        return self._store.dictionary.forget()

    def is_empty(self) -> bool:
        """Tell whether no quads are kept for any view."""
        return not self._store.relations

    def size(self) -> int:
        """Count the quads that are kept, each once for every relation that holds it."""
        return self._store.size()

    def apply(self, delta: Delta) -> list[ViewChange]:
        """Take in an exact change; return what it does to the views whose results it changes."""
        inserted, deleted = delta.inserted, delta.deleted
        if len(inserted) + len(deleted) >= self._smallest:
            with loading(len(delta)):
                return self._apply_batch(delta)
        change = self._change
        if deleted:
            for quad in deleted:
                change(quad, -1)
        if inserted:
            for quad in inserted:
                change(quad, 1)
        touched = self._touched
        if len(touched) == 1 and not self._dirty:
            leaf = touched.pop()
            pending = leaf.pending
            # The commonest effects by far, spelled out: one row goes, or one comes and there is room for it.
            if leaf.is_whole and len(pending) == 1 and not (inserted and deleted):
                view = leaf.top
                if deleted:
                    (row,) = pending
                    del view._result[row]
                    rows = pending.copy()
                    pending.clear()
                    return [(view, rows)]
                if len(view._result) < view._room and self._young < MANY:
                    self._young += 1
                    view._result.update(pending)
                    rows = pending.copy()
                    pending.clear()
                    return [(view, rows)]
            touched.append(leaf)
        return self._refresh() if touched else []

    def _apply_batch(self, delta: Delta) -> list[ViewChange]:
        self._store.has_seen_data = True
        batch = self._optimizer.begin(self._store)
        batch.feed(delta)
        for owner in batch.directs():
            owner.touch()
        changes = self._refresh(batch)
        batch.finish()
        return changes

    def apply_request(self, request: Request) -> list[ViewChange]:
        """Take in a change that may ask for what is already so: only the quads that really come or go count."""
        return self.apply(self.exact(request))

    def exact(self, request: Request) -> Delta:
        """Return what a request really changes among the quads that views can use."""
        find = self._store.find
        added, removed = request.added, request.removed - request.added
        # Quads are slow to hash: a set that is exact already is taken as it is, and differences use what it knows.
        known = [quad for quad in added if find(quad) is not False]
        absent = [quad for quad in removed if not find(quad)]
        return Delta(
            inserted=added.difference(known) if known else added,
            deleted=removed.difference(absent) if absent else removed,
        )

    def _refresh(self, batch: Batch | None = None) -> list[ViewChange]:
        """Bring up to date what the change concerns."""
        touched, dirty = self._touched, self._dirty
        for leaf in dict.fromkeys(touched):
            if leaf.pending:
                if leaf.top is None:
                    leaf.touch()
                else:
                    dirty[leaf.top] = None
        touched.clear()
        changes: list[ViewChange] = []
        concerned = list(dirty)
        dirty.clear()
        for view in concerned:
            if batch is None:
                changes += self._shared(view) if isinstance(view, Template) else self._one(view)
                continue
            owner = view.circuit.workshop
            direct = batch.is_direct(owner)
            begin = batch.clock()
            changes += self._shared(view, direct) if isinstance(view, Template) else self._one(view, direct)
            batch.record(owner, batch.clock() - begin)
        return changes

    def _one(self, view: View, direct: bool = False) -> list[ViewChange]:
        try:
            delta = _recompute(view) if direct else view.refresh()
        except EvergraphError as error:
            view.fail(error)
            return []
        except _FAULTS as error:
            view.fail(_failure(error))
            return []
        if not delta:
            return []
        self._young += len(delta)
        if self._young > MANY:
            self._young = 0
            sweep()
        return [(view, delta)]

    def _shared(self, template: Template, direct: bool = False) -> list[ViewChange]:
        try:
            return template.recompute() if direct else template.refresh()
        except EvergraphError as error:
            template.fail(error)
        except _FAULTS as error:
            template.fail(_failure(error))
        return []


def _failure(error: Exception) -> ViewFailed:
    return ViewFailed(f"a standing query failed on a change: {error!r}", hint="please report this.")


def _recompute(view: View) -> ZSet:
    """Evaluate the plan of a view from scratch over the indexes, which stay; return how the result changes."""
    circuit = PlanCircuit(view.circuit.workshop, view.circuit.touch, view)
    try:
        _build(view.query, view.plan, circuit.workshop.lowering, circuit)
        _start(circuit)
        return view.replace(circuit)
    except BaseException:
        circuit.close()
        raise


def _start(circuit: PlanCircuit) -> None:
    """Let the plan of one view take in what is there."""
    circuit.start()
    if circuit.is_set and isinstance(circuit.root, BGPLeaf):
        circuit.root.is_whole = True


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


__all__ = ["DEFAULT_LIMIT", "LocalEngine", "View", "ViewChange"]
