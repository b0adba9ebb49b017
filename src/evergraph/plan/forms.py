"""Query forms as plans: ASK and CONSTRUCT are operators over solutions like any other."""

from evergraph.plan import nodes
from evergraph.plan.lower import UNIT_ROW, Lowering, empty
from evergraph.plan.nodes import Plan
from evergraph.sparql.algebra import Ask, Bound, Call, Construct, Function, Or, Query, TripleTemplate, conjunction
from evergraph.terms import Variable

BOOLEAN = Variable("boolean")


def whole_plan(query: Query, solutions: Plan, lowering: Lowering) -> Plan:
    """Return the plan of the result of a query, from the plan of its solutions.

    DESCRIBE, and CONSTRUCT with blank nodes in its template, have no such plan: their solutions are returned.
    """
    match query:
        case Ask():
            return nodes.MarkJoin(UNIT_ROW, solutions, BOOLEAN)
        case Construct(template):
            columns = lowering.fresh("subject"), lowering.fresh("predicate"), lowering.fresh("object")
            triples = tuple(_triples(one, solutions, columns) for one in template)
            return nodes.Distinct(nodes.Union(triples)) if triples else empty(*columns)
        case _:
            return solutions


def _triples(template: TripleTemplate, solutions: Plan, columns: nodes.Variables) -> Plan:
    """Build one triple from each solution, and leave out what is none."""
    plan = solutions
    terms = (template.subject, template.predicate, template.object)
    for column, term in zip(columns, terms, strict=True):
        never_fails = term in plan.certain if isinstance(term, Variable) else True
        plan = nodes.Extend(plan, column, term, never_fails)
    subject, predicate, object_ = columns
    node = Or((Call(Function.ISIRI, (subject,)), Call(Function.ISBLANK, (subject,))))
    valid = conjunction(node, Call(Function.ISIRI, (predicate,)), Bound(object_))
    return nodes.Project(nodes.Filter(plan, valid), columns)
