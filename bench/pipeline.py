"""Pipelines on Spark, as users run them: ``evergraph run`` in a process of its own, with a driver of 1 GB.

Catching up has the 2 GB that a pipeline has if nothing else is said.

* following: changesets of 100 triples, one after the other, through five views over 1 M triples;
* data: the same batch of 1,000 changes over 100 k, 1 M and 10 M triples;
* change: batches of 100 to 100,000 changes over 1 M triples;
* views: 1 to 20 views over 1 M triples;
* catching up: a backlog of changesets, with one core and with two.

``EVERGRAPH_BENCH_SCALE`` divides all sizes, for a quick look.
"""

import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

from bench.plots import plot
from bench.report import RESULTS, Report

SCALE = int(os.environ.get("EVERGRAPH_BENCH_SCALE", "1"))
NS = "http://example.org/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
VIEWS = {
    "star": "SELECT ?x ?n ?a ?c { ?x :name ?n ; :age ?a ; :city ?c }",
    "neighbours": "SELECT ?x ?c { ?x :knows ?y . ?y :city ?c }",
    "mails": "SELECT ?x ?n ?m { ?x :name ?n OPTIONAL { ?x :mail ?m } }",
    "cities": "SELECT ?c (COUNT(*) AS ?n) { ?x :city ?c } GROUP BY ?c",
    "elders": "SELECT ?x ?n { ?x :name ?n ; :age ?a FILTER(?a > 60) FILTER NOT EXISTS { ?x :knows ?x } }",
}


