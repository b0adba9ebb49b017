from random import Random

import pytest
from tests.support.datasets import canonical
from tests.support.random_updates import PROLOGUE, RandomUpdates

from evergraph.errors import SyntaxProblem, UsageError
from evergraph.gate.operations import (
    Add,
    Clear,
    Copy,
    Create,
    DeleteData,
    Drop,
    Graphs,
    InsertData,
    Load,
    Modify,
    Move,
    Operation,
    QuadTemplate,
    Where,
)
from evergraph.gate.plain import plain_data
from evergraph.gate.request import Step, _Parser, parse_update
from evergraph.terms import DEFAULT_GRAPH, NamedNode, Quad, Variable

A, G = NamedNode("http://example.org/a"), NamedNode("http://example.org/g")
S = Variable("s")
EX = "PREFIX : <http://example.org/>\n"


def parsed(text: str) -> list[Operation]:
    return [step.operation for step in parse_update(EX + text)]


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("INSERT DATA { :a :a :a GRAPH :g { } }", InsertData(frozenset([Quad(A, A, A)]))),
        (
            "DELETE DATA { :a :a :a . GRAPH :g { :a :a :a } }",
            DeleteData(frozenset([Quad(A, A, A), Quad(A, A, A, G)])),
        ),
        ("LOAD :a", Load(A, DEFAULT_GRAPH, silent=False)),
        ("load silent <http://example.org/a> into graph :g", Load(A, G, silent=True)),
        ("CLEAR DEFAULT", Clear(DEFAULT_GRAPH, silent=False)),
        ("CLEAR SILENT GRAPH :g", Clear(G, silent=True)),
        ("DROP NAMED", Drop(Graphs.NAMED, silent=False)),
        ("DROP SILENT ALL", Drop(Graphs.ALL, silent=True)),
        ("CREATE GRAPH :g", Create(G, silent=False)),
        ("ADD :g TO DEFAULT", Add(G, DEFAULT_GRAPH, silent=False)),
        ("COPY SILENT DEFAULT TO GRAPH :g", Copy(DEFAULT_GRAPH, G, silent=True)),
        ("MOVE GRAPH :g TO :a", Move(G, A, silent=False)),
        (
            "DELETE WHERE { ?s :a :a }",
            Modify((QuadTemplate(S, A, A, DEFAULT_GRAPH),), (), Where(EX, "{ ?s :a :a }")),
        ),
        (
            "WITH :g DELETE { ?s :a :a } INSERT { GRAPH ?s { :a :a :a } } USING :a USING NAMED :g WHERE { # }\n}",
            Modify(
                (QuadTemplate(S, A, A, G),),
                (QuadTemplate(A, A, A, S),),
                Where(EX, "{ # }\n}", with_graph=G, using=(A,), using_named=(G,)),
            ),
        ),
    ],
)  # fmt: skip
def test_every_operation(text: str, operation: Operation) -> None:
    assert parsed(text) == [operation]


# --- prologues


def test_a_prologue_before_any_operation() -> None:
    """SPARQL allows it: https://www.w3.org/TR/sparql11-query/#rUpdate. Later declarations add to earlier ones."""
    steps = parse_update("""PREFIX x: <http://example.org/>
        CLEAR GRAPH x:a ; PREFIX # the } next
        y: <http://example.org/>
        CLEAR GRAPH y:a ; BASE <http://example.org/x/> PREFIX x: <>
        CLEAR GRAPH <../a> ; CLEAR GRAPH x:a; PREFIX z: <urn:z>""")
    targets = [step.operation.target for step in steps if isinstance(step.operation, Clear)]
    assert targets == [A, A, A, NamedNode("http://example.org/x/a")]
    assert [step.line for step in steps] == [2, 4, 5, 5]


@pytest.mark.parametrize("text", ["", "# nothing", "PREFIX : <urn:x>", "BASE <urn:x>", 'VERSION "1.2"'])
def test_requests_without_operations(text: str) -> None:
    assert parse_update(text) == ()


