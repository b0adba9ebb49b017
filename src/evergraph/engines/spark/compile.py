"""Plans to DataFrames: the rows of a plan before and after a change, and how they change.

The rules are those of `evergraph.plan.nodes`; here they read the quads instead of keeping state. Linear and bilinear
operators work on the weights of the change. The others look up the old rows with the keys that the change touches:
keys are handed down through the plan to its leaves, so that what the change cannot touch is not read.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from evergraph.engines.spark import closures
from evergraph.engines.spark.expressions import Expressions
from evergraph.engines.spark.frames import WEIGHT, Frame, for_join, same_rows, sum_of
from evergraph.engines.spark.groups import group
from evergraph.engines.spark.joins import join, match
from evergraph.engines.spark.relations import Relations, Version
from evergraph.engines.spark.rows import arrow_schema
from evergraph.engines.spark.windows import window
from evergraph.plan import nodes
from evergraph.plan.nodes import EachGraph, Plan, QuadPattern, Variables
from evergraph.plan.reach import as_distinct
from evergraph.sparql.expressions import Environment
from evergraph.terms import Term, Variable, term_text

Match = nodes.LeftJoin | nodes.SemiJoin | nodes.MarkJoin | nodes.Minus
Keep = Callable[[Frame], Frame | None]


class PlanFrames:
    """The frames of one plan, for one change of the quads.

    ``keep`` computes a frame once and tells whether it has rows: it is called for what is used more than once, and
    where an empty change means that there is nothing to do.
    """

    def __init__(self, spark: SparkSession, relations: Relations, environment: Environment, keep: Keep) -> None:
        self._spark = spark
        self._relations = relations
        self._environment = environment
        self._expressions = Expressions(environment)
        self._keep = keep

    # -- rows

    def rows(self, plan: Plan, version: Version, keys: Frame | None = None) -> Frame:
        """Return the rows of a plan as a bag; where keys are given, at least all rows that have them.

        The variables of the keys are certain in the plan, and bound in every key.
        """
        match plan:
            case nodes.BGP(patterns, variables):
                return self._joined(keys, [(pattern, version) for pattern in patterns]).only(variables)
            case nodes.Nodes() | nodes.GraphNames():
                return self.rows(as_distinct(plan), version, keys)
            case nodes.Values():
                return self._values(plan)
            case nodes.Path():
                return self._path_rows(plan, version, keys)
            case nodes.Join(left, right):
                return self._join_rows(left, right, version, keys)
            case nodes.LeftJoin() | nodes.SemiJoin() | nodes.MarkJoin() | nodes.Minus():
                left_rows = self.rows(plan.left, version, _for(plan.left, keys))
                return match(plan, left_rows, self._right(plan, left_rows, version, keys), self._expressions)
            case nodes.Union(operands):
                return sum_of([self.rows(one, version, _for(one, keys)).only(plan.variables) for one in operands])
            case nodes.Distinct(operand):
                return self.rows(operand, version, keys).distinct()
            case nodes.Group(operand):
                return group(plan, self.rows(operand, version, _for(operand, keys)), self._expressions)
            case nodes.Slice(operand):
                return window(plan, self.rows(operand, version), self._environment)
            case nodes.Filter() | nodes.Extend() | nodes.Tag() | nodes.Project():
                return self._linear(plan, self.rows(plan.operand, version, _through(plan, keys)))
            case nodes.Graph() | nodes.Correlate():
                raise AssertionError(f"{type(plan).__name__} is for an island")
            case _:
                assert_never(plan)

    def _joined(self, start: Frame | None, patterns: list[tuple[QuadPattern, Version]]) -> Frame:
        """Join patterns one by one, always with one that shares a variable if there is any, the rarest first."""
        waiting = list(patterns)
        while waiting:
            known = frozenset(start.variables) if start is not None else frozenset()
            cost = {one: self._relations.fan_out(one[0], known) for one in waiting}
            linked = [one for one in waiting if one[0].variables() & known] or waiting
            following = min(linked, key=cost.__getitem__)
            waiting.remove(following)
            leaf = self._relations.rows(*following)
            if start is None:
                start = leaf
            else:
                joined = join(start, leaf, leaf_certain(start, leaf))
                start = replace(joined, rows=start.rows * cost[following])
        assert start is not None
        return start

    def _join_rows(self, left: Plan, right: Plan, version: Version, keys: Frame | None) -> Frame:
        certain = left.certain & right.certain
        left_keys, right_keys = _for(left, keys), _for(right, keys)
        if left_keys is None and right_keys is not None:
            right_rows = self.rows(right, version, right_keys)
            left_rows = self.rows(left, version, _shared_keys(right_rows, left, right))
        else:
            left_rows = self.rows(left, version, left_keys)
            if left_keys is not None and (right_keys is None or len(right_keys.variables) < len(left_keys.variables)):
                right_keys = _shared_keys(left_rows, right, left) or right_keys
            right_rows = self.rows(right, version, right_keys)
        return join(left_rows, right_rows, certain)

    def _right(self, plan: Match, left_rows: Frame, version: Version, keys: Frame | None) -> Frame:
        """Return the rows of the right side; if the left side was restricted, only those that it can meet."""
        restricted = keys is not None and _for(plan.left, keys) is not None
        return self.rows(plan.right, version, _shared_keys(left_rows, plan.right, plan.left) if restricted else None)

    def _values(self, plan: nodes.Values) -> Frame:
        schema = arrow_schema([f"c{number}" for number in range(len(plan.variables))])
        columns = [
            pa.array([None if row[number] is None else term_text(row[number]) for row in plan.rows], pa.string())  # type: ignore[arg-type]
            for number in range(len(plan.variables))
        ]
        table = pa.Table.from_arrays([*columns, pa.array([1] * len(plan.rows), pa.int64())], schema=schema)
        return Frame(plan.variables, self._spark.createDataFrame(table), len(plan.rows))

    def _linear(self, plan: nodes.Filter | nodes.Extend | nodes.Tag | nodes.Project, frame: Frame) -> Frame:
        columns = {variable: frame.column(variable) for variable in frame.variables}
        match plan:
            case nodes.Filter(_, condition):
                return frame.where(self._expressions.condition(condition, columns))
            case nodes.Extend(_, variable, expression, _, computed):
                return frame.extended(variable, self._expressions.value(expression, columns, computed))
            case nodes.Tag(_, variable):
                whole = sf.to_json(sf.struct(*[column.alias(f"a{n}") for n, column in enumerate(columns.values())]))
                return frame.extended(variable, whole if columns else sf.lit("{}"))
            case nodes.Project(_, variables):
                return frame.only(variables)
            case _:
                assert_never(plan)

    # -- changes

    def delta(self, plan: Plan) -> Frame | None:
        """Return how the rows of a plan change, weights not added up; None if they surely do not."""
        match plan:
            case nodes.BGP():
                return self._bgp_delta(plan)
            case nodes.Nodes() | nodes.GraphNames():
                return self.delta(as_distinct(plan))
            case nodes.Values():
                return None
            case nodes.Path():
                return self._path_delta(plan)
            case nodes.Join(left, right):
                return self._join_delta(plan, self._kept(left), self._kept(right))
            case nodes.LeftJoin() | nodes.SemiJoin() | nodes.MarkJoin() | nodes.Minus():
                return self._match_delta(plan, self._kept(plan.left), self._kept(plan.right))
            case nodes.Union(operands):
                deltas = [delta.only(plan.variables) for one in operands if (delta := self.delta(one)) is not None]
                return sum_of(deltas) if deltas else None
            case nodes.Distinct(operand):
                return self._distinct_delta(operand, self._kept(operand))
            case nodes.Group(operand):
                return self._group_delta(plan, self._kept(operand))
            case nodes.Slice(operand):
                if self._kept(operand) is None:
                    return None
                after, before = self.rows(plan, Version.NEW), self.rows(plan, Version.OLD)
                return sum_of([after, before.times(-1)])
            case nodes.Filter() | nodes.Extend() | nodes.Tag() | nodes.Project():
                delta = self.delta(plan.operand)
                return None if delta is None else self._linear(plan, delta)
            case nodes.Graph() | nodes.Correlate():
                raise AssertionError(f"{type(plan).__name__} is for an island")
            case _:
                assert_never(plan)

    def _kept(self, plan: Plan) -> Frame | None:
        delta = self.delta(plan)
        return None if delta is None else self._keep(delta.consolidated())

    def _bgp_delta(self, plan: nodes.BGP) -> Frame | None:
        terms = []
        for number, pattern in enumerate(plan.patterns):
            if not self._relations.matches(pattern):
                continue
            others = [(one, Version.NEW) for one in plan.patterns[:number]]
            others += [(one, Version.OLD) for one in plan.patterns[number + 1 :]]
            terms.append(self._joined(self._relations.changes(pattern), others).only(plan.variables))
        return sum_of(terms) if terms else None

    def _join_delta(self, plan: nodes.Join, left: Frame | None, right: Frame | None) -> Frame | None:
        certain = plan.left.certain & plan.right.certain
        terms = []
        if left is not None:
            old = self.rows(plan.right, Version.OLD, _shared_keys(left, plan.right, plan.left))
            terms.append(join(left, old, certain).only(plan.variables))
        if right is not None:
            new = self.rows(plan.left, Version.NEW, _shared_keys(right, plan.left, plan.right))
            terms.append(join(new, right, certain).only(plan.variables))
        return sum_of(terms) if terms else None

    def _match_delta(self, plan: Match, left: Frame | None, right: Frame | None) -> Frame | None:
        """``f(ΔA, B') + f(A, B') - f(A, B)``, the last two for rows of A that can meet something in ΔB."""
        terms = []
        if left is not None:
            keys = _shared_keys(left, plan.right, plan.left)
            terms.append(match(plan, left, self.rows(plan.right, Version.NEW, keys), self._expressions))
        if right is not None:
            keys = _shared_keys(right, plan.left, plan.right)
            met = self._keep(self.rows(plan.left, Version.OLD, keys).consolidated())
            if met is not None:
                near = _shared_keys(met, plan.right, plan.left)
                for version, sign in ((Version.NEW, 1), (Version.OLD, -1)):
                    side = self.rows(plan.right, version, near)
                    terms.append(match(plan, met, side, self._expressions).times(sign))
        return sum_of([term.only(plan.variables) for term in terms]) if terms else None

    def _distinct_delta(self, operand: Plan, delta: Frame | None) -> Frame | None:
        if delta is None:
            return None
        old = same_rows(self.rows(operand, Version.OLD, _certain_keys(delta, operand)), delta, among=True)
        both = sum_of([old.extended(_MARK, sf.lit("old")), delta.extended(_MARK, sf.lit("new"))])
        mark = both.column(_MARK)
        before = sf.sum(sf.when(mark == "old", sf.col(WEIGHT)).otherwise(0)).alias("before")
        after = sf.sum(WEIGHT).alias("after")
        columns = delta.columns()
        counts = both.data.groupBy(*columns).agg(before, after) if columns else both.data.agg(before, after)
        weight = ((sf.col("after") > 0).cast("long") - (sf.col("before") > 0).cast("long")).alias(WEIGHT)
        return replace(delta, data=counts.select(*columns, weight).where(sf.col(WEIGHT) != 0))

    def _group_delta(self, plan: nodes.Group, delta: Frame | None) -> Frame | None:
        if delta is None:
            return None
        keys = tuple(key for key in plan.keys if key in plan.operand.certain)
        old = self.rows(plan.operand, Version.OLD, delta.keys(keys) if keys else None)
        if bound := tuple(key for key in plan.keys if key in plan.operand.variables):
            old = _of_groups(old, delta.only(bound))
        new = sum_of([old, delta])
        return sum_of([group(plan, new, self._expressions), group(plan, old, self._expressions).times(-1)])

    # -- paths

    def _steps(self, plan: nodes.Path, version: Version) -> closures.Steps:
        source, target = plan.source, plan.target
        graph = plan.context.variable if isinstance(plan.context, EachGraph) else None

        whole: list[Frame] = []
        if not isinstance(plan.step, nodes.BGP):  # not worth working out again at every level
            rows = self.rows(plan.step, version).distinct()
            whole.append(self._keep(rows) or rows)

        def steps(places: Frame | None, backward: bool) -> Frame:
            here = target if backward else source
            keys = None if places is None else _for(plan.step, places.keys((closures.NODE,)).renamed((here,)))
            return _as_steps(whole[0] if whole else self.rows(plan.step, version, keys), source, target, graph)

        return steps

    def _start(self, term: Term) -> Frame:
        variables = closures.ORIGIN, closures.NODE
        return self._values(nodes.Values(variables, ((term, term),)))

    def _path_rows(self, plan: nodes.Path, version: Version, keys: Frame | None) -> Frame:
        return closures.closure(plan, self._steps(plan, version), keys, self._keep, self._start)

    def _path_delta(self, plan: nodes.Path) -> Frame | None:
        """Search again from the constant end, or from every node from which a changed step can be reached."""
        delta = self._kept(plan.step)
        if delta is None:
            return None
        keys = None
        if isinstance(plan.subject, Variable) and isinstance(plan.object, Variable):
            keys = self._sources(plan, delta)
        after, before = (self.rows(plan, version, keys) for version in (Version.NEW, Version.OLD))
        return sum_of([after, before.times(-1)])

    def _sources(self, plan: nodes.Path, delta: Frame) -> Frame:
        """Return the nodes from which a changed step could or can be reached, as keys of the path."""
        assert isinstance(plan.subject, Variable)
        changed = delta.keys((plan.source,)).renamed((closures.NODE,))
        begin = changed.extended(closures.ORIGIN, sf.lit("")).only((closures.ORIGIN, closures.NODE))
        found = [changed]
        for version in Version:
            reached = closures.reach(begin, self._steps(plan, version), self._keep, backward=True)
            found.append(reached.only((closures.NODE,)))
        sources = self._keep(sum_of(found).distinct().renamed((plan.subject,)))
        assert sources is not None
        return sources


_MARK = Variable("version··")


def leaf_certain(left: Frame, right: Frame) -> frozenset[Variable]:
    """All variables of patterns are certain."""
    return frozenset(left.variables) & frozenset(right.variables)


def _as_steps(rows: Frame, source: Variable, target: Variable, graph: Variable | None) -> Frame:
    named = rows.only((source, target) if graph is None else (source, target, graph))
    if graph is None:
        return named.renamed((closures.NODE, closures.NEXT)).extended(closures.GRAPH, sf.lit(""))
    return named.renamed((closures.NODE, closures.NEXT, closures.GRAPH))


def _of_groups(rows: Frame, touched: Frame) -> Frame:
    """Keep the rows of groups that are touched; a key may be unbound."""
    number = [rows.variables.index(key) for key in touched.variables]
    other = touched.data.select(*[sf.col(f"c{n}").alias(f"k{n}") for n in range(len(number))]).distinct()
    condition = [sf.col(f"c{place}").eqNullSafe(sf.col(f"k{n}")) for n, place in enumerate(number)]
    return replace(rows, data=rows.data.join(for_join(other, touched.rows), condition, "left_semi"))


def _for(plan: Plan, keys: Frame | None) -> Frame | None:
    """Cut keys down to what is certain in a plan; None if nothing is left."""
    if keys is None:
        return None
    usable: Variables = tuple(variable for variable in keys.variables if variable in plan.certain)
    return keys.keys(usable) if usable and usable != keys.variables else keys if usable else None


def _through(plan: nodes.Filter | nodes.Extend | nodes.Tag | nodes.Project, keys: Frame | None) -> Frame | None:
    """Hand keys down through a linear operator; the key of a copy is a key of the original."""
    if keys is not None and isinstance(plan, nodes.Extend) and isinstance(plan.expression, Variable):
        copies = {plan.variable: plan.expression}
        renamed = tuple(copies.get(one, one) for one in keys.variables)
        if len(set(renamed)) == len(renamed):
            keys = keys.renamed(renamed)
    return _for(plan.operand, keys)


def _shared_keys(rows: Frame, other: Plan, own: Plan) -> Frame | None:
    """Return the values with which rows can meet those of another plan; None if there are no certain ones."""
    certain = own.certain & other.certain
    usable = tuple(variable for variable in rows.variables if variable in certain)
    return rows.keys(usable) if usable else None


def _certain_keys(rows: Frame, plan: Plan) -> Frame | None:
    usable = tuple(variable for variable in rows.variables if variable in plan.certain)
    return rows.keys(usable) if usable else None
