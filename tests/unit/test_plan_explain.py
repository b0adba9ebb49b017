"""Explanations: exact texts for queries of all kinds, one JSON shape, and promises that the engine keeps."""

import json
from pathlib import Path

import pytest

from evergraph.cli.explain import explain_text, styled
from evergraph.delta import Delta
from evergraph.engines.local.engine import LocalEngine
from evergraph.plan import report
from evergraph.plan.explain import Explanation
from evergraph.plan.notation import Notation, prefixes
from evergraph.sparql.algebra import Filter, Select
from evergraph.sparql.parser import parse_query
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Quad, Triple, Variable

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "explain"
QUERIES = sorted(FOLDER.glob("*.rq"))


def explained(text: str) -> Explanation:
    return explain_text("query.rq", text)


@pytest.mark.parametrize("query", QUERIES, ids=lambda path: path.stem)
def test_text(query: Path) -> None:
    """The text beside the query is what is written; remove it to have it written anew, and read it."""
    expected = query.with_suffix(".txt")
    text = report.text(explained(query.read_text()))
    if not expected.exists():
        expected.write_text(text)
        pytest.fail(f"{expected.name} was missing; it has been written, and wants to be read")
    assert text == expected.read_text()


@pytest.mark.parametrize("query", QUERIES, ids=lambda path: path.stem)
def test_json(query: Path) -> None:
    explanation = explained(query.read_text())
    document = report.to_json(explanation)
    assert document == json.loads(json.dumps(document))
    assert list(document) == ["form", "columns", "patterns", "paths", "plan", "rerun", "spark", "refused", "notes"]
    if explanation.plan is None:
        assert document["plan"] is None
        assert document["refused"]
        return
    assert document["refused"] is None
    operations = list(explanation.plan.walk())
    assert [one.number for one in operations] == list(range(1, len(operations) + 1))
    assert all(bool(one.bound) <= bool(one.keeps) for one in operations)
    assert len(document["rerun"]) == sum(bool(one.rerun) for one in operations)  # type: ignore[arg-type]


def test_what_has_no_bound_keeps_nothing() -> None:
    """An engine holds no more than explanations say: linear operators and graph patterns have no rows."""
    text = """SELECT ?a ?d { { ?a <urn:p> ?b . ?b <urn:p> ?c } UNION { ?a <urn:p> ?c } BIND (STR(?c) AS ?d)
              FILTER (?c != <urn:0>) }"""
    explanation = explained(text)
    assert explanation.plan is not None
    assert not any(one.bound for one in explanation.plan.walk())
    engine = LocalEngine()
    view = engine.register(text)
    names = [NamedNode(f"urn:{number}") for number in range(5)]
    engine.apply(Delta(frozenset(Quad(one, NamedNode("urn:p"), other) for one in names for other in names)))
    assert view.circuit.size() == 0
    assert view.size() == len(view.result()) == 20


def test_state_of_a_join_is_bounded_by_its_sides() -> None:
    text = "SELECT * { ?a <urn:p> ?b OPTIONAL { ?b <urn:q> ?c } }"
    explanation = explained(text)
    assert explanation.plan is not None
    assert explanation.plan.bound == "2 · |2| + |3|"
    engine = LocalEngine()
    view = engine.register(text)
    p, q = NamedNode("urn:p"), NamedNode("urn:q")
    names = [NamedNode(f"urn:{number}") for number in range(10)]
    engine.apply(Delta(frozenset([Quad(one, p, one) for one in names] + [Quad(one, q, one) for one in names[:4]])))
    assert view.circuit.size() <= 2 * 10 + 4


def test_a_refusal_has_its_condition() -> None:
    document = report.to_json(explained("SELECT * { ?s ?p ?o FILTER (<urn:f>(?o)) }"))
    refused = document["refused"]
    assert isinstance(refused, dict)
    assert refused["condition"] == "UNSUPPORTED_QUERY"
    assert "urn:f" in refused["message"]


@pytest.mark.parametrize(
    "text",
    [
        "?a + 1 > (?b * -2)",
        '!BOUND(?a) && (?b IN (1, 2.5, true) || REGEX(STR(?a), "x", "i"))',
        'IF(?a, COALESCE(?b, "x"@en), IRI("y"))',
        "xsd:integer(?a) = (?b / 2)",
        '(+?a) = "2020"^^xsd:gYear',
    ],
)
def test_expressions_are_written_as_they_are_read(text: str) -> None:
    """What is written parses to what was read."""
    prologue = f"PREFIX xsd: <{XSD}> "
    notation = Notation(prefixes(prologue))

    def condition(written: str) -> object:
        query = parse_query(prologue + "SELECT * { ?a ?p ?b FILTER (" + written + ") }", "urn:base")
        assert isinstance(query, Select)
        pattern = query.pattern
        while not isinstance(pattern, Filter):
            pattern = pattern.operand  # type: ignore[union-attr]
        return pattern.condition

    read = condition(text)
    assert condition(notation.expression(read)) == read  # type: ignore[arg-type]


def test_terms() -> None:
    notation = Notation({"a:": "urn:a:", "ab:": "urn:a:b", "empty:": ""})
    node = NamedNode("urn:a:b1")
    assert notation.term(node) == "ab:1"
    assert notation.term(NamedNode("urn:a:x")) == "a:x"
    assert notation.term(NamedNode("urn:a:x/y")) == "<urn:a:x/y>"
    assert notation.term(Variable("_·3")) == "_:3"
    assert notation.term(BlankNode("b")) == "_:b"
    assert notation.term(Literal('say "x"')) == '"say \\"x\\""'
    assert notation.term(Literal("1", datatype=NamedNode("urn:a:t"))) == '"1"^^a:t'
    assert notation.term(Triple(node, node, Literal("x", language="en"))) == '<<( ab:1 ab:1 "x"@en )>>'


def test_prefixes_are_those_of_the_prologue() -> None:
    text = 'BASE <urn:x> PREFIX a: <urn:a> prefix : <urn:b>\n# PREFIX c: <urn:c>\nSELECT ("PREFIX d: <urn:d>" AS ?x) {}'
    assert prefixes(text) == {"a:": "urn:a", ":": "urn:b"}


@pytest.mark.parametrize("query", QUERIES, ids=lambda path: path.stem)
def test_a_terminal_shows_the_same_text(query: Path) -> None:
    text = report.text(explained(query.read_text()))
    shown = styled(text)
    assert shown.plain == text
    bold = {text[span.start : span.end] for span in shown.spans if span.style == "bold"}
    assert bold == {heading for heading in report.HEADINGS if f"\n{heading}\n" in text}
