"""Which resources an update may affect, by patterns: the way of the paper, for views without negation.

The exact change of a view (`CatalogueView`) tells the resources that are affected; this is what can be told from the
update and the state before or after it alone. R⁻ are the resources that are found by a pattern of the view that matches
a deleted quad, together with the whole WHERE clause before the update; R⁺ likewise with the inserted quads and the
state after it. Both hold all that are affected, and maybe more.

The patterns are those of the normal form: a property path is simple patterns (``^e``, ``e1/e2``, ``e1|e2`` become
inversions, joins and unions when a query is parsed), but for ``?``, ``*`` and ``+``, which stay.
"""

from collections.abc import Iterable, Iterator

from evergraph.delta import Delta
from evergraph.errors import UnsupportedQuery
from evergraph.linking.catalogue import RDF_TYPE, Catalogue
from evergraph.sparql.algebra import (
    BGP,
    Distinct,
    Extend,
    Filter,
    GraphContext,
    Join,
    LeftJoin,
    Path,
    Pattern,
    Project,
    Reduced,
    Select,
    TriplePattern,
    Union,
    Values,
    path_predicates,
)
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Environment
from evergraph.terms import DefaultGraph, NamedNode, Quad, Term, Variable
from evergraph.views.linksets.view import Affected
from evergraph.views.queries import result_rows


def predicate_patterns(pattern: Pattern) -> Iterator[TriplePattern]:
    """Return the triple patterns of the normal form. Edges of a closure are between any two nodes.

    :raises UnsupportedQuery: for negation and whatever else is not monotonic.
    """
    match pattern:
        case BGP(triples):
            yield from triples
        case Path(_, path, _, graph):
            for predicate in path_predicates(path):
                some = Variable("predicate·any") if predicate is None else predicate
                yield TriplePattern(Variable("from·any"), some, Variable("to·any"), graph)
        case Join(left, right) | LeftJoin(left, right):
            yield from predicate_patterns(left)
            yield from predicate_patterns(right)
        case Union(operands):
            for operand in operands:
                yield from predicate_patterns(operand)
        case Filter(_, operand) | Extend(operand) | Project(operand) | Distinct(operand) | Reduced(operand):
            yield from predicate_patterns(operand)
        case Values():
            return
        case _:
            raise UnsupportedQuery(
                f"{type(pattern).__name__} is not monotonic: affected resources cannot be told from patterns",
                hint="use the exact change of the view",
            )


def affected(catalogue: Catalogue, delta: Delta, before: Dataset, after: Dataset) -> Affected:
    """Return R⁻ and R⁺ of an update."""
    return Affected(
        frozenset(_resources(catalogue, delta.deleted, before)),
        frozenset(_resources(catalogue, delta.inserted, after)),
    )


def _resources(catalogue: Catalogue, quads: Iterable[Quad], state: Dataset) -> Iterator[str]:
    where = catalogue.query.pattern
    resource = next(triple.subject for triple in catalogue.query.template if triple.predicate == RDF_TYPE)
    assert isinstance(resource, Variable)
    quads = list(quads)
    for pattern in dict.fromkeys(predicate_patterns(where)):
        for quad in quads:
            bound = _bound(pattern, quad)
            if bound is None:
                continue
            known = tuple(variable for variable in bound if not variable.value.endswith("·any"))
            narrowed = Join(Values(known, (tuple(bound[variable] for variable in known),)), where) if known else where
            query = Select(Project(narrowed, (resource,)), (resource,))
            for (found,) in result_rows(query, state, Environment()):
                if isinstance(found, NamedNode):
                    yield str(found)


def _bound(pattern: TriplePattern, quad: Quad) -> dict[Variable, Term] | None:
    """Return what the variables of a pattern are if it matches a quad; None if it does not."""
    bound: dict[Variable, Term] = {}
    pairs: list[tuple[GraphContext, Term]] = [
        (pattern.subject, quad.subject),
        (pattern.predicate, quad.predicate),
        (pattern.object, quad.object),
    ]
    if isinstance(pattern.graph, DefaultGraph) != isinstance(quad.graph_name, DefaultGraph):
        return None
    if not isinstance(quad.graph_name, DefaultGraph):
        pairs.append((pattern.graph, quad.graph_name))
    for wanted, term in pairs:
        if isinstance(wanted, Variable):
            if bound.setdefault(wanted, term) != term:
                return None
        elif wanted != term:
            return None
    return bound
