"""How a plan fits an engine of many tasks: what needs one task, and what has to be read whatever the change is."""

from collections.abc import Iterator

from evergraph.plan import nodes
from evergraph.plan.centres import centre_of
from evergraph.plan.forms import whole_plan
from evergraph.plan.lower import Lowering
from evergraph.plan.nodes import Plan
from evergraph.plan.rebuild import children
from evergraph.sparql.algebra import Construct, Describe, Query
from evergraph.terms import BlankNode, Variable


def island_reason(query: Query, plan: Plan) -> str | None:
    """Tell why one task must maintain a query as a whole; None if its operators can be spread."""
    match query:
        case Describe():
            return "DESCRIBE follows blank nodes from node to node"
        case Construct(template=template) if any(
            isinstance(term, BlankNode) for one in template for term in (one.subject, one.object)
        ):
            return "CONSTRUCT numbers its blank nodes by solution"
    for one in _walk(plan):
        match one:
            case nodes.Graph():
                return "a pattern means something else in each graph"
            case nodes.Correlate(reason=reason):
                return f"an EXISTS means something else for each row: {reason}"
    return None


def distribution(query: Query, plan: Plan) -> tuple[str, ...]:
    """Say how Spark maintains a query."""
    reason = island_reason(query, plan)
    if reason is not None:
        return (f"one task maintains it as a whole, on the local engine: {reason}",)
    centre = centre_of(whole_plan(query, plan, Lowering(query.dataset)))
    shared = () if centre is None else (f"tasks share large changes by {centre.variable}, each with a local engine",)
    whole = tuple(dict.fromkeys(_whole(plan)))
    if not whole:
        return ("DataFrames over weights; a change reads only what shares its terms", *shared)
    return (
        "DataFrames over weights; a change that touches them reads all rows of",
        *(f"  {one}" for one in whole),
        *shared,
    )


def _whole(plan: Plan) -> Iterator[str]:
    """Name the operators whose operands no key narrows down."""
    for one in _walk(plan):
        match one:
            case nodes.Group(keys=()):
                yield "an aggregate without GROUP BY"
            case nodes.Slice():
                yield "a slice: which rows are in its window depends on all"
            case nodes.Path(subject=Variable(), object=Variable()):
                yield "the steps of a path, as far as the change can be reached"
            case nodes.Path():
                yield "the steps of a path, from its constant end"
            case nodes.Join(left, right) | nodes.LeftJoin(left, right) | nodes.Minus(left, right):
                if not left.certain & right.certain:
                    yield "a join whose sides share no variable that is always bound"
            case nodes.SemiJoin(left, right) | nodes.MarkJoin(left, right):
                if not left.certain & right.certain:
                    yield "an EXISTS that shares no variable with what it tests"
            case _:
                pass


def _walk(plan: Plan) -> Iterator[Plan]:
    waiting = [plan]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(children(one))
