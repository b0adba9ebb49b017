"""Tables on Spark: a dump into a table, batches appended, reading with a tail and without, compaction, a difference.

Times are wall clock; "cpu" adds up this process, the JVM and its Python workers, so that it says more on a busy
machine. ``EVERGRAPH_BENCH_TRIPLES`` sets the size of the dump, 10 million by default; two cores, 1 GB for the JVM.
"""

import gzip
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from bench.report import Report, median_ms
from evergraph.engines.spark.difference import write_difference
from evergraph.engines.spark.loading import read_dump
from evergraph.engines.spark.net import consolidated
from evergraph.engines.spark.rows import QUAD, quad_of, table_of
from evergraph.engines.spark.session import open_session, stop_session
from evergraph.engines.spark.tables import QuadTable

TRIPLES = int(os.environ.get("EVERGRAPH_BENCH_TRIPLES", "10_000_000"))
NS = "http://example.org/"
Result = TypeVar("Result")


def lines(count: int, seed: int = 0) -> Iterator[str]:
    """Generate N-Triples: sixty predicates of uneven size, all kinds of terms, 7 % of the lines not canonical."""
    chance = random.Random(seed)
    entities = count // 8 + 1
    for _ in range(count):
        subject = f"<{NS}resource/Entity_{chance.randrange(entities)}>"
        predicate = f"<{NS}ontology/property{int(chance.random() ** 2 * 60)}>"
        yield f"{subject} {predicate} {_object(chance, count, entities)} .\n"


def _object(chance: random.Random, count: int, entities: int) -> str:
    number = chance.randrange(count)
    match chance.random():
        case kind if kind < 0.4:
            return f"<{NS}resource/Entity_{number % entities}>"
        case kind if kind < 0.6:
            return f'"name of thing {number}"@en'
        case kind if kind < 0.75:
            return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        case kind if kind < 0.9:
            return f'"A somewhat longer description, number {number}, of no meaning at all."'
        case kind if kind < 0.93:
            return f"_:b{number}"
        case kind if kind < 0.96:
            return f'"with \\"escapes\\" {number}"'
        case kind if kind < 0.98:
            return f'"Text {number}"@de-DE'
        case _:
            return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#string>'


def cpu_seconds() -> float:
    """Add up the processor time of this process and its descendants, as far as the system tells."""
    times, parents = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        number = int(entry.parent.name)
        parents[number] = int(fields[1])
        times[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    family = {os.getpid()}
    while more := {number for number, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(times.get(number, 0) for number in family)


def timed(report: Report, what: str, rows: int, action: Callable[[], Result]) -> Result:
    """Run an action once and report it."""
    cpu, begin = cpu_seconds(), time.perf_counter()
    result = action()
    seconds, cpu = time.perf_counter() - begin, cpu_seconds() - cpu
    report.add(what, rows, seconds, cpu, round(rows / seconds), round(2 * rows / cpu) if cpu else 0)
    return result


def _noop(spark: SparkSession, dump: Path, notes: Path) -> None:
    notes.mkdir()
    read_dump(spark, [dump], notes=notes).frame.write.format("noop").mode("overwrite").save()


def _run(spark: SparkSession, folder: Path, report: Report) -> None:
    small, dump = folder / "small.nt", folder / "dump.nt"
    for path, count in ((small, min(TRIPLES, 200_000)), (dump, TRIPLES)):
        with path.open("w") as out:
            out.writelines(lines(count))
    QuadTable.make(folder / "warm").load(spark, [small])
    timed(report, "parse only", TRIPLES, lambda: _noop(spark, dump, folder / "notes"))
    table = QuadTable.make(folder / "table")
    loaded = timed(report, "load into a table", TRIPLES, lambda: table.load(spark, [dump]))
    predicate = sf.col("predicate") == f"<{NS}ontology/property40>"
    _read(report, "read one predicate, no tail", loaded.quads, lambda: table.read(spark).where(predicate).count())
    present = [quad_of(row) for row in table.read(spark).limit(1000).collect()]
    appended = (
        lambda batch=batch: table.append(
            table_of((quad, -1) for quad in present[100 * batch : 100 * batch + 100]), app="bench", batch=batch
        )
        for batch in range(10)
    )
    milliseconds = median_ms(appended)
    report.add("append 100 quads, median", 100, milliseconds / 1000, 0.0, round(100_000 / milliseconds), 0)
    _read(report, "read one predicate, with a tail", loaded.quads, lambda: table.read(spark).where(predicate).count())

    def aggregated() -> int:
        files = table.snapshot()
        both = spark.read.parquet(*files.absolute([*files.base, *files.tail]))
        return consolidated(both, QUAD).where(predicate).count()

    _read(report, "the same by adding up all", loaded.quads, aggregated)
    timed(report, "compact 1,000 quads", loaded.quads, lambda: table.compact(spark, whole=True))
    newer = folder / "newer.nt.gz"
    with dump.open() as old, gzip.open(newer, "wt", 1) as new:
        new.writelines(line for number, line in enumerate(old) if number % 100)
    timed(
        report, "difference, 1 % removed", 2 * TRIPLES, lambda: write_difference(spark, [dump], [newer], folder / "out")
    )


def _read(report: Report, what: str, rows: int, action: Callable[[], object]) -> None:
    action()
    timed(report, what, rows, action)


def main() -> None:
    """Run the benchmark."""
    report = Report(
        "loading",
        ("what", "rows", "s", "cpu s", "rows/s", "rows/s on two idle cores"),
        packages=("evergraph", "pyspark", "pyarrow", "deltalake", "pyoxigraph"),
    )
    spark = open_session("local[2]", memory="1g")
    try:
        with tempfile.TemporaryDirectory() as folder:
            _run(spark, Path(folder), report)
    finally:
        stop_session(spark)
    report.show()
