"""Many standing queries: ten templates, and constants that differ, on one engine.

20,000 persons with a class, an age, one of 10,000 cities, a name and six acquaintances: 200,000 quads. The first
hundred queries are ten of each template; the others are about other cities and persons. Quads are deleted and inserted
again, one at a time, without parsing; what the engine returns is counted and dropped.

"same" are changes that reach the first hundred queries: they mean the same to any number of queries, so that the ratio
to a hundred queries shows what queries cost that a change does not reach; the target is at most 2. "any" are changes
all over the data: the more queries there are, the more of them are reached, each with rows and a notification.
"unwanted" are changes of a predicate that no query has. Registration includes parsing; memory is what Python allocates
while queries are registered, parsed queries, views, rows and quads for them included, divided by their number.
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
CHANGES = 1_000
COUNTS = (100, 1_000, 10_000, 100_000)
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


def single(engine: LocalEngine, sample: list[Quad]) -> tuple[float, float, float]:
    """Delete and insert each quad; return median and mean µs, and notifications, per change."""
    times, notified = [], 0
    for quad in sample:
        for delta in (Delta(deleted=frozenset([quad])), Delta(inserted=frozenset([quad]))):
            begin = time.perf_counter_ns()
            changes = engine.apply(delta)
            times.append(time.perf_counter_ns() - begin)
            notified += len(changes)
    return statistics.median(times) / 1_000, statistics.fmean(times) / 1_000, notified / len(times)


def samples(quads: list[Quad]) -> tuple[list[Quad], list[Quad]]:
    """Return changes that reach the first hundred queries, and changes all over the data."""
    near = {person(number + start) for start in range(0, PERSONS, CITIES) for number in range(10)}
    reaching = [quad for quad in quads if quad.subject in near or quad.object in near]
    return Random(2).choices(reaching, k=CHANGES), Random(3).sample(quads, CHANGES)


def main() -> None:
    """Run everything and write the results."""
    columns = ("queries", "same µs", "mean", "notified", "ratio", "any µs", "notified", "unwanted µs")
    report = Report("many", (*columns, "register µs", "bytes/query"))
    quads = list(data())
    store = Store()
    store.extend(quads)

    def lookup(
        subject: Term | None, predicate: Term | None, object_: Term | None, graph: GraphName | None
    ) -> Iterator[Quad]:
        return store.quads_for_pattern(subject, predicate, object_, graph)  # type: ignore[arg-type]

    same, spread = samples(quads)
    unwanted = [Quad(quad.subject, UNWANTED, quad.object) for quad in spread]
    engine, waiting, registered, first = LocalEngine(lookup=lookup), queries(), 0, 0.0
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
        each = 1e6 * (time.perf_counter() - begin) / (len(texts) - measured)
        registered = count
        gc.collect()
        gc.freeze()
        gc.disable()
        single(engine, same[:100])
        median, mean, notified = single(engine, same)
        anywhere, _, more = single(engine, spread)
        nothing, _, _ = single(engine, unwanted)
        gc.enable()
        first = first or median
        report.add(count, median, mean, notified, median / first, anywhere, more, nothing, each, round(size))
    report.show()


if __name__ == "__main__":
    main()
