"""Results in JSON."""

from evergraph.sparql.results import json_boolean, json_solutions
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Triple, Variable

IRI = NamedNode("urn:a")


def test_rows() -> None:
    number = Literal("01", datatype=NamedNode(XSD + "integer"))
    variables = tuple(map(Variable, "abcde"))
    row = (IRI, BlankNode("x"), Literal("y"), number, None)
    text = Literal("z", language="en")
    assert json_solutions(variables, [row, (text, Triple(IRI, IRI, text), None, None, None)]) == {
        "head": {"vars": ["a", "b", "c", "d", "e"]},
        "results": {
            "bindings": [
                {
                    "a": {"type": "uri", "value": "urn:a"},
                    "b": {"type": "bnode", "value": "x"},
                    "c": {"type": "literal", "value": "y"},
                    "d": {"type": "literal", "value": "01", "datatype": XSD + "integer"},
                },
                {
                    "a": {"type": "literal", "value": "z", "xml:lang": "en"},
                    "b": {
                        "type": "triple",
                        "value": {
                            "subject": {"type": "uri", "value": "urn:a"},
                            "predicate": {"type": "uri", "value": "urn:a"},
                            "object": {"type": "literal", "value": "z", "xml:lang": "en"},
                        },
                    },
                },
            ]
        },
    }


def test_boolean() -> None:
    assert json_boolean(True) == {"head": {}, "boolean": True}
