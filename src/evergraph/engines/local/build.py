"""Plans to operators at work."""

from collections.abc import Callable, Iterator
from typing import assert_never

from evergraph.engines.local import joins
from evergraph.engines.local.accumulators import accumulator
from evergraph.engines.local.dictionary import Row, ZSet
from evergraph.engines.local.expressions import ExpressionCompiler
from evergraph.engines.local.groups import GroupOperator
from evergraph.engines.local.instances import CorrelateOperator, GraphOperator
from evergraph.engines.local.leaves import BGPLeaf, GraphNamesLeaf, NodesLeaf, QuadLeaf, ValuesLeaf, relation_of
from evergraph.engines.local.operators import (
    Budget,
    DistinctOperator,
    FilterOperator,
    MapOperator,
    Operator,
    UnionOperator,
    tagger,
)
from evergraph.engines.local.optimizer import Costs
from evergraph.engines.local.paths import PathOperator
from evergraph.engines.local.relations import EVERYTHING, Cover, Relation
from evergraph.engines.local.rows import key_picker, merger, picker
from evergraph.engines.local.slices import Descending, OrderKey, SliceOperator
from evergraph.engines.local.store import Store, Subscription
from evergraph.plan import nodes
from evergraph.plan.lower import Lowering, project
from evergraph.plan.nodes import EachGraph, Plan, QuadPattern
from evergraph.plan.optimize import optimize
from evergraph.plan.rebuild import children
from evergraph.sparql.algebra import TRUE, Pattern
from evergraph.sparql.expressions import Environment
from evergraph.sparql.rewrite import correlate, fix_graph
from evergraph.sparql.values import FALSE, sort_key
from evergraph.sparql.values import TRUE as TRUE_TERM
from evergraph.terms import BlankNode, NamedNode, Term, Variable

_KEEPERS = (GraphOperator, CorrelateOperator)
_STATELESS = (BGPLeaf, GraphNamesLeaf, ValuesLeaf, FilterOperator, MapOperator, UnionOperator)


class Workshop:
    """What all plans of one view are built with."""

    def __init__(self, store: Store, environment: Environment, lowering: Lowering, budget: Budget) -> None:
        self.store = store
        self.expressions = ExpressionCompiler(store.dictionary, environment)
        self.lowering = lowering
        self.budget = budget
        self.parameters: frozenset[Variable] | None = None
        """The parameters of a plan that views share; None if it belongs to one view."""
        self.costs = Costs()
        self.leaves: dict[QuadLeaf, None] = {}
        self.size: Callable[[], int] = lambda: 0
        self.touch: Callable[[], None] = lambda: None

    @property
    def listening(self) -> Iterator[Subscription]:
        """What all leaves have subscribed to."""
        return (one for leaf in self.leaves for one in leaf.listening)

    @property
    def scans(self) -> Iterator[tuple[Relation, Cover]]:
        """What all leaves read when they are loaded."""
        return (one for leaf in self.leaves for one in leaf.scans)

    def circuit(self, plan: Plan, touch: Callable[[], None]) -> "PlanCircuit":
        """Set a plan to work on what is in the store now."""
        circuit = PlanCircuit(self, touch)
        circuit.root = circuit.build(plan)
        circuit.start()
        return circuit


