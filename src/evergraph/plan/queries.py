"""Whole queries to plans: what every engine begins with."""

from evergraph.plan.lower import Lowering, project
from evergraph.plan.nodes import Plan
from evergraph.plan.optimize import optimize
from evergraph.sparql.algebra import Ask, Construct, Describe, Query, Select
from evergraph.terms import Variable


def lower_query(query: Query, lowering: Lowering) -> Plan:
    """Return the plan of the solutions that a query needs."""
    plan = lowering.lower(query.pattern)
    match query:
        case Select(variables=variables):
            plan = project(plan, variables)
        case Describe(targets=targets):
            plan = project(plan, tuple(dict.fromkeys(one for one in targets if isinstance(one, Variable))))
        case Ask():
            plan = project(plan, ())
        case Construct():
            pass
    return optimize(plan)
