"""What a plan can look at: the patterns of all quads that its result may depend on."""

from evergraph.plan import nodes
from evergraph.plan.lower import Lowering
from evergraph.plan.nodes import EachGraph, Plan, QuadPattern
from evergraph.plan.rebuild import children
from evergraph.terms import BlankNode, NamedNode, Variable

ANYTHING = (Variable("subject··"), Variable("predicate··"), Variable("object··"))


def reach(plan: Plan, lowering: Lowering) -> tuple[QuadPattern, ...]:
    """Return patterns that cover all quads which a plan, and the plans that are made as it runs, can ask for."""
    found: dict[QuadPattern, None] = {}
    waiting = [plan]
    while waiting:
        one = waiting.pop()
        waiting.extend(children(one))
        if isinstance(one, nodes.Correlate):
            waiting.append(lowering.lower(one.pattern))
        found.update(dict.fromkeys(_patterns(one)))
    return tuple(found)


def _patterns(plan: Plan) -> tuple[QuadPattern, ...]:
    match plan:
        case nodes.BGP(patterns):
            return patterns
        case nodes.Nodes(context):
            return (QuadPattern(*ANYTHING, context),)
        case nodes.GraphNames(graph) if isinstance(graph, EachGraph | NamedNode | BlankNode):
            return (QuadPattern(*ANYTHING, graph),)
        case nodes.Graph(graph):
            return (QuadPattern(*ANYTHING, graph),)
        case _:
            return ()


def as_distinct(plan: nodes.Nodes | nodes.GraphNames) -> Plan:
    """Nodes and names of graphs are what occurs in some quad, each once."""
    subject, predicate, object_ = ANYTHING
    match plan:
        case nodes.GraphNames(graph):
            quads = QuadPattern(subject, predicate, object_, graph)  # type: ignore[arg-type]
            return nodes.Distinct(nodes.BGP((quads,), plan.variables))
        case nodes.Nodes(context, variable):
            subjects = nodes.BGP((QuadPattern(variable, predicate, object_, context),), plan.variables)
            objects = nodes.BGP((QuadPattern(subject, predicate, variable, context),), plan.variables)
            return nodes.Distinct(nodes.Union((subjects, objects)))
