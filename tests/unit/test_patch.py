import io
import tracemalloc
from collections.abc import Iterator

import pytest

from evergraph.delta import Delta, Request
from evergraph.errors import DataError, SyntaxProblem
from evergraph.patch import Patch, Tail, read_patches, scan_patches, transaction, write_transaction
from evergraph.terms import BlankNode, Literal, NamedNode, Quad

S, P, O, G = (NamedNode(f"urn:{name}") for name in "spog")  # noqa: E741
TRIPLE = Quad(S, P, O)


def read(text: str | bytes, tail: Tail = "error") -> list[Patch]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_patches(io.BytesIO(data), "x.rdfp", tail=tail))


def requests(text: str | bytes, tail: Tail = "error") -> list[Request]:
    return [patch.request for patch in read(text, tail)]


def added(*quads: Quad) -> Request:
    return Request(added=frozenset(quads))


def test_the_example_of_the_specification() -> None:
    [patch] = read(
        """H id <uuid:0686c69d-8f89-4496-acb5-744f0157a8db> .
H prev <uuid:3ee0eca0-6d5f-4b4d-85db-f69ab1167eb1> .
TX .
PA "rdf" "http://www.w3.org/1999/02/22-rdf-syntax-ns#" .
PA "owl" "http://www.w3.org/2002/07/owl#" .
A <http://example/SubClass> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2002/07/owl#Class> .
A <http://example/SubClass> <http://www.w3.org/2000/01/rdf-schema#label> "SubClass" .
TC .
"""
    )
    assert patch.header == {
        "id": NamedNode("uuid:0686c69d-8f89-4496-acb5-744f0157a8db"),
        "prev": NamedNode("uuid:3ee0eca0-6d5f-4b4d-85db-f69ab1167eb1"),
    }
    assert (len(patch.request.added), len(patch.request.removed), patch.line) == (2, 0, 3)


def test_each_transaction_is_a_change_with_its_header() -> None:
    first, second, third = read(
        'H id "1" .\nTX .\nA <urn:s> <urn:p> <urn:o> .\nTC .\n\n# next\nH "two words" "2"@en .\nTX .\n'
        "D <urn:s> <urn:p> <urn:o> <urn:g> .\nTC .\nTX .\nTC .\n"
    )
    assert (first.request, first.header, first.line) == (added(TRIPLE), {"id": Literal("1")}, 2)
    assert second.request == Request(removed=frozenset({Quad(S, P, O, G)}))
    assert (second.header, second.line) == ({"two words": Literal("2", language="en")}, 8)
    assert (third.request, third.header) == (Request(), {})


def test_a_file_without_transactions_is_one_change() -> None:
    assert requests("A <urn:s> <urn:p> <urn:o> .\nD <urn:o> <urn:p> <urn:s> .\n") == [
        Request(removed=frozenset({Quad(O, P, S)}), added=frozenset({TRIPLE}))
    ]
    assert requests('H id "1" .\n') == [Request()]


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n\n", "\ufeff"])
def test_an_empty_file_has_no_change(text: str) -> None:
    assert requests(text) == []


def test_the_last_row_of_a_quad_decides() -> None:
    row = "<urn:s> <urn:p> <urn:o> .\n"
    assert requests(f"A {row}D {row}") == [Request(removed=frozenset({TRIPLE}))]
    assert requests(f"D {row}A {row}") == [added(TRIPLE)]
    assert requests(f"A {row}D {row}A {row}") == [added(TRIPLE)]


def test_an_aborted_transaction_is_no_change() -> None:
    text = "TX .\nA <urn:s> <urn:p> <urn:o> .\nTA .\nTX .\nA <urn:o> <urn:p> <urn:s> .\nTC .\n"
    assert requests(text) == [added(Quad(O, P, S))]


def test_rows_of_an_aborted_transaction_are_not_even_parsed() -> None:
    assert requests("TX .\nA nonsense\nTA .\n") == []


def test_spacing_comments_and_line_breaks() -> None:
    text = "\ufeff  TX.  # begin\r\n\tA\t<urn:s><urn:p><urn:o>.# row\r\n\r\n A <urn:s> <urn:p> <urn:g> .\r\nTC .# end"
    assert requests(text) == [added(TRIPLE, Quad(S, P, G))]


def test_blank_nodes_keep_their_labels_in_both_spellings() -> None:
    [request] = requests(
        'A _:a <urn:p> <_:b1> _:g .\nA <_:a> <urn:p> "<_:b1>" .\nA <urn:s> <urn:p> <<( <_:a> <urn:p> _:c )>> .\n'
    )
    assert Quad(BlankNode("a"), P, BlankNode("b1"), BlankNode("g")) in request.added
    assert Quad(BlankNode("a"), P, Literal("<_:b1>")) in request.added
    assert len(request.added) == 3


