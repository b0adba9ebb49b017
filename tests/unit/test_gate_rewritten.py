"""Templates that are filled by rewriting lines make the same quads as templates that are filled term by term."""

from itertools import product

import pytest
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple, Variable

from evergraph.gate.operations import QuadTemplate, Slot, template_variables
from evergraph.gate.templates import bindings, fill_columns, rewritten
from evergraph.terms import Term

S, P, V, OTHER = (Variable(name) for name in ("s", "p", "o", "other"))
A, B, G = (NamedNode(f"http://example.org/{name}%20%b5\u00e9") for name in ("a", "b", "g"))
VALUES: list[Term] = [
    Literal("plain"),
    Literal('quoted " and \\ and \n and \r and \t .'),
    Literal("two <http://example.org/g%20%b5\u00e9> ."),
    Literal("\u2028 \U0001f600"),
    Literal("language", language="en-gb"),
    Literal("01", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer")),
    Literal(""),
    Literal(" "),
    BlankNode("node"),
    A,
    Triple(A, B, Literal("a b")),
]


def matches(graph: NamedNode | DefaultGraph, predicate: NamedNode) -> list[Quad]:
    subjects: list[NamedNode | BlankNode] = [A, B, BlankNode("x")]
    return [Quad(subject, predicate, value, graph) for subject, value in product(subjects, VALUES)]


SLOTS: tuple[tuple[Slot, ...], ...] = (
    (S, V, A, OTHER),
    (P, S, B),
    (V, S, P, A, Literal("x"), OTHER),
    (G, DefaultGraph(), V),
)
TEMPLATES = [QuadTemplate(*slots) for slots in product(*SLOTS)]


@pytest.mark.parametrize("graph", [G, DefaultGraph()])
@pytest.mark.parametrize("fixed", [True, False])
def test_both_ways(graph: NamedNode | DefaultGraph, fixed: bool) -> None:
    pattern = QuadTemplate(S, B if fixed else P, V, graph)
    quads = matches(graph, B)
    done = 0
    for template in TEMPLATES:
        found = rewritten((template,), pattern, quads)
        if found is not None:
            done += 1
            columns = bindings(pattern, template_variables((template,)), quads)
            assert found == fill_columns((template,), columns, len(quads)), template
    assert done >= 12


def test_what_is_not_rewritten() -> None:
    pattern = QuadTemplate(S, B, V, G)
    quads = matches(G, B)
    fitting = QuadTemplate(S, A, V, G)
    assert rewritten((fitting,), pattern, quads) is not None
    assert rewritten((fitting,), pattern, quads[:3]) is None
    assert rewritten((fitting,), QuadTemplate(S, B, V, Variable("g")), quads) is None
    assert rewritten((QuadTemplate(V, A, S, G),), pattern, quads) is None
    assert rewritten((QuadTemplate(BlankNode(), A, S, G),), pattern, quads) is None
