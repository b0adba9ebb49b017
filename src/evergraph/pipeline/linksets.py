"""Linksets as views of pipelines: Spark maintains the two catalogue views, and matches where there is much to match.

The links are a function of the two views, and these of the table of quads. So nothing is kept between runs: each
begins with matching what the table holds, and a batch that did not count leaves nothing behind.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.rows import WEIGHT, arrow_schema, term_of
from evergraph.engines.spark.views import SparkView
from evergraph.linking.spark import SparkMatcher
from evergraph.pipeline.definition import ViewDefinition
from evergraph.pipeline.outcomes import Outcome, small_outcome
from evergraph.sparql.expressions import Row
from evergraph.views.linksets import Linkset, Mode, Resources
from evergraph.views.linksets.selection import Pair


class LinkedView:
    """The links of one view of a pipeline, in this process; they follow the changes of its catalogue views."""

    def __init__(self, view: ViewDefinition, spark: SparkSession) -> None:
        assert view.linkset is not None
        definition = view.linkset
        shape = SparkView(view.name, view.query)
        self.columns, self.variables = shape.columns, shape.variables
        self._names = tuple(view.queries())
        self._predicate = str(definition.predicate)
        self._resources = Resources(definition.source.catalogue), Resources(definition.target.catalogue)
        self._linkset = Linkset(
            definition.rule,
            *self._resources,
            accept=definition.accept,
            one_to_one=definition.one_to_one,
            matcher=SparkMatcher(definition.rule, spark),
        )

    def load(self, engine: SparkEngine) -> None:
        """Match what the table of quads holds."""
        for name, resources in zip(self._names, self._resources, strict=True):
            with engine.batch():
                resources.put((), _rows(engine.initial(name), 1))
        self._linkset.maintain(Mode.FULL)

    def take(self, outcomes: dict[str, Outcome]) -> Outcome:
        """Bring the links up to date with the changes of the catalogue views, which are taken out of ``outcomes``."""
        for name, resources in zip(self._names, self._resources, strict=True):
            outcome = outcomes.pop(name)
            if outcome:
                resources.put(_rows(outcome.data, -1), _rows(outcome.data, 1))
            outcome.close()
        run = self._linkset.maintain()
        return self._outcome(run.added, run.removed)

    def result(self) -> Outcome:
        """Return all links."""
        return self._outcome(self._linkset.selection.links, ())

    def _outcome(self, added: Iterable[Pair], removed: Iterable[Pair]) -> Outcome:
        weighted = [*((pair, 1) for pair in added), *((pair, -1) for pair in removed)]
        columns = [
            [source for (source, _), _ in weighted],
            [self._predicate] * len(weighted),
            [target for (_, target), _ in weighted],
            [weight for _, weight in weighted],
        ]
        return small_outcome(pa.table(columns, schema=arrow_schema(self.columns)), self.columns)


def _rows(data: DataFrame | pa.Table, sign: int) -> Iterator[Row]:
    """Return the triples that came (``sign`` 1) or went (-1)."""
    table = data if isinstance(data, pa.Table) else data.toArrow()
    for batch in table.to_batches(max_chunksize=10_000):
        weights = batch.column(WEIGHT).to_pylist()
        texts = zip(*(column.to_pylist() for column in batch.columns[:3]), strict=True)
        for row, weight in zip(texts, weights, strict=True):
            if weight * sign > 0:
                yield tuple(term_of(text) for text in row)
