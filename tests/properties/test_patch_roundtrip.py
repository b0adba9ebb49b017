"""What is written is what is read, and rows in any order mean what a replay of them means."""

import io
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.support.rdf_strategies import characters, literals, quad_sets, quads, requests

from evergraph.delta import Delta, Request
from evergraph.patch import read_patches, transaction
from evergraph.rdfio import read_quads, write_quads
from evergraph.sources import open_source, write_changeset
from evergraph.terms import Literal, NamedNode, Quad

FREQUENT = Quad(NamedNode("urn:a"), NamedNode("urn:a"), NamedNode("urn:a"))
headers = st.dictionaries(st.text(characters, max_size=4), literals, max_size=2)


def _requests(text: bytes) -> list[Request]:
    return [patch.request for patch in read_patches(io.BytesIO(text), "test")]


@given(st.lists(st.tuples(requests, headers), max_size=4))
def test_transactions_read_back(changes: list[tuple[Request, dict[str, Literal]]]) -> None:
    text = b"".join(transaction(request, header) for request, header in changes)
    patches = list(read_patches(io.BytesIO(text), "test"))
    assert [(patch.request, patch.header) for patch in patches] == changes
    assert [text[: patch.end].count(b"TC .\n") for patch in patches] == list(range(1, len(changes) + 1))


@given(requests)
def test_a_delta_is_written_like_its_request(request: Request) -> None:
    delta = Delta(inserted=request.added, deleted=request.removed)
    assert transaction(delta) == transaction(request)


@given(quad_sets, quad_sets)
def test_a_request_that_removes_and_adds_a_quad_adds_it(removed: frozenset[Quad], added: frozenset[Quad]) -> None:
    assert _requests(transaction(Request(removed, added))) == [Request(removed - added, added)]


@given(st.lists(st.tuples(st.sampled_from("AD"), quads | st.just(FREQUENT)), max_size=15), st.booleans())
def test_rows_in_any_order_equal_their_replay(rows: list[tuple[str, Quad]], noise: bool) -> None:
    lines = [f"{operation} {quad} .\n" for operation, quad in rows]
    if noise:
        lines = [f"\n# A comment\n{line.replace(' ', chr(9), 1)}PA x <urn:x> .\n" for line in lines]
    last = {quad: operation for operation, quad in rows}
    expected = Request(
        removed=frozenset(quad for quad, operation in last.items() if operation == "D"),
        added=frozenset(quad for quad, operation in last.items() if operation == "A"),
    )
    assert _requests(f"TX .\n{''.join(lines)}TC .\n".encode()) == [expected]


@given(requests)
def test_shorthand_says_the_same(request: Request) -> None:
    """The slow way of parsing, which a prefixed name forces, agrees with the fast one on all other rows."""
    extra = Quad(NamedNode("urn:x1"), NamedNode("urn:x2"), NamedNode("urn:x3"))
    text = transaction(request).replace(b"TC .\n", b"PA x <urn:x> .\nA x:1 x:2 x:3 .\nTC .\n")
    assert _requests(text) == [Request(request.removed - {extra}, request.added | {extra})]


@given(st.lists(requests.filter(bool), max_size=4), st.booleans())
def test_changesets_read_back(changes: list[Request], compress: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, request in enumerate(changes, 1):
            write_changeset(Path(folder, "2024", "01"), 3 * number, request, compress=compress)
        if changes:
            read = list(open_source(folder).changes())
            assert [change.request for change in read] == changes
            assert [change.sequence for change in read] == list(range(1, len(changes) + 1))


@given(st.lists(quad_sets, min_size=1, max_size=5), st.integers(0, 6))
def test_versions_are_naive_differences(versions: list[frozenset[Quad]], after: int) -> None:
    expected = [
        Request(removed=before - now, added=now - before)
        for before, now in zip([frozenset[Quad](), *versions], versions, strict=False)
    ]
    with tempfile.TemporaryDirectory() as folder:
        for number, version in enumerate(versions):
            write_quads(Path(folder, f"v{number}.nq"), version)
        read = list(open_source(folder).changes(after=after))
    assert [change.request for change in read] == expected[after:]
    assert [change.sequence for change in read] == list(range(after + 1, len(versions) + 1))


@given(quad_sets, st.sampled_from(["x.nq", "x.nq.gz", "x.trig"]))
def test_files_read_back(written: frozenset[Quad], name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write_quads(path, written)
        assert frozenset(read_quads(path, rename_blank_nodes=False)) == written
