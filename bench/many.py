"""Many standing queries: ten templates, and constants that differ, on one engine.

20,000 persons with a class, an age, one of 10,000 cities, a name and six acquaintances: 200,000 quads. The first
hundred queries are ten of each template; the others are about other cities and persons. Quads are deleted and inserted
again, one at a time, without parsing; what the engine returns is counted and dropped.

What a change costs depends on how many queries it reaches: each has rows to be found, a result to be changed and a
notification. So results that are delivered and overhead are told apart:

* "near" are changes around the first hundred queries: the same quads, however many other queries there are;
* "any" are changes all over the data. The more queries there are, the more of them are reached: with a hundred queries
  next to none, with a hundred thousand four on average;
* "unwanted" are changes of a predicate that no query has.

"reached" is how many queries a change reaches on average, "µs/query" the median of what a change took over the queries
that it reached, if any. "like" are the changes that reach exactly as many queries as they did when there were fewer
("than" so many, the fewest with enough such changes): the same quads, with the same work to do. "×" is the median of
what they take now over the median of what they took then, which is what queries cost that a change does not reach. The
target is at most 2. "all ×" compares all changes with those at a hundred queries, more results to deliver included.

Registration includes parsing; memory is what Python allocates while queries are registered, parsed queries, views,
rows and quads for them included, divided by their number.
"""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Iterator
from itertools import islice
from random import Random

from pyoxigraph import Store

from bench.continuous import AGE, CITY, KIND, KNOWS, NAME, NS, PERSON, city, person
from bench.report import Report
from evergraph.delta import Delta
from evergraph.engines.local.engine import LocalEngine
from evergraph.terms import GraphName, Literal, NamedNode, Quad, Term

PERSONS = 20_000
CITIES = 10_000
CHANGES = 2_000
COUNTS = (100, 1_000, 10_000, 100_000)
ENOUGH = 100
"""How many changes a median needs."""
UNWANTED = NamedNode(NS + "unwanted")

TEMPLATES = (
    "SELECT ?s ?a {{ ?s a :Person ; :city <{city}> ; :age ?a }}",
    "SELECT ?s ?n {{ ?s :city <{city}> OPTIONAL {{ ?s :name ?n }} }}",
    "SELECT DISTINCT ?a {{ ?s :city <{city}> ; :age ?a }}",
    "SELECT ?a (COUNT(*) AS ?n) {{ ?s :city <{city}> ; :age ?a }} GROUP BY ?a",
    "SELECT ?s {{ ?s :city <{city}> FILTER NOT EXISTS {{ ?s :age '30' }} }}",
    "SELECT ?x ?s {{ ?x :knows ?s . ?s :city <{city}> }}",
    "SELECT ?x ?n {{ <{person}> :knows ?x . ?x :name ?n }}",
    "SELECT ?x ?a {{ ?x a :Person ; :knows <{person}> ; :age ?a }}",
    "SELECT ?c {{ <{person}> :knows ?x . ?x :city ?c }}",
    "ASK {{ ?x :knows <{person}> ; :city <{city}> }}",
)
Measured = list[tuple[float, int]]
"""For each change what it took, in µs, and how many queries it reached."""


def data() -> Iterator[Quad]:
    """Make the data; the same each time."""
    random = Random(1)
    for number in range(PERSONS):
        one = person(number)
        yield Quad(one, KIND, PERSON)
        yield Quad(one, AGE, Literal(str(random.randrange(100))))
        yield Quad(one, CITY, city(number % CITIES))
        yield Quad(one, NAME, Literal(f"name {number}"))
        for other in random.sample(range(PERSONS), 6):
            yield Quad(one, KNOWS, person(other))


def queries() -> Iterator[str]:
    """Make queries, ten of each template in turn; no two are the same."""
    for start in range(0, CITIES, 10):
        for template in TEMPLATES:
            for number in range(start, start + 10):
                names = {"city": city(number).value, "person": person(number).value}
                yield f"PREFIX : <{NS}> " + template.format(**names)


def single(engine: LocalEngine, sample: list[Quad]) -> Measured:
    """Delete and insert each quad."""
    measured = []
    for quad in sample:
        for delta in (Delta(deleted=frozenset([quad])), Delta(inserted=frozenset([quad]))):
            begin = time.perf_counter_ns()
            changes = engine.apply(delta)
            measured.append(((time.perf_counter_ns() - begin) / 1_000, len(changes)))
    return measured


def samples(quads: list[Quad]) -> dict[str, list[Quad]]:
    """Return changes around the first hundred queries, changes all over the data, and changes that nobody wants."""
    near = {person(number + start) for start in range(0, PERSONS, CITIES) for number in range(10)}
    reaching = [quad for quad in quads if quad.subject in near or quad.object in near]
    spread = Random(3).sample(quads, CHANGES)
    unwanted = [Quad(quad.subject, UNWANTED, quad.object) for quad in spread]
    return {"near": Random(2).choices(reaching, k=CHANGES), "any": spread, "unwanted": unwanted}


class Lines:
    """The lines of the table, and what they are compared with."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._before: dict[str, dict[int, Measured]] = {}

    def add(self, count: int, kind: str, measured: Measured) -> None:
        """Add what one kind of changes took with so many queries."""
        before = self._before.setdefault(kind, {})
        median = statistics.median(one for one, _ in measured)
        each = [one / reached for one, reached in measured if reached]
        average = statistics.fmean(reached for _, reached in measured)
        all_ratio = median / statistics.median(one for one, _ in before[COUNTS[0]]) if before else 1.0
        line = (count, kind, average, median, statistics.median(each) if len(each) >= ENOUGH else "—", all_ratio)
        self._report.add(*line, *self._like(before, measured))
        before[count] = measured

    def _like(self, before: dict[int, Measured], measured: Measured) -> tuple[object, object, object]:
        for count, then in before.items():
            pairs = [(now, old) for (now, one), (old, other) in zip(measured, then, strict=True) if one == other]
            if len(pairs) >= ENOUGH:
                now, old = (statistics.median(side) for side in zip(*pairs, strict=True))
                return len(pairs), count, now / old
        return "—", "—", "—"


def main() -> None:
    """Run everything and write the results."""
    report = Report("many", ("queries", "changes", "reached", "median µs", "µs/query", "all ×", "like", "than", "×"))
    registration = Report("many_registration", ("queries", "register µs", "bytes/query"))
    quads = list(data())
    store = Store()
    store.extend(quads)

    def lookup(
        subject: Term | None, predicate: Term | None, object_: Term | None, graph: GraphName | None
    ) -> Iterator[Quad]:
        return store.quads_for_pattern(subject, predicate, object_, graph)  # type: ignore[arg-type]

    lines, sampled = Lines(report), samples(quads)
    engine, waiting, registered = LocalEngine(lookup=lookup), queries(), 0
    for count in COUNTS:
        texts = list(islice(waiting, count - registered))
        measured = len(texts) // 10
        tracemalloc.start()
        for text in texts[:measured]:
            engine.register(text)
        size = tracemalloc.get_traced_memory()[0] / measured
        tracemalloc.stop()
        begin = time.perf_counter()
        for text in texts[measured:]:
            engine.register(text)
        registration.add(count, 1e6 * (time.perf_counter() - begin) / (len(texts) - measured), round(size))
        registered = count
        gc.collect()
        gc.freeze()
        gc.disable()
        single(engine, sampled["near"][:100])
        for kind, sample in sampled.items():
            lines.add(count, kind, single(engine, sample))
        gc.enable()
    report.show()
    registration.show()


if __name__ == "__main__":
    main()
