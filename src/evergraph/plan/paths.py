"""Property paths to plans: steps are joins and unions, ``+`` is a `Path`, ``?`` and ``*`` add pairs of length zero."""

from collections.abc import Callable
from typing import assert_never

from evergraph.plan import nodes
from evergraph.plan.nodes import Context, EachGraph, Plan, QuadPattern
from evergraph.sparql.algebra import (
    Alternative,
    Call,
    ClosurePath,
    Compare,
    Comparison,
    Function,
    In,
    Inverse,
    NegatedSet,
    Not,
    OneOrMore,
    PathExpression,
    PatternTerm,
    Sequence,
    ZeroOrMore,
    ZeroOrOne,
)
from evergraph.terms import NamedNode, Term, Variable

Fresh = Callable[[str], Variable]


def lower_path(subject: PatternTerm, path: ClosurePath, object_: PatternTerm, context: Context, fresh: Fresh) -> Plan:
    """Return the plan of a closure between two ends, each pair once."""
    constants = tuple(dict.fromkeys(term for term in (subject, object_) if not isinstance(term, Variable)))
    return _Steps(context, constants, fresh).closure(subject, path, object_)


class _Steps:
    """Lowers paths in one context. A constant end counts as a node of the graph for inner paths of length zero."""

    def __init__(self, context: Context, constants: tuple[Term, ...], fresh: Fresh) -> None:
        self.context = context
        self.constants = constants
        self.fresh = fresh
        self.graph = (context.variable,) if isinstance(context, EachGraph) else ()

    def closure(self, subject: PatternTerm, path: ClosurePath, object_: PatternTerm) -> Plan:
        columns = self._columns(subject, object_)
        match path:
            case OneOrMore(inner):
                return self._one_or_more(subject, inner, object_)
            case ZeroOrMore(inner):
                longer = self._one_or_more(subject, inner, object_)
            case ZeroOrOne(inner):
                longer = self.step(subject, inner, object_)
            case _:
                assert_never(path)
        zero = self._zero(subject, object_)
        parts = (longer,) if zero is None else (longer, zero)
        return nodes.Distinct(nodes.Union(tuple(nodes.Project(part, columns) for part in parts)))

    def step(self, subject: PatternTerm, path: PathExpression, object_: PatternTerm) -> Plan:
        columns = self._columns(subject, object_)
        match path:
            case NamedNode():
                return nodes.BGP((QuadPattern(subject, path, object_, self.context),), columns)
            case Inverse(inner):
                return nodes.Project(self.step(object_, inner, subject), columns)
            case Sequence(steps):
                first, *rest = steps
                middle = self.fresh("step")
                tail = Sequence(tuple(rest)) if len(rest) > 1 else rest[0]
                both = nodes.Join(self.step(subject, first, middle), self.step(middle, tail, object_))
                return nodes.Project(both, columns)
            case Alternative(choices):
                return nodes.Union(
                    tuple(nodes.Project(self.step(subject, choice, object_), columns) for choice in choices)
                )
            case NegatedSet(forward, inverse):
                parts = []
                if forward is not None:
                    parts.append(self._negated(subject, forward, object_))
                if inverse is not None:
                    parts.append(self._negated(object_, inverse, subject))
                return nodes.Union(tuple(nodes.Project(part, columns) for part in parts))
            case ZeroOrOne() | ZeroOrMore() | OneOrMore():
                return nodes.Project(self.closure(subject, path, object_), columns)
            case _:
                assert_never(path)

    def _one_or_more(self, subject: PatternTerm, path: PathExpression, object_: PatternTerm) -> Plan:
        source, target = self.fresh("source"), self.fresh("target")
        step = nodes.Project(self.step(source, path, target), (source, target, *self.graph))
        return nodes.Path(subject, object_, self.context, step, source, target)

    def _zero(self, subject: PatternTerm, object_: PatternTerm) -> Plan | None:
        """Return the pairs of a node with itself; None if two constants differ."""
        if isinstance(subject, Variable) and isinstance(object_, Variable):
            return self._loops(subject, object_)
        if not isinstance(subject, Variable) and not isinstance(object_, Variable):
            return self._everywhere((), ()) if subject == object_ else None
        variable, constant = (subject, object_) if isinstance(subject, Variable) else (object_, subject)
        assert isinstance(variable, Variable)
        assert not isinstance(constant, Variable)
        return self._everywhere((variable,), (constant,))

    def _loops(self, subject: Variable, object_: Variable) -> Plan:
        """Return all nodes, as both ends; an end may also be the variable of the graph."""
        node = self.fresh("node")
        plan = self._nodes(node)
        for end in dict.fromkeys((subject, object_)):
            if end in self.graph:
                plan = nodes.Filter(plan, Call(Function.SAMETERM, (node, end)))
            else:
                plan = nodes.Extend(plan, end, node, never_fails=True)
        return plan

    def _nodes(self, variable: Variable) -> Plan:
        all_nodes: Plan = nodes.Nodes(self.context, variable)
        if not self.constants:
            return all_nodes
        columns = (variable, *self.graph)
        named = [nodes.Project(self._everywhere((variable,), (one,)), columns) for one in self.constants]
        return nodes.Distinct(nodes.Union((nodes.Project(all_nodes, columns), *named)))

    def _everywhere(self, columns: tuple[Variable, ...], row: tuple[Term, ...]) -> Plan:
        table = nodes.Values(columns, (row,))
        if isinstance(self.context, EachGraph):
            return nodes.Join(table, nodes.GraphNames(self.context))
        return table

    def _negated(self, subject: PatternTerm, excluded: tuple[NamedNode, ...], object_: PatternTerm) -> Plan:
        predicate = self.fresh("predicate")
        columns = (predicate, *self._columns(subject, object_))
        plan = nodes.BGP((QuadPattern(subject, predicate, object_, self.context),), columns)
        match excluded:
            case ():
                return plan
            case (single,):
                return nodes.Filter(plan, Compare(Comparison.NOT_EQUAL, predicate, single))
            case _:
                return nodes.Filter(plan, Not(In(predicate, excluded)))

    def _columns(self, subject: PatternTerm, object_: PatternTerm) -> tuple[Variable, ...]:
        ends = (subject, object_, *self.graph)
        return tuple(dict.fromkeys(term for term in ends if isinstance(term, Variable)))
