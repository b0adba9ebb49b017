"""What the leaves of plans look at: graphs, and patterns over them; and the laws that operators rest on."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from evergraph.sparql.algebra import PatternTerm
from evergraph.terms import BlankNode, DefaultGraph, NamedNode, Variable

Variables: TypeAlias = tuple[Variable, ...]


class Law(StrEnum):
    """What the incremental form of an operator rests on; see `evergraph.plan.nodes`."""

    CONSTANT = "constant"
    LINEAR = "linear"
    BILINEAR = "bilinear"
    MULTILINEAR = "multilinear"
    OLD_STATE = "needs old state"
    PLAN_FOR_EACH = "a plan for each graph or binding"


@dataclass(frozen=True, slots=True)
class EachGraph:
    """Every named graph, bound to a variable; only some of them under FROM NAMED."""

    variable: Variable
    among: frozenset[NamedNode] | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """The RDF merge of several graphs (several FROM): a triple is there once, however many of the graphs hold it."""

    graphs: tuple[NamedNode, ...]


Context: TypeAlias = DefaultGraph | NamedNode | BlankNode | EachGraph | Merge
"""The graph, or graphs, that a leaf of a plan looks at."""


@dataclass(frozen=True, slots=True)
class QuadPattern:
    """A triple pattern over a context."""

    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm
    context: Context

    def positions(self) -> tuple[PatternTerm | DefaultGraph | Merge, ...]:
        """Subject, predicate, object and graph; the graph is a variable, a term, or a context that binds nothing."""
        graph = self.context.variable if isinstance(self.context, EachGraph) else self.context
        return (self.subject, self.predicate, self.object, graph)

    def variables(self) -> frozenset[Variable]:
        """The variables that the pattern binds."""
        return frozenset(term for term in self.positions() if isinstance(term, Variable))
