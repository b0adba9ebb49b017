"""Standing queries as users see them: a current result, and the steps that led to it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Condition
from typing import Protocol

from evergraph.delta import Bag
from evergraph.sparql.algebra import Ask, Query, Select
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Row
from evergraph.sparql.results import Solutions, evaluate_query, json_boolean, json_solutions
from evergraph.terms import XSD, Literal, NamedNode, Variable


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

    def result(self) -> Bag[Row]:
        """Return the current result."""


class StandingQuery:
    """A query that follows its dataset. Made by `Database.watch`.

    ``result()`` is the current result; ``changes()`` gives the steps that led to it, whose sum is the result at any
    time. Steps that nobody has read yet are kept, up to ``backlog`` of them; then the oldest are put together, which
    keeps the sum.
    """

    def __init__(self, maintained: Maintained, sequence: int, *, backlog: int) -> None:
        self._maintained = maintained
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
        """Return the current rows, as a bag."""
        return self._maintained.result()

    def changes(self, *, wait: bool = False, timeout: float | None = None) -> Iterator[Step]:
        """Give the steps that have not been read yet, the first being what was there at registration, if anything was.

        :param wait: go on with the steps that come, until the query is closed or none comes for ``timeout`` seconds.
        """
        while True:
            with self._news:
                if not self._steps and wait and not self._closed:
                    self._news.wait(timeout)
                if not self._steps:
                    return
                step = self._steps.popleft()
            yield step

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
        """Let waiting readers end."""
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
            return sorted(" ".join(map(str, row)) + " ." for row in rows.rows())


def _row_key(row: Row) -> tuple[str, ...]:
    return tuple("" if term is None else str(term) for term in row)


def result_rows(query: Query, dataset: Dataset) -> Bag[Row]:
    """Evaluate a query from scratch; the rows are as those of a maintained result."""
    match evaluate_query(query, dataset):
        case Solutions(bag=bag):
            return bag
        case bool(truth):
            return Bag([(Literal(str(truth).lower(), datatype=NamedNode(XSD + "boolean")),)])
        case triples:
            return Bag([(triple.subject, triple.predicate, triple.object) for triple in triples])
