"""The gate against an oracle: random requests, run by Oxigraph itself on a copy of the same data."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyoxigraph import Store
from tests.support.datasets import difference, isomorphic, replay
from tests.support.plain_updates import random_data, random_request
from tests.support.random_updates import PROLOGUE, RandomUpdates

import evergraph as eg
from evergraph.delta import Request
from evergraph.errors import UpdateFailed
from evergraph.gate import request
from evergraph.gate.operations import Modify
from evergraph.gate.plain import plain_modify

REQUESTS_PER_SEED = 5


def run_oracle(store: Store, operations: tuple[str, ...]) -> Store | None:
    """Run a request operation by operation, on a copy; None if one fails.

    Oxigraph takes ADD, COPY and MOVE from a graph that does not exist for a transfer of nothing, which empties the
    target. By the W3C text it is an error, and what is an error does nothing where it is SILENT.
    """
    after = copy_of(store)
    for operation in operations:
        words = operation.split()
        if words[0] in ("ADD", "COPY", "MOVE"):
            source = words[-3].replace(":", "http://example.org/")
            if source != "DEFAULT" and source not in {name.value for name in after.named_graphs()}:
                if "SILENT" in words:
                    continue
                return None
        try:
            after.update(PROLOGUE + operation)
        except (RuntimeError, OSError):
            return None
    return after


def copy_of(store: Store) -> Store:
    copy = Store()
    copy.extend(store)
    for name in store.named_graphs():
        copy.add_graph(name)
    return copy


def graph_names(query: Callable[[str], object]) -> set[str]:
    solutions = query("SELECT ?g WHERE { GRAPH ?g {} FILTER(isIRI(?g)) }")
    assert isinstance(solutions, Iterable)
    return set(map(str, solutions))


def check_seed(db: eg.Database, seed: int) -> None:
    """Run some requests in a row on random data, and compare with the oracle after each."""
    source = RandomUpdates(Random(seed))
    db.update("DROP ALL")
    expected = Store()
    expected.extend(db.apply(Request(added=source.dataset())).inserted)
    for number in range(REQUESTS_PER_SEED):
        operations = source.request()
        text = PROLOGUE + ";\n".join(operations)
        context = f"seed {seed}, request {number}:\n{text}"
        before, sequence = frozenset(db.quads()), db.sequence
        outcome = run_oracle(expected, operations)
        if outcome is None:
            with pytest.raises(UpdateFailed):
                db.update(text)
            assert (frozenset(db.quads()), db.sequence) == (before, sequence), context
        else:
            change = db.update(text)
            after = frozenset(db.quads())
            assert change.delta == difference(before, after), context
            assert isomorphic(after, outcome), context
            expected = outcome
        assert graph_names(db.query) == graph_names(expected.query), context


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(500), id="2500-requests"),
        pytest.param(range(500, 10_500), id="50000-requests", marks=pytest.mark.long),
    ],
)
def test_random_requests_in_memory(seeds: Iterable[int]) -> None:
    for seed in seeds:
        check_seed(eg.open(), seed)


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(20_000, 20_150), id="750-requests"),
        pytest.param(range(21_000, 22_000), id="5000-requests", marks=pytest.mark.long),
    ],
)
def test_random_requests_on_disk(seeds: Iterable[int], tmp_path: Path) -> None:
    with eg.open(tmp_path / "db", sync=False) as db:
        for seed in seeds:
            check_seed(db, seed)
        quads, sequence = frozenset(db.quads()), db.sequence
        assert replay(db.changes()) == quads
    with eg.open(tmp_path / "db") as reopened:
        assert (frozenset(reopened.quads()), reopened.sequence) == (quads, sequence)
        assert replay(reopened.changes()) == quads


@pytest.mark.parametrize("function", ["RAND", "UUID", "STRUUID", "BNODE", "NOW"])
@pytest.mark.parametrize("place", ["memory", "disk"])
def test_what_is_reported_is_what_was_made(function: str, place: str, tmp_path: Path) -> None:
    """Later operations, the report and the store must agree on values that no second evaluation gives again."""
    with eg.open(tmp_path / "db" if place == "disk" else None) as db:
        change = db.update(f"""
            PREFIX : <http://example.org/>
            INSERT {{ ?n :value ?v }} WHERE {{ VALUES ?n {{ :a :b :c }} BIND({function}() AS ?v) }};
            INSERT {{ ?n :copy ?v . _:fresh :of ?v }} WHERE {{ ?n :value ?v }}""")
        assert change.delta == difference([], db.quads())
        alone = (
            f"PREFIX : <urn:> INSERT {{ ?n :value ?v }} WHERE {{ VALUES ?n {{ :a :b :c }} BIND({function}() AS ?v) }}"
        )
        before = frozenset(db.quads())
        assert db.update(alone).delta == difference(before, db.quads())
    values = {quad.object for quad in change.inserted if quad.predicate.value.endswith("value")}
    copies = {quad.object for quad in change.inserted if quad.predicate.value.endswith("copy")}
    assert values == copies
    assert len(values) == (1 if function == "NOW" else 3)
    assert len({quad.subject for quad in change.inserted if quad.predicate.value.endswith("of")}) == 3


# --- requests that are read without tokens

PIECES = (
    *("?s", "?o", "$p", "?s2", ":a", ":p", "ex:b", "ex:a-1", "<urn:a>", "<http://e.org/?s#x>", "a", "b", "_:x", "[]"),
    *('"x"', '"?s"', '"}"', '"x"@en', '"01"^^<http://www.w3.org/2001/XMLSchema#integer>', '"""?s"""', '""', "1", "'x'"),
    *(".", ".", ".", ";", ",", " ", "", "\n", "# ?s\n", "<rel>", "ex:a.b", "ex:", "no:p", "?", "A", "GRAPH", "{", "}"),
)


def plain_text(random: Random) -> str:
    """Make a request that looks like one of the plain ones, and often is one."""

    def triples() -> str:
        if random.random() < 0.2:
            return "".join(random.choice(PIECES) + random.choice(("", " ")) for _ in range(random.randrange(7)))
        subjects, predicates, objects = ("?s", ":a", "<urn:a>"), (":p", "?p", "a"), ("?o", ":b", '"x"', "?s", '"?o"@en')
        rows = [
            " ".join(map(random.choice, (subjects, predicates, objects))) for _ in range(random.choice((0, 1, 1, 1, 2)))
        ]
        return random.choice((" . ", " .", "\n.", " ")).join(rows) + random.choice(("", " .", ".", " ;", "; ."))

    def block() -> str:
        name = random.choice(
            ("", "", "GRAPH :g", "GRAPH ?g", "GRAPH<urn:g>", "graph ex:g", "GRAPHex:g", "GRAPH:g", "GRAPH")
        )
        return f"{{ {name} {{ {triples()} }} }}" if name else f"{{{triples()}}}"

    if random.random() < 0.2:
        operation = f"DELETE WHERE {block()}"
    else:
        start = random.choice(("", "", "", "WITH <urn:g>", "with ex:g", "WITHex:g ", "WITH<urn:g>", "WITH :g"))
        delete = random.choice((f"DELETE {block()}", f"delete{block()}", ""))
        insert = random.choice((f"INSERT {block()}", f"\nInsert{block()}", ""))
        operation = f"{start} {delete} {insert} {random.choice(('WHERE', 'where ', ''))}{block()}"
    prologue = random.choice(
        ("PREFIX : <urn:> PREFIX ex: <http://e.org/>\n", "prefix :<urn:>prefix ex:<http://e.org/>", "")
    )
    return prologue + operation + random.choice(("", "", " ;", "\n", "; ;"))


@pytest.mark.parametrize("seeds", [range(4_000), pytest.param(range(10_000, 200_000), marks=pytest.mark.long)], ids=len)
def test_plain_requests_are_read_as_all_others(seeds: Iterable[int]) -> None:
    """What the short way reads, the long way reads too, and as the same."""
    read = 0
    for seed in seeds:
        text = plain_text(Random(seed))
        found = plain_modify(text)
        if found is not None:
            read += 1
            (expected,) = request._Parser(text, None, "").steps()
            operation, start = found
            assert isinstance(expected.operation, Modify)
            assert replace(operation, where=expected.operation.where) == expected.operation, text
            assert operation.where.with_graph == expected.operation.where.with_graph, text
            originals = operation.original, expected.operation.original
            assert (originals[0] is None) == (originals[1] is None), text
            if originals[0] and originals[1]:
                assert originals[0].rest is originals[1].rest, text
                assert originals[0].deletes_plainly == originals[1].deletes_plainly, text
            assert text.count("\n", 0, start) + 1 == expected.line, text
    assert read > len(list(seeds)) / 20


@pytest.mark.parametrize("seeds", [range(700), pytest.param(range(1_000, 20_000), marks=pytest.mark.long)], ids=len)
@pytest.mark.parametrize("place", ["memory", "disk"])
def test_plain_requests_do_what_oxigraph_does(place: str, seeds: Iterable[int], tmp_path: Path) -> None:
    with eg.open(tmp_path / "db" if place == "disk" else None, sync=False) as db:
        for seed in seeds:
            random, expected = Random(seed), Store()
            expected.update(random_data(random))
            expected = copy_of(expected)
            db.update("DROP ALL")
            db.apply(Request(added=frozenset(expected)))
            text = random_request(random)
            before = frozenset(db.quads())
            change = db.update(text)
            expected.update(text)
            assert change.delta == difference(before, frozenset(db.quads())), text
            assert isomorphic(db.quads(), expected), (seed, text)


@pytest.mark.parametrize("data", ["_:a <urn:p> _:b", "[] <urn:p> 1", "<urn:s> <urn:p> (1 2)", '<urn:s> <urn:p> "_:a"'])
def test_blank_nodes_of_plain_data_are_those_that_are_reported(data: str, tmp_path: Path) -> None:
    """They are others each time that a request is run, so that such a request cannot be written as it came."""
    with eg.open(tmp_path / "db") as db:
        for _ in range(2):
            before = frozenset(db.quads())
            assert db.update(f"INSERT DATA {{ {data} }}").delta == difference(before, frozenset(db.quads()))