def test_prefixed_names() -> None:
    [request] = requests(
        """PA : <urn:> .
PA xsd <http://www.w3.org/2001/XMLSchema#> .
PA e: "http://example.org/" .
A :s :p :o :g.
A :s :p "e:x"@en-gb--ltr .
A :s :p "1"^^xsd:integer . # e:y
A e:a\\,b e:%20 e:c.d .
A <urn:s> <urn:p> <<( :s :p :o )>> .
""".replace("PA : ", 'PA "" ')
    )
    assert {str(quad) for quad in request.added} == {
        "<urn:s> <urn:p> <urn:o> <urn:g>",
        '<urn:s> <urn:p> "e:x"@en-gb--ltr',
        '<urn:s> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        "<http://example.org/a,b> <http://example.org/%20> <http://example.org/c.d>",
        "<urn:s> <urn:p> <<( <urn:s> <urn:p> <urn:o> )>>",
    }


def test_a_prefix_serves_the_rows_after_it_across_transactions() -> None:
    text = """TX .
PA x <urn:> .
A x:s x:p x:o .
PA x <urn:other:> .
A x:s x:p x:o .
TC .
TX .
PA x <urn:aborted:> .
TA .
TX .
D x:s x:p x:o .
TC .
"""
    other = Quad(*(NamedNode(f"urn:other:{name}") for name in "spo"))
    assert requests(text) == [added(TRIPLE, other), Request(removed=frozenset({other}))]


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("TX .\nA <urn:s> <urn:p> <urn:o> .\n# c\n\nA <urn:s> <urn:p> o .\nTC .\n", 5, 19, "object"),
        ("TX .\nTC .\nTX .\n  D <urn:s> <urn:p> .\nTC .\n", 4, 21, "object"),
        ('A <urn:s> <urn:p> "é😀" "x" .\n', 1, 24, ""),
        (b'TX .\nA <urn:s> <urn:p> "\xff" .\nTC .\n', 2, 20, "UTF-8"),
        ("PA x <urn:> .\nA x:s x:p x:o o .\n", 2, 15, ""),
        ("PA x <urn:> .\nA x:s y:p x:o .\n", 2, 7, "prefix 'y'"),
        ("PA x <urn:> .\nPD x .\nA x:s <urn:p> <urn:o> .\n", 3, 3, "prefix 'x'"),
        ("PA x <urn:> .\nA x:s x:p x:~ .\n", 2, 11, "'x:~'"),
        ("PA x <urn:> .\nA x:s x:p x:o; .\n", 2, 11, "'x:o;'"),
        ("H id\n", 1, 5, "end"),
        ("A <_:-x> <urn:p> <urn:o> .\n", 1, 3, ""),
        ("TX .\nA # nothing\nTC .\n", 2, 1, "exactly one quad"),
        ("TX .\nA <urn:s> <urn:p> <urn:o> .\r<urn:s> <urn:p> <urn:s> .\nTC .\n", 2, 1, "exactly one quad"),
        ("A # none\nD <urn:s> <urn:p> <urn:o> .\r<urn:s> <urn:p> <urn:s> .\n", 1, 1, "exactly one quad"),
        ("TX .\nA <urn:s> <urn:p> <urn:o> . A <urn:s> <urn:p> <urn:o> .\nTC .\n", 2, 29, ""),
        ("TX .\nA <urn:s>\n  <urn:p> <urn:o> .\nTC .\n", 3, 1, "begins with"),
        ("<urn:s> <urn:p> <urn:o> .\n", 1, 1, "begins with"),
        ("TB .\n", 1, 1, "begins with"),
        ("A: <urn:p> <urn:o> .\n", 1, 1, "begins with"),
        ("TC .\n", 1, 1, "TC without TX"),
        ("TX .\nTC .\nTA .\n", 3, 1, "TA without TX"),
        ("TX .\nTX .\n", 2, 1, "TX in a transaction"),
        ("TX\n", 1, 3, "a dot must follow TX"),
        ("TX .\nTC . .\n", 2, 3, "a dot must follow TC"),
        ("TX .\nTC .\nA <urn:s> <urn:p> <urn:o> .\n", 3, 1, "outside of a transaction"),
        ("TX .\nTA .\nD\t<urn:s> <urn:p> <urn:o> .\n", 3, 1, "outside of a transaction"),
        ("A <urn:s> <urn:p> <urn:o> .\nTX .\nTC .\n", 2, 1, "outside of a transaction"),
        ('TX .\nH id "1" .\n', 2, 1, "before the transaction"),
        ('A <urn:s> <urn:p> <urn:o> .\nH id "1" .\n', 2, 1, "before the transaction"),
        ("H id 1 .\n", 1, 6, ""),
        ("H id <urn:a> <urn:b> .\n", 1, 5, "one term too many"),
        ("H .\n", 1, 2, "a word or a string"),
        ("PA x .\n", 1, 6, ""),
        ('PA x "not an iri" .\n', 1, 1, "IRI"),
        ("PA x _:b .\n", 1, 1, "IRI"),
        ("PD x <urn:x> .\n", 1, 5, "a dot must follow x"),
    ],
)
def test_errors_say_the_true_place(text: str | bytes, line: int, column: int, reason: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        read(text)
    problem = caught.value
    assert (problem.where, problem.line, problem.column) == ("x.rdfp", line, column), problem
    assert reason in str(problem)


def test_changes_before_an_error_are_delivered() -> None:
    patches = read_patches(io.BytesIO(b"TX .\nA <urn:s> <urn:p> <urn:o> .\nTC .\nTX .\nA x\nTC .\n"), "x")
    assert next(patches).request == added(TRIPLE)
    with pytest.raises(SyntaxProblem):
        next(patches)


COMPLETE = transaction(added(TRIPLE), {"id": Literal("1")})


@pytest.mark.parametrize("cut", range(1, len(COMPLETE)))
def test_a_cut_off_transaction(cut: int) -> None:
    """Whatever a crash leaves of a transaction is an error, or no change where the reader expects crashes."""
    text = COMPLETE + COMPLETE[:cut]
    [patch] = read(text, tail="ignore")
    assert (patch.request, patch.end) == (added(TRIPLE), len(COMPLETE))
    if cut < len(COMPLETE) - 1:  # else only the line break is missing
        with pytest.raises((DataError, SyntaxProblem)):
            read(text)
    assert read(COMPLETE[:cut], tail="ignore") == []


def test_a_missing_commit_is_damage_with_a_place() -> None:
    with pytest.raises(DataError, match=r"x\.rdfp:2: the patch ends in the middle"):
        read("\nTX .\nA <urn:s> <urn:p> <urn:o> .\n")


def test_ignoring_the_tail_forgives_nothing_else() -> None:
    with pytest.raises(SyntaxProblem):
        read("TX .\nA x\nTC .\n", tail="ignore")
    assert requests("A <urn:s> <urn:p> <urn:o> .\n", tail="ignore") == [added(TRIPLE)]


def test_memory_follows_the_largest_transaction() -> None:
    def lines() -> Iterator[bytes]:
        for number in range(20_000):
            yield from (b"TX .\n", b'A <urn:s> <urn:p> "%d" .\n' % number, b"TC .\n")

    tracemalloc.start()
    try:
        assert sum(len(patch.request.added) for patch in read_patches(lines(), "x")) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_scanning_does_not_parse() -> None:
    assert [raw.line for raw in scan_patches(io.BytesIO(b"TX .\nA nonsense\nTC .\nTX .\nTC .\n"), "x")] == [1, 4]


def test_writing_is_sorted_with_deletions_first() -> None:
    delta = Delta(inserted=frozenset({TRIPLE, Quad(O, P, Literal("é\n"), G)}), deleted=frozenset({Quad(G, P, O)}))
    out = io.BytesIO()
    write_transaction(out, delta, {"id": NamedNode("urn:uuid:1"), "two words": Literal("x")})
    assert out.getvalue().decode() == (
        'H id <urn:uuid:1> .\nH "two words" "x" .\nTX .\nD <urn:g> <urn:p> <urn:o> .\n'
        'A <urn:o> <urn:p> "é\\n" <urn:g> .\nA <urn:s> <urn:p> <urn:o> .\nTC .\n'
    )


def test_a_quad_that_comes_anyway_has_no_deletion_row() -> None:
    assert transaction(Request(removed=frozenset({TRIPLE}), added=frozenset({TRIPLE}))) == transaction(added(TRIPLE))


def test_shorthand_in_a_string_is_text() -> None:
    [request] = requests(r'A <_:a> <urn:p> "\" <_:b> x:y \\" .' + "\n")
    assert request == added(Quad(BlankNode("a"), P, Literal('" <_:b> x:y \\')))
