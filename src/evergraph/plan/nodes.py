"""Delta operators: the closed set of plan nodes, each with its rule, the law it needs and the state it keeps.

A plan computes a bag with signed multiplicities (a Z-set). Every operator ``Q`` has an incremental form: given the
change of its operands, it returns the change of its result, ``ΔQ = Q(A + ΔA) − Q(A)``. Three laws are enough:

* **linear**: ``Q(A + B) = Q(A) + Q(B)``. The operator is applied to the delta, and keeps no state.
* **bilinear**: ``Δ(A ⋈ B) = ΔA ⋈ B + (A + ΔA) ⋈ ΔB``. Weights multiply; each side is kept, hashed.
* **needs old state**: the change of the result depends on what was there. The operator keeps a counter for each row
  or group, and reports a row when its counter crosses zero.

``A``, ``B`` are old results, ``A'``, ``B'`` new ones, ``w`` is a weight, ``µ ~ ν`` means that two rows agree wherever
both are bound. Where the paper has a rule for sets, it is given as *sets*; it is the bag rule followed by Distinct.

The rows of a node are tuples over ``node.variables``, in that order. ``node.certain`` are those bound in every row.
Nodes hold data only: algebra expressions without EXISTS, which lowering has turned into joins.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

from evergraph.plan.contexts import Context, EachGraph, Law, Merge, QuadPattern, Variables
from evergraph.sparql.algebra import TRUE, Aggregate, Expression, OrderCondition, Pattern, PatternTerm
from evergraph.terms import Term, Variable


class _AllCertain:
    """A node all of whose columns are bound in every row."""

    @property
    def variables(self) -> Variables:
        """The columns."""
        raise NotImplementedError

    @property
    def certain(self) -> frozenset[Variable]:
        """All columns."""
        return frozenset(self.variables)


class _LikeLeft:
    """A node with the columns of its left side."""

    left: "Plan"

    @property
    def variables(self) -> Variables:
        """Those of the left."""
        return self.left.variables

    @property
    def certain(self) -> frozenset[Variable]:
        """Those of the left."""
        return self.left.certain


class _LikeOperand:
    """A node with the columns of its operand."""

    operand: "Plan"

    @property
    def variables(self) -> Variables:
        """Those of the operand."""
        return self.operand.variables

    @property
    def certain(self) -> frozenset[Variable]:
        """Those of the operand."""
        return self.operand.certain


@dataclass(frozen=True)
class BGP:
    """A basic graph pattern, projected to ``variables``.

    Rule (multilinear): ``Δ = Σᵢ P₁' ⋈ … ⋈ Pᵢ₋₁' ⋈ ΔPᵢ ⋈ Pᵢ₊₁ ⋈ … ⋈ Pₙ``. One quad at a time: it matches pattern *i*,
    and the others are looked up in the shared indexes, where it does not count for the patterns after *i*.
    State: none of its own; the quads that match some pattern, in indexes that all plans share.

    *Sets*, one triple pattern: ``Δ⁺`` = its matches in ``Δ⁺G``, ``Δ⁻`` = its matches in ``Δ⁻G``; over a variable graph
    with the name of the graph.
    """

    law: ClassVar[Law] = Law.MULTILINEAR
    patterns: tuple[QuadPattern, ...]
    variables: Variables

    @property
    def certain(self) -> frozenset[Variable]:
        """All columns."""
        return frozenset(self.variables)


@dataclass(frozen=True)
class Path(_AllCertain):
    """Pairs joined by one or more steps, each pair once; ``?`` and ``*`` are this and the pairs of length zero.

    ``step`` is the plan of one step, from ``source`` to ``target``; with a context that binds a variable, the closure
    is taken graph by graph. Rule (needs old state): an insertion extends what was reached; a deletion recomputes what
    the deleted step may have carried: from the constant end, or from every source that reached the step.
    State: the steps, and the reached nodes of the constant end, or of every source (bounded by the state limit).
    """

    law: ClassVar[Law] = Law.OLD_STATE
    subject: PatternTerm
    object: PatternTerm
    context: Context
    step: "Plan"
    source: Variable
    target: Variable

    @property
    def variables(self) -> Variables:
        """Its ends, and the graph if that is a variable."""
        graph = self.context.variable if isinstance(self.context, EachGraph) else None
        ends = (self.subject, self.object, graph)
        return tuple(dict.fromkeys(term for term in ends if isinstance(term, Variable)))


@dataclass(frozen=True)
class Nodes(_AllCertain):
    """The subjects and objects of a graph, each once. Needs old state: how often each node occurs."""

    law: ClassVar[Law] = Law.OLD_STATE
    context: Context
    variable: Variable

    @property
    def variables(self) -> Variables:
        """The node, and the graph if that is a variable."""
        return (self.variable, self.context.variable) if isinstance(self.context, EachGraph) else (self.variable,)


@dataclass(frozen=True)
class GraphNames(_AllCertain):
    """The names of the named graphs, each once; for a term: one row while such a graph is there.

    Rule (needs old state): a name comes with the first quad of its graph and goes with the last.
    State: the number of quads of each named graph, shared by all plans.
    """

    law: ClassVar[Law] = Law.OLD_STATE
    graph: Term | EachGraph

    @property
    def variables(self) -> Variables:
        """The variable, if the graph is one."""
        return (self.graph.variable,) if isinstance(self.graph, EachGraph) else ()


@dataclass(frozen=True)
class Values:
    """A table of constants; without rows, nothing. ``Δ`` is the whole table once, at the start. No state."""

    law: ClassVar[Law] = Law.CONSTANT
    variables: Variables
    rows: tuple[tuple[Term | None, ...], ...]

    @cached_property
    def certain(self) -> frozenset[Variable]:
        """The columns without UNDEF."""
        return frozenset(v for i, v in enumerate(self.variables) if all(row[i] is not None for row in self.rows))


@dataclass(frozen=True)
class Graph:
    """The union over the named graphs of a pattern that must be evaluated graph by graph.

    Rule: one plan for each name, made from ``pattern`` with the graph fixed; ``Δ`` is the sum of their deltas, each row
    extended by the name. A new name adds the whole result of its plan, a name that goes takes it away.
    State: that of its plans. ``inner`` is the plan for any one graph, for its columns and for `explain`.
    """

    law: ClassVar[Law] = Law.PLAN_FOR_EACH
    graph: EachGraph
    pattern: Pattern
    inner: "Plan"

    @property
    def variables(self) -> Variables:
        """Those of the inner plan, and the graph."""
        return (*self.inner.variables, self.graph.variable)

    @property
    def certain(self) -> frozenset[Variable]:
        """Those of the inner plan, and the graph."""
        return self.inner.certain | {self.graph.variable}


@dataclass(frozen=True)
class Join:
    """``{µ ∪ ν | µ ∈ A, ν ∈ B, µ ~ ν}``, weights multiplied.

    Rule (bilinear): ``Δ = ΔA ⋈ B + A' ⋈ ΔB``. State: both sides, hashed on the shared variables; where one of those may
    be unbound, for every combination of bound ones, hashed on what is bound on both sides.

    *Sets*: ``Δ⁺ = ((A − Δ⁻A) ⋈ Δ⁺B) ∪ (Δ⁺A ⋈ B')`` less ``A ⋈ B``; ``Δ⁻`` = what lost every justification.
    """

    law: ClassVar[Law] = Law.BILINEAR
    left: "Plan"
    right: "Plan"

    @cached_property
    def variables(self) -> Variables:
        """Those of the left, then those that only the right has."""
        return joined(self.left, self.right)

    @property
    def certain(self) -> frozenset[Variable]:
        """Those of both sides."""
        return self.left.certain | self.right.certain


@dataclass(frozen=True)
class LeftJoin:
    """OPTIONAL: joins that satisfy the condition, and rows of the left that have none.

    Rule (needs old state), with ``m(a) = Σ w(b)`` over ``b ~ a`` for which the condition holds of ``a ∪ b``:
    ``ΔB`` against ``A`` gives ``(a ∪ b, w(a)·Δw(b))`` and changes ``m(a)``; where that crosses zero, ``(a, ∓w(a))``.
    Then ``ΔA`` against ``B'`` gives its joins, or ``(a, Δw(a))`` if ``m(a) = 0``. State: both sides, and ``m``.

    *Sets*: the rules of Join and of AntiJoin, united.
    """

    law: ClassVar[Law] = Law.OLD_STATE
    left: "Plan"
    right: "Plan"
    condition: Expression = TRUE

    @cached_property
    def variables(self) -> Variables:
        """Those of the left, then those that only the right has."""
        return joined(self.left, self.right)

    @property
    def certain(self) -> frozenset[Variable]:
        """Those of the left."""
        return self.left.certain


@dataclass(frozen=True)
class Minus(_LikeLeft):
    """Rows of the left without a compatible row of the right that binds one of the same variables.

    Rule (needs old state): as AntiJoin, where ``m(a)`` counts only ``b`` with ``dom(a) ∩ dom(b) ≠ ∅``; the test is made
    for each pair of rows, on what they bind. State: both sides, and ``m``.
    """

    law: ClassVar[Law] = Law.OLD_STATE
    left: "Plan"
    right: "Plan"


@dataclass(frozen=True)
class SemiJoin(_LikeLeft):
    """FILTER EXISTS (``anti``: NOT EXISTS): rows of the left with (without) a match on the right.

    A match is a compatible row of the right for which the condition holds of both together.

    Rule (needs old state): ``(a, ±w(a))`` where ``m(a) = Σ w(b)`` over such ``b`` crosses zero; ``(a, Δw(a))`` for a
    change of the left, by ``m(a)`` after the change. State: both sides, and ``m``.

    *Sets* (``A ∖ B``): ``Δ⁻ = {µ ∈ A ∖ B | µ ∈ Δ⁻A or some µ' ∈ Δ⁺B is compatible}``, ``Δ⁺ = {µ ∈ A − Δ⁻A | every
    compatible µ' ∈ B ∪ Δ⁺B is in Δ⁻B, and there was one} ∪ (Δ⁺A ∖ B')``.
    """

    law: ClassVar[Law] = Law.OLD_STATE
    left: "Plan"
    right: "Plan"
    condition: Expression = TRUE
    anti: bool = False


@dataclass(frozen=True)
class MarkJoin:
    """EXISTS anywhere in an expression: every row of the left, and in ``mark`` whether it has a match on the right.

    Rule (needs old state): where ``m(a)`` crosses zero, ``(a + old mark, −w(a))`` and ``(a + new mark, +w(a))``;
    changes of the left carry the mark of after the change. State: both sides, and ``m``.
    """

    law: ClassVar[Law] = Law.OLD_STATE
    left: "Plan"
    right: "Plan"
    mark: Variable
    condition: Expression = TRUE

    @property
    def variables(self) -> Variables:
        """Those of the left, and the mark."""
        return (*self.left.variables, self.mark)

    @property
    def certain(self) -> frozenset[Variable]:
        """Those of the left, and the mark."""
        return self.left.certain | {self.mark}


@dataclass(frozen=True)
class Correlate:
    """A MarkJoin whose right side means something else for each row of the left, because values replace its variables.

    Rule: one plan for each distinct binding of ``shared`` on the left, made from ``pattern`` by substitution; where one
    becomes empty or ceases to be, the mark of its rows turns. State: the left side by binding, and that of the plans.
    ``reason`` says why no single plan will do.
    """

    law: ClassVar[Law] = Law.PLAN_FOR_EACH
    left: "Plan"
    pattern: Pattern
    shared: Variables
    mark: Variable
    reason: str

    @property
    def variables(self) -> Variables:
        """Those of the left, and the mark."""
        return (*self.left.variables, self.mark)

    @property
    def certain(self) -> frozenset[Variable]:
        """Those of the left, and the mark."""
        return self.left.certain | {self.mark}


@dataclass(frozen=True)
class Union:
    """The sum of its operands; a variable that one of them lacks is unbound in its rows.

    Rule (linear): ``Δ = ΔA + ΔB + …``. No state.

    *Sets*: ``Δ⁻`` = what left A or B and is now in neither; ``Δ⁺`` = what is new in A or B and was in neither.
    """

    law: ClassVar[Law] = Law.LINEAR
    operands: "tuple[Plan, ...]"

    @cached_property
    def variables(self) -> Variables:
        """All that some operand has."""
        return tuple(dict.fromkeys(variable for operand in self.operands for variable in operand.variables))

    @cached_property
    def certain(self) -> frozenset[Variable]:
        """Those that are certain in all operands."""
        first, *rest = self.operands
        return first.certain.intersection(*(operand.certain for operand in rest))


@dataclass(frozen=True)
class Filter(_LikeOperand):
    """Rows for which the condition is true; an error is not true.

    Rule (linear): ``Δ = σ(ΔA)``. No state. *Sets*: ``Δ⁻ = σ(Δ⁻A)``, ``Δ⁺ = σ(Δ⁺A)``.
    """

    law: ClassVar[Law] = Law.LINEAR
    operand: "Plan"
    condition: Expression


@dataclass(frozen=True)
class Extend:
    """A variable for the value of an expression; an error leaves it unbound.

    Rule (linear): ``Δ = extend(ΔA)``. No state; the expression must be a function of the row.
    ``computed`` are columns that do not tell solutions apart for ``BNODE(label)``.
    """

    law: ClassVar[Law] = Law.LINEAR
    operand: "Plan"
    variable: Variable
    expression: Expression
    never_fails: bool = False
    computed: frozenset[Variable] = frozenset()

    @property
    def variables(self) -> Variables:
        """Those of the operand, and the new one."""
        return (*self.operand.variables, self.variable)

    @property
    def certain(self) -> frozenset[Variable]:
        """Those of the operand, and the new one if its expression cannot fail."""
        return self.operand.certain | {self.variable} if self.never_fails else self.operand.certain


@dataclass(frozen=True)
class Tag:
    """A variable for the identity of the row, unbound columns included. Rule (linear): ``Δ = tag(ΔA)``. No state."""

    law: ClassVar[Law] = Law.LINEAR
    operand: "Plan"
    variable: Variable

    @property
    def variables(self) -> Variables:
        """Those of the operand, and the tag."""
        return (*self.operand.variables, self.variable)

    @property
    def certain(self) -> frozenset[Variable]:
        """Those of the operand, and the tag."""
        return self.operand.certain | {self.variable}


@dataclass(frozen=True)
class Project:
    """Rows cut down to some columns; a column that the operand lacks is unbound.

    Rule (linear): ``Δ = π(ΔA)``, weights added. No state.

    *Sets*: ``Δ⁻ = {µ ∈ π(Δ⁻A) | no µ' ∈ A' extends µ}``, ``Δ⁺ = {µ ∈ π(Δ⁺A) | µ ∉ π(A)}``.
    """

    law: ClassVar[Law] = Law.LINEAR
    operand: "Plan"
    variables: Variables

    @property
    def certain(self) -> frozenset[Variable]:
        """Those that are certain in the operand."""
        return self.operand.certain & frozenset(self.variables)


@dataclass(frozen=True)
class Distinct(_LikeOperand):
    """Every row once.

    Rule (needs old state): ``(µ, +1)`` when the count of µ rises above zero, ``(µ, −1)`` when it falls to zero.
    State: the count of each row.
    """

    law: ClassVar[Law] = Law.OLD_STATE
    operand: "Plan"


@dataclass(frozen=True)
class Group:
    """Groups by keys, with a column for each aggregate; without keys, one group even of nothing.

    Rule (needs old state): for every group that the change touches, ``(old row, −1)`` and ``(new row, +1)``.
    State: for each group its number of rows and an accumulator for each aggregate: a count; an exact sum with the
    number of values of each type and of errors, so that an error that goes leaves no trace; for MIN, MAX, SAMPLE,
    GROUP_CONCAT and all with DISTINCT the bag of values.
    """

    law: ClassVar[Law] = Law.OLD_STATE
    operand: "Plan"
    keys: Variables
    aggregates: tuple[tuple[Variable, Aggregate], ...]

    @property
    def variables(self) -> Variables:
        """The keys, then the aggregates."""
        return (*self.keys, *(variable for variable, _ in self.aggregates))

    @property
    def certain(self) -> frozenset[Variable]:
        """The keys that are certain in the operand."""
        return self.operand.certain & frozenset(self.keys)


@dataclass(frozen=True)
class Slice:
    """OFFSET and LIMIT over the order of some conditions, ties ordered by the columns ``variables``, left to right.

    ``distinct`` orders each row once. The operand has columns for the conditions and for the result.
    Rule (needs old state): ``Δ`` = window after − window before. State: the rows in order.
    """

    law: ClassVar[Law] = Law.OLD_STATE
    operand: "Plan"
    conditions: tuple[OrderCondition, ...]
    variables: Variables
    start: int
    length: int | None
    distinct: bool = False

    @property
    def certain(self) -> frozenset[Variable]:
        """Those that are certain in the operand."""
        return self.operand.certain & frozenset(self.variables)


Plan: TypeAlias = (
    BGP
    | Path
    | Nodes
    | GraphNames
    | Values
    | Graph
    | Join
    | LeftJoin
    | Minus
    | SemiJoin
    | MarkJoin
    | Correlate
    | Union
    | Filter
    | Extend
    | Tag
    | Project
    | Distinct
    | Group
    | Slice
)


def joined(left: Plan, right: Plan) -> Variables:
    """The columns of a join: those of the left, then those that only the right has."""
    return tuple(dict.fromkeys((*left.variables, *right.variables)))


def shared(left: Plan, right: Plan) -> Variables:
    """The columns that both sides have, in the order of the left."""
    return tuple(variable for variable in left.variables if variable in right.variables)


__all__ = [
    "BGP",
    "Context",
    "Correlate",
    "Distinct",
    "EachGraph",
    "Extend",
    "Filter",
    "Graph",
    "GraphNames",
    "Group",
    "Join",
    "Law",
    "LeftJoin",
    "MarkJoin",
    "Merge",
    "Minus",
    "Nodes",
    "Path",
    "Plan",
    "Project",
    "QuadPattern",
    "SemiJoin",
    "Slice",
    "Tag",
    "Union",
    "Values",
    "Variables",
    "joined",
    "shared",
]
