"""Small changes: what they touch is fetched from the table, a scan for each round, and the rest is the local engine's.

A plan of DataFrames costs a job for every operator that keeps something, however small the change. Here a change costs
a few scans, whatever the views are; and what it cannot touch is neither read into memory nor computed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from evergraph.delta import Delta
from evergraph.engines.local.pauses import undisturbed
from evergraph.engines.spark.found import Found
from evergraph.engines.spark.islands import batch_of, local_changes
from evergraph.engines.spark.relations import Statistics, any_of, any_pattern, predicate_of
from evergraph.engines.spark.rounds import Ask, every, run
from evergraph.engines.spark.rows import (
    QUAD,
    WEIGHT,
    batch_of_quads,
    graph_of,
    quad_of,
    quads_of,
    table_of,
    term_of,
)
from evergraph.engines.spark.vicinity import Followed, Lookup, Quad, TooMuch, matcher
from evergraph.engines.spark.views import SparkView
from evergraph.plan.nodes import QuadPattern
from evergraph.plan.reach import ANYTHING
from evergraph.terms import NamedNode, Variable

SEQUENCE = "sequence"
MOST = 200_000
"""How many quads around a change are fetched at most."""


@dataclass(frozen=True)
class SmallChange:
    """An exact change, and the quads that decide what it does to the views that are ``followed``."""

    delta: Delta
    quads: frozenset[Quad]
    followed: frozenset[str]

    @property
    def table(self) -> pa.Table:
        """The change as rows."""
        signed = [*((quad, 1) for quad in self.delta.inserted), *((quad, -1) for quad in self.delta.deleted)]
        return table_of(signed)

    def changes(self, views: Sequence[SparkView]) -> list[pa.Table]:
        """Return what the change does to views that are followed."""
        with undisturbed():
            quads = list({*quads_of(batch_of_quads(self.quads)), *self.delta.deleted})
            found = local_changes([(view.query, view.environment) for view in views], quads, self.delta)
        return [
            pa.Table.from_batches([batch_of(rows, len(view.variables))])
            for view, rows in zip(views, found, strict=True)
        ]


def follow(requested: pa.Table, quads: DataFrame, views: Sequence[SparkView], statistics: Statistics) -> SmallChange:
    """Find out what requested changes really change, and fetch what decides on their effects.

    Raises `TooMuch` if that is more than fits.
    """
    wanted = last_requests(requested)
    found = Found(wanted, lambda lookups: _scan(quads, lookups), lambda one: _expected(one, statistics), MOST)
    touched = [view for view in views if any(any(map(matcher(pattern), wanted)) for pattern in view.patterns)]
    effects = [
        followed.view(view.plan) if view.island is None else followed.all_of(view.patterns)
        for view, followed in ((view, Followed(wanted, found.admit)) for view in touched)
    ]
    with undisturbed():
        _, *fits = run([_presence(wanted), *effects], found.answer)
    inserted = {quad for quad, weight in wanted.items() if weight > 0 and quad not in found.quads}
    deleted = {quad for quad, weight in wanted.items() if weight < 0 and quad in found.quads}
    delta = Delta(frozenset(map(quad_of, inserted)), frozenset(map(quad_of, deleted)))
    small = {view.name for view, fit in zip(touched, fits, strict=True) if fit}
    untouched = {view.name for view in views} - {view.name for view in touched}
    return SmallChange(delta, frozenset(found.quads), frozenset(small | untouched))


def last_requests(requested: pa.Table) -> dict[Quad, int]:
    """Return for each quad its last request; of one change, what is added counts."""
    columns = [requested[name].to_pylist() for name in (*QUAD, SEQUENCE, WEIGHT)]
    last: dict[Quad, tuple[int, int]] = {}
    for *quad, sequence, weight in zip(*columns, strict=True):
        key = (quad[0], quad[1], quad[2], quad[3])
        last[key] = max(last.get(key, (0, 0)), (sequence, weight))
    return {quad: weight for quad, (_, weight) in last.items()}


async def _presence(wanted: Iterable[Quad]) -> bool:
    """Look up which quads are there."""
    subjects: dict[tuple[str, str], set[str]] = {}
    for quad in wanted:
        subjects.setdefault((quad[1], quad[3]), set()).add(quad[0])
    await every(_quads_of(predicate, graph, frozenset(some)) for (predicate, graph), some in subjects.items())
    return True


async def _quads_of(predicate: str, graph: str, subjects: frozenset[str]) -> None:
    subject, _, object_ = ANYTHING
    predicate_term = term_of(predicate)
    assert isinstance(predicate_term, NamedNode)
    await Ask(Lookup(QuadPattern(subject, predicate_term, object_, graph_of(graph)), 0, subjects))


def _scan(quads: DataFrame, lookups: Sequence[Lookup]) -> Iterable[Quad]:
    """Fetch the quads that answer lookups, all in one pass.

    The values of all lookups of one place are looked for together, so that a row costs two or three probes however many
    lookups there are; the few quads too many do no harm.
    """
    values: dict[int, set[str]] = {}
    predicates: dict[int, set[str | None]] = {}
    whole = [lookup.pattern for lookup in lookups if lookup.place is None]
    for lookup in lookups:
        if lookup.place is not None:
            values.setdefault(lookup.place, set()).update(lookup.values)
            predicates.setdefault(lookup.place, set()).add(predicate_of(lookup.pattern))
    tests = [any_pattern(whole)] if whole else []
    for place, some in values.items():
        test = _among(QUAD[place], some)
        known = [one for one in predicates[place] if one is not None]
        tests.append(test & _among("predicate", known) if len(known) == len(predicates[place]) else test)
    rows = quads.where(any_of(tests)).select(*QUAD).limit(MOST + 1).toArrow()
    if rows.num_rows > MOST:
        raise TooMuch
    return zip(*[rows[name].to_pylist() for name in QUAD], strict=True)


def _among(column: str, values: Iterable[str]) -> Column:
    """Test a column against texts, written as SQL: a call for each of them would cost more than the scan."""
    texts = ",".join("'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'" for value in sorted(values))
    return sf.expr(f"`{column}` IN ({texts})")


def _expected(lookup: Lookup, statistics: Statistics) -> float:
    """Estimate how many quads a lookup finds."""
    pattern = lookup.pattern
    predicate = predicate_of(pattern)
    if lookup.place in (0, 2):
        return len(lookup.values) * statistics.fan_out(predicate, QUAD[lookup.place])
    if not isinstance(pattern.subject, Variable):
        return statistics.fan_out(predicate, "subject")
    if not isinstance(pattern.object, Variable):
        return statistics.fan_out(predicate, "object")
    return statistics.rows(predicate)