class People:
    """People with names, ages, cities, mail addresses and acquaintances, ten triples each; and what becomes of them.

    Twenty of them live in a city, so that the same change touches as much in small data as in large ones.
    """

    def __init__(self, count: int) -> None:
        self.count = max(1, count // 10)
        self._places = max(1, self.count // 20)
        self._chance = random.Random(1)
        self._names = array("L", bytes(8 * self.count))
        self._cities = array("L", (self._chance.randrange(self._places) for _ in range(self.count)))
        self._known = array("L", (self._chance.randrange(self.count) for _ in range(5 * self.count)))

    def triples(self) -> Iterator[str]:
        """Generate all that there is at first."""
        for number in range(self.count):
            subject = f"<{NS}person/{number}>"
            yield f"{subject} <{NS}type> <{NS}Person> ."
            yield self._name(number)
            yield f'{subject} <{NS}age> "{self._chance.randrange(90)}"^^<{INTEGER}> .'
            yield self._city(number)
            yield f'{subject} <{NS}mail> "m{number}@example.org" .'
            yield from (self._knows(place) for place in range(5 * number, 5 * number + 5))

    def change(self, size: int) -> tuple[list[str], list[str]]:
        """Generate a change of so many triples: people get other names, move, or lose an acquaintance and find one."""
        steps = (
            (self._name, self._names, self.count, 1 << 40),
            (self._city, self._cities, self.count, self._places),
            (self._knows, self._known, 5 * self.count, self.count),
        )
        removed, added = [], []
        for step in range(max(1, size // 2)):
            write, values, places, choice = steps[step % len(steps)]
            place = self._chance.randrange(places)
            removed.append(write(place))
            values[place] = self._chance.randrange(choice)
            added.append(write(place))
        return removed, added

    def _name(self, number: int) -> str:
        return f'<{NS}person/{number}> <{NS}name> "name {number} {self._names[number]}" .'

    def _city(self, number: int) -> str:
        return f"<{NS}person/{number}> <{NS}city> <{NS}city/{self._cities[number]}> ."

    def _knows(self, place: int) -> str:
        return f"<{NS}person/{place // 5}> <{NS}knows> <{NS}person/{self._known[place]}> ."


class Pipeline:
    """The files of one pipeline."""

    def __init__(self, folder: Path, size: int, views: Sequence[tuple[str, str]], memory: str = "1g") -> None:
        self.folder = folder
        self.people = People(size)
        self.number = 0
        (folder / "changes").mkdir(parents=True)
        with (folder / "init.nt").open("w") as out:
            out.writelines(f"{line}\n" for line in self.people.triples())
        text = '[pipeline]\nname = "bench"\nstate = "state"\n[spark]\nmemory = "' + memory + '"\n'
        text += '[source]\nchanges = "changes"\ninit = ["init.nt"]\n'
        for name, query in views:
            text += f'[[view]]\nname = "{name}"\ntext = """PREFIX : <{NS}> {query}"""\n'
            text += f'[[view.sink]]\nkind = "table"\npath = "out/{name}"\n'
        (folder / "bench.toml").write_text(text)

    def write(self, size: int) -> None:
        """Put one more changeset into the folder: both halves, which is when it counts."""
        self.number += 1
        drafts = {}
        for kind, lines in zip(("removed", "added"), self.people.change(size), strict=True):
            path = self.folder / "changes" / f"{self.number:06}.{kind}.nt.gz"
            drafts[path] = path.with_name(f".{path.name}")
            drafts[path].write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
        for path, draft in drafts.items():
            draft.rename(path)

    @contextmanager
    def running(self, *options: str, cores: int = 2) -> Iterator[IO[str]]:
        """Run the pipeline, and read what it prints."""
        command = [
            sys.executable,
            "-m",
            "evergraph",
            "run",
            "bench.toml",
            "--spark-master",
            f"local[{cores}]",
            *options,
        ]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield process.stdout
            finally:
                process.terminate()

    def finished(self, *, cores: int = 2) -> list[dict[str, Any]]:
        """Run the pipeline to its end."""
        with self.running(cores=cores) as lines:
            return [json.loads(line) for line in lines]

    def latencies(self, size: int, times: int) -> list[float]:
        """Follow the folder; return how long each of some changesets took from its arrival to its commit."""
        self.write(4)
        found = []
        with self.running("--follow") as lines:
            for line in lines:
                if json.loads(line)["batch"] == 1:
                    break
            for _ in range(times):
                self.write(size)
                begin = time.perf_counter()
                next(lines)
                found.append(time.perf_counter() - begin)
        return found


def main() -> None:
    """Run all of it; takes about twenty minutes."""
    report = Report(
        "pipeline", ("what", "triples", "changes", "views", "seconds", "per second"), packages=("evergraph", "pyspark")
    )
    five = tuple(VIEWS.items())
    with tempfile.TemporaryDirectory() as root:
        _following(report, Path(root), five)
        _catching_up(report, Path(root), five)
    report.show()


def _following(report: Report, root: Path, views: tuple[tuple[str, str], ...]) -> None:
    base = 1_000_000 // SCALE
    data = [(size, _median(root, size, 1000, views)) for size in (base // 10, base, base * 10)]
    changes = [(size, _median(root, base, size, views)) for size in (100, 1_000, 10_000, 100_000 // SCALE)]
    many = [
        (
            count,
            _median(
                root,
                base,
                100,
                tuple((f"{name}{n or ''}", query) for n in range(-(-count // 5)) for name, query in views)[:count],
            ),
        )
        for count in (1, 5, 20)
    ]
    for size, seconds in data:
        report.add("data", size, 1000, len(views), seconds, 1000 / seconds)
    for size, seconds in changes:
        report.add("change", base, size, len(views), seconds, size / seconds)
    for count, seconds in many:
        report.add("views", base, 100, count, seconds, 100 / seconds)
    report.add("data: largest / smallest", "", "", "", data[-1][1] / data[0][1], "")
    RESULTS.mkdir(exist_ok=True)
    plot(
        RESULTS / "pipeline-data.svg",
        "A batch of 1,000 changes, five views",
        "triples",
        "seconds",
        {"": data},
        log=True,
    )
    plot(
        RESULTS / "pipeline-change.svg",
        "Batches over 1 M triples, five views",
        "changes",
        "seconds",
        {"": changes},
        log=True,
    )
    plot(RESULTS / "pipeline-views.svg", "100 changes over 1 M triples", "views", "seconds", {"": many})


@cache
def _median(root: Path, size: int, changes: int, views: tuple[tuple[str, str], ...]) -> float:
    """Measure each setting once, however many series it is part of."""
    folder = root / f"follow-{size}-{changes}-{len(views)}"
    latencies = Pipeline(folder, size, views).latencies(changes, 15 if changes <= 1_000 else 5)
    return statistics.median(latencies[len(latencies) // 3 :])  # the first ones warm the JVM up


def _catching_up(report: Report, root: Path, views: tuple[tuple[str, str], ...]) -> None:
    base, backlog, size = 1_000_000 // SCALE, 3000, 1000 // min(SCALE, 10)
    rates = {}
    for cores in (1, 2):
        pipeline = Pipeline(root / f"backlog-{cores}", base, views, "2g")
        pipeline.write(4)
        pipeline.finished(cores=cores)  # loads the data
        for _ in range(backlog):
            pipeline.write(size)
        lines = pipeline.finished(cores=cores)
        seconds = sum(line["seconds"] for line in lines)
        rates[cores] = backlog * size / seconds
        report.add(f"catching up, {cores} cores", base, backlog * size, len(views), seconds, rates[cores])
        for line in lines:
            done = line["changes"] * size
            report.add(f"  batch {line['batch'] - 1}", base, done, len(views), line["seconds"], done / line["seconds"])
        parts: dict[str, float] = {}
        for line in lines:
            for name, spent in line["parts"].items():
                parts[name] = parts.get(name, 0.0) + spent
        for name, spent in sorted(parts.items(), key=lambda one: -one[1]):
            report.add(f"  of it {name}", base, backlog * size, len(views), spent, "")
    report.add("speed-up, two cores to one", "", "", "", rates[2] / rates[1], "")


if __name__ == "__main__":
    main()
