"""Documents: blank nodes that are kept apart and keep their names, and nesting that is refused."""

import time

import pytest

from evergraph.errors import DataError, SyntaxProblem
from evergraph.terms import BlankNode
from evergraph.traversal.depth import DEEPEST
from evergraph.traversal.documents import Content, read_document

HERE, THERE = "http://example.org/here", "http://example.org/there"
XML = '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:e:">{}</r:RDF>'


def read(text: str, media_type: str = "text/turtle", url: str = HERE) -> Content:
    return read_document(text.encode(), media_type, url)


def nodes(content: Content) -> set[BlankNode]:
    terms = {term for triple in content.triples for term in (triple.subject, triple.object)}
    return {term for term in terms if isinstance(term, BlankNode)}


@pytest.mark.parametrize("text", ["_:x <urn:p> _:y .", "[] <urn:p> [ <urn:q> 1 ], ( 1 2 ) .", "_:a0 <urn:p> [] ."])
def test_blank_nodes(text: str) -> None:
    once, again, elsewhere = read(text), read(text), read(text, url=THERE)
    assert once == again, "a document that is as it was changes nothing"
    assert nodes(once).isdisjoint(nodes(elsewhere)), "blank nodes of two documents are two"
    assert len(nodes(once)) == len(nodes(elsewhere)) >= 2


def test_labels_keep_their_nodes_when_others_come() -> None:
    before, after = read("_:x <urn:p> 1 ."), read("_:new <urn:p> 1 . _:x <urn:p> 1 .")
    assert before.triples < after.triples


def test_relative_iris_are_relative_to_the_document() -> None:
    (triple,) = read("<#me> <urn:p> <other> .").triples
    assert (triple.subject.value, triple.object.value) == (HERE + "#me", "http://example.org/other")  # type: ignore[union-attr]


def test_encodings() -> None:
    latin = read_document('<urn:a> <urn:p> "ä" .'.encode("latin-1"), "text/turtle; charset=ISO-8859-1", HERE)
    assert latin == read('<urn:a> <urn:p> "ä" .')


def nested(opened: str, inner: str, closed: str, levels: int) -> str:
    return opened * levels + inner + closed * levels


DEEP = {
    "objects": ('{{"@id":"urn:a","urn:p":{}}}', '{"urn:p":', "1", "}", "application/ld+json"),
    "arrays": ('{{"@id":"urn:a","urn:p":{}}}', "[", "1", "]", "application/ld+json"),
    "elements": (XML, "<r:Description><e:p>", "", "</e:p></r:Description>", "application/rdf+xml"),
    "triple terms": ("<urn:a> <urn:p> {} .", "<<( <urn:a> <urn:p> ", "1", " )>>", "text/turtle"),
    "triple terms in N-Triples": (
        "<urn:a> <urn:p> {} .",
        "<<( <urn:a> <urn:p> ",
        '"1"',
        " )>>",
        "application/n-triples",
    ),
}


@pytest.mark.parametrize("kind", DEEP)
def test_deep_documents(kind: str) -> None:
    around, opened, inner, closed, media_type = DEEP[kind]
    assert read(around.format(nested(opened, inner, closed, 50)), media_type).triples
    for levels in (DEEPEST + 1, 100_000):
        begin = time.monotonic()
        with pytest.raises(DataError, match="levels"):
            read(around.format(nested(opened, inner, closed, levels)), media_type)
        assert time.monotonic() - begin < 5


def test_what_only_looks_deep_is_read() -> None:
    text = "x << y " * 1_000
    for quote in ('"', "'", '"""', "'''"):
        assert len(read(f"# {text}\n<urn:a> <urn:p> {quote}{text}{quote}, <urn:b> .").triples) == 2
    assert read('{"@id":"urn:a","urn:p":"' + "[{" * 1_000 + '\\""}', "application/ld+json").triples
    terms = ", ".join(f"<<( <urn:a> <urn:p> {number} )>>" for number in range(1_000))
    assert len(read(f"<urn:a> <urn:p> {terms} .").triples) == 1_000


def test_broken_documents_are_left_to_the_parser() -> None:
    for text, media_type in (("{", "application/ld+json"), ("<a><b>", "application/rdf+xml"), ("<<", "text/turtle")):
        with pytest.raises(SyntaxProblem):
            read(text, media_type)