class PlanCircuit:
    """A plan at work. ``top`` is what it is all of, if it is not a part of another one."""

    root: Operator

    def __init__(self, workshop: Workshop, touch: Callable[[], None], top: object = None) -> None:
        self.workshop = workshop
        self.top = top
        self.is_set = False
        """Whether it is known that no row can be there twice."""
        self.store = workshop.store
        self.touch = touch
        self.leaves: list[QuadLeaf] = []
        self.operators: list[Operator] = []
        self._guards: list[Subscription] = []
        encode = self.store.dictionary.encode
        self._marks = (encode(FALSE), encode(TRUE_TERM))

    def start(self) -> None:
        """Take in what is there; the next `pull` returns the whole result."""
        self.store.fill()
        for leaf in self.leaves:
            leaf.load()
        if isinstance(self.root, BGPLeaf) and self.root.is_set:
            self.is_set = True

    def pull(self) -> ZSet:
        """Return the change since the last call."""
        return self.root.pull()

    def size(self) -> int:
        """Count the entries of state."""
        return sum(operator.size() for operator in self.operators)

    def parts(self) -> int:
        """Count the operators, and the plans that they keep."""
        return len(self.operators) + sum(len(one) for one in self.operators if isinstance(one, _KEEPERS))

    def keeps_state(self) -> bool:
        """Tell whether some operator keeps anything."""
        return any(not isinstance(one, _STATELESS) for one in self.operators)

    def close(self) -> None:
        """Give back what the plan has of the store."""
        for operator in self.operators:
            if isinstance(operator, _KEEPERS):
                operator.close()
        for leaf in self.leaves:
            leaf.close()
            self.workshop.leaves.pop(leaf, None)
        for guard in self._guards:
            self.store.cancel(guard)
        self.leaves, self.operators, self._guards = [], [], []

    def add_leaf(self, leaf: QuadLeaf) -> QuadLeaf:
        """Keep a leaf, so that it is loaded and closed with the rest."""
        self.leaves.append(leaf)
        self.workshop.leaves[leaf] = None
        leaf.limit = self.workshop.budget.limit
        leaf.top = self.top
        leaf.owner = self.workshop
        return leaf

    def build(self, plan: Plan) -> Operator:
        """Make the operator of a plan node, and those below."""
        operator = self._operator(plan)
        self.operators.append(operator)
        return operator

    def _operator(self, plan: Plan) -> Operator:
        expressions, budget, dictionary = self.workshop.expressions, self.workshop.budget, self.store.dictionary
        match plan:
            case nodes.BGP():
                return self.add_leaf(BGPLeaf(plan, self.store, self.touch, self.workshop.parameters or frozenset()))
            case nodes.GraphNames():
                return self.add_leaf(GraphNamesLeaf(plan, self.store, self.touch))
            case nodes.Nodes():
                return self.add_leaf(NodesLeaf(plan, self.store, self.touch))
            case nodes.Values():
                return ValuesLeaf(plan, self.store)
            case nodes.Path():
                return self._path(plan)
            case nodes.Graph():
                return self._graph(plan)
            case nodes.Correlate():
                return self._correlate(plan)
            case nodes.Join(left, right):
                merge = merger(left.variables, right.variables, plan.variables)
                sides = self.build(left), self.build(right)
                return joins.JoinOperator(*sides, joins.index_pair(left, right), merge, budget)
            case nodes.LeftJoin() | nodes.SemiJoin() | nodes.MarkJoin() | nodes.Minus():
                return self._match(plan)
            case nodes.Union(operands):
                padded = [
                    (
                        self.build(one),
                        None if one.variables == plan.variables else picker(one.variables, plan.variables),
                    )
                    for one in operands
                ]
                return UnionOperator(padded)
            case nodes.Filter(operand, condition):
                return FilterOperator(self.build(operand), expressions.condition(condition, operand.variables))
            case nodes.Extend(operand, _, expression, _, computed):
                value = expressions.value(expression, operand.variables, computed)
                return MapOperator(self.build(operand), lambda row: (*row, value(row)))
            case nodes.Tag(operand):
                return MapOperator(self.build(operand), tagger(dictionary))
            case nodes.Project(operand, variables):
                return MapOperator(self.build(operand), picker(operand.variables, variables))
            case nodes.Distinct(operand):
                return DistinctOperator(self.build(operand), budget)
            case nodes.Group():
                return self._group(plan)
            case nodes.Slice():
                place = self._place(plan)
                window = (plan.start, plan.length)
                return SliceOperator(self.build(plan.operand), place, window, budget, distinct=plan.distinct)
            case _:
                assert_never(plan)

    def _match(self, plan: nodes.LeftJoin | nodes.SemiJoin | nodes.MarkJoin | nodes.Minus) -> Operator:
        left, right = plan.left, plan.right
        shared = nodes.shared(left, right)
        sides = self.build(left), self.build(right)
        test: joins.Test | None
        emitter: joins.Emitter
        if isinstance(plan, nodes.Minus):
            certain = left.certain & right.certain & frozenset(shared)
            test = None if certain else _share_a_variable(left, right)
        else:
            test = self.workshop.expressions.pair_condition(plan.condition, left.variables, right.variables)
        match plan:
            case nodes.LeftJoin():
                merge = merger(left.variables, right.variables, plan.variables)
                padding = (0,) * (len(plan.variables) - len(left.variables))
                emitter = joins.LeftJoinEmitter(merge, padding)
            case nodes.SemiJoin():
                emitter = joins.SemiEmitter(anti=plan.anti)
            case nodes.Minus():
                emitter = joins.SemiEmitter(anti=True)
            case nodes.MarkJoin():
                emitter = joins.MarkEmitter(self._marks)
        if test is None and not emitter.pairs and left.certain & right.certain >= frozenset(shared):
            keys = key_picker(left.variables, shared), key_picker(right.variables, shared)
            return joins.KeyMatchOperator(sides, keys, emitter, self.workshop.budget)
        return joins.MatchOperator(sides, joins.index_pair(left, right), test, emitter, self.workshop.budget)

    def _group(self, plan: nodes.Group) -> Operator:
        columns = plan.operand.variables
        makers = []
        for _, definition in plan.aggregates:
            value = None
            if definition.expression is not None:
                value = self.workshop.expressions.value(definition.expression, columns)
            makers.append(accumulator(definition, value, self.store.dictionary))
        return GroupOperator(
            self.build(plan.operand),
            picker(columns, plan.keys),
            makers,
            self.store.dictionary,
            self.workshop.budget,
            always=not plan.keys,
        )

    def _place(self, plan: nodes.Slice) -> Callable[[Row], OrderKey]:
        columns = plan.operand.variables
        terms = self.store.dictionary.terms
        keys = [(self.workshop.expressions.value(one.expression, columns), one.descending) for one in plan.conditions]
        pick = picker(columns, plan.variables)

        def place(row: Row) -> OrderKey:
            values = [(sort_key(terms[value(row)]), descending) for value, descending in keys]
            projected = pick(row)
            ties = tuple([sort_key(terms[one]) for one in projected])
            return (*(Descending(key) if descending else key for key, descending in values), ties, projected)

        return place

    def _path(self, plan: nodes.Path) -> Operator:
        encode = self.store.dictionary.encode

        def end(term: Term | Variable) -> int:
            return 0 if isinstance(term, Variable) else encode(term)

        graph = plan.context.variable if isinstance(plan.context, EachGraph) else None
        members: list[Variable | int | None] = [
            term if isinstance(term, Variable) else encode(term) for term in (plan.subject, plan.object)
        ]
        members.append(graph)
        ends = (end(plan.subject), end(plan.object))
        return PathOperator(self.build(plan.step), ends, _fitting(members, plan.variables), self.workshop.budget)

    def _graph(self, plan: nodes.Graph) -> Operator:
        terms = self.store.dictionary.terms

        def make(key: Row, touch: Callable[[], None]) -> PlanCircuit:
            name = terms[key[0]]
            assert name is not None
            pattern = fix_graph(plan.pattern, plan.graph.variable, name)
            return self.workshop.circuit(self._lowered(pattern, plan.inner.variables), touch)

        names = self.build(nodes.GraphNames(plan.graph))
        self._guard(plan.inner)
        return GraphOperator(names, make, self.touch)

    def _correlate(self, plan: nodes.Correlate) -> Operator:
        terms = self.store.dictionary.terms

        def make(key: Row, touch: Callable[[], None]) -> PlanCircuit:
            values = zip(plan.shared, (terms[one] for one in key), strict=True)
            bindings = {variable: term for variable, term in values if term is not None}
            return self.workshop.circuit(self._lowered(correlate(plan.pattern, bindings), ()), touch)

        left = self.build(plan.left)
        self._guard(self.workshop.lowering.lower(plan.pattern))
        key_of = picker(plan.left.variables, plan.shared)
        return CorrelateOperator(left, key_of, make, self.touch, self._marks, self.workshop.budget)

    def _lowered(self, pattern: Pattern, columns: tuple[Variable, ...]) -> Plan:
        return optimize(project(self.workshop.lowering.lower(pattern), columns))

    def _guard(self, plan: Plan) -> None:
        """Hold the quads that plans made later from this one can ask for."""
        waiting = [plan]
        while waiting:
            one = waiting.pop()
            waiting.extend(children(one))
            if isinstance(one, nodes.Correlate):
                waiting.append(self.workshop.lowering.lower(one.pattern))
            for pattern in _patterns(one):
                self._hold(pattern)

    def _hold(self, pattern: QuadPattern) -> None:
        encode = self.store.dictionary.encode
        cover = tuple(0 if isinstance(t, Variable) else encode(t) for t in (pattern.subject, pattern.object))
        self._subscribe(Subscription(relation_of(pattern, self.store), (cover[0], cover[1])))
        if isinstance(pattern.context, EachGraph):
            everything = self.store.relation(self.store.context_key(pattern.context), 0)
            self._subscribe(Subscription(everything, EVERYTHING))

    def _subscribe(self, guard: Subscription) -> None:
        self._guards.append(guard)
        self.store.subscribe(guard)


