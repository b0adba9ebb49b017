"""The quads that the leaves of plans look at: before a change, after it, and the change itself."""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import reduce
from operator import and_
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from evergraph.engines.spark.frames import WEIGHT, Frame, for_join
from evergraph.engines.spark.rows import QUAD
from evergraph.plan.nodes import EachGraph, Merge, QuadPattern
from evergraph.terms import DefaultGraph, Variable, term_text

_TRIPLE = QUAD[:3]
_STORED = 3_000_000
"""Up to so many matches of a pattern are kept for the other operators of a batch."""


class Version(Enum):
    """Before or after a change."""

    OLD = "old"
    NEW = "new"


class Statistics(Protocol):
    """What is known about the quads without looking at them."""

    def rows(self, predicate: str | None) -> float:
        """Tell how many quads have a predicate; None is any."""
        ...

    def fan_out(self, predicate: str | None, position: str) -> float:
        """Tell how many quads there are for one subject, or object, of a predicate."""
        ...


class Relations:
    """The quads of the old version as a set, and an exact change of them."""

    def __init__(
        self,
        quads: DataFrame,
        changes: DataFrame,
        size: float,
        statistics: Statistics,
        store: Callable[[DataFrame], DataFrame] = lambda data: data,
    ) -> None:
        self._quads = quads.select(*QUAD)
        self._changes = changes.select(*QUAD, WEIGHT)
        self._store = store
        self._stored: dict[tuple[object, Version], DataFrame] = {}
        self.size = size
        self.statistics = statistics
        self.matching: dict[QuadPattern, float] = {}
        """How many changed quads match a pattern, as far as they were counted."""

    def matches(self, pattern: QuadPattern) -> bool:
        """Tell whether the change holds quads that match a pattern."""
        return self.matching.get(pattern, self.size) > 0

    def changes(self, pattern: QuadPattern) -> Frame:
        """Return how the matches of a pattern change."""
        found = self._matching(self._changes, pattern)
        if isinstance(pattern.context, Merge):
            found = self._changes_of_merge(found, pattern)
        return self._frame(found, pattern, self.matching.get(pattern, self.size))

    def quads(self, patterns: Iterable[QuadPattern]) -> DataFrame:
        """Return the old quads that match some pattern, with weight 0, and the changed ones, with theirs."""
        wanted = any_pattern(patterns)
        old = self._quads.where(wanted).withColumn(WEIGHT, sf.lit(0).cast("long"))
        return old.unionAll(self._changes.where(wanted))

    def rows(self, pattern: QuadPattern, version: Version) -> Frame:
        """Return the matches of a pattern, each once."""
        rows = self.statistics.rows(predicate_of(pattern))
        return self._frame(self._matches(pattern, version, rows), pattern, rows)

    def count(self, patterns: Iterable[QuadPattern]) -> None:
        """Count the changed quads that match each of some patterns, all in one job."""
        wanted = [pattern for pattern in dict.fromkeys(patterns) if pattern not in self.matching]
        if wanted:
            counts = [sf.count_if(pattern_condition(pattern)).alias(f"n{n}") for n, pattern in enumerate(wanted)]
            row = self._changes.agg(*counts).first()
            assert row is not None
            self.matching.update(zip(wanted, map(float, row), strict=True))

    def fan_out(self, pattern: QuadPattern, known: frozenset[Variable]) -> float:
        """Estimate how many matches of a pattern there are for one choice of what is known."""
        predicate = predicate_of(pattern)
        if pattern.subject in known or not isinstance(pattern.subject, Variable):
            if pattern.object in known or not isinstance(pattern.object, Variable):
                return 1.0
            return self.statistics.fan_out(predicate, "subject")
        if pattern.object in known or not isinstance(pattern.object, Variable):
            return self.statistics.fan_out(predicate, "object")
        return self.statistics.rows(predicate)

    def _matches(self, pattern: QuadPattern, version: Version, rows: float) -> DataFrame:
        """Return the quads that match, with weight 1; what is not too large is read only once in a batch."""
        key = pattern_shape(pattern), version
        if key not in self._stored:
            found = self._present(pattern, version)
            if isinstance(pattern.context, Merge):
                found = found.select(*_TRIPLE).distinct()
            found = found.withColumn(WEIGHT, sf.lit(1).cast("long"))
            self._stored[key] = self._store(found) if rows <= _STORED else found
        return self._stored[key]

    def _present(self, pattern: QuadPattern, version: Version) -> DataFrame:
        old = self._matching(self._quads, pattern)
        if version is Version.OLD:
            return old
        changes = self._matching(self._changes, pattern)
        deleted = changes.where(sf.col(WEIGHT) < 0).select(*QUAD)
        inserted = changes.where(sf.col(WEIGHT) > 0).select(*QUAD)
        return old.join(for_join(deleted, self.size), list(QUAD), "left_anti").unionAll(inserted)

    def _changes_of_merge(self, changes: DataFrame, pattern: QuadPattern) -> DataFrame:
        """A merged triple comes with the first graph that holds it, and goes with the last."""
        touched = changes.select(*_TRIPLE).distinct()
        before, after = (
            touched.join(self._present(pattern, version), list(_TRIPLE), "left_semi") for version in Version
        )
        came = after.join(before, list(_TRIPLE), "left_anti").withColumn(WEIGHT, sf.lit(1).cast("long"))
        went = before.join(after, list(_TRIPLE), "left_anti").withColumn(WEIGHT, sf.lit(-1).cast("long"))
        return came.unionAll(went)

    @staticmethod
    def _matching(quads: DataFrame, pattern: QuadPattern) -> DataFrame:
        return quads.where(pattern_condition(pattern))

    @staticmethod
    def _frame(quads: DataFrame, pattern: QuadPattern, rows: float) -> Frame:
        places: dict[Variable, str] = {}
        for term, name in zip(pattern.positions(), QUAD, strict=True):
            if isinstance(term, Variable):
                places.setdefault(term, name)
        columns = [sf.col(name).alias(f"c{number}") for number, name in enumerate(places.values())]
        return Frame(tuple(places), quads.select(*columns, WEIGHT), rows)


