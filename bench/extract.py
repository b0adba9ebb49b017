"""Cost of exact changes: ``db.update`` against the plain update on the same endpoint, and against one ASK per quad.

Every measurement writes quads that were not there before, into a store that holds 100,000 others (20,000 on servers).
The three ways take turns, so that load on the machine hits them alike. "plain" sends the same text to the same endpoint
and learns nothing. "one ASK per quad" is the published algorithm: candidates are checked one at a time, then the update
is sent. "FILTER" is the WHERE form with a condition on what it matches.
"""

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import Store
from tests.support import servers

import evergraph as eg
from bench.report import Report, median_ms
from evergraph.gate.endpoint import Endpoint

SIZES = (1, 64, 512, 10_000)
NS = "http://example.org/"
CONDITION = 'FILTER(LANG(?o) = "en" && ?o != ""@en)'


@dataclass(frozen=True, slots=True)
class Contestant:
    """One endpoint: our way and the plain way to update it, a way to ask, and a way to prepare what is updated."""

    name: str
    exact: Callable[[str], object]
    plain: Callable[[str], object]
    ask: Callable[[str], object]
    prepare: Callable[[str], object]


def insert_data(batch: int, size: int) -> str:
    """Return an INSERT DATA of new quads."""
    rows = "\n".join(f'<{NS}s{i}> <{NS}p{batch}> "value {i}"@en .' for i in range(size))
    return f"INSERT DATA {{ GRAPH <{NS}g> {{\n{rows}\n}} }}"


def modify(batch: int, condition: str = "") -> str:
    """Return a DELETE/INSERT WHERE that replaces the predicate of the quads that `insert_data` wrote."""
    return (
        f"DELETE {{ GRAPH <{NS}g> {{ ?s <{NS}p{batch}> ?o }} }} INSERT {{ GRAPH <{NS}g> {{ ?s <{NS}q{batch}> ?o }} }} "
        f"WHERE {{ GRAPH <{NS}g> {{ ?s <{NS}p{batch}> ?o {condition} }} }}"
    )


def ask_per_quad(contestant: Contestant, batch: int, size: int, predicates: str) -> None:
    """Check every candidate by its own ASK, as the paper's algorithm does."""
    for predicate, i in itertools.product(predicates, range(size)):
        contestant.ask(f'ASK {{ GRAPH <{NS}g> {{ <{NS}s{i}> <{NS}{predicate}{batch}> "value {i}"@en }} }}')


def measure(report: Report, contestant: Contestant, sizes: tuple[int, ...] = SIZES) -> None:
    """Measure all forms in all sizes."""
    batches = itertools.count()
    for size in sizes:
        repeats = {1: 51, 64: 15, 512: 7}.get(size, 3)
        for form in ("DATA", "WHERE", "FILTER"):
            times: dict[str, list[float]] = {"exact": [], "plain": [], "ask": []}
            for _ in range(repeats):
                for way in times:
                    if way == "ask" and (size > 512 or len(times["ask"]) >= 5):
                        continue
                    times[way].append(_one(contestant, way, form, next(batches), size))
            exact, plain = (sorted(times[way])[len(times[way]) // 2] for way in ("exact", "plain"))
            ask = sorted(times["ask"])[len(times["ask"]) // 2] if times["ask"] else None
            speedup = f"{ask / exact:,.1f}" if ask else "—"
            report.add(contestant.name, form, size, plain, exact, exact / plain, speedup)


def _one(contestant: Contestant, way: str, form: str, batch: int, size: int) -> float:
    text, predicates = insert_data(batch, size), "p"
    if form != "DATA":
        contestant.prepare(text)
        text, predicates = modify(batch, CONDITION if form == "FILTER" else ""), "pq"

    def run() -> None:
        if way == "exact":
            contestant.exact(text)
            return
        if way == "ask":
            ask_per_quad(contestant, batch, size, predicates)
        contestant.plain(text)

    return median_ms([run])


def _filler(quads: int) -> str:
    return insert_data(-1, quads).replace("p-1", "filler")


@contextmanager
def embedded(folder: Path | None, *, sync: bool) -> Iterator[Contestant]:
    """Evergraph's embedded database against a bare pyoxigraph store of the same kind and durability."""
    store = Store(str(folder / "plain")) if folder else Store()
    with eg.open(folder / "exact" if folder else None, sync=sync) as database:

        def plain(text: str) -> None:
            store.update(text)
            if sync and folder:
                store.flush()

        def both(text: str) -> None:  # what a measurement prepares must be in both
            database.update(text)
            store.update(text)

        store.update(_filler(100_000))
        database.update(_filler(100_000))
        where = "memory" if folder is None else f"disk, {'fsync' if sync else 'no fsync'}"
        yield Contestant(f"embedded, {where}", database.update, plain, lambda query: bool(store.query(query)), both)


@contextmanager
def remote(name: str) -> Iterator[Contestant]:
    """A real server on loopback, written to in both ways."""
    with servers.start(name) as server:
        endpoint = Endpoint(server.query_url, server.update_url)
        with eg.connect(server.query_url, server.update_url) as database:
            for start in range(0, 20_000, 1_000):
                database.update(_filler(1_000).replace("/s", f"/f{start}-"))
            plain = _in_parts(endpoint.update) if name == "virtuoso" else endpoint.update
            yield Contestant(endpoint.dialect.name, database.update, plain, endpoint.query, database.update)


def _in_parts(update: Callable[[str], object]) -> Callable[[str], None]:
    """Send DATA by the thousand, as anybody must to Virtuoso, which takes fewer than 5,000 triples in a request."""

    def send(text: str) -> None:
        opening, *rows, closing = text.split("\n") if text.startswith("INSERT DATA") else (text,) * 2
        if not rows:
            update(text)
        for start in range(0, len(rows), 1_000):
            update("\n".join([opening, *rows[start : start + 1_000], closing]))

    return send


def main() -> None:
    """Run the benchmark."""
    columns = ("endpoint", "form", "quads", "plain ms", "exact ms", "exact / plain", "× faster than one ASK per quad")
    report = Report("extract", columns)
    for sync in (False, True):
        with tempfile.TemporaryDirectory() as folder, embedded(Path(folder), sync=sync) as contestant:
            measure(report, contestant)
    with embedded(None, sync=False) as contestant:
        measure(report, contestant)
    for name in ("oxigraph", "fuseki", "virtuoso"):
        if reason := servers.missing(name):
            report.add(f"{name}: skipped, {reason}", *["—"] * (len(columns) - 1))
            continue
        with remote(name) as contestant:
            measure(report, contestant)
    report.show()


if __name__ == "__main__":
    main()
