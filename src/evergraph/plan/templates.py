"""Queries that differ only in names and constants: one template, and the constants as its parameters.

`canonical` names the variables of a query in the order in which they occur, and puts placeholders where a triple
pattern has a constant subject or object. Queries with the same outcome have the same template. Constants stay where
they are as predicates, graphs, classes (objects of ``rdf:type``), ends of paths, and in expressions.

`lift` turns a plan with placeholders into one for all values at once: a placeholder becomes a variable, a *parameter*,
that every row carries. Its meaning: the rows that carry some values are the result of the query with those constants.
Each basic graph pattern with parameters is joined with a table of the values that are wanted, so that nothing else is
computed. Operators carry the parameters like any other column:

* linear operators and Distinct keep them; Group has them among its keys;
* Join compares them; one side must have all that the other has, or values that nobody wants together would meet;
* LeftJoin, Minus, SemiJoin and MarkJoin compare them; the left must have all that the right has. A Minus also needs a
  shared variable that is always bound: a parameter must not count as one;
* Union needs the same ones in all operands;
* a group without keys and a slice take none, nor does what is planned for each graph or binding.

Where that does not hold, `Conflict` says which placeholders must stay constants.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeAlias, TypeVar, assert_never
from uuid import uuid4

from evergraph.plan import nodes
from evergraph.plan.nodes import EachGraph, Plan, QuadPattern, Variables
from evergraph.plan.optimize import MAX_PATTERNS
from evergraph.sparql.algebra import VOLATILE, Ask, Call, Query, Select, TriplePattern
from evergraph.terms import BlankNode, Literal, NamedNode, Term, Variable

MAX_PARAMETERS = 3
"""How many constants of a query can be parameters: a table of parameters is a relation without its predicate."""

Table: TypeAlias = Callable[[Variables], QuadPattern]
"""Makes the pattern that matches the wanted values of some parameters."""

_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_UNIQUE = uuid4()

TABLE = NamedNode(f"urn:uuid:{_UNIQUE}#table")
"""The predicate of tables of parameters, which is in no data."""


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


@cache
def placeholder(number: int) -> NamedNode:
    """Return what stands for a constant; it occurs in no query."""
    return NamedNode(f"urn:uuid:{_UNIQUE}#{number}")


@cache
def parameter(number: int) -> Variable:
    """Return the variable that a placeholder becomes."""
    return Variable(f"parameter··{number}")


@cache
def _name(number: int) -> Variable:
    return Variable(f"v{number}")


class _NotCanonical(Exception):
    pass


def canonical(query: Query) -> tuple[Select | Ask, tuple[Term, ...]] | None:
    """Return the template of a query and its constants, each once; None if its meaning depends on more than these.

    CONSTRUCT and DESCRIBE are left out, and so are functions such as NOW(), whose value is one of the view.
    """
    if not isinstance(query, Select | Ask):
        return None
    names: dict[Variable, Variable] = {}
    constants: dict[Term, NamedNode] = {}

    def lifted(term: Any) -> Any:
        if isinstance(term, NamedNode | Literal | BlankNode):
            found = constants.get(term)
            if found is None:
                found = constants[term] = placeholder(len(constants))
            return found
        return changed(term)

    def changed(node: Any) -> Any:
        kind = type(node)
        if kind is Variable:
            found = names.get(node)
            if found is None:
                found = names[node] = _name(len(names))
            return found
        if kind is tuple:
            return tuple([changed(one) for one in node])
        if kind is TriplePattern:
            predicate, object_ = node.predicate, node.object
            is_class = predicate == _TYPE and not isinstance(object_, Variable)
            subject = lifted(node.subject)
            return TriplePattern(
                subject, changed(predicate), object_ if is_class else lifted(object_), changed(node.graph)
            )
        if kind is Call and node.function in VOLATILE:
            raise _NotCanonical
        members = _members(kind)
        return kind(*[changed(getattr(node, name)) for name in members]) if members else node

    try:
        return changed(query), tuple(constants)
    except _NotCanonical:
        return None


def _members(kind: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = _fields(kind)
    return found


@cache
def _fields(kind: Hashable) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if isinstance(kind, type) and is_dataclass(kind) else ()


T = TypeVar("T")


def with_constants(node: T, constants: Mapping[NamedNode, Term]) -> T:
    """Put constants back in the place of some placeholders of a query."""

    def changed(one: Any) -> Any:
        kind = type(one)
        if kind is NamedNode:
            return constants.get(one, one)
        if kind is tuple:
            return tuple([changed(part) for part in one])
        members = _members(kind)
        return kind(*[changed(getattr(one, name)) for name in members]) if members else one

    result: T = changed(node)
    return result


def _names(node: Any) -> Iterator[NamedNode]:
    """Iterate over the IRIs in a pattern."""
    if isinstance(node, NamedNode):
        yield node
    for part in node if isinstance(node, tuple) else [getattr(node, name) for name in _members(type(node))]:
        yield from _names(part)


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
                if mentioned := self._all.intersection(map(self._wanted.get, _names(plan.pattern))):
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