def predicate_of(pattern: QuadPattern) -> str | None:
    """Return the predicate of a pattern, None if it is a variable."""
    return None if isinstance(pattern.predicate, Variable) else term_text(pattern.predicate)


def any_pattern(patterns: Iterable[QuadPattern]) -> Column:
    """Tell whether a quad matches some of the patterns."""
    distinct = {pattern_shape(pattern): pattern for pattern in patterns}
    return any_of([pattern_condition(pattern) for pattern in distinct.values()])


def any_of(tests: Sequence[Column]) -> Column:
    """Tell whether one of many tests holds; nested as little as possible, because Spark follows them by recursion."""
    if len(tests) < 2:
        return tests[0] if tests else sf.lit(False)
    middle = len(tests) // 2
    return any_of(tests[:middle]) | any_of(tests[middle:])


def pattern_condition(pattern: QuadPattern) -> Column:
    """Tell whether a quad matches a pattern."""
    tests = [_in_context(pattern)]
    seen: dict[Variable, str] = {}
    for term, name in zip(pattern.positions(), QUAD, strict=True):
        if isinstance(term, Variable):
            if term in seen:
                tests.append(sf.col(name) == sf.col(seen[term]))
            seen.setdefault(term, name)
        elif name != "graph":
            assert not isinstance(term, DefaultGraph | Merge)
            tests.append(sf.col(name) == term_text(term))
    return reduce(and_, tests)


def _in_context(pattern: QuadPattern) -> Column:
    graph = sf.col("graph")
    match pattern.context:
        case DefaultGraph():
            return graph == ""
        case EachGraph(among=None):
            return graph != ""
        case EachGraph(among=names) | Merge(graphs=names):
            assert names is not None
            return graph.isin([term_text(name) for name in names])
        case name:
            return graph == term_text(name)


def pattern_shape(pattern: QuadPattern) -> object:
    """Return what patterns have in common that match the same quads: names of variables do not matter."""
    names: dict[Variable, int] = {}
    terms = [names.setdefault(term, len(names)) if isinstance(term, Variable) else term for term in pattern.positions()]
    return (*terms, getattr(pattern.context, "among", None))