def _patterns(plan: Plan) -> list[QuadPattern]:
    anything = Variable("s"), Variable("p"), Variable("o")
    match plan:
        case nodes.BGP(patterns):
            return list(patterns)
        case nodes.Nodes(context) | nodes.Path(context=context):
            return [QuadPattern(*anything, context)]
        case nodes.GraphNames(graph) if isinstance(graph, EachGraph | NamedNode | BlankNode):
            return [QuadPattern(*anything, graph)]
        case nodes.Graph(graph):
            return [QuadPattern(*anything, graph)]
        case _:
            return []


def _fitting(members: list[Variable | int | None], columns: tuple[Variable, ...]) -> Callable[[Row], Row | None]:
    """Return a function that fits a pair and its graph to the ends of a path, and picks the columns."""
    constants = [(place, member) for place, member in enumerate(members) if isinstance(member, int)]
    places: dict[Variable, list[int]] = {}
    for place, member in enumerate(members):
        if isinstance(member, Variable):
            places.setdefault(member, []).append(place)
    same = [(found[0], other) for found in places.values() for other in found[1:]]
    picked = [places[column][0] for column in columns]

    def fit(row: Row) -> Row | None:
        if any(row[place] != constant for place, constant in constants) or any(row[a] != row[b] for a, b in same):
            return None
        return tuple([row[place] for place in picked])

    return fit


def _share_a_variable(left: Plan, right: Plan) -> Callable[[Row, Row], bool]:
    slots = [(left.variables.index(v), right.variables.index(v)) for v in nodes.shared(left, right)]
    return lambda row, other: any(row[a] and other[b] for a, b in slots)


__all__ = ["TRUE", "PlanCircuit", "Workshop"]
