"""Link traversal over a generated web: time to the first solution, solutions over time, against evaluating again.

A server in a process of its own serves people who know each other, one document each, over HTTP/1.1 on loopback. The
traversal follows all links from one of them. For comparison, the same documents go into pyoxigraph in the same order,
and the query is evaluated again after each one; this is timed after every so many documents and counted for those in
between, since it would take hours. On Spark, a thousand documents are one batch; the memory is that of the Python
process. ``EVERGRAPH_BENCH_SCALE`` divides the number of documents, to have a look; with ``EVERGRAPH_BENCH_ONLY=spark``
nothing else is measured.
"""

import asyncio
import os
import random
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection

import pyoxigraph

from bench.plots import plot
from bench.report import RESULTS, Report
from evergraph.terms import Quad
from evergraph.traversal import F, Limits, Manners, Strategy, Traversal, traverse

SCALE = int(os.environ.get("EVERGRAPH_BENCH_SCALE", "1"))
DOCUMENTS = 10_000 // SCALE
SAMPLES = 50
COLUMNS = ("query", "way", "first s", "half s", "all s", "documents/s", "solutions", "note")
QUERIES = {
    "names": "SELECT ?a ?b ?n { ?a :knows ?b . ?b :name ?n }",
    "own names": "SELECT ?a ?n ?m { ?a :knows ?b . ?b {f} ?d . GRAPH ?d { ?b :name ?n } OPTIONAL { ?b :mail ?m } }",
    "strangers": "SELECT ?b ?n { ?b :name ?n MINUS { ?b :knows ?c . ?c :knows ?b } }",
}


def document(base: str, number: int) -> bytes:
    """Write what a person says: own name and perhaps address, who is known, and a nickname for one of them."""
    chance = random.Random(number)
    known = {2 * number + 1, 2 * number + 2, *(chance.randrange(DOCUMENTS) for _ in range(3))}
    friends = [f":p{one}" for one in sorted(known) if one < DOCUMENTS]
    mail = f' ; :mail "p{number}@example.org"' if number % 2 else ""
    nickname = f'{friends[0]} :name "nickname {number}" . ' if number % 10 == 0 else ""
    person = f':p{number} :name "person {number}"{mail} ; :knows {", ".join(friends)} . '
    return f"@prefix : <{base}> . {person}{nickname}".encode()


def serve(connection: Connection) -> None:
    """Serve the web until the process is ended."""
    base = ""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                found = path.startswith("/p")
                body = document(base, int(path[2:])) if found else b""
                status = "200 OK" if found else "404 Not Found"
                kind = "Content-Type: text/turtle\r\nCache-Control: max-age=600"
                writer.write(f"HTTP/1.1 {status}\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        nonlocal base
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        connection.send(base)
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def web() -> Iterator[str]:
    """Run the server; gives the base of its addresses."""
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


@dataclass(slots=True)
class Course:
    """How a run went: when each document was there, and how many solutions there were after it."""

    points: list[tuple[float, float]] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)

    def when(self, share: float) -> float:
        """Return when there was this share of the final solutions."""
        final = self.points[-1][1]
        return next(seconds for seconds, solutions in self.points if solutions and solutions >= share * final)


def maintained(query: str, base: str, batch: int, engine: str = "local") -> tuple[Course, Traversal]:
    """Run a traversal, and note every step."""
    course = Course()
    begin = time.perf_counter()
    traversal = traverse(
        query,
        [f"{base}p0"],
        strategy=Strategy.ALL,
        allow=["127.0.0.1"],
        limits=Limits(depth=1_000, seconds=None),
        manners=Manners(concurrency=8, per_host=8),
        batch=batch,
        engine=engine,
    )
    solutions = 0

    def note(one: Traversal) -> None:
        course.arrived += [time.perf_counter() - begin] * (len(one.dataset.f) - len(course.arrived))

    traversal.on_progress = note
    with traversal:
        for step in traversal:
            now = time.perf_counter() - begin
            solutions += sum(1 for _ in step.added.rows()) - sum(1 for _ in step.removed.rows())
            course.points.append((now, solutions))
    course.points.append((time.perf_counter() - begin, solutions))
    return course, traversal


