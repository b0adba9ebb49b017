"""A circuit that all views of one template share. Why this is exact: `evergraph.plan.parameters`.

The wanted values of the parameters are tables: relations like those of quads, which only the circuit fills. A query
that comes adds its values, a query that goes takes them out, and the delta functions do the rest. The rows of the root
begin with the parameters; they are dealt out to the parts of the result, one for each choice of values, and each part
is the result of all views with those constants.
"""

from collections import Counter
from collections.abc import Callable
from functools import cached_property, partial
from uuid import uuid4

from evergraph.engines.local.build import PlanCircuit, Workshop
from evergraph.engines.local.dictionary import Row, ZSet, difference
from evergraph.engines.local.leaves import BGPLeaf, relation_of
from evergraph.engines.local.operators import Budget, state_limit
from evergraph.engines.local.optimizer import Decision
from evergraph.engines.local.relations import Relation
from evergraph.engines.local.store import Store, Subscription
from evergraph.engines.local.views import BOOLEAN_COLUMNS, View, ViewChange
from evergraph.errors import EvergraphError, ViewFailed
from evergraph.plan.lower import Lowering, project
from evergraph.plan.nodes import Plan, QuadPattern, Variables
from evergraph.plan.optimize import optimize, tidy_projections
from evergraph.plan.parameters import TABLE, lift, parameter, table_pattern
from evergraph.plan.templates import placeholder
from evergraph.sparql.algebra import Ask, Select
from evergraph.sparql.expressions import Environment
from evergraph.sparql.values import FALSE, TRUE
from evergraph.terms import NamedNode


def plan_of(query: Select | Ask) -> tuple[Plan, Lowering]:
    """Return the plan of a query: its columns are those of the result, none for ASK."""
    lowering = Lowering(query.dataset)
    columns = query.variables if isinstance(query, Select) else ()
    return optimize(project(lowering.lower(query.pattern), columns)), lowering


class Part:
    """The rows for one choice of values, and the views that have them."""

    __slots__ = ("key", "result", "solutions", "views")

    def __init__(self, key: Row, result: ZSet) -> None:
        self.key = key
        self.result = result
        self.solutions = 0
        self.views: dict[SharedView, None] = {}


class SharedView(View):
    """A view whose rows are a part of what a template maintains; identical queries have the same part."""

    def __init__(self, query: Select | Ask, template: "Template", part: Part) -> None:
        self.query = query
        self.environment = template.environment
        self.failed = None
        self.on_failure = None
        self.variables = query.variables if isinstance(query, Select) else BOOLEAN_COLUMNS
        self.template = template
        self.part = part
        self._dictionary = template.store.dictionary
        self._result = part.result

    @cached_property
    def plan(self) -> Plan:  # type: ignore[override]
        """The plan that the query would have on its own."""
        assert isinstance(self.query, Select | Ask)
        return plan_of(self.query)[0]

    @property
    def circuit(self) -> PlanCircuit:  # type: ignore[override]
        """The circuit of all views of the template."""
        return self.template.circuit

    def size(self) -> int:
        """Count the rows; all other state is shared, and not counted."""
        return len(self._result)

    def decisions(self) -> list[Decision]:
        """List the last choices that were made for all views of the template."""
        return list(self.circuit.workshop.costs.decisions)

    def fail(self, error: EvergraphError) -> None:
        """Stop following changes."""
        self.failed = error
        self._result = {}
        if self.on_failure is not None:
            self.on_failure(error)


class Table:
    """The wanted values of some parameters, each once, however many views want them."""

    def __init__(self, store: Store, pattern: QuadPattern, columns: tuple[int, ...]) -> None:
        self.pattern = pattern
        self._store = store
        self._columns = columns
        self._counts: Counter[Row] = Counter()
        self._relation: Relation = relation_of(pattern, store)
        self._hold: Subscription = store.own(self._relation)
        self._mark = store.dictionary.encode(TABLE)

    def change(self, key: Row, weight: int) -> None:
        """Add the values of a part, or take them out."""
        row = tuple([key[column] for column in self._columns])
        self._counts[row] += weight
        count = self._counts[row]
        if not count:
            del self._counts[row]
        if count == (weight > 0):
            subject, object_, graph = (*row, *(self._mark, 0)[len(row) - 1 :])[:3]
            self._store.put(self._relation, (subject, self._mark, object_, graph), weight)

    def close(self) -> None:
        """Drop the table."""
        self._store.cancel(self._hold)


