"""Graph patterns and solution modifiers: everything whose value is a bag of solutions."""

from dataclasses import dataclass
from typing import TypeAlias

from evergraph.sparql.algebra.expressions import TRUE, Aggregate, Expression
from evergraph.sparql.algebra.paths import ClosurePath
from evergraph.terms import DefaultGraph, NamedNode, Term, Variable

PatternTerm: TypeAlias = Term | Variable
"""What stands in a pattern: a variable, or a term that must be there exactly as it is written."""

GraphContext: TypeAlias = DefaultGraph | Term | Variable
"""The graph that a pattern looks at: the default graph, a named one, or every named one, bound to a variable.

A literal can only come from the substitution of a variable; it names no graph."""


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """A triple pattern and the graph in which to look for it (https://www.w3.org/TR/sparql11-query/#defn_TriplePattern)."""

    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm
    graph: GraphContext


@dataclass(frozen=True, slots=True)
class BGP:
    """A basic graph pattern; without triples it is the unit of Join (https://www.w3.org/TR/sparql11-query/#defn_BasicGraphPattern)."""

    triples: tuple[TriplePattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """Two ends joined by a path, each pair once (https://www.w3.org/TR/sparql11-query/#defn_evalPP_predicate).

    A path of length zero joins a constant with itself even if the graph does not hold it, but not outside of any graph.
    """

    subject: PatternTerm
    path: ClosurePath
    object: PatternTerm
    graph: GraphContext


@dataclass(frozen=True, slots=True)
class GraphNames:
    """The names of the named graphs: what ``GRAPH ?g {}`` means (https://www.w3.org/TR/sparql11-query/#defn_evalGraph).

    With a term instead of a variable: the unit if such a graph is there, nothing if not.
    """

    graph: Term | Variable


@dataclass(frozen=True, slots=True)
class Graph:
    """The union over all named graphs of the pattern with ``graph`` fixed (https://www.w3.org/TR/sparql11-query/#defn_evalGraph).

    Only where the pattern is not the same thing as its graphs taken together: an aggregate, a slice, or a MINUS for
    which the graph must not count as a shared variable. The variable is bound in the result.
    """

    graph: Variable
    operand: "Pattern"


@dataclass(frozen=True, slots=True)
class Join:
    """https://www.w3.org/TR/sparql11-query/#defn_algJoin."""

    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """OPTIONAL; the condition sees both sides (https://www.w3.org/TR/sparql11-query/#defn_algLeftJoin)."""

    left: "Pattern"
    right: "Pattern"
    condition: Expression = TRUE


@dataclass(frozen=True, slots=True)
class Filter:
    """https://www.w3.org/TR/sparql11-query/#defn_algFilter."""

    condition: Expression
    operand: "Pattern"


@dataclass(frozen=True, slots=True)
class Union:
    """Any number of operands; with none it is empty (https://www.w3.org/TR/sparql11-query/#defn_algUnion)."""

    operands: "tuple[Pattern, ...]"


@dataclass(frozen=True, slots=True)
class Minus:
    """Solutions of the left that share no variable with any compatible one of the right (https://www.w3.org/TR/sparql11-query/#defn_algMinus)."""

    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class Extend:
    """BIND and ``(… AS ?v)``; an error leaves the variable unbound (https://www.w3.org/TR/sparql11-query/#defn_extend)."""

    operand: "Pattern"
    variable: Variable
    expression: Expression


@dataclass(frozen=True, slots=True)
class Values:
    """VALUES; ``None`` is UNDEF (https://www.w3.org/TR/sparql11-query/#inline-data)."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Term | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Project:
    """https://www.w3.org/TR/sparql11-query/#defn_algProjection."""

    operand: "Pattern"
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """https://www.w3.org/TR/sparql11-query/#defn_algDistinct."""

    operand: "Pattern"


@dataclass(frozen=True, slots=True)
class Reduced:
    """REDUCED permits to drop duplicates; Evergraph keeps them all (https://www.w3.org/TR/sparql11-query/#defn_algReduced)."""

    operand: "Pattern"


@dataclass(frozen=True, slots=True)
class Group:
    """Groups by keys, one variable for each aggregate (https://www.w3.org/TR/sparql11-query/#aggregateAlgebra).

    Without keys there is exactly one group, even of nothing; with keys there are no empty groups.
    """

    operand: "Pattern"
    keys: tuple[Variable, ...]
    aggregates: tuple[tuple[Variable, Aggregate], ...]


@dataclass(frozen=True, slots=True)
class OrderCondition:
    """One comparator of ORDER BY (https://www.w3.org/TR/sparql11-query/#modOrderBy)."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class OrderBy:
    """Stands under a Project, and changes nothing in a bag but what a Slice above takes (https://www.w3.org/TR/sparql11-query/#defn_algOrdered)."""

    operand: "Pattern"
    conditions: tuple[OrderCondition, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """OFFSET and LIMIT (https://www.w3.org/TR/sparql11-query/#defn_algSlice).

    What ORDER BY leaves open is ordered by the projected columns, from left to right, in the total order of terms:
    a slice is the same in every run.
    """

    operand: "Pattern"
    start: int
    length: int | None


@dataclass(frozen=True, slots=True)
class Service:
    """SERVICE (https://www.w3.org/TR/sparql11-federated-query/#defn_evalService)."""

    endpoint: NamedNode | Variable
    operand: "Pattern"
    silent: bool


Pattern: TypeAlias = (
    BGP
    | Path
    | GraphNames
    | Graph
    | Join
    | LeftJoin
    | Filter
    | Union
    | Minus
    | Extend
    | Values
    | Project
    | Distinct
    | Reduced
    | Group
    | OrderBy
    | Slice
    | Service
)

UNIT = BGP()
"""The pattern with exactly one solution, which binds nothing."""


def join(left: Pattern, right: Pattern) -> Pattern:
    """Join two patterns; the unit disappears, and basic graph patterns become one."""
    if left == UNIT:
        return right
    if right == UNIT:
        return left
    if isinstance(left, BGP) and isinstance(right, BGP):
        return BGP(left.triples + right.triples)
    return Join(left, right)


def union(*operands: Pattern) -> Pattern:
    """Unite patterns; a union within is taken apart, and a union of one is that one."""
    flat = tuple(
        part for operand in operands for part in (operand.operands if isinstance(operand, Union) else (operand,))
    )
    return flat[0] if len(flat) == 1 else Union(flat)
