import pytest
from pyoxigraph import Store
from tests.support.datasets import isomorphic

import evergraph as eg
from evergraph.gate.operations import Row, Template
from evergraph.gate.templates import compares_no_objects, fill, read_template
from evergraph.gate.tokens import tokenize
from evergraph.terms import BlankNode, Literal, NamedNode, Quad, Triple

A, B, P = NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:p")
X = Literal("x")


def template(text: str) -> Template:
    return read_template("PREFIX : <urn:>", list(tokenize(text)))


@pytest.mark.parametrize(
    "text",
    [
        ":a :p 1.e5 , 1.E5 , .5e1 , -1 , +.5 , true",
        ":a :p 'x'@en , 'x'@EN-gb , 'x'@ar--rtl , '1'^^:d",
        r""":a :p '\u00e9\t"' , "\\" , '''a"'b
            ''' , <<( :a :p '''a"\"'b
            ''' )>>""",
        r":a\;b :p\-q :%7Bx . :1 :x.y : .",
        "( 1 :a )",
        "( 1 ( 2 ) [ :p 3 ] ) .",
        "( 1 ) GRAPH :g { ( 2 ) . ( 3 ) :p 4 }",
        "() :p ()",
        "[] :p [ :q [ ] ; a :b ] . [ :p :a ]",
        ":a a :b ; :p :c , :d ; ; .",
        "GRAPH :g { :a :p :b } . :a :p :c GRAPH :h { } GRAPH :g { :c :p :d . }",
        "'subject' :p :a . 1 :p :b . -1 :p :c . 'x'@en :p :d . '1'^^:d :p :e . true :p :f . :a :p :g",
        "GRAPH :g { 'subject' :p :a ; :q [ :p 1 ] . :a :p :b } 'x' :p 1",
        ":a :p <<( :b :q <<( :c :r 1 )>> )>>",
        ":a :p :b {| :source :c |} ~ :r {| :x 1 |}",
        "<< :a :p :b >> :q 1 . << :a :p 2 ~ :r >> .",
    ],
)  # fmt: skip
@pytest.mark.parametrize("request_", ["INSERT {{ {} }} WHERE {{}}", "WITH <urn:g> INSERT {{ {} }} WHERE {{}}"])
def test_reads_what_sparql_allows(text: str, request_: str) -> None:
    db, store = eg.open(), Store()
    request = "PREFIX : <urn:> " + request_.format(text)
    db.update(request)
    store.update(request)
    assert len(store) > 0
    assert isomorphic(db.quads(), store)


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("?x :p ?y", (A, X), [Quad(A, P, X)]),
        ("?x :p ?y", (None, X), []),
        ("?x :p ?y", (A, None), []),
        ("?x :p ?y", (X, X), []),
        ("?x :p ?y", (Triple(A, P, X), X), []),
        ("?x :p ?y", (A, Triple(A, P, X)), [Quad(A, P, Triple(A, P, X))]),
        ("?x ?y :a", (A, P), [Quad(A, P, A)]),
        ("?x ?y :a", (A, BlankNode("b")), []),
        ("?x ?y :a", (A, X), []),
        ("GRAPH ?y { ?x :p :a }", (A, B), [Quad(A, P, A, B)]),
        ("GRAPH ?y { ?x :p :a }", (A, None), []),
        ("GRAPH ?y { ?x :p :a }", (A, X), []),
        ("?x :p <<( ?x :p ?y )>>", (A, X), [Quad(A, P, Triple(A, P, X))]),
        ("?x :p <<( ?x :p ?y )>>", (A, None), []),
        ("?x :p <<( ?y :p ?x )>>", (A, X), []),
        ("?x :p ?y . ?y :p ?x", (A, X), [Quad(A, P, X)]),
    ],
)
def test_triples_that_are_none_are_left_out(text: str, row: Row, expected: list[Quad]) -> None:
    assert fill(template(text), ("x", "y"), [row]) == set(expected)


def test_blank_nodes_are_fresh_for_each_solution_and_shared_within_it() -> None:
    made = fill(template("_:n :p ?x . GRAPH :g { _:n :p <<( _:n :p _:m )>> }"), ["x"], [(A,), (B,), (B,)])
    assert len(made) == 6
    assert len({quad.subject for quad in made}) == 3
    for node in {quad.subject for quad in made}:
        [term] = [quad.object for quad in made if quad.subject == node and isinstance(quad.object, Triple)]
        assert term.subject == node
        assert term.object not in {quad.subject for quad in made}


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        ("?s ?p ?o", True),
        ("?s :p :a", True),
        ("?s :p ?o ; :q ?v . ?t ?p :a", True),
        ("GRAPH ?g { ?s ?p ?o } GRAPH ?g { ?t ?p ?v }", True),
        ("?s ?p ?s", False),
        ("?s ?s :a", False),
        ("GRAPH ?g { ?g ?p ?o }", False),
        ("?s :p ?o . ?t :q ?o", False),
        ("?s :p ?o . ?o :q ?v", False),
        ("?s :p 1", False),
        ("?s :p 'x'", False),
        ("?s :p _:x", False),
        ("?s :p <<( ?s :p ?o )>>", False),
    ],
)
def test_patterns_that_compare_no_objects(pattern: str, plain: bool) -> None:
    assert compares_no_objects(template(pattern)) == plain