def test_relative_iris_need_a_base() -> None:
    for text in ("INSERT DATA { <a> <a> <a> }", "INSERT { <a> <a> <a> } WHERE {}", "CLEAR GRAPH <a>"):
        with pytest.raises(SyntaxProblem):
            parse_update(text)
        parse_update(text, base="http://example.org/")
    assert parse_update("CLEAR GRAPH <a>", base=G.value) == (Step(Clear(A, silent=False), 1, 1),)
    for text in ("INSERT DATA { <a> <a> <a> }", "CLEAR GRAPH <a>"):
        with pytest.raises(UsageError, match="base 'no iri'"):
            parse_update(text, base="no iri")


# --- the shortcut for plain data


def shape(steps: tuple[Step, ...]) -> list[object]:
    """Make steps comparable: blank nodes of data are fresh each time it is read."""
    return [
        (type(step.operation), canonical(step.operation.quads), step.number, step.line)
        for step in steps
        if isinstance(step.operation, InsertData | DeleteData)
    ]


PLAIN = [
    "INSERT DATA {}",
    "insert data { :a a :b }",
    "\n\nDELETE\tDATA\n{ :a :b :c , 1 , 1.5 , 1.e5 , -1 , +1.0 , true ; :d 'e' ; . } ;\n",
    r"""INSERT DATA { :a :b "x;y" , 'GRAPH' , "a\"b\\" , '''it's
        long''' , "\u00e9" , "x"@en-GB , "01"^^<http://www.w3.org/2001/XMLSchema#integer> }""",
    r"INSERT DATA { :a\;b :c\-d :%7B . :1 :x.y : }",
    "INSERT DATA { <urn:a;b> <urn:c#d> <urn:e'f> }",
    "INSERT DATA { GRAPH <urn:g> { :a :b :c } } ;",
    "INSERT DATA { _:x :b _:y . _:y :b [ :c ( 1 2 ) , [] ] }",
    "INSERT DATA { :a :b <<( :a :b 1 )>> . << :a :b :c ~ :r >> :d 1 }",
    "DELETE DATA { # nothing\n :a :b :c # a comment\n }",
]
TRICKY = [
    "DELETE DATA { :a :b :c # a comment }\n }",
    "INSERT DATA { :a :b :c # }\n}",
    "INSERT DATA { :a :b '}' , \"{\" }",
    "INSERT DATA { :a :b :c {| :d 1 |} }",
    "INSERT DATA { :a :b '''x''' ; :c <<( :a :b '''{''' )>> }",
    "INSERT DATA { GRAPH :g { :a :b :c } }",
    "INSERT DATA { :a :b :c . GRAPH :g { :a :b :c } :d :e :f }",
    "INSERT DATA { (1 2) }",
    "INSERT DATA { :GRAPH :b 'GRAPH <urn:g> {' } # }",
    "DELETE DATA { :a :b '_:x' }",
    "# { comment\nINSERT DATA { :a :b :c }",
    "BASE <urn:x> INSERT DATA { :a :b :c }",
]
REFUSED = [
    "INSERT DATA { :a :b ?c }",
    "INSERT DATA { :a :b :c # }",
    "INSERT DATA { 'a' :b :c }",
    "INSERT DATA { :a 'b' :c }",
    "DELETE DATA { _:a :b :c }",
    "DELETE DATA { :a :b [] }",
    "DELETE DATA { :a :b (1) }",
    "INSERT DATA { :a :b :c } }",
    "INSERT DATA { :a :b }",
    "INSERT\u00a0DATA { :a :b :c }",
    "INSERT DATA { x:a :b :c }",
    "INSERT DATA { @prefix x: <urn:x> . :a :b :c }",
    "INSERT DATA { GRAPH <urn:g> { GRAPH <urn:h> { :a :b :c } } }",
    "INSERT DATA { :a :b :c } INSERT DATA { :a :b :c }",
]


