"""Cost of exact changes: ``db.update`` against the plain update on the same endpoint, and against one ASK per quad.

Every measurement writes quads that were not there before, into a store that holds 100,000 others (20,000 on servers),
and removes them in the end.
The three ways take turns, so that load on the machine hits them alike. "plain" sends the same text to the same endpoint
and learns nothing. "one ASK per quad" is the published algorithm: candidates are checked one at a time, then the update
is sent.

DATA inserts quads; WHERE replaces the predicate of quads; FILTER does so with a condition. What is written has a
predicate that is new in its graph, or a known one: then it takes more to tell that the quads are not there.
"""

import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator
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


@dataclass(frozen=True, slots=True)
class Contestant:
    """One endpoint: our way and the plain way to update it, a way to ask, and a way to prepare what is updated."""

    name: str
    exact: Callable[[str], object]
    plain: Callable[[str], object]
    ask: Callable[[str], object]
    prepare: Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of request. Its predicates are new each time, or those that the store holds already."""

    name: str
    is_data: bool
    condition: str = ""
    is_known: bool = False

    def predicate(self, letter: str, batch: int) -> str:
        """Name the predicate that is written, ``p``, or that takes its place, ``q``."""
        return f"{NS}{letter}" if self.is_known else f"{NS}{letter}{batch}"

    def subjects(self, batch: int, size: int) -> list[str]:
        """Name the subjects of a batch."""
        return [f"{NS}s{batch}-{i}" for i in range(size)]

    def insert_data(self, batch: int, size: int) -> str:
        """Return an INSERT DATA of new quads; those of the WHERE forms have a predicate that finds them again."""
        predicate = self.predicate("p", batch) if self.is_data else f"{NS}p{batch}"
        return _data("INSERT", self.subjects(batch, size), predicate)

    def leftovers(self, batch: int, size: int) -> str:
        """Return a DELETE DATA of what the request has written."""
        return _data("DELETE", self.subjects(batch, size), self.predicate("p" if self.is_data else "q", batch))

    def modify(self, batch: int) -> str:
        """Return a DELETE/INSERT WHERE that replaces the predicate of the quads that `insert_data` wrote."""
        old, new = f"{NS}p{batch}", self.predicate("q", batch)
        return (
            f"DELETE {{ GRAPH <{NS}g> {{ ?s <{old}> ?o }} }} INSERT {{ GRAPH <{NS}g> {{ ?s <{new}> ?o }} }} "
            f"WHERE {{ GRAPH <{NS}g> {{ ?s <{old}> ?o {self.condition} }} }}"
        )

    def candidates(self, batch: int, size: int) -> Iterator[str]:
        """List the quads that may change, as patterns."""
        letters = (self.predicate("p", batch),) if self.is_data else (f"{NS}p{batch}", self.predicate("q", batch))
        for predicate, (i, subject) in itertools.product(letters, enumerate(self.subjects(batch, size))):
            yield f'GRAPH <{NS}g> {{ <{subject}> <{predicate}> "value {i}"@en }}'


FORMS = (
    Form("DATA", is_data=True),
    Form("WHERE", is_data=False),
    Form("FILTER", is_data=False, condition='FILTER(LANG(?o) = "en" && ?o != ""@en)'),
    Form("DATA, known predicate", is_data=True, is_known=True),
    Form("WHERE, known predicate", is_data=False, is_known=True),
)


def _data(keyword: str, subjects: Iterable[str], predicate: str) -> str:
    rows = "\n".join(f'<{subject}> <{predicate}> "value {i}"@en .' for i, subject in enumerate(subjects))
    return f"{keyword} DATA {{ GRAPH <{NS}g> {{\n{rows}\n}} }}"


def _fillers(quads: int, size: int = 1_000) -> Iterator[str]:
    """Return requests that write so many quads, half of them with each of the known predicates."""
    for start in range(0, quads, size):
        predicate = f"{NS}{'pq'[start // size % 2]}"
        yield _data("INSERT", (f"{NS}f{i}" for i in range(start, start + size)), predicate)


def measure(report: Report, contestant: Contestant, sizes: tuple[int, ...] = SIZES) -> None:
    """Measure all forms in all sizes."""
    batches = itertools.count()
    for size, form in itertools.product(sizes, FORMS):
        repeats = {1: 51, 64: 15}.get(size, 9)
        times: dict[str, list[float]] = {"exact": [], "plain": [], "ask": []}
        for _ in range(repeats):
            for way in times:
                if way == "ask" and (size > 512 or len(times["ask"]) >= 5):
                    continue
                times[way].append(_one(contestant, way, form, next(batches), size))
        exact, plain = (sorted(times[way])[len(times[way]) // 2] for way in ("exact", "plain"))
        ask = sorted(times["ask"])[len(times["ask"]) // 2] if times["ask"] else None
        speedup = f"{ask / exact:,.1f}" if ask else "—"
        report.add(contestant.name, form.name, size, plain, exact, exact / plain, speedup)


def _one(contestant: Contestant, way: str, form: Form, batch: int, size: int) -> float:
    text = form.insert_data(batch, size)
    if not form.is_data:
        contestant.prepare(text)
        text = form.modify(batch)

    def run() -> None:
        if way == "exact":
            contestant.exact(text)
            return
        if way == "ask":  # every candidate by its own ASK, as the paper's algorithm does
            for candidate in form.candidates(batch, size):
                contestant.ask(f"ASK {{ {candidate} }}")
        contestant.plain(text)

    elapsed = median_ms([run])
    contestant.prepare(form.leftovers(batch, size))
    return elapsed


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

        for text in _fillers(100_000):
            both(text)
        where = "memory" if folder is None else f"disk, {'fsync' if sync else 'no fsync'}"
        yield Contestant(f"embedded, {where}", database.update, plain, lambda query: bool(store.query(query)), both)


@contextmanager
def remote(name: str) -> Iterator[Contestant]:
    """A real server on loopback, written to in both ways."""
    with servers.start(name) as server:
        endpoint = Endpoint(server.query_url, server.update_url)
        with eg.connect(server.query_url, server.update_url) as database:
            for text in _fillers(20_000):
                database.update(text)
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
