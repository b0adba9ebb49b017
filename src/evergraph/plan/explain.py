"""What a standing query costs, before it runs: its graph patterns, its delta plan, what is kept and what is re-run.

An `Explanation` is data; `evergraph.plan.report` writes it as text and as JSON.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from evergraph.errors import EvergraphError
from evergraph.plan.continuous import Decomposition, decompose, star_centres
from evergraph.plan.distribution import distribution
from evergraph.plan.nodes import Plan
from evergraph.plan.notation import Notation
from evergraph.plan.operations import Operation, explain_plan
from evergraph.sparql import algebra, scope
from evergraph.sparql.algebra import AggregateFunction, Call, Construct, Function, Query, Select
from evergraph.terms import BlankNode, DefaultGraph


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """A basic graph pattern of the query and what it is part of; ``centres`` if it is a generalised star."""

    place: str
    decomposition: Decomposition
    centres: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that there is to say about a standing query. Without a plan, it is ``refused``."""

    form: str
    columns: tuple[str, ...]
    patterns: tuple[GraphPattern, ...]
    paths: tuple[str, ...]
    plan: Operation | None
    spark: tuple[str, ...]
    refused: EvergraphError | None
    notes: tuple[str, ...]
    notation: Notation


def explain(query: Query, plan: Plan | EvergraphError, notation: Notation | None = None) -> Explanation:
    """Explain a query and the plan that maintains its solutions, or the error with which it was refused."""
    notation = notation or Notation()
    refused = plan if isinstance(plan, EvergraphError) else None
    return Explanation(
        form=type(query).__name__.upper(),
        columns=tuple(variable.value for variable in query.variables) if isinstance(query, Select) else (),
        patterns=tuple(_graph_patterns(query, notation)),
        paths=tuple(notation.path_pattern(one) for _, one in _walk(query.pattern) if isinstance(one, algebra.Path)),
        plan=None if isinstance(plan, EvergraphError) else explain_plan(query, plan, notation),
        spark=() if isinstance(plan, EvergraphError) else distribution(query, plan),
        refused=refused,
        notes=() if refused else tuple(_notes(query)),
        notation=notation,
    )


# --- the patterns of the query


def _walk(pattern: algebra.Pattern, place: str = "WHERE") -> Iterator[tuple[str, algebra.Pattern]]:
    """Iterate over a pattern and all within, EXISTS included, each with the word that it stands under."""
    yield place, pattern
    match pattern:
        case algebra.LeftJoin(left, right):
            yield from _walk(left, place)
            yield from _walk(right, "OPTIONAL")
        case algebra.Minus(left, right):
            yield from _walk(left, place)
            yield from _walk(right, "MINUS")
        case algebra.Union(operands):
            for operand in operands:
                yield from _walk(operand, "UNION")
        case _:
            for child in scope.children(pattern):
                yield from _walk(child, place)
    for expression in scope.expressions(pattern):
        for exists in scope.exists_in(expression):
            yield from _walk(exists.pattern, "EXISTS")


def _graph_patterns(query: Query, notation: Notation) -> Iterator[GraphPattern]:
    for place, pattern in _walk(query.pattern):
        if isinstance(pattern, algebra.BGP) and pattern.triples:
            centres = (one for one in star_centres(pattern) if not isinstance(one, DefaultGraph))
            yield GraphPattern(place, decompose(pattern), tuple(map(notation.term, centres)))


def _notes(query: Query) -> Iterator[str]:
    """Say what is particular to standing queries, or left open by SPARQL, in what the query uses."""
    patterns = [pattern for _, pattern in _walk(query.pattern)]
    expressions = [part for one in patterns for whole in scope.expressions(one) for part in scope.walk(whole)]
    functions = {part.function for part in expressions if isinstance(part, Call)}
    aggregates = {each.function for one in patterns if isinstance(one, algebra.Group) for _, each in one.aggregates}
    ordered = any(isinstance(one, algebra.OrderBy) for one in patterns)
    sliced = any(isinstance(one, algebra.Slice) for one in patterns)
    if Function.NOW in functions:
        yield "NOW() is the moment of registration, and stays that: time passing is not a change of the data."
    if Function.BNODE in functions:
        yield "BNODE(label) is the same node for the same label and solution, also when the solution comes back."
    if sliced:
        yield "What the order leaves open is decided by the projected columns, from left to right: a slice is certain."
    elif ordered:
        yield "ORDER BY changes nothing: a maintained result is a bag. With LIMIT or OFFSET it decides what is in it."
    if any(isinstance(one, algebra.Reduced) for one in patterns):
        yield "REDUCED keeps all duplicates."
    if AggregateFunction.SAMPLE in aggregates:
        yield "SAMPLE is the least value."
    if any(isinstance(part, algebra.Exists) for part in expressions):
        yield "EXISTS puts the values of the solution into its pattern."
    if isinstance(query, Construct) and any(
        isinstance(term, BlankNode) for one in query.template for term in (one.subject, one.object)
    ):
        yield "A blank node of the template is one node for one solution, the same when the solution comes back."
