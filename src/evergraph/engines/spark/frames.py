"""Frames: bags with signed multiplicities as DataFrames.

The columns of a frame are ``c0``, ``c1``, …: for each variable the text of its term, null where unbound; and
``weight``. Names by number keep joins free of ambiguity, and variables that differ only in case apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from evergraph.plan.nodes import Variables
from evergraph.terms import Variable

WEIGHT = "weight"
SMALL = 100_000
"""How many rows are sent to every task rather than shuffled."""
MEDIUM = 500_000
"""How many rows the tasks look up in tables, rather than sort them."""


@dataclass(frozen=True)
class Frame:
    """The rows of a plan, or their change; ``rows`` says about how many there are."""

    variables: Variables
    data: DataFrame
    rows: float

    def column(self, variable: Variable) -> Column:
        """The column of a variable, null if there is none."""
        if variable not in self.variables:
            return sf.lit(None).cast("string")
        return sf.col(f"c{self.variables.index(variable)}")

    def columns(self) -> list[str]:
        """The names of the columns, without the weight."""
        return [f"c{number}" for number in range(len(self.variables))]

    def only(self, variables: Variables) -> "Frame":
        """Cut down to some columns, or add some that are unbound; weights are not added up."""
        if variables == self.variables:
            return self
        chosen = [self.column(variable).alias(f"c{number}") for number, variable in enumerate(variables)]
        return Frame(variables, self.data.select(*chosen, WEIGHT), self.rows)

    def renamed(self, variables: Variables) -> "Frame":
        """Give the columns other variables."""
        return replace(self, variables=variables)

    def extended(self, variable: Variable, value: Column) -> "Frame":
        """Add a column."""
        data = self.data.select(*self.columns(), value.alias(f"c{len(self.variables)}"), WEIGHT)
        return Frame((*self.variables, variable), data, self.rows)

    def where(self, condition: Column) -> "Frame":
        """Keep the rows for which a condition is true."""
        return replace(self, data=self.data.where(condition))

    def times(self, factor: int) -> "Frame":
        """Multiply all weights."""
        return replace(self, data=self.data.withColumn(WEIGHT, sf.col(WEIGHT) * factor))

    def consolidated(self) -> "Frame":
        """Every row once, with the sum of its weights; rows with none are gone."""
        total = sf.sum(WEIGHT).alias(WEIGHT)
        data = self.data.groupBy(*self.columns()).agg(total) if self.variables else self.data.agg(total)
        return replace(self, data=data.where(sf.col(WEIGHT) != 0))

    def distinct(self) -> "Frame":
        """Every row once, with weight 1, of a frame without negative weights."""
        if not self.variables:
            data = self.data.agg(sf.sum(WEIGHT).alias(WEIGHT)).where(sf.col(WEIGHT) > 0)
            return replace(self, data=data.select(sf.lit(1).cast("long").alias(WEIGHT)), rows=1)
        return replace(
            self, data=self.data.select(*self.columns()).distinct().withColumn(WEIGHT, sf.lit(1).cast("long"))
        )

    def keys(self, variables: Variables) -> "Frame":
        """The distinct values of some columns, whatever their weights, with weight 1; none of them unbound."""
        picked = self.only(variables)
        data = picked.data.drop(WEIGHT).dropna().distinct() if variables else picked.data.drop(WEIGHT)
        return Frame(variables, data.withColumn(WEIGHT, sf.lit(1).cast("long")), self.rows)

    def numbered(self, prefix: str) -> DataFrame:
        """The data under other names, for the other side of a join."""
        names = [sf.col(name).alias(f"{prefix}{name}") for name in (*self.columns(), WEIGHT)]
        return self.data.select(*names)


def for_join(data: DataFrame, rows: float) -> DataFrame:
    """Say how the smaller side of a join is to be looked up; Spark does not know how many rows a checkpoint has."""
    if rows <= SMALL:
        return sf.broadcast(data)
    return data.hint("shuffle_hash") if rows <= MEDIUM else data


def sum_of(frames: Sequence[Frame]) -> Frame:
    """Add frames over the same variables, in the order of the first."""
    variables = frames[0].variables
    data = reduce(DataFrame.unionAll, [frame.only(variables).data for frame in frames])
    return Frame(variables, data, sum(frame.rows for frame in frames))


def same(left: Column, right: Column) -> Column:
    """Compare two columns; unbound equals unbound."""
    return left.eqNullSafe(right)


def same_rows(frame: Frame, others: Frame, *, among: bool) -> Frame:
    """Keep the rows of a frame that are, or are not, among the rows of another over the same variables."""
    if not frame.variables:
        flag = others.data.limit(1).select(sf.lit(1).alias("k"))
        return replace(frame, data=frame.data.join(sf.broadcast(flag), None, "left_semi" if among else "left_anti"))
    other = for_join(others.only(frame.variables).numbered("k"), others.rows)
    condition = [same(sf.col(name), sf.col(f"k{name}")) for name in frame.columns()]
    return replace(frame, data=frame.data.join(other, condition, "left_semi" if among else "left_anti"))


def with_sane_size(data: DataFrame) -> DataFrame:
    """Let Spark forget what it believes about the size of a checkpoint, if that is beyond reason.

    It takes a join to be as large as the product of its sides, and a checkpoint to be as large as what led to it. Where
    what was kept is joined with what was found by it, the number has twice as many digits each time: after thirty steps
    of a path, Spark would do nothing but multiply.
    """
    plan = data._jdf.queryExecution().analyzed()
    if _BEYOND_REASON not in plan.stats().simpleString():
        return data
    session = data.sparkSession._jsparkSession
    return DataFrame(session.internalCreateDataFrame(plan.rdd(), data._jdf.schema(), False), data.sparkSession)


_BEYOND_REASON = "E+"
"""What stands in sizes that have no unit: from 2⁷¹ bytes on."""
