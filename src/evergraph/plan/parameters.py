"""Plans for all values of some constants at once.

`lift` turns the placeholders of a template (`evergraph.plan.templates`) into variables, its *parameters*, which every
row carries. Its meaning: the rows that carry some values are the result of the query with those constants. Each basic
graph pattern with parameters is joined with a table of the values that are wanted, so that nothing else is computed.
Operators carry the parameters like any other column:

* linear operators and Distinct keep them; Group has them among its keys;
* Join compares them; one side must have all that the other has, or values that nobody wants together would meet;
* LeftJoin, Minus, SemiJoin and MarkJoin compare them; the left must have all that the right has. A Minus also needs a
  shared variable that is always bound: a parameter must not count as one;
* Union needs the same ones in all operands;
* a group without keys and a slice take none, nor does what is planned for each graph or binding.

Where that does not hold, `Conflict` says which placeholders must stay constants.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias, assert_never
from uuid import uuid4

from evergraph.plan import nodes
from evergraph.plan.nodes import EachGraph, Plan, QuadPattern, Variables
from evergraph.plan.optimize import MAX_PATTERNS
from evergraph.plan.templates import iris, placeholder
from evergraph.terms import NamedNode, Variable

MAX_PARAMETERS = 3
"""How many constants of a query can be parameters: a table of parameters is a relation without its predicate."""

Table: TypeAlias = Callable[[Variables], QuadPattern]
"""Makes the pattern that matches the wanted values of some parameters."""

TABLE = NamedNode(f"urn:uuid:{uuid4()}")
"""The predicate of tables of parameters, which is in no data."""


@cache
def parameter(number: int) -> Variable:
    """Return the variable that a placeholder becomes."""
    return Variable(f"parameter··{number}")


def table_pattern(name: NamedNode, parameters: Variables) -> QuadPattern:
    """Return the pattern of a table: its first column is the subject, then object and graph, as far as need be."""
    first, *rest = parameters
    match rest:
        case []:
            return QuadPattern(first, TABLE, TABLE, name)
        case [second]:
            return QuadPattern(first, TABLE, second, name)
        case [second, third]:
            return QuadPattern(first, TABLE, second, EachGraph(third, frozenset({name})))
        case _:
            raise ValueError(f"a table has no room for {len(parameters)} parameters")


class Conflict(Exception):
    """Some parameters cannot be carried through a plan."""

    def __init__(self, parameters: frozenset[Variable]) -> None:
        super().__init__(parameters)
        self.parameters = parameters


def liftable(plan: Plan, count: int) -> tuple[int, ...]:
    """Return the numbers of the placeholders of a plan that can become parameters, out of so many."""
    wanted = {placeholder(number): parameter(number) for number in range(count)}
    while wanted:
        try:
            lifted = frozenset(lift(plan, wanted, _no_table).variables)
        except Conflict as conflict:
            gone = conflict.parameters
        else:
            kept = [one for one in wanted.values() if one in lifted][:MAX_PARAMETERS]
            gone = frozenset(wanted.values()).difference(kept)
            if not gone:
                break
        wanted = {term: one for term, one in wanted.items() if one not in gone}
    return tuple(number for number in range(count) if placeholder(number) in wanted)


def _no_table(parameters: Variables) -> QuadPattern:
    """Stand in for a table where a plan is only looked at."""
    return table_pattern(TABLE, parameters)


def lift(plan: Plan, wanted: Mapping[NamedNode, Variable], table: Table) -> Plan:
    """Turn placeholders into parameters, which become columns of the plan. Raises `Conflict`."""
    return _Lifting(wanted, table).lift(plan) if wanted else plan


class _Lifting:
    def __init__(self, wanted: Mapping[NamedNode, Variable], table: Table) -> None:
        self._wanted = wanted
        self._all = frozenset(wanted.values())
        self._table = table

    def _carried(self, plan: Plan) -> frozenset[Variable]:
        return self._all.intersection(plan.variables)

    def _ordered(self, parameters: frozenset[Variable]) -> Variables:
        return tuple(one for one in self._wanted.values() if one in parameters)

    def lift(self, plan: Plan) -> Plan:
        match plan:
            case nodes.BGP():
                return self._bgp(plan)
            case nodes.Nodes() | nodes.GraphNames() | nodes.Values():
                return plan
            case nodes.Path(step=step):
                return self._without(plan, step)
            case nodes.Graph() | nodes.Correlate():
                if mentioned := self._all.intersection(map(self._wanted.get, iris(plan.pattern))):
                    raise Conflict(mentioned)
                return plan if isinstance(plan, nodes.Graph) else replace(plan, left=self.lift(plan.left))
            case nodes.Join():
                return self._join(plan)
            case nodes.LeftJoin() | nodes.SemiJoin() | nodes.MarkJoin() | nodes.Minus():
                return self._match(plan)
            case nodes.Union(operands):
                lifted = tuple(map(self.lift, operands))
                carried = [self._carried(one) for one in lifted]
                some = frozenset[Variable]().union(*carried)
                if missing := some - some.intersection(*carried):
                    raise Conflict(missing)
                return nodes.Union(lifted)
            case nodes.Filter() | nodes.Extend() | nodes.Tag() | nodes.Distinct():
                return replace(plan, operand=self.lift(plan.operand))
            case nodes.Project(operand, variables):
                inner = self.lift(operand)
                return nodes.Project(inner, (*variables, *self._ordered(self._carried(inner))))
            case nodes.Group(operand, keys, aggregates):
                if not keys:
                    return self._without(plan, operand)
                inner = self.lift(operand)
                return nodes.Group(inner, (*keys, *self._ordered(self._carried(inner))), aggregates)
            case nodes.Slice(operand=operand):
                return self._without(plan, operand)
            case _:
                assert_never(plan)

    def _bgp(self, plan: nodes.BGP) -> Plan:
        found: set[Variable] = set()

        def changed(term: Any) -> Any:
            if isinstance(term, NamedNode) and (one := self._wanted.get(term)) is not None:
                found.add(one)
                return one
            return term

        patterns = [replace(one, subject=changed(one.subject), object=changed(one.object)) for one in plan.patterns]
        if not found:
            return plan
        parameters = self._ordered(frozenset(found))
        if len(patterns) >= MAX_PATTERNS:
            raise Conflict(frozenset(found))
        if len(parameters) <= MAX_PARAMETERS:
            patterns.append(self._table(parameters))
        return nodes.BGP(tuple(patterns), (*plan.variables, *parameters))

    def _without(self, plan: Plan, operand: Plan) -> Plan:
        if carried := self._carried(self.lift(operand)):
            raise Conflict(carried)
        return plan

    def _join(self, plan: nodes.Join) -> Plan:
        left, right = self.lift(plan.left), self.lift(plan.right)
        one, other = self._carried(left), self._carried(right)
        if not (one <= other or other <= one):
            raise Conflict(other - one if len(other) <= len(one) else one - other)
        return nodes.Join(left, right)

    def _match(self, plan: nodes.LeftJoin | nodes.SemiJoin | nodes.MarkJoin | nodes.Minus) -> Plan:
        left, right = self.lift(plan.left), self.lift(plan.right)
        carried = self._carried(right)
        if missing := carried - self._carried(left):
            raise Conflict(missing)
        if isinstance(plan, nodes.Minus) and carried and not plan.left.certain & plan.right.certain:
            raise Conflict(carried)
        return replace(plan, left=left, right=right)