def on_spark(query: str, base: str) -> tuple[Course, dict[str, int], int]:
    """Run a traversal on Spark; the last number is the most memory of the process, in MB."""
    course, traversal = maintained(query, base, 1_000, "spark")
    return course, traversal.counts(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_000


def measure_spark(report: Report, name: str, query: str, base: str) -> int:
    """Run a traversal on Spark in a process of its own, whose memory can be told; return how many solutions it has."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        course, counts, memory = pool.submit(on_spark, query, base).result()
    total, solutions = course.points[-1]
    fetched = counts["fetched"]
    note = f"{fetched:,} documents, {counts['failed']} failed, {memory:,} MB at most"
    label = "on Spark, up to 1,000 documents at once"
    report.add(name, label, course.when(0), course.when(0.5), total, fetched / total, int(solutions), note)
    return int(solutions)


def again(query: str, course: Course, traversal: Traversal) -> Course:
    """Evaluate the query again after each document of the same course, with pyoxigraph; timed at samples."""
    store = pyoxigraph.Store()
    redone = Course()
    every = max(1, len(course.arrived) // SAMPLES)
    now = cost = 0.0
    solutions = 0
    for number, (arrived, (graph, triples)) in enumerate(
        zip(course.arrived, traversal.dataset.documents.items(), strict=True)
    ):
        for triple in triples:
            store.add(Quad(triple.subject, triple.predicate, triple.object, graph))
            store.add(Quad(triple.subject, triple.predicate, triple.object))
        store.add(Quad(graph, F, graph))
        if number % every == 0 or number == len(course.arrived) - 1:
            begin = time.perf_counter()
            found = store.query(query)
            assert isinstance(found, pyoxigraph.QuerySolutions)
            solutions = sum(1 for _ in found)
            cost = time.perf_counter() - begin
        now = max(now, arrived) + cost
        redone.points.append((now, solutions))
    return redone


def main() -> None:
    """Run everything, and write the results and the plots."""
    report = Report("traverse", COLUMNS, packages=("evergraph", "pyoxigraph", "httpx"))
    with web() as base:
        for name, text in QUERIES.items():
            query = f"PREFIX : <{base}> " + text.replace("{f}", str(F))
            if os.environ.get("EVERGRAPH_BENCH_ONLY") == "spark":
                measure_spark(report, name, query, base)
                continue
            lines: dict[str, list[tuple[float, float]]] = {}
            for batch in (1, 100):
                course, traversal = maintained(query, base, batch)
                fetched = traversal.counts()["fetched"]
                label = "maintained" if batch == 1 else f"maintained, up to {batch} documents at once"
                total = course.points[-1][0]
                note = f"{fetched:,} documents, {traversal.counts()['failed']} failed"
                solutions = int(course.points[-1][1])
                report.add(name, label, course.when(0), course.when(0.5), total, fetched / total, solutions, note)
                lines[label] = course.points
                if batch == 1:
                    redone = again(query, course, traversal)
            assert redone.points[-1][1] == course.points[-1][1], "both ways give the same solutions"
            assert measure_spark(report, name, query, base) == solutions, "and so does Spark"
            total = redone.points[-1][0]
            note = f"timed at {SAMPLES} of them"
            report.add(name, "again", redone.when(0), redone.when(0.5), total, fetched / total, solutions, note)
            lines["evaluated again after each document"] = redone.points
            RESULTS.mkdir(exist_ok=True)
            thin = {label: [*points[:: max(1, len(points) // 300)], points[-1]] for label, points in lines.items()}
            path = RESULTS / f"traverse-{name.replace(' ', '-')}.svg"
            plot(path, f"Solutions over time: {name}, {DOCUMENTS:,} documents", "seconds", "solutions", thin)
            short = {
                label: [point for point in points if point[0] <= lines["maintained"][-1][0] * 1.2]
                for label, points in thin.items()
            }
            path = RESULTS / f"traverse-{name.replace(' ', '-')}-start.svg"
            plot(path, f"The same, as long as the traversal takes: {name}", "seconds", "solutions", short)
    load = os.getloadavg()[0]
    report.add("machine", "load", "—", "—", "—", "—", "—", f"{load:.1f} at the end, this benchmark included")
    report.show()


if __name__ == "__main__":
    main()
