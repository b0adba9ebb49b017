"""Views: standing queries as the engine hands them out, and what changes do to them."""

from collections.abc import Callable
from typing import TypeAlias

from evergraph.delta import Bag
from evergraph.engines.local.build import PlanCircuit
from evergraph.engines.local.dictionary import Dictionary, ZSet, difference
from evergraph.engines.local.optimizer import SMALLEST, Decision, Forecast, forecast
from evergraph.errors import EvergraphError
from evergraph.plan.nodes import Plan
from evergraph.sparql.algebra import TRIPLE_COLUMNS, Ask, Query, Select
from evergraph.sparql.expressions import Environment, Row
from evergraph.terms import Variable

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
        self._room = -1
        """How large the result may grow before the entries of the view are counted."""
        self._unchecked = 0

    def result(self) -> Bag[Row]:
        """Return the current result, as a bag; raises what the view failed with."""
        if self.failed is not None:
            raise self.failed
        return self.decoded(self._result, 1)

    def decoded(self, rows: ZSet, sign: int) -> Bag[Row]:
        """Return the rows with weights of one sign, in terms."""
        decode = self._dictionary.decode_row
        return Bag.weighted([(decode(row), weight * sign) for row, weight in rows.items() if weight * sign > 0])

    def added(self, change: ZSet) -> Bag[Row]:
        """Return the rows that came with a change."""
        return self.decoded(change, 1)

    def removed(self, change: ZSet) -> Bag[Row]:
        """Return the rows that went with a change."""
        return self.decoded(change, -1)

    def changed(self, change: ZSet) -> Bag[Row]:
        """Return the rows of a change, those that went with negative weights."""
        decode = self._dictionary.decode_row
        return Bag.weighted([(decode(row), weight) for row, weight in change.items()])

    def rows(self) -> ZSet:
        """Return the current result in ids, which mean nothing to other engines."""
        return dict(self._result)

    def encoded(self, rows: Bag[Row]) -> ZSet:
        """Return rows of terms in the ids of the engine."""
        return {self._dictionary.encode_row(row): weight for row, weight in rows.items()}

    def size(self) -> int:
        """Count the entries of state of the view itself; quads are shared, and not counted."""
        return self.circuit.size() + len(self._result)

    def refresh(self) -> ZSet:
        """Bring the result up to date; return its change."""
        circuit = self.circuit
        delta = circuit.root.pull()
        result = self._result
        if not circuit.is_set:
            get = result.get
            for row, weight in delta.items():
                total = get(row, 0) + weight
                if total:
                    result[row] = total
                else:
                    del result[row]
        elif len(delta) > 4 and -1 not in delta.values():
            result.update(delta)
        else:
            for row, weight in delta.items():
                if weight > 0:
                    result[row] = 1
                else:
                    del result[row]
        if len(result) > self._room:
            self._check()
        return delta

    def _check(self) -> None:
        """Count all entries of the view; rarely, if there are many plans to count."""
        circuit = self.circuit
        if self._unchecked < circuit.parts() // 16:
            self._unchecked += 1
            return
        self._unchecked = 0
        budget = circuit.workshop.budget
        budget.check(self.size())
        self._room = -1 if circuit.keeps_state() else budget.limit

    def replace(self, circuit: PlanCircuit) -> ZSet:
        """Go on with another circuit of the same plan, which has not been pulled yet; return how the result changes."""
        after = circuit.root.pull()
        self.circuit.close()
        before, self.circuit, self._result = self._result, circuit, after
        self._check()
        return difference(before, after)

    def decisions(self) -> list[Decision]:
        """List the last choices between the incremental and the direct way that were made for large changes."""
        return list(self.circuit.workshop.costs.decisions)

    def forecasts(self, smallest: int = SMALLEST) -> list[Forecast]:
        """Say which way batches would go, if they were like the last one; nothing if there was none."""
        return forecast(self.circuit.workshop, smallest)

    def fail(self, error: EvergraphError) -> None:
        """Stop following changes."""
        self.failed = error
        self._result = {}
        self.circuit.close()
        if self.on_failure is not None:
            self.on_failure(error)


ViewChange: TypeAlias = tuple[View, ZSet]
"""What a change of the data has done to one view: the rows that came, and with negative weights those that went.

`View.added` and `View.removed` look up their terms, at any time: as long as somebody has the ids, they are kept. It is
no class because one is made for every effect of every change.
"""
