"""Replicas: changed triples a second, many interests, what is shipped and stored, and growth over time.

Over the real streams in ``../shared/data``, where they are, and over made-up entities. Times are those of the process,
without parsing unless the line says so: changes are read first. The lines:

* **one interest**, **1,000 interests** that differ in a constant, in one pass; the target is 100,000 changed triples a
  second, and at most 4 times the time of one for 1,000;
* **whole command**: what `evergraph replicate` does with one interest, from the compressed files to the state and the
  target on the disk; waiting for the disk is in the note;
* **evaluated again**: the interest as a CONSTRUCT from scratch over a mirror, after each of some changes;
* **full mirror**: all triples, in an Oxigraph store;
* **size of the target**: the same changes of 1,000 entities, one at a time, on targets of growing size, with the number
  of calls that Python makes for them: it is the same for all, so what is left is the time that memory takes;
* per period, as Tables 2 and 3 of the paper: triples removed and added in all, those that are interesting, those that
  are potentially interesting in the end, and the time; and as its Figure 7 the growth of replica, potentially
  interesting triples and mirror, drawn in ``bench/results/replica-*.svg``.
"""

import cProfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import QueryTriples, Store

from bench.plots import plot
from bench.report import RESULTS, Report
from evergraph.delta import Request
from evergraph.pipeline.replicas import replicate
from evergraph.ports import SourceChange
from evergraph.sources import open_source
from evergraph.terms import Literal, NamedNode, Quad
from evergraph.views.replicas import Replicas, parse_interest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PREFIXES = """
PREFIX dct: <http://purl.org/dc/terms/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>
PREFIX nmo: <http://nomisma.org/ontology#>
PREFIX org: <http://www.w3.org/ns/org#>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
PREFIX v: <https://pleiades.stoa.org/places/vocab#>
"""
AGAIN = 20
"""After how many changes an interest is evaluated from scratch."""
PERIODS = 6


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of changes, an interest in it, and how interests in single entities look."""

    name: str
    interest: str
    one: str
    subjects: str


STREAMS = (
    Stream(
        "nomisma",
        "?x a nmo:Mint ; skos:prefLabel ?l OPTIONAL { ?x geo:location ?p . ?p geo:lat ?lat ; geo:long ?long }",
        "<{0}> a nmo:Mint ; skos:prefLabel ?l OPTIONAL {{ <{0}> geo:location ?p . ?p geo:lat ?lat ; geo:long ?long }}",
        "http://www.w3.org/2004/02/skos/core#prefLabel",
    ),
    Stream(
        "pleiades",
        "?x a v:Place ; dct:title ?t ; v:part_of_physical ?y . ?y dct:title ?u "
        "OPTIONAL { ?x geo:lat ?lat ; geo:long ?long }",
        "<{0}> a v:Place ; dct:title ?t ; v:part_of_physical ?y . ?y dct:title ?u "
        "OPTIONAL {{ <{0}> geo:lat ?lat ; geo:long ?long }}",
        "https://pleiades.stoa.org/places/vocab#part_of_physical",
    ),
)


def size(request: Request) -> int:
    """Count the triples of a change."""
    return len(request.added) + len(request.removed)


def followed(texts: list[str], changes: list[SourceChange]) -> tuple[float, Replicas, int]:
    """Follow all changes; return the seconds, the replicas, and how many triples were shipped."""
    replicas = Replicas()
    for number, text in enumerate(texts):
        replicas.add(parse_interest(f"{PREFIXES}SELECT * {{ {text} }}", f"i{number}"))
    shipped = 0
    begin = time.process_time()
    for change in changes:
        shipped += sum(len(one.delta) for one in replicas.apply(change.request).changes)
    return time.process_time() - begin, replicas, shipped


def commanded(stream: Stream) -> tuple[float, float]:
    """Replicate all changes into a folder; return the seconds of the process, and those that went by."""
    with tempfile.TemporaryDirectory(prefix="evergraph-bench-") as place:
        interest = Path(place) / "interest.rq"
        interest.write_text(f"{PREFIXES}SELECT * {{ {stream.interest} }}")
        begin, clock = time.process_time(), time.perf_counter()
        replicate(interest, changes=DATA / stream.name, target=Path(place) / "target", on_change=lambda step: None)
        return time.process_time() - begin, time.perf_counter() - clock


def mirrored(changes: list[SourceChange], interest: str) -> tuple[float, float, int]:
    """Mirror everything; return the seconds of that, those to evaluate the interest again, and the size."""
    store, mirror, again = Store(), 0.0, 0.0
    step = max(1, len(changes) // AGAIN)
    template = interest.replace("OPTIONAL {", ". ").replace("}", "")
    for number, change in enumerate(changes):
        begin = time.process_time()
        for quad in change.request.removed:
            store.remove(quad)
        store.extend(change.request.added)
        mirror += time.process_time() - begin
        if number % step == 0:
            begin = time.process_time()
            result = store.query(f"{PREFIXES}CONSTRUCT {{ {template} }} WHERE {{ {interest} }}")
            assert isinstance(result, QueryTriples)
            sum(1 for _ in result)
            again += (time.process_time() - begin) * step
    return mirror, again, len(store)


def speeds(stream: Stream, changes: list[SourceChange], report: Report, parsing: float) -> None:
    """Measure one interest, many, and what they are compared with."""
    total = sum(size(change.request) for change in changes)
    alone, replicas, shipped = followed([stream.interest], changes)
    target, aside = replicas.sizes("i0")

    def add(what: str, seconds: float, note: str = "") -> None:
        report.add(stream.name, what, total, round(seconds, 2), int(total / seconds), round(seconds / alone, 2), note)

    again_mirror, again, stored = mirrored(changes, stream.interest)
    share = (
        f"{100 * shipped / total:.1f} % shipped, {100 * (target + aside) / stored:.1f} % stored ({target} + {aside})"
    )
    add("one interest", alone, share)
    add("one interest, with parsing", alone + parsing)
    taken, passed = commanded(stream)
    add("one interest, the whole command", taken, f"{passed:.1f} s went by, with waiting for the disk")
    subjects = {quad.subject.value for quad in replicas.target("i0") if quad.predicate.value == stream.subjects}  # type: ignore[union-attr]
    many = [stream.one.format(one) for one in sorted(subjects)[:1_000]]
    taken, _, shipped = followed(many, changes)
    add(f"{len(many):,} interests", taken, f"{shipped} shipped")
    add("evaluated again after each change", again, f"from {AGAIN} samples, without the mirror that it needs")
    add("full mirror", again_mirror, f"{stored} triples")


def periods(stream: Stream, changes: list[SourceChange], report: Report) -> None:
    """Make the tables of the paper, and draw its figure."""
    replicas = Replicas()
    replicas.add(parse_interest(f"{PREFIXES}SELECT * {{ {stream.interest} }}", "i0"))
    sizes: list[tuple[int, int, int]] = []
    mirror = 0
    for period in range(PERIODS):
        part = changes[len(changes) * period // PERIODS : len(changes) * (period + 1) // PERIODS]
        removed = added = gone = come = aside = 0
        seconds = 0.0
        for change in part:
            begin = time.process_time()
            [effect] = replicas.apply(change.request).changes
            seconds += time.process_time() - begin
            removed += len(change.request.removed)
            added += len(change.request.added)
            gone += len(effect.delta.deleted)
            come += len(effect.delta.inserted)
            mirror += len(change.request.added) - len(change.request.removed)
            aside = effect.potential
            sizes.append((replicas.sizes("i0")[0], aside, mirror))
        share = [f"{100 * some / all_:.2f} %" if all_ else "—" for some, all_ in ((gone, removed), (come, added))]
        report.add(
            stream.name, period + 1, len(part), removed, gone, share[0], added, come, share[1], aside, round(seconds, 3)
        )
    draw(stream.name, sizes)


def draw(name: str, sizes: list[tuple[int, int, int]]) -> None:
    """Draw growth: replica, potentially interesting triples, mirror."""
    RESULTS.mkdir(exist_ok=True)
    labels = ("replica", "potentially interesting", "mirror")
    lines = {
        label: [(float(number), float(row[place])) for number, row in enumerate(sizes, 1)]
        for place, label in enumerate(labels)
    }
    plot(RESULTS / f"replica-{name}.svg", f"Growth: {name}", "changes", "triples", lines)


def growing(report: Report) -> None:
    """Change the same 1,000 entities of targets of growing size."""
    kind, name, thing = (NamedNode(f"urn:bench:{one}") for one in ("kind", "name", "thing"))

    def entity(number: int) -> frozenset[Quad]:
        one = NamedNode(f"urn:bench:e{number}")
        return frozenset([Quad(one, kind, thing), Quad(one, name, Literal(f"name {number}"))])

    for count in (1_000, 10_000, 100_000):
        replicas = Replicas()
        replicas.add(parse_interest("SELECT * { ?s <urn:bench:kind> <urn:bench:thing> ; <urn:bench:name> ?n }", "i0"))
        replicas.apply(Request(added=frozenset(quad for number in range(count) for quad in entity(number))))
        changes = [Request(removed=entity(number)) for number in range(1_000)]
        changes += [Request(added=entity(number)) for number in range(1_000)]
        begin = time.process_time()
        for change in changes:
            replicas.apply(change)
        seconds = time.process_time() - begin
        total = sum(map(size, changes))
        note = f"one entity a change; {calls(replicas, changes):,} calls"
        report.add("made up", f"target of {2 * count:,}", total, round(seconds, 3), int(total / seconds), "", note)


def calls(replicas: Replicas, changes: list[Request]) -> int:
    """Count the calls of functions that changes need."""
    profile = cProfile.Profile()
    profile.enable()
    for change in changes:
        replicas.apply(change)
    profile.disable()
    return int(sum(entry.callcount for entry in profile.getstats()))


def streams() -> Iterator[tuple[Stream, list[SourceChange], float]]:
    """Read the streams that are there, with the seconds that reading takes."""
    for stream in STREAMS:
        if (DATA / stream.name).is_dir():
            begin = time.process_time()
            changes = list(open_source(DATA / stream.name).changes())
            yield stream, changes, time.process_time() - begin


def main() -> None:
    """Run the benchmark."""
    speed = Report("replica", ("stream", "what", "changed triples", "s", "triples/s", "× one", "note"))
    columns = (
        "stream",
        "period",
        "changesets",
        "removed",
        "interesting",
        "%",
        "added",
        "interesting ",
        "% ",
        "potentially",
        "s",
    )
    tables = Report("replica_periods", columns)
    growing(speed)
    for stream, changes, parsing in streams():
        speeds(stream, changes, speed, parsing)
        periods(stream, changes, tables)
    speed.show()
    if tables.rows:
        tables.show()


if __name__ == "__main__":
    main()
