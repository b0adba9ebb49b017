"""The connected parts of a pattern, over tables that they share."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from evergraph.engines.local.continuous.joins import JoinPattern
from evergraph.engines.local.continuous.part import (
    Encode,
    Match,
    Members,
    Routes,
    Row,
    RowDelta,
    StateSize,
    Value,
    matcher,
    take,
)
from evergraph.engines.local.continuous.source import join_code
from evergraph.engines.local.continuous.tables import Signature, Table, columns_of, make_table, signature
from evergraph.plan.continuous import Part, positions
from evergraph.sparql.algebra import GraphContext, TriplePattern

Join: TypeAlias = Callable[[Value, Value, Value, Value, int], None]
"""Joins a quad that comes (1) or goes (-1) with the tables, and notes the answers that do so too."""


class Component:
    """One connected part: a join of tables. State: the number of its answers; the quads are in the tables."""

    __slots__ = ("_count", "_delta", "_full", "_last", "deltas")

    def __init__(self, part: Part, tables: "ConnectedMaintainer", encode: Encode) -> None:
        slots: dict[GraphContext, int] = {variable: n for n, variable in enumerate(part.variables)}
        constants: list[Value] = []
        patterns = []
        for triple in part.triples:
            for term in positions(triple):
                if term not in slots:
                    constants.append(encode(term))
                    slots[term] = -len(constants)
            s, p, o, g = (slots[term] for term in positions(triple))
            patterns.append(JoinPattern((s, p, o, g), tables.number(triple), columns_of(triple)))
        self._delta: RowDelta = {}
        self._count = 0
        code = join_code(tuple(patterns), len(part.variables))
        indexes = [tables.tables[table].index(columns) for table, columns in code.accesses]
        self.deltas: tuple[Join, ...]
        self.deltas, self._full = code.make(indexes, constants, self._delta)
        self._last = tables.tables[patterns[-1].table]

    @property
    def count(self) -> int:
        """The number of answers, counted as they come and go."""
        return self._count

    def answers(self) -> Iterator[Row]:
        """Join from scratch: every quad of one table with the others."""
        for quad in self._last.quads():
            yield from self._full(*quad, None)

    def take(self) -> RowDelta:
        """Return what came and went since the last call."""
        delta = take(self._delta)
        self._count += sum(delta.values())
        return delta


class TableInput(NamedTuple):
    """A table, the test for its quads, and the joins of all triple patterns that it stands for."""

    matches: Match
    table: Table
    joins: list[Join]


class ConnectedMaintainer:
    """All connected parts of a pattern.

    Rule: a quad that is new goes into every table that it matches, then to the joins of every triple pattern that it
    matches; a quad that goes is joined first and taken out afterwards. State: the quads that match some triple
    pattern, counted once however many tables and indexes know them, and nothing derived from them: no joins, no
    answers.
    """

    __slots__ = ("_entries", "_inputs", "_numbers", "components", "tables")

    def __init__(self, parts: Sequence[Part], encode: Encode) -> None:
        triples = {signature(triple): triple for part in parts for triple in part.triples}
        self._numbers: dict[Signature, int] = {one: number for number, one in enumerate(triples)}
        self.tables = [make_table(triple, encode) for triple in triples.values()]
        self.components = [Component(part, self, encode) for part in parts]
        inputs = [TableInput(matcher(triple, encode), self.tables[n], []) for n, triple in enumerate(triples.values())]
        for part, component in zip(parts, self.components, strict=True):
            for triple, delta in zip(part.triples, component.deltas, strict=True):
                inputs[self.number(triple)].joins.append(delta)
        self._inputs = Routes.make(list(zip(triples.values(), inputs, strict=True)), encode)
        self._entries = 0

    def number(self, triple: TriplePattern) -> int:
        """Return the number of the table of a triple pattern."""
        return self._numbers[signature(triple)]

    def insert(self, quad: Members) -> bool:
        """Take a quad in."""
        matched = self._matched(quad)
        if not matched or not matched[0].table.insert(quad):
            return False
        for one in matched[1:]:
            one.table.insert(quad)
        _join(matched, quad, 1)
        self._entries += 1
        return True

    def delete(self, quad: Members) -> bool:
        """Take a quad out."""
        matched = self._matched(quad)
        if not matched or not matched[0].table.holds(quad):
            return False
        _join(matched, quad, -1)
        for one in matched:
            one.table.delete(quad)
        self._entries -= 1
        return True

    def _matched(self, quad: Members) -> "list[TableInput]":
        s, p, o, g = quad
        inputs = self._inputs
        return [one for one in inputs.by_predicate.get(p, inputs.others) if one.matches(s, p, o, g)]

    def state(self) -> StateSize:
        """One entry for each quad."""
        return StateSize(self._entries, sum(table.bytes() for table in self.tables))


def _join(matched: "list[TableInput]", quad: Members, weight: int) -> None:
    s, p, o, g = quad
    for one in matched:
        for join in one.joins:
            join(s, p, o, g, weight)
