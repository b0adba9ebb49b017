import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from tests.support.datasets import replay

import evergraph as eg
from evergraph.delta import Change, Request
from evergraph.errors import ReadOnly, StoreError, SyntaxProblem, UpdateFailed, UsageError
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Quad

A, P = NamedNode("urn:a"), NamedNode("urn:p")
ONE, ZERO_ONE = (Quad(A, P, Literal(text, datatype=NamedNode(XSD + "integer"))) for text in ("1", "01"))


@pytest.fixture(params=["memory", "disk"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[eg.Database]:
    with eg.open(tmp_path / "db" if request.param == "disk" else None, sync=False) as database:
        yield database


def test_requests_pass_through_the_gate(db: eg.Database) -> None:
    """What is asked for in another lexical form is the same quad for the store, and so for the report."""
    assert db.apply(Request(added=frozenset([ZERO_ONE]))) == Change(1, eg.Delta(inserted=frozenset([ONE])))
    assert db.apply(Request(added=frozenset([ONE]))) == Change(2)
    assert db.apply(Request(removed=frozenset([ZERO_ONE]), added=frozenset([ONE]))) == Change(3)
    assert db.apply(Request(removed=frozenset([ZERO_ONE]))) == Change(4, eg.Delta(deleted=frozenset([ONE])))
    assert list(db.quads()) == []


def test_load_adds_files_as_one_change(db: eg.Database, tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text("_:x <urn:p> 1 .")
    (tmp_path / "b.nq").write_text("_:x <urn:p> <urn:a> <urn:g> .")
    change = db.load(tmp_path / "a.ttl", str(tmp_path / "b.nq"))
    assert (change.sequence, len(change.inserted)) == (1, 2)
    assert len({quad.subject for quad in change.inserted}) == 2
    with pytest.raises(SyntaxProblem):
        (tmp_path / "c.ttl").write_text("no turtle")
        db.load(tmp_path / "a.ttl", tmp_path / "c.ttl")
    assert (db.sequence, len(list(db.quads()))) == (1, 2)


def test_blank_nodes_keep_their_labels(db: eg.Database) -> None:
    """The blank nodes of the store are addressed by changes that no SPARQL text could say."""
    node = BlankNode("label")
    quads = frozenset([Quad(node, P, node), Quad(node, P, A, A), Quad(A, P, node, node)])
    assert db.apply(Request(added=quads)).inserted == quads
    assert db.update("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }").deleted == {Quad(node, P, node)}
    assert db.update("DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o } }").deleted == quads - {
        Quad(node, P, node)
    }


def test_graphs_with_blank_names_can_be_dropped(db: eg.Database) -> None:
    db.apply(Request(added=frozenset([Quad(A, P, A, BlankNode("g"))])))
    db.update("DROP NAMED")
    assert not db.query("ASK { GRAPH ?g {} }")


@pytest.mark.parametrize("data", ["_:x <urn:p> _:x", "_:x <urn:p> 1 . GRAPH <urn:g> { _:x <urn:p> 2 }"])
def test_blank_nodes_of_data_are_new_each_time(db: eg.Database, data: str) -> None:
    first, second = (db.update(f"INSERT DATA {{ {data} }}").inserted for _ in range(2))
    assert len({quad.subject for quad in first}) == 1
    assert {quad.subject for quad in first}.isdisjoint(quad.subject for quad in second)
    assert len(first) == len(second)


def test_queries(db: eg.Database) -> None:
    db.apply(Request(added=frozenset([ONE])))
    solutions = db.query("SELECT ?o WHERE { <urn:a> <urn:p> ?o }")
    assert isinstance(solutions, Iterable)
    assert [list(solution) for solution in solutions] == [[ONE.object]]
    with pytest.raises(SyntaxProblem, match="query:2:8: the prefix y: is not declared"):
        db.query("PREFIX x: <urn:x>\nSELECT y:f(x:x)")
    with pytest.raises(SyntaxProblem, match="query:1:1: there is nothing here"):
        db.query("")


def test_a_failing_operation_takes_the_whole_request_with_it(db: eg.Database) -> None:
    db.apply(Request(added=frozenset([ONE])))
    with pytest.raises(UpdateFailed) as caught:
        db.update("CLEAR ALL;\nINSERT DATA { <urn:a> <urn:p> 2 };\n\n CLEAR GRAPH <urn:none>;\nCLEAR ALL", where="x.ru")
    assert caught.value.message == "x.ru: operation 3 (Clear, line 4): the graph <urn:none> does not exist"
    assert "SILENT" in caught.value.hint
    assert (list(db.quads()), db.sequence) == ([ONE], 1)
    assert db.update("CLEAR ALL").sequence == 2


def test_a_log_needs_a_folder() -> None:
    with pytest.raises(UsageError, match="no change log"):
        eg.open().changes()


def test_readers_beside_a_writer(tmp_path: Path) -> None:
    with eg.open(tmp_path) as writer:
        writer.apply(Request(added=frozenset([ONE])))
        with eg.open(tmp_path, read_only=True) as reader:
            assert (list(reader.quads()), reader.sequence) == ([ONE], 1)
            assert replay(reader.changes()) == {ONE}
            for request in ("CLEAR ALL", "CLEAR SILENT GRAPH <urn:x>", "INSERT DATA {}; DELETE WHERE { ?s ?p ?o }"):
                with pytest.raises(ReadOnly, match="open read-only"):
                    reader.update(request)
        assert (list(writer.quads()), writer.sequence) == ([ONE], 1)


def test_folders_that_are_no_database(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is a file"):
        eg.open(tmp_path / "file")
    with pytest.raises(StoreError, match="holds something else"):
        eg.open(tmp_path)
    with pytest.raises(StoreError, match="is not a database"):
        eg.open(tmp_path / "missing", read_only=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# --- several threads

INCREMENT = """DELETE { ?c <urn:count> ?n } INSERT { ?c <urn:count> ?m ; <urn:by> <urn:thread> }
    WHERE { ?c <urn:count> ?n BIND(?n + 1 AS ?m) };
    DELETE DATA { <urn:c> <urn:by> <urn:thread> }; INSERT DATA { <urn:thread> <urn:made> _:x }"""


def test_threads_take_turns(db: eg.Database) -> None:
    """Nobody's increment is lost; the changes, put in order, have no gaps and add up to what is there."""
    first = db.update("INSERT DATA { <urn:c> <urn:count> 0 }")
    changes: list[Change] = [first]

    def work(number: int) -> None:
        changes.extend([db.update(INCREMENT.replace("thread", str(number))) for _ in range(15)])

    run_threads(work, 6)
    assert replay(sorted(changes, key=lambda change: change.sequence)) == set(db.quads())
    [count] = [quad.object for quad in db.quads() if quad.predicate.value == "urn:count"]
    assert count == Literal("90", datatype=NamedNode(XSD + "integer"))


def test_readers_never_see_half_a_change(db: eg.Database) -> None:
    """Ten quads move to and fro between two graphs; at any moment they are all in one."""
    db.update("INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:p> 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 } }")
    seen: list[tuple[int, int]] = []
    done = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            for _ in range(30):
                db.update("MOVE <urn:g> TO <urn:h>")
                db.update("MOVE <urn:h> TO <urn:g>")
            done.set()
        while not done.is_set():
            quads = list(db.quads())
            seen.append((len(quads), len({quad.graph_name for quad in quads})))
            solutions = db.query("SELECT ?g (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g")
            assert isinstance(solutions, Iterable)
            seen.extend((int(solution["n"].value), 1) for solution in solutions)

    run_threads(work, 3)
    assert set(seen) == {(10, 1)}


def run_threads(work: Callable[[int], None], count: int) -> None:
    """Run a function in several threads; what fails in one fails here."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=guarded, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


@pytest.mark.parametrize(
    "use",
    [
        lambda db: db.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }"),
        lambda db: db.apply(Request()),
        lambda db: db.query("ASK {}"),
        lambda db: db.quads(),
        lambda db: db.watch("ASK {}"),
    ],
)
@pytest.mark.parametrize("place", ["memory", "disk"])
def test_a_closed_database_does_nothing(use: Callable[[eg.Database], object], place: str, tmp_path: Path) -> None:
    """A handle that writes on would cut off what another one has logged since."""
    db = eg.open(tmp_path / "db" if place == "disk" else None)
    db.close()
    db.close()
    with pytest.raises(StoreError, match="closed"):
        use(db)


def test_a_read_only_database_is_not_watched(tmp_path: Path) -> None:
    eg.open(tmp_path / "db").close()
    with eg.open(tmp_path / "db", read_only=True) as db, pytest.raises(ReadOnly, match="one moment"):
        db.watch("ASK {}")


def test_a_store_without_its_log_and_a_log_without_its_store_are_refused(tmp_path: Path) -> None:
    for name in ("store", "log"):
        with eg.open(tmp_path / name) as db:
            db.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }")
        shutil.rmtree(tmp_path / name / name)
        with pytest.raises(StoreError, match="rebuild it" if name == "store" else "lost its change log"):
            eg.open(tmp_path / name)