@pytest.mark.parametrize("text", PLAIN + TRICKY)
def test_the_shortcut_agrees_with_the_long_way(text: str) -> None:
    long_way = tuple(_Parser(EX + text, None, "").steps())
    assert shape(parse_update(EX + text)) == shape(long_way)
    assert len(long_way) == 1
    assert (plain_data(EX + text, None) is not None) == (text in PLAIN)


@pytest.mark.parametrize("text", REFUSED)
def test_the_shortcut_takes_nothing_that_is_wrong(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        parse_update(EX + text)


def test_the_shortcut_agrees_on_random_data() -> None:
    texts = [
        f"{PROLOGUE}{operation};"
        for seed in range(1_000)
        for operation in RandomUpdates(Random(seed)).request()
        if "DATA" in operation
    ]
    shortcuts = [text for text in texts if plain_data(text, None)]
    assert len(shortcuts) > 50
    for text in shortcuts:
        assert shape(parse_update(text)) == shape(tuple(_Parser(text, None, "").steps())), text


# --- errors

IN_DELETE = "a blank node cannot stand in what is to be deleted"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("INSERT DATA { :a :b :c", "2:23", "the request ends too early: the { of line 2, column 13 is never closed"),
        ("CLEAR ALL;\nDELETE {\n ?s ?p ?o }\nWHERE {\n ?s ?p ?o\n", "7:1", "the { of line 5, column 7 is never closed"),
        ("DELETE WHERE { GRAPH ?g { ?s ?p ?o }", "2:37", "the { of line 2, column 14 is never closed"),
        ("INSERT {} WHERE { FILTER(?x = ", "2:31", "the ( of line 2, column 25 is never closed"),
        ("CLEAR", "2:6", "the request ends too early"),
        ("COPY :a TO # b\n", "3:1", "the request ends too early"),
        ("INSERT { ?s ?p ?o }", "2:20", "the request ends too early"),
        ("PREFIX x:", "2:10", "the request ends too early"),
        ("INSERT DATA { :a :b 'c }", "2:21", "this string is never closed"),
        ("INSERT DATA { :a :b 'é', 'c }\n }", "2:26", "this string is never closed"),
        ("CLEAR ALL ;\n INSERT DATA { x:a :b :c }", "3:16", "the prefix x: is not declared"),
        ("PREFIX x: <urn:x> CLEAR GRAPH y:a", "2:31", "the prefix y: is not declared"),
        ("INSERT DATA { :a :b :c } garbage", "2:26", "garbage does not belong here"),
        ("INSERT DATA { :a 'é' :c }", "2:18", "'é' does not belong here"),
        ("SELECT * WHERE { ?s ?p ?o }", "2:1", "SELECT does not belong here"),
        ("PREFIX x <urn:x> CLEAR ALL", "2:8", "x does not belong here"),
        ("CLEAR ALL; BASE 'x'", "2:17", "'x' does not belong here"),
        ("CLEAR ALL ;; CLEAR ALL", "2:12", "expected an operation"),
        ("INSERT DATA { :a :b }", "2:21", "this does not belong here"),
        ("INSERT { GRAPH _:a { :a :b 1 } } WHERE {}", "2:16", 'expected "$" or ":" or "<" or "?"'),
        ("CLEAR ALL ;\nINSERT DATA { :a :b ?c }", "3:21", "a variable cannot stand in INSERT DATA"),
        ("DELETE DATA { :a :b ?c }", "2:21", "a variable cannot stand in DELETE DATA"),
        ("DELETE DATA { :a :b _:c }", "2:21", IN_DELETE),
        ("DELETE WHERE { ?s :b [] }", "2:22", IN_DELETE),
        ("DELETE { _:x :b :c } INSERT { _:y :b :c } WHERE {}", "2:10", IN_DELETE),
        ("CLEAR ALL;\n\n PREFIX x: <a b> CLEAR ALL", "4:12", "< does not belong here"),
        ("CLEAR GRAPH <http://[x>", "2:13", "IRI parsing failed"),
        ("INSERT DATA { <a> :b :c }", "2:15", "<a> is not an absolute IRI"),
        ("INSERT DATA { :a :b <> }", "2:21", "<> is not an absolute IRI"),
        ("PREFIX y: <y> CLEAR ALL", "2:11", "<y> is not an absolute IRI"),
        ("INSERT { ?s :p ?o WHERE { ?s :q ?o }", "2:19", "here: the { of line 2, column 8 is never closed"),
        ("INSERT {} WHERE { BIND(1 AS ?x) BIND(2 AS ?x) }", "2:48", "what ends here breaks a rule of SPARQL"),
        ("INSERT DATA { _:x :b 1 } ;\nINSERT DATA { _:y :b _:x }", "3:22", "_:x stands in an earlier INSERT DATA too"),
    ],
)  # fmt: skip
def test_errors_say_what_and_where(text: str, place: str, message: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_update(EX + text, where="x.ru")
    assert caught.value.message.startswith(f"x.ru:{place}: ")
    assert message in caught.value.message
    assert f"{caught.value.line}:{caught.value.column}" == place


@pytest.mark.parametrize(
    "text",
    [
        'INSERT DATA { <urn:a> <urn:b> "x"\n <urn:a> <urn:c> "y" . }',
        "INSERT DATA { <urn:a> <urn:b> 1 ; [ <urn:d> 1 ] }",
        "DELETE WHERE { ?s ?p ?o ?s ?q ?r }",
        'INSERT { <urn:a> <urn:b> "x" <urn:a> <urn:c> "y" } WHERE {}',
    ],
)
def test_triples_without_a_full_stop_between_them_are_refused(text: str) -> None:
    """Oxigraph 0.5.13 reads them as if it were there."""
    with pytest.raises(SyntaxProblem) as refused:
        parse_update(text)
    assert refused.value.line == 1


@pytest.mark.parametrize("name", ["कि", "می\u200cخواهم", "cafe\u0301", "a·b", "x\u203fy"])
def test_names_hold_every_character_that_sparql_allows(name: str) -> None:
    (step,) = parse_update(
        f"PREFIX {name}: <urn:e:> INSERT {{ {name}:{name} {name}:p ?{name} }} WHERE {{ ?{name} ?p ?o }}"
    )
    assert isinstance(step.operation, Modify)
    assert str(step.operation.insert[0].subject) == f"<urn:e:{name}>"


def test_nesting_that_would_exhaust_the_stack_is_refused() -> None:
    for text in (
        "INSERT {} WHERE " + "{" * 10_000 + "}" * 10_000,
        "INSERT DATA { <urn:a> <urn:b> " + "(" * 9_000 + "}",
    ):
        with pytest.raises(SyntaxProblem, match="levels deep"):
            parse_update(text)


def test_long_white_space_and_long_strings_are_read_in_one_go() -> None:
    gap = " " * 200_000
    assert len(parse_update(f"INSERT DATA {{ <urn:a> <urn:p> 1 }}{gap}; INSERT DATA {{ <urn:a> <urn:p> 2 }}")) == 2
    (step, _) = parse_update(f'INSERT DATA {{ <urn:a> <urn:p> "{"x" * 1_000_000}" }} ; CLEAR ALL')
    assert isinstance(step.operation, InsertData)


def test_our_own_names_are_not_those_of_any_user() -> None:
    texts = ("urn:evergraph:variable:x", "urn:evergraph:left-out", "urn:evergraph:unbound")
    for text in texts:
        (step,) = parse_update(f"INSERT {{ <{text}> <{text}> ?evergraph_row }} WHERE {{ ?evergraph_row ?p ?o }}")
        assert isinstance(step.operation, Modify)
        assert str(step.operation.insert[0].subject) == f"<{text}>"
