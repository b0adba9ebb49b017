"""Delta operators, explained: for each node of a plan its law, what it keeps, how much that is, what it re-runs.

The rules themselves are in `evergraph.plan.nodes`. Operators are numbered from the top, so that bounds can speak of
sizes: ``|3|`` is the number of distinct rows of operator 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import assert_never

from evergraph.plan import nodes
from evergraph.plan.nodes import Context, EachGraph, Plan
from evergraph.plan.notation import Notation
from evergraph.plan.rebuild import children
from evergraph.sparql import scope
from evergraph.sparql.algebra import (
    BGP,
    TRUE,
    AggregateFunction,
    Ask,
    Construct,
    Describe,
    Expression,
    Path,
    Pattern,
    PatternTerm,
    Query,
    Select,
)
from evergraph.terms import BlankNode, DefaultGraph, NamedNode, Variable


class Law(StrEnum):
    """How the change of a result follows from the changes of the operands; see `evergraph.plan.nodes`."""

    CONSTANT = "constant"
    LINEAR = "linear"
    MULTILINEAR = "multilinear"
    BILINEAR = "bilinear"
    OLD_STATE = "needs old state"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operator of a delta plan.

    ``keeps`` is what it remembers, ``bound`` how much that is at most; both are empty if it needs no state.
    ``quads`` are the patterns whose quads it has in indexes that all queries share.
    ``rerun`` says what it computes again instead of maintaining it, and why.
    """

    number: int
    operator: str
    detail: str
    lines: tuple[str, ...]
    variables: str
    quads: tuple[str, ...]
    law: Law
    keeps: str
    bound: str
    rerun: str
    operands: "tuple[Operation, ...]"

    def walk(self) -> "Iterator[Operation]":
        """Iterate over the operation and all below, in the order of their numbers."""
        yield self
        for operand in self.operands:
            yield from operand.walk()


_ANYTHING = "?s ?p ?o"
_BAGS = {AggregateFunction.MIN, AggregateFunction.MAX, AggregateFunction.SAMPLE, AggregateFunction.GROUP_CONCAT}


def explain_plan(query: Query, plan: Plan, notation: Notation) -> Operation:
    """Explain the plan of the solutions of a query, under what the form of the query makes of them."""
    return _Explainer(notation).query(query, plan)


