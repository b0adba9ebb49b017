"""The connected parts of a pattern, over tables that they share."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from evergraph.engines.local.continuous.joins import JoinPattern
from evergraph.engines.local.continuous.part import Encode, Members, Row, RowDelta, StateSize, Value, routed, take
from evergraph.engines.local.continuous.source import join_code
from evergraph.engines.local.continuous.tables import Signature, Table, columns_of, signature
from evergraph.plan.continuous import Part, positions
from evergraph.sparql.algebra import GraphContext, TriplePattern


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
        self.deltas: tuple[Callable[[Value, Value, Value, Value, int], None], ...]
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


class ConnectedMaintainer:
    """All connected parts of a pattern.

    Rule: a quad that is new goes into every table that it matches, then to the joins of every triple pattern that it
    matches; a quad that goes is joined first and taken out afterwards. State: the quads that match some triple
    pattern, counted once however many tables and indexes know them, and nothing derived from them: no joins, no
    answers.
    """

    __slots__ = ("_entries", "_numbers", "_routes", "_work", "components", "tables")

    def __init__(self, parts: Sequence[Part], encode: Encode) -> None:
        triples = {signature(triple): triple for part in parts for triple in part.triples}
        self._numbers: dict[Signature, int] = {one: number for number, one in enumerate(triples)}
        self._routes = routed(list(triples.values()), encode)
        self.tables = [Table(triple, encode) for triple in triples.values()]
        self.components = [Component(part, self, encode) for part in parts]
        self._work: list[list[Callable[..., Any]]] = [[] for _ in self.tables]
        for part, component in zip(parts, self.components, strict=True):
            for triple, delta in zip(part.triples, component.deltas, strict=True):
                self._work[self.number(triple)].append(delta)
        self._entries = 0

    def number(self, triple: TriplePattern) -> int:
        """Return the number of the table of a triple pattern."""
        return self._numbers[signature(triple)]

    def insert(self, quad: Members) -> bool:
        """Take a quad in."""
        tables = self.tables
        matched = [number for number in self._routes.of(quad[1]) if tables[number].matches(*quad)]
        if not matched or tables[matched[0]].holds(quad):
            return False
        for number in matched:
            tables[number].insert(quad)
        self._join(matched, quad, 1)
        self._entries += 1
        return True

    def delete(self, quad: Members) -> bool:
        """Take a quad out."""
        tables = self.tables
        matched = [number for number in self._routes.of(quad[1]) if tables[number].matches(*quad)]
        if not matched or not tables[matched[0]].holds(quad):
            return False
        self._join(matched, quad, -1)
        for number in matched:
            tables[number].delete(quad)
        self._entries -= 1
        return True

    def _join(self, matched: list[int], quad: Members, weight: int) -> None:
        for number in matched:
            for delta in self._work[number]:
                delta(*quad, weight)

    def state(self) -> StateSize:
        """One entry for each quad."""
        return StateSize(self._entries, sum(table.bytes() for table in self.tables))
