from urllib.parse import parse_qs

import pytest

from evergraph.errors import UpdateFailed
from evergraph.gate.endpoint import _form_encoded
from evergraph.gate.virtuoso import exact, plain_rows, spellings, stored_quad, value_of
from evergraph.terms import XSD, Literal, NamedNode, Quad


def literal(text: str) -> Literal:
    value, _, kind = text.partition("^")
    return Literal(value, datatype=NamedNode(XSD + kind)) if kind else Literal(value)


def quad(text: str) -> Quad:
    return Quad(NamedNode("urn:a"), NamedNode("urn:p"), literal(text))


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("01^integer", "1^integer"),
        ("+1^byte", "1^byte"),
        ("1.50^decimal", "1.5^decimal"),
        ("-0.0^decimal", "0^decimal"),
        (".5^decimal", "0.5^decimal"),
        ("5.^decimal", "5^decimal"),
        ("1e0^double", "1.0^double"),
        ("-0^double", "-0.0^double"),
        ("-0^float", "0.0^float"),
        ("1e300^double", "1e+300^double"),
        ("48.85661014^double", "48.85661014^double"),
        ("INF^double", "INF^double"),
        ("48.856610^float", "48.85661^float"),
        ("16777217^float", "16777216.0^float"),
        ("true^boolean", "1^boolean"),
        ("0^boolean", "0^boolean"),
        ("2020-01-01T00:00:00.0Z^dateTime", "2020-01-01T00:00:00.0Z^dateTime"),  # the server is asked
        ("nan", "nan"),
        ("01", "01"),
        ("01^token", "01^token"),
    ],
)
def test_stored_form(written: str, stored: str) -> None:
    assert stored_quad(quad(written)) == quad(stored)
    assert stored_quad(quad(stored)) == quad(stored)


@pytest.mark.parametrize(
    "written",
    [
        *("NaN^double", "nan^float", "one^integer", "^integer", "1_0^integer", "9223372036854775808^integer"),
        *("1e0^decimal", "0.1234567890123456^decimal", "1.1234567890123457^double", "1e-16^float", "yes^boolean"),
        *("10:00:00^time", "PT1H^duration", "x^double"),
    ],
)
def test_refused(written: str) -> None:
    with pytest.raises(UpdateFailed, match="cannot hold this exactly"):
        stored_quad(quad(written))


@pytest.mark.parametrize(
    "equal",
    [
        ("1^integer", "01^integer", "1^byte", "1.0^decimal", "1e0^double", "1^float", "true^boolean"),
        ("0^integer", "-0^double", "false^boolean"),
        ("0.1^decimal", "0.1^double", "1e-1^double"),
        ("2020^gYear", "2020-01^gYearMonth", "2020-01-01^date", "2020-01-01T00:00:00.00^dateTime"),
        ("2020-01-01Z^date", "2020-01-01T00:00:00+00:00^dateTime", "2019-12-31T22:30:00-01:30^dateTime"),
        ("-0044-03-15^date", "-044-03-15^date", "-0044-03-15T00:00:00^dateTime"),
        ("10000-01-01^date", "10000^gYear"),
    ],
)
def test_equal_values(equal: tuple[str, ...]) -> None:
    assert len({value_of(literal(text)) for text in equal}) == 1
    assert value_of(literal(equal[0])) is not None


def test_different_values() -> None:
    different = (
        *("1^integer", "2^integer", "0.1^decimal", "0.1^float", "2020^integer", "2020^gYear", "2021^gYear", "x^date"),
        *("2020-01-01Z^date", "2020-01-01+01:00^date", "9007199254740992^double", "9007199254740992^integer"),
        *("2020-01-01T00:00:00.1^dateTime", "2020-01-01T00:00:00.01^dateTime", "INF^double", "-INF^double"),
    )
    assert len({value_of(literal(text)) for text in different}) == len(different)
    assert value_of(literal("1")) is None
    assert value_of(NamedNode("urn:a")) is None


def test_rounded_numbers_are_mended() -> None:
    assert exact(literal("48.8566^double"), literal("48.85661014")) == literal("48.85661014^double")
    assert exact(literal("48.8566^float"), literal("48.85660934448242")) == literal("48.85661^float")
    assert exact(literal("1.12346^double"), literal("1.123456789012346")) == literal("1.123456789012346^double")
    assert exact(literal("INF^double"), literal("inf")) == literal("INF^double")
    assert exact(literal("1^integer"), literal("1")) == literal("1^integer")
    assert exact(None, None) is None


def test_strings_have_two_spellings() -> None:
    assert spellings(quad("x")) == ('"x"', f'"x"^^<{XSD}string>')
    assert spellings(quad("1^integer")) == (f'"1"^^<{XSD}integer>',)


HEAD = b"""_:R rdf:type <urn:x> .
_:R <http://www.w3.org/2005/sparql-results#resultVariable> "a" .
_:R <http://www.w3.org/2005/sparql-results#resultVariable> "b" .
"""
SOLUTION = b"""_:R <http://www.w3.org/2005/sparql-results#solution> _:Rr0 .
_:Rr0 <http://www.w3.org/2005/sparql-results#binding> _:Rr0c1 .
_:Rr0c1 <http://www.w3.org/2005/sparql-results#variable> "b" .
_:Rr0c1 <http://www.w3.org/2005/sparql-results#value> <urn:b> .
"""
WHOLE = SOLUTION.replace(
    b"_:Rr0 <http://www.w3.org/2005/sparql-results#binding> _:Rr0c1 .",
    b"""_:Rr0 <http://www.w3.org/2005/sparql-results#binding> _:Rr0c0 .
_:Rr0c0 <http://www.w3.org/2005/sparql-results#variable> "a" .
_:Rr0c0 <http://www.w3.org/2005/sparql-results#value> "a #value> ."@en .
_:Rr0 <http://www.w3.org/2005/sparql-results#binding> _:Rr0c1 .""",
)


def test_solutions_in_triples() -> None:
    assert plain_rows(HEAD) == []
    both = (Literal("a #value> .", language="en"), NamedNode("urn:b"))
    assert plain_rows(HEAD + WHOLE + WHOLE) == [both, both]
    assert plain_rows(HEAD + WHOLE + SOLUTION + WHOLE) == [both, (None, NamedNode("urn:b")), both]
    assert plain_rows(HEAD + SOLUTION + SOLUTION) == [(None, NamedNode("urn:b"))] * 2


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (b"<urn:b>", b'"1"^^<http://www.w3.org/2001/XMLSchema#double>'),
        (b"<urn:b>", b'"POINT(1 2)"^^http://www.openlinksw.com/schemas/virtrdf#Geometry'),
        (b"<urn:b>", b"<urn:b> . <urn:c> <urn:d> <urn:e>"),
        (b'"b"', b'"c"'),
        (b"c1 <http://www.w3.org/2005/sparql-results#value>", b"c0 <http://www.w3.org/2005/sparql-results#value>"),
        (b"#binding", b"#else"),
        (b"\n", b"\n\n"),
    ],
)
@pytest.mark.parametrize("solution", [SOLUTION, WHOLE], ids=["partial", "whole"])
def test_solutions_in_triples_that_are_not_as_expected(solution: bytes, text: bytes, other: bytes) -> None:
    assert plain_rows(HEAD + solution.replace(text, other)) is None


@pytest.mark.parametrize("text", ["", "a b+c%2B&d=e", "é😀 \0\n\r\x7f'~*-._()", bytes(range(128)).decode()])
def test_texts_in_forms(text: str) -> None:
    assert parse_qs("x=" + _form_encoded(text).decode("ascii"), keep_blank_values=True) == {"x": [text]}
