"""The gate against an oracle: random requests, run by Oxigraph itself on a copy of the same data."""

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import pytest
from pyoxigraph import Store
from tests.support.datasets import difference, isomorphic, replay
from tests.support.random_updates import PROLOGUE, RandomUpdates

import evergraph as eg
from evergraph.delta import Request
from evergraph.errors import UpdateFailed

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
    values = {quad.object for quad in change.inserted if quad.predicate.value.endswith("value")}
    copies = {quad.object for quad in change.inserted if quad.predicate.value.endswith("copy")}
    assert values == copies
    assert len(values) == (1 if function == "NOW" else 3)
    assert len({quad.subject for quad in change.inserted if quad.predicate.value.endswith("of")}) == 3
