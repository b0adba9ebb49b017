"""Cost and memory of basic graph patterns that are maintained without a store.

100,000 persons with a class, an age, one of 1,000 cities, a name and six acquaintances: a million quads, of which a
pattern keeps what its class needs. Then quads are deleted and inserted again, one message at a time. "ids" is a
message of numbers that stand for terms, as engines have them, with rows of numbers out; "quads" is a message of RDF
terms, with a bag of solutions out. Memory is what Python reports for the state, terms included.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from random import Random

from bench.report import Report
from evergraph.delta import Request
from evergraph.engines.local.continuous import ContinuousPattern
from evergraph.sparql.algebra import BGP, TriplePattern
from evergraph.terms import DEFAULT_GRAPH, Literal, NamedNode, Quad, Variable

PERSONS = 100_000
MESSAGES = 2_500
NS = "http://example.org/"
KIND = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
PERSON, AGE, CITY, NAME, KNOWS = (NamedNode(NS + name) for name in ("Person", "age", "city", "name", "knows"))
A, B, C, D = map(Variable, "abcd")


def city(number: int) -> NamedNode:
    """Return a city."""
    return NamedNode(f"{NS}city/{number}")


def person(number: int) -> NamedNode:
    """Return a person."""
    return NamedNode(f"{NS}person/{number}")


def bgp(*triples: tuple[Variable | NamedNode, NamedNode, Variable | NamedNode | Literal]) -> BGP:
    """Make a pattern over the default graph."""
    return BGP(tuple(TriplePattern(*triple, DEFAULT_GRAPH) for triple in triples))


PATTERNS: dict[str, tuple[BGP, tuple[NamedNode, ...]]] = {
    "ground": (bgp((person(1), KIND, PERSON), (person(1), CITY, city(1))), (KIND, KNOWS)),
    "simple star": (bgp((A, KIND, PERSON), (A, CITY, city(5)), (A, AGE, Literal("30"))), (KIND, CITY, KNOWS)),
    "star3": (bgp((A, KIND, PERSON), (A, AGE, B), (A, CITY, C)), (KIND, AGE, CITY, KNOWS)),
    "path3": (bgp((A, KNOWS, B), (B, KNOWS, D), (D, CITY, C)), (KNOWS, CITY, NAME)),
}


def quads(persons: int) -> Iterator[Quad]:
    """Make the data; the same each time."""
    random = Random(1)
    for number in range(persons):
        one = person(number)
        yield Quad(one, KIND, PERSON)
        yield Quad(one, AGE, Literal(str(random.randrange(100))))
        yield Quad(one, CITY, city(random.randrange(1_000)))
        yield Quad(one, NAME, Literal(f"name {number}"))
        for other in random.sample(range(persons), 6):
            yield Quad(one, KNOWS, person(other))


def median_us(delete: Callable[[Quad], object], insert: Callable[[Quad], object], sample: list[Quad]) -> float:
    """Delete and insert each quad, and return the median time of a message in microseconds."""
    times = []
    for quad in sample:
        for action in (delete, insert):
            begin = time.perf_counter_ns()
            action(quad)
            times.append(time.perf_counter_ns() - begin)
    return statistics.median(times) / 1_000


def measure(report: Report, name: str, data: list[Quad]) -> None:
    """Load the data into one pattern, then measure messages of each predicate."""
    pattern, predicates = PATTERNS[name]
    continuous = ContinuousPattern(pattern)
    begin = time.perf_counter()
    for start in range(0, len(data), 1_000):
        continuous.stream(Request(added=frozenset(data[start : start + 1_000])))
    seconds = time.perf_counter() - begin
    gc.collect()
    gc.freeze()
    state = continuous.state()
    size = round(state.bytes / state.entries)
    maintainer, encoding = continuous._maintainer, continuous._encoding
    for predicate in predicates:
        sample = Random(2).sample([quad for quad in data if quad.predicate == predicate], MESSAGES)
        members = {quad: encoding.encode(quad) for quad in sample}

        def delete(quad: Quad, members: dict[Quad, object] = members) -> object:  # type: ignore[assignment]
            maintainer.delete(members[quad])  # type: ignore[arg-type]
            return maintainer.changes()

        def insert(quad: Quad, members: dict[Quad, object] = members) -> object:  # type: ignore[assignment]
            maintainer.insert(members[quad])  # type: ignore[arg-type]
            return maintainer.changes()

        ids = median_us(delete, insert, sample)
        terms = median_us(continuous.delete, continuous.insert, sample)
        label = predicate.value.rsplit("/", 1)[-1].rsplit("#", 1)[-1]
        report.add(name, label, ids, terms, state.entries, size, len(continuous), round(len(data) / seconds))


def main() -> None:
    """Run everything and write the results."""
    columns = ("pattern", "message", "ids µs", "quads µs", "entries", "bytes/entry", "answers", "quads/s loaded")
    report = Report("continuous", columns)
    data = list(quads(PERSONS))
    gc.disable()
    for name in PATTERNS:
        measure(report, name, data)
    gc.enable()
    report.show()


if __name__ == "__main__":
    main()