class Template:
    """The circuit of all queries that differ only in some constants: those whose placeholders have ``numbers``.

    ``limit`` is how many rows each part may have; the operators may have as much as those of all parts would have on
    their own. If the circuit fails, all its views fail.
    """

    def __init__(
        self,
        store: Store,
        query: Select | Ask,
        numbers: tuple[int, ...],
        touch: Callable[["Template", None], None],
        limit: int,
    ) -> None:
        self.store = store
        self.environment = Environment()
        self.parts: dict[Row, Part] = {}
        self._tables: dict[Variables, Table] = {}
        self._parameters = tuple(map(parameter, numbers))
        self._limit = limit
        self._budget = Budget(limit)
        encode = store.dictionary.encode
        self._answers = ((encode(FALSE),), (encode(TRUE),)) if isinstance(query, Ask) else None
        plan, lowering = plan_of(query)
        columns = plan.variables
        plan = lift(plan, {placeholder(number): parameter(number) for number in numbers}, self._table)
        self._plan = tidy_projections(project(plan, (*self._parameters, *columns)))
        self._rows = 0
        """How many rows all parts have."""
        workshop = Workshop(store, self.environment, lowering, self._budget)
        workshop.parameters = frozenset(self._parameters)
        workshop.size, workshop.touch = self.size, partial(touch, self, None)
        self.circuit = PlanCircuit(workshop, workshop.touch, self)
        try:
            self.circuit.root = self.circuit.build(self._plan)
        except BaseException:
            self.store.forget_missing()
            self.close()
            raise
        self._is_new = True

    def _table(self, parameters: Variables) -> QuadPattern:
        if parameters not in self._tables:
            columns = tuple(map(self._parameters.index, parameters))
            pattern = table_pattern(NamedNode(f"urn:uuid:{uuid4()}"), parameters)
            self._tables[parameters] = Table(self.store, pattern, columns)
        return self._tables[parameters].pattern

    @property
    def _leaves(self) -> list[BGPLeaf]:
        return [leaf for leaf in self.circuit.leaves if isinstance(leaf, BGPLeaf)]

    def size(self) -> int:
        """Count the entries of state, the rows of all parts included."""
        return self.circuit.size() + self._rows

    def join(self, query: Select | Ask, key: Row) -> SharedView:
        """Add a view of a query with these constants, in the order of the parameters."""
        part = self.parts.get(key)
        if part is None:
            part = self._start(key)
        view = SharedView(query, self, part)
        part.views[view] = None
        return view

    def leave(self, view: SharedView) -> None:
        """Take a view out."""
        del view.part.views[view]
        if not view.part.views:
            self._stop(view.part)

    def _start(self, key: Row) -> Part:
        part = Part(key, {} if self._answers is None else {self._answers[False]: 1})
        self._grant(len(self.parts) + 1)
        values: dict[object, int] = dict(zip(self._parameters, key, strict=True))
        for leaf in self._leaves:
            leaf.want(values)
        try:
            if self._is_new:
                self.circuit.start()
            else:
                self.store.fill()
        except BaseException:
            self.store.forget_missing()
            self._unwant(key)
            raise
        self.parts[key] = part
        self._rows += len(part.result)
        self._is_new = False
        try:
            self._change(key, 1)
            self.refresh()
        except BaseException as error:
            # Nobody knows which rows the operators have taken in.
            self.fail(
                error if isinstance(error, EvergraphError) else ViewFailed(f"a query that joined failed: {error!r}")
            )
            raise
        if key not in self.parts:
            raise state_limit(self._limit)
        return part

    def _stop(self, part: Part) -> None:
        self._change(part.key, -1)
        self.circuit.root.pull()
        self._unwant(part.key)
        del self.parts[part.key]
        self._rows -= len(part.result)
        self._grant(len(self.parts))

    def _grant(self, parts: int) -> None:
        self._budget.limit = self._limit * parts
        for leaf in self.circuit.leaves:
            leaf.limit = self._budget.limit

    def _unwant(self, key: Row) -> None:
        values: dict[object, int] = dict(zip(self._parameters, key, strict=True))
        for leaf in self._leaves:
            leaf.unwant(values)

    def _change(self, key: Row, weight: int) -> None:
        for table in self._tables.values():
            table.change(key, weight)
        self.store.touched.clear()

    def refresh(self) -> list[ViewChange]:
        """Bring all parts up to date; return what has changed for which view."""
        return self._deliver(self._dealt(self.circuit.root.pull()))

    def recompute(self) -> list[ViewChange]:
        """Evaluate the plan from scratch over the indexes, which stay; return what has changed for which view."""
        circuit = PlanCircuit(self.circuit.workshop, self.circuit.touch, self)
        try:
            circuit.root = circuit.build(self._plan)
            for leaf, old in zip(circuit.leaves, self.circuit.leaves, strict=True):
                if isinstance(leaf, BGPLeaf) and isinstance(old, BGPLeaf):
                    leaf.succeed(old)
            circuit.start()
            rows = circuit.root.pull()
        except BaseException:
            circuit.close()
            raise
        self.circuit.close()
        self.circuit = circuit
        after = self._dealt(rows)
        dealt: dict[Row, ZSet] = {}
        for key, part in self.parts.items():
            found = after.get(key, {})
            if self._answers is not None:
                if more := sum(found.values()) - part.solutions:
                    dealt[key] = {(): more}
            elif changed := difference(part.result, found):
                dealt[key] = changed
        return self._deliver(dealt)

    def _dealt(self, delta: ZSet) -> dict[Row, ZSet]:
        """Deal out rows to the parts that they belong to."""
        width = len(self._parameters)
        dealt: dict[Row, ZSet] = {}
        for row, weight in delta.items():
            key = row[:width]
            rows = dealt.get(key)
            if rows is None:
                dealt[key] = {row[width:]: weight}
            else:
                rows[row[width:]] = weight
        return dealt

    def _deliver(self, dealt: dict[Row, ZSet]) -> list[ViewChange]:
        """Take changes into the parts. A part that is too large fails alone."""
        changes: list[ViewChange] = []
        for key, rows in dealt.items():
            part = self.parts[key]
            if self._answers is not None:
                rows = self._answer(part, sum(rows.values()))
            result = part.result
            before = len(result)
            for row, weight in rows.items():
                total = result.get(row, 0) + weight
                if total:
                    result[row] = total
                else:
                    del result[row]
            after = len(result)
            self._rows += after - before
            if after > self._limit:
                self._stop(part)
                for view in part.views:
                    view.fail(state_limit(self._limit))
            elif rows:
                for view in part.views:
                    changes.append((view, rows))  # noqa: PERF401 - most parts have one view
        return changes

    def _answer(self, part: Part, solutions: int) -> ZSet:
        """Count solutions of ASK; return how the answer changes."""
        assert self._answers is not None
        before = bool(part.solutions)
        part.solutions += solutions
        after = bool(part.solutions)
        return {} if before == after else {self._answers[after]: 1, self._answers[before]: -1}

    def fail(self, error: EvergraphError) -> None:
        """Stop following changes."""
        self.close()
        parts, self.parts = self.parts, {}
        for part in parts.values():
            for view in part.views:
                view.fail(error)

    def close(self) -> None:
        """Give back what the circuit has of the store."""
        self.circuit.close()
        for table in self._tables.values():
            table.close()
        self._tables = {}
