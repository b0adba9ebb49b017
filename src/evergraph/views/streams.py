"""Standing queries over a stream of changes alone, with no dataset behind them.

A query whose pattern is one basic graph pattern is followed with the least state that its class allows
(`evergraph.plan.continuous`); any other query by a `LocalEngine` that holds the quads that it can use.
"""

from typing import Protocol

from evergraph.delta import Bag, Request
from evergraph.engines.local.continuous import ContinuousPattern
from evergraph.engines.local.engine import LocalEngine
from evergraph.engines.local.optimizer import Decision
from evergraph.sparql.algebra import BGP, Project, Query, Select
from evergraph.sparql.expressions import Environment, Row
from evergraph.terms import Variable


class Follower(Protocol):
    """A standing query that takes requested changes, exact or not."""

    variables: tuple[Variable, ...]
    environment: Environment

    def result(self) -> Bag[Row]:
        """Return the current rows, as a bag."""

    def take(self, request: Request) -> Bag[Row]:
        """Take in a change; return what it does to the result: weights above 0 came, those below went."""

    def entries(self) -> int:
        """Count the entries of state."""

    def decisions(self) -> list[Decision]:
        """List the last choices between the incremental and the direct way, one for each large change."""


def follow(query: Query, *, limit: int | None = None) -> Follower:
    """Start to follow a query; nothing is there yet. With a limit, the entries of its result count too."""
    match query:
        case Select(pattern=Project(operand=BGP() as pattern), variables=variables, dataset=None) if limit is None:
            return PatternFollower(pattern, variables)
        case _:
            return EngineFollower(query, limit)


class PatternFollower:
    """Follows a SELECT over one basic graph pattern."""

    def __init__(self, pattern: BGP, variables: tuple[Variable, ...]) -> None:
        self.variables = variables
        self.environment = Environment()
        self._pattern = ContinuousPattern(pattern)
        columns = self._pattern.variables
        self._slots = [columns.index(variable) if variable in columns else None for variable in variables]

    def result(self) -> Bag[Row]:
        """Return the current rows, found from the state."""
        return self._projected(self._pattern.result())

    def take(self, request: Request) -> Bag[Row]:
        """Take in a change."""
        return self._projected(self._pattern.apply(request))

    def entries(self) -> int:
        """Count the entries of state."""
        return self._pattern.state().entries

    def decisions(self) -> list[Decision]:
        """Nothing: every change is taken in incrementally."""
        return []

    def _projected(self, rows: Bag[Row]) -> Bag[Row]:
        return Bag.weighted(
            (tuple(None if slot is None else row[slot] for slot in self._slots), weight) for row, weight in rows.items()
        )


class EngineFollower:
    """Follows any query."""

    def __init__(self, query: Query, limit: int | None) -> None:
        self._engine = LocalEngine()
        self._view = self._engine.register(query, limit=limit)
        self.variables = self._view.variables
        self.environment = self._view.environment

    def result(self) -> Bag[Row]:
        """Return the current rows."""
        return self._view.result()

    def take(self, request: Request) -> Bag[Row]:
        """Take in a change; raises what the view fails with."""
        changes = self._engine.apply_request(request)
        if self._view.failed:
            raise self._view.failed
        return self._view.changed(changes[0][1]) if changes else Bag()

    def entries(self) -> int:
        """Count the entries of state, quads included."""
        return self._engine.size() + self._view.size()

    def decisions(self) -> list[Decision]:
        """List the last choices for large changes."""
        return self._view.decisions()