class _Explainer:
    def __init__(self, notation: Notation) -> None:
        self.write = notation
        self._numbers = count(1)

    def query(self, query: Query, plan: Plan) -> Operation:
        match query:
            case Select():
                return self.plan(plan)
            case Ask():
                return self._form(plan, "Ask", "", "the number of solutions", "1 entry")
            case Construct(template):
                lines = tuple(map(self.write.triple, template))
                numbered = any(isinstance(term, BlankNode) for one in template for term in (one.subject, one.object))
                keeps = "the count of each triple" + ("; the count of each solution" if numbered else "")
                bound = f"at most {len(template)} · |{{0}}|" + (" + |{0}|" if numbered else "")
                return self._form(plan, "Construct", "", keeps, bound, lines=lines)
            case Describe(targets):
                return self._form(
                    plan,
                    "Describe",
                    " ".join(map(self.write.term, targets)),
                    "the count of each target; the described nodes",
                    "one entry for each target and each described node",
                    quads=(_ANYTHING,),
                    rerun="the described nodes are found again from the targets when a target, or a link to a blank "
                    "node, comes or goes: which blank nodes are reached is not known from the change alone",
                )

    def _form(
        self,
        plan: Plan,
        operator: str,
        detail: str,
        keeps: str,
        bound: str,
        *,
        lines: tuple[str, ...] = (),
        quads: tuple[str, ...] = (),
        rerun: str = "",
    ) -> Operation:
        number = next(self._numbers)
        operand = self.plan(plan)
        bound = bound.format(operand.number)
        return Operation(number, operator, detail, lines, "", quads, Law.OLD_STATE, keeps, bound, rerun, (operand,))

    def plan(self, plan: Plan) -> Operation:
        number = next(self._numbers)
        operands = tuple(map(self.plan, children(plan)))
        detail, lines = self._detail(plan)
        law, keeps, bound = self._state(plan, [operand.number for operand in operands])
        return Operation(
            number,
            type(plan).__name__,
            detail,
            lines,
            self.write.variables(plan.variables),
            self._quads(plan),
            law,
            keeps,
            bound,
            self._rerun(plan),
            operands,
        )

    def _detail(self, plan: Plan) -> tuple[str, tuple[str, ...]]:
        """Say what a node does in one line, and what it is made of in further ones."""
        write = self.write
        match plan:
            case nodes.BGP(patterns):
                return "", tuple(map(write.triple, patterns))
            case nodes.Path(subject, object_, context):
                where = "" if isinstance(context, DefaultGraph) else f", {write.context(context)}"
                return f"{write.term(subject)} one or more steps to {write.term(object_)}{where}", ()
            case nodes.Nodes(context):
                return f"of {write.context(context)}", ()
            case nodes.GraphNames(graph):
                return write.context(graph) if isinstance(graph, EachGraph) else f"GRAPH {write.term(graph)}", ()
            case nodes.Values(rows=rows):
                return _counted(len(rows), "row"), ()
            case nodes.Graph(graph):
                return write.context(graph), ()
            case nodes.Join(left, right) | nodes.Minus(left, right):
                return self._on(left, right), ()
            case nodes.LeftJoin(left, right, condition):
                return self._on(left, right, condition), ()
            case nodes.SemiJoin(left, right, condition, anti):
                return f"{'NOT EXISTS' if anti else 'EXISTS'} {self._on(left, right, condition)}", ()
            case nodes.MarkJoin(left, right, mark, condition):
                return f"EXISTS as {write.term(mark)} {self._on(left, right, condition)}", ()
            case nodes.Correlate(_, _, shared, mark):
                return f"EXISTS as {write.term(mark)} for each {write.variables(shared)}", ()
            case nodes.Filter(_, condition):
                return write.expression(condition), ()
            case nodes.Extend(_, variable, expression):
                return f"{write.term(variable)} := {write.expression(expression)}", ()
            case nodes.Tag(_, variable):
                return f"{write.term(variable)} := the row", ()
            case nodes.Group(_, keys, aggregates):
                named = tuple(f"{write.term(variable)} := {write.aggregate(one)}" for variable, one in aggregates)
                return f"by {write.variables(keys)}" if keys else "all rows", named
            case nodes.Slice(_, conditions, _, start, length, distinct):
                order = f"order by {' '.join(map(write.order, conditions))}" if conditions else "in the order of terms"
                window = [f"offset {start}"] if start else []
                window += [] if length is None else [f"limit {length}"]
                return " ".join([*(["distinct"] if distinct else []), order, *window]), ()
            case nodes.Union() | nodes.Project() | nodes.Distinct():
                return "", ()
            case _:
                assert_never(plan)

    def _quads(self, plan: Plan) -> tuple[str, ...]:
        """Say which quads a node holds in the shared indexes."""
        match plan:
            case nodes.BGP(patterns):
                return tuple(map(self.write.triple, patterns))
            case nodes.Nodes(context):
                return (self._anything(context),)
            case nodes.GraphNames(graph):
                return (self._anything(graph),) if isinstance(graph, EachGraph | NamedNode | BlankNode) else ()
            case nodes.Graph(graph):
                return (self._anything(graph),)
            case nodes.Correlate(pattern=pattern):
                return tuple(self._triples(pattern))
            case _:
                return ()

    def _anything(self, context: Context) -> str:
        return _ANYTHING if isinstance(context, DefaultGraph) else f"{self.write.context(context)} {{ {_ANYTHING} }}"

    def _triples(self, pattern: Pattern) -> Iterator[str]:
        match pattern:
            case BGP(triples):
                yield from map(self.write.triple, triples)
            case Path():
                yield self.write.path_pattern(pattern)
            case _:
                for child in scope.children(pattern):
                    yield from self._triples(child)

    def _on(self, left: Plan, right: Plan, condition: Expression = TRUE) -> str:
        shared = nodes.shared(left, right)
        text = f"on {self.write.variables(shared)}" if shared else "on nothing"
        return text if condition == TRUE else f"{text} if {self.write.expression(condition)}"

    def _state(self, plan: Plan, below: list[int]) -> tuple[Law, str, str]:
        """Give the law of a node, what it keeps, and the bound of that."""
        first = below[0] if below else 0
        match plan:
            case nodes.BGP():
                return Law.MULTILINEAR, "", ""
            case nodes.Values():
                return Law.CONSTANT, "", ""
            case nodes.Union() | nodes.Filter() | nodes.Extend() | nodes.Tag() | nodes.Project():
                return Law.LINEAR, "", ""
            case nodes.Path(subject, object_):
                return Law.OLD_STATE, *self._path_state(subject, object_, first)
            case nodes.Nodes():
                return (
                    Law.OLD_STATE,
                    "how often each node occurs",
                    "one entry for each subject or object",
                )
            case nodes.GraphNames():
                return Law.OLD_STATE, "", ""
            case nodes.Graph():
                keeps = "one plan and its result for each named graph"
                return Law.OLD_STATE, keeps, f"the state of {first} and |{first}|, for each named graph"
            case nodes.Join(left, right):
                keeps = f"both sides, hashed {self._hashed(left, right)}"
                return Law.BILINEAR, keeps, f"|{first}| + |{below[1]}|"
            case nodes.LeftJoin(left, right):
                keeps = f"both sides, hashed {self._hashed(left, right)}; for each row of the left its matches, counted"
                return Law.OLD_STATE, keeps, f"2 · |{first}| + |{below[1]}|"
            case nodes.Minus() | nodes.SemiJoin() | nodes.MarkJoin():
                return Law.OLD_STATE, *self._match_state(plan, first, below[1])
            case nodes.Correlate():
                keeps = "the left side by binding; one plan for each binding"
                return Law.OLD_STATE, keeps, f"|{first}|, and the state of the inner plan for each binding"
            case nodes.Distinct():
                return Law.OLD_STATE, "the count of each row", f"|{first}|"
            case nodes.Group():
                return Law.OLD_STATE, *self._group_state(plan, first)
            case nodes.Slice():
                return Law.OLD_STATE, "all rows in order, and those in the window", f"2 · |{first}|"
            case _:
                assert_never(plan)

    def _path_state(self, subject: PatternTerm, object_: PatternTerm, step: int) -> tuple[str, str]:
        constant = next((end for end in (subject, object_) if not isinstance(end, Variable)), None)
        if constant is not None:
            end = self.write.term(constant)
            return f"the steps; what can be reached from {end}", f"|{step}| + the nodes tied to {end}"
        return "the steps; all pairs that they join", f"|{step}| + the pairs: up to n² for n nodes"

    def _hashed(self, left: Plan, right: Plan) -> str:
        shared = nodes.shared(left, right)
        if not shared:
            return "on nothing: all rows match"
        certain = left.certain.issuperset(shared) and right.certain.issuperset(shared)
        text = f"on {self.write.variables(shared)}"
        return text if certain else f"{text}, by which of these are bound"

    def _match_state(
        self, plan: nodes.Minus | nodes.SemiJoin | nodes.MarkJoin, left: int, right: int
    ) -> tuple[str, str]:
        shared = nodes.shared(plan.left, plan.right)
        plain = isinstance(plan, nodes.Minus) or plan.condition == TRUE
        if plain and plan.left.certain & plan.right.certain >= frozenset(shared):
            keys = f"each {self.write.variables(shared)} of the right" if shared else "the right"
            values = f"the values of {self.write.variables(shared)} in {right}" if shared else "1"
            return f"the left side; a count for {keys}", f"|{left}| + {values}"
        keeps = (
            f"both sides, hashed {self._hashed(plan.left, plan.right)}; for each row of the left its matches, counted"
        )
        return keeps, f"2 · |{left}| + |{right}|"

    def _group_state(self, plan: nodes.Group, operand: int) -> tuple[str, str]:
        bags = [
            self.write.aggregate(one) for _, one in plan.aggregates if one.distinct or one.function in _BAGS
        ]  # these cannot be undone from their value alone
        groups = "one entry for each group" if plan.keys else "one entry"
        if not bags:
            return "a count and sums for each group", groups
        return (
            f"for each group a count and sums; for {', '.join(bags)} the values",
            f"{groups}, and up to |{operand}| values",
        )

    def _rerun(self, plan: Plan) -> str:
        """Say what a node computes again."""
        match plan:
            case nodes.Path():
                return (
                    "when a step goes that a spanning tree uses, what hung on it is searched again among the steps: "
                    "whether there is another way does not follow from the change"
                )
            case nodes.Graph():
                return (
                    "the pattern below is set up from scratch for a new graph: it means something else in each "
                    "(an aggregate, a slice or a MINUS that applies graph by graph)"
                )
            case nodes.Correlate(_, _, shared, _, reason):
                return (
                    f"the EXISTS pattern is set up from scratch for each new {self.write.variables(shared)}, and "
                    f"maintained as long as that is there: {reason}"
                )
            case nodes.Slice(start=start, length=length):
                window = "all rows" if length is None else f"the first {start + length} rows"
                return f"the window is read again when a row in it, or before it, comes or goes: {window}, in order"
            case nodes.Group(aggregates=aggregates):
                again = [
                    self.write.aggregate(one)
                    for _, one in aggregates
                    if one.function is AggregateFunction.GROUP_CONCAT
                    or (one.distinct and one.expression is not None and one.function not in _BAGS)
                ]
                return f"{', '.join(again)}: computed again from the values of a group that changes" if again else ""
            case _:
                return ""


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
