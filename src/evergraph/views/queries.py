"""Standing queries as users see them: a current result, and the steps that led to it."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import Condition
from typing import Protocol, runtime_checkable

from evergraph.delta import Bag
from evergraph.engines.local.optimizer import Decision, Forecast
from evergraph.engines.local.views import ViewChange
from evergraph.errors import EvergraphError
from evergraph.plan import report
from evergraph.plan.explain import explain
from evergraph.plan.nodes import Plan
from evergraph.plan.notation import Notation
from evergraph.sparql.algebra import Ask, Query, Select
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Environment, Row
from evergraph.sparql.results import Solutions, evaluate_query, json_boolean, json_solutions
from evergraph.terms import XSD, Literal, NamedNode, Variable, term_text

SHOWN = 5
"""How many of the last decisions an explanation shows."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one change of the data did to a result: the rows that came and the rows that went, in disjoint bags."""

    sequence: int
    added: Bag[Row]
    removed: Bag[Row]

    def then(self, later: "Step") -> "Step":
        """Put two steps together; what cancels disappears."""
        delta = self.added - self.removed + later.added - later.removed
        return Step(later.sequence, delta.positive(), delta.negative())


class Maintained(Protocol):
    """A result that some engine keeps up to date."""

    query: Query
    variables: tuple[Variable, ...]
    plan: Plan
    failed: EvergraphError | None

    def result(self) -> Bag[Row]:
        """Return the current result."""

    def size(self) -> int:
        """Count the entries of state."""


@runtime_checkable
class Deciding(Protocol):
    """A maintained result for which an engine chooses between ways to take in a change."""

    def decisions(self) -> list[Decision]:
        """List the last choices."""

    def forecasts(self) -> list[Forecast]:
        """Say what would be chosen for changes of several sizes."""


class StandingQuery:
    """A query that follows its dataset. Made by `Database.watch`.

    ``result()`` is the current result; ``changes()`` gives the steps that led to it, whose sum is the result at any
    time. Steps that nobody has read yet are kept, up to ``backlog`` of them; then the oldest are put together, which
    keeps the sum. It can be read from several threads; ``guard`` is held by whoever changes what is maintained.
    """

    def __init__(
        self,
        maintained: Maintained,
        sequence: int,
        *,
        backlog: int,
        guard: AbstractContextManager[object] | None = None,
        prefixes: Mapping[str, str] | None = None,
    ) -> None:
        self._maintained = maintained
        self._guard = guard if guard is not None else nullcontext()
        self._prefixes = prefixes
        self._backlog = max(backlog, 2)
        self._steps: deque[Step] = deque()
        self._news = Condition()
        self._closed = False
        self.push(Step(sequence, maintained.result(), Bag()))

    @property
    def query(self) -> Query:
        """The query, as algebra."""
        return self._maintained.query

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the columns of a row."""
        return tuple(variable.value for variable in self._maintained.variables)

    def result(self) -> Bag[Row]:
        """Return the current rows, as a bag; raises what the query failed with."""
        with self._guard:
            return self._maintained.result()

    def explain(self) -> str:
        """Tell how the query is maintained, what is re-run, how much state there is now, and how large changes go."""
        with self._guard:
            entries = self._maintained.size()
            forecasts = self._maintained.forecasts() if isinstance(self._maintained, Deciding) else []
        return report.text(
            explain(self.query, self._maintained.plan, Notation(self._prefixes)),
            entries=entries,
            forecasts=forecasts,
            decisions=self.decisions()[-SHOWN:],
        )

    def decisions(self) -> list[Decision]:
        """List the last choices between the incremental and the direct way, one for each large change."""
        with self._guard:
            return self._maintained.decisions() if isinstance(self._maintained, Deciding) else []

    def changes(self, *, wait: bool = False, timeout: float | None = None) -> Iterator[Step]:
        """Give the steps that have not been read yet, the first being what was there at registration, if anything was.

        :param wait: go on with the steps that come, until the query is closed or none comes for ``timeout`` seconds.
        :raises StateLimit: after the last step, if the query had to be given up.
        """
        while True:
            with self._news:
                if not self._steps and wait:
                    self._news.wait_for(lambda: self._steps or self._closed, timeout)
                if not self._steps:
                    if self._maintained.failed is not None:
                        raise self._maintained.failed
                    return
                step = self._steps.popleft()
            yield step

    def take(self, sequence: int, change: ViewChange) -> None:
        """Take what a change of the data did to the result."""
        view, rows = change
        self.push(Step(sequence, view.added(rows), view.removed(rows)))

    def push(self, step: Step) -> None:
        """Take a step from the engine."""
        if not step.added and not step.removed:
            return
        with self._news:
            self._steps.append(step)
            if len(self._steps) > self._backlog:
                first = self._steps.popleft()
                self._steps[0] = first.then(self._steps[0])
            self._news.notify_all()

    def close(self) -> None:
        """Let waiting readers end; those of a query that failed see the error."""
        with self._news:
            self._closed = True
            self._news.notify_all()


def json_step(query: Query, step: Step, variables: tuple[Variable, ...]) -> dict[str, object]:
    """Write a step as ``evergraph watch`` prints it."""
    return {
        "sequence": step.sequence,
        "added": _json_rows(query, step.added, variables),
        "removed": _json_rows(query, step.removed, variables),
    }


def _json_rows(query: Query, rows: Bag[Row], variables: tuple[Variable, ...]) -> object:
    match query:
        case Select():
            return json_solutions(variables, sorted(rows.rows(), key=_row_key))
        case Ask():
            values = [row[0] for row in rows.rows()]
            return json_boolean(isinstance(values[0], Literal) and values[0].value == "true") if values else None
        case _:
            return sorted(" ".join(term_text(term) for term in row if term is not None) + " ." for row in rows.rows())


def _row_key(row: Row) -> tuple[str, ...]:
    return tuple("" if term is None else str(term) for term in row)


def result_rows(query: Query, dataset: Dataset, environment: Environment | None = None) -> Bag[Row]:
    """Evaluate a query from scratch; the rows are as those of a maintained result."""
    match evaluate_query(query, dataset, environment):
        case Solutions(bag=bag):
            return bag
        case bool(truth):
            return Bag([(Literal(str(truth).lower(), datatype=NamedNode(XSD + "boolean")),)])
        case triples:
            return Bag([(triple.subject, triple.predicate, triple.object) for triple in triples])
