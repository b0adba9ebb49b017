"""Linksets: full and incremental runs over the share of resources that changed, and the choice between them.

Synthetic persons at the size of the paper, 41,929 × 9,937, a third of the smaller side being persons of the larger one
with a mistake in their names. Rules: name only (Levenshtein at most 1), and name with the same birth date, where a full
run takes so little that extraction decides. Times are those of one core, whatever else it does. "view" is the time of
the SPARQL part, which is the same for both ways; "choice" is what the linkset would choose by itself.
"""

import gc
import os
import resource
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from random import Random

from bench.plots import plot
from bench.report import RESULTS, Report
from evergraph.delta import Delta
from evergraph.linking.catalogue import RDF_TYPE, catalogue
from evergraph.linking.measures import MEASURES
from evergraph.linking.rules import Combine, Comparison, Group, Rule, Side
from evergraph.sources import open_source
from evergraph.sparql.parser import parse_query
from evergraph.terms import Literal, NamedNode, Quad
from evergraph.views.linksets import CatalogueView, Linkset, Mode, Run

SIZES = 41_929, 9_937
SHARES = (0.0001, 0.001, 0.01, 1_000 / SIZES[0], 0.1, 0.3, 0.5, 0.7, 1.0)
SPARK_SHARES = (0.0001, 0.01, 0.1, 1.0)
WAYS = {"full": 5, "incremental": 6, "views (SPARQL), in both": 4}
NS = "http://example.org/"
VIEW = (
    f"PREFIX : <{NS}> CONSTRUCT {{ ?x a :Person ; :name ?name ; :born ?born }} "
    "WHERE { ?x a :Person ; :name ?name ; :born ?born }"
)
PERSON, NAME, BORN = (NamedNode(NS + name) for name in ("Person", "name", "born"))
SYLLABLES = "an be ca do el fi ga ha in jo ka li ma no or pe qu ri sa to ul vi wa xe yo za".split()  # noqa: SIM905


def name(random: Random) -> str:
    """Make a name of two words."""
    return " ".join("".join(random.choices(SYLLABLES, k=random.randint(2, 4))).title() for _ in range(2))


def misspelt(random: Random, text: str) -> str:
    """Replace, delete or double one letter."""
    place = random.randrange(len(text))
    return text[:place] + random.choice(["", "x", text[place] * 2]) + text[place + 1 :]


def persons(sizes: tuple[int, int]) -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    """Make both sides: names and birth dates."""
    random = Random(1)
    larger = {
        f"{NS}a{n}": (name(random), f"19{random.randint(10, 99)}-0{random.randint(1, 9)}-{random.randint(10, 28)}")
        for n in range(sizes[0])
    }
    known = list(larger.values())
    smaller = {}
    for number in range(sizes[1]):
        if number % 3:
            smaller[f"{NS}b{number}"] = (name(random), f"19{random.randint(10, 99)}-01-{random.randint(10, 28)}")
        else:
            text, born = random.choice(known)
            smaller[f"{NS}b{number}"] = (misspelt(random, text), born)
    return larger, smaller


def quads(side: Iterable[tuple[str, tuple[str, str]]]) -> frozenset[Quad]:
    """Describe persons."""
    found = set()
    for iri, (text, born) in side:
        one = NamedNode(iri)
        found |= {Quad(one, RDF_TYPE, PERSON), Quad(one, NAME, Literal(text)), Quad(one, BORN, Literal(born))}
    return frozenset(found)


def rules() -> dict[str, Rule]:
    """Return the rules to measure."""

    def names() -> Comparison:
        return Comparison("name", Side((0,)), Side((0,)), MEASURES["levenshtein"], 1)

    date = Comparison("born", Side((1,)), Side((1,)), MEASURES["exact"])
    return {"name": Rule(names()), "name and date": Rule(Group(Combine.AND, (names(), date)))}


def loaded(rule: Rule, sides: tuple[dict[str, tuple[str, str]], ...]) -> Linkset[CatalogueView]:
    """Load both views; nothing is matched yet."""
    view = catalogue(parse_query(VIEW))
    linkset = Linkset(rule, CatalogueView(view), CatalogueView(view))
    for one, side in zip(linkset.views, sides, strict=True):
        one.take(Delta(inserted=quads(side.items())))
    return linkset


def change(
    linkset: Linkset[CatalogueView], number: int, side: dict[str, tuple[str, str]], share: float, random: Random
) -> tuple[int, float]:
    """Rename a share of one side; return how many, and the seconds of the SPARQL part."""
    some = random.sample(sorted(side), max(1, round(len(side) * share)))
    before = frozenset(Quad(NamedNode(iri), NAME, Literal(side[iri][0])) for iri in some)
    for iri in some:
        side[iri] = (misspelt(random, side[iri][0])[:24], side[iri][1])
    after = frozenset(Quad(NamedNode(iri), NAME, Literal(side[iri][0])) for iri in some)
    begin = time.process_time()
    linkset.views[number].take(Delta(inserted=after - before, deleted=before - after))
    return len(some), time.process_time() - begin


def timed(linkset: Linkset[CatalogueView], mode: Mode | None = None) -> tuple[Run, float]:
    """Make a run; return it with its seconds on one core."""
    gc.collect()
    begin = time.process_time()
    run = linkset.maintain(mode)
    return run, time.process_time() - begin


def measure(report: Report, label: str, rule: Rule, sizes: tuple[int, int], both: bool) -> None:
    """Measure both ways for every share (Figure 3 of the paper), after runs of both that the choice can learn from."""
    sides = persons(sizes)
    linkset = loaded(rule, sides)
    random = Random(2)
    numbers = (0, 1) if both else (0,)
    first, seconds = timed(linkset)
    report.add(label, "both" if both else "one", sum(sizes), "first", 0.0, 1e3 * seconds, 0.0, "full", first.links)
    for share in (0.05, *SHARES):
        times: dict[Mode, list[float]] = {Mode.FULL: [], Mode.INCREMENTAL: []}
        extraction, links, chosen = [], 0, ""
        for _ in range(3 if share < 0.1 else 1):
            for mode, spent in times.items():
                parts = [change(linkset, number, sides[number], share, random) for number in numbers]
                counts = parts[0][0], parts[1][0] if both else 0
                chosen = linkset.choose(counts).value
                run, seconds = timed(linkset, mode)
                spent.append(1e3 * seconds)
                extraction.append(1e3 * sum(part for _, part in parts))
                links = run.links
        if share == 0.05:
            continue  # the choice has something to learn from now
        full, incremental = (statistics.median(spent) for spent in times.values())
        way = ("both" if both else "one", sum(counts), f"{share:.2%}", statistics.median(extraction))
        report.add(label, *way, full, incremental, chosen, links)


def visible(streams: Path) -> None:
    """Count resources updated and visible through the views, per changeset (Table 6 of the paper)."""
    from tests.support.mints import definition

    from evergraph.linking.definition import load_linkset

    report = Report("linkset_visible", ("stream", "changesets", "what", "total", "average", "most"))
    place = Path("bench") / "results" / "mints.toml"
    place.write_text(definition(streams / "nomisma", streams / "pleiades"))
    try:
        found = load_linkset(place)
    finally:
        place.unlink()
    for label, side in (("nomisma", found.source), ("pleiades", found.target)):
        view = CatalogueView(side.catalogue)
        updated, seen = [], []
        for number, one in enumerate(open_source(streams / label).changes()):
            affected = view.take(view.exact(one.request))
            if number:  # the first one is the initial load
                subjects = {quad.subject for quad in one.request.added | one.request.removed}
                updated.append(len(subjects))
                seen.append(len(affected.all()))
        for what, counts in (("resources updated", updated), ("visible", seen)):
            report.add(label, len(counts), what, sum(counts), sum(counts) / len(counts), max(counts))
    report.show()


def figure(report: Report) -> None:
    """Draw time over the number of resources that changed (Figure 3 of the paper), for changes of one side."""
    for label in rules():
        rows = [row for row in report.rows if row[:2] == (label, "one") and row[3] != "first"]
        lines = {way: [(float(str(row[2])), float(str(row[place]))) for row in rows] for way, place in WAYS.items()}
        path = RESULTS / f"linkset-{label.replace(' ', '-')}.svg"
        plot(path, f"Matching again: {label}", "resources that changed", "milliseconds", lines, log=True)


def beside_splink() -> None:
    """Compare full runs with those of Splink, on the same persons; a tenth of them where it has to try all pairs."""
    from bench.linkset_splink import is_installed, splink

    if not is_installed():
        print("Splink is not installed (pip install 'splink>=5'): no full runs beside its own")
        return
    columns = ("rule", "persons", "Evergraph ms", "links", "Splink ms", "Splink's pairs")
    report = Report("linkset_splink", columns, packages=("evergraph", "rapidfuzz", "splink", "duckdb"))
    for label, divisor in (("name and date", 1), ("name", 10)):
        sides = persons((SIZES[0] // divisor, SIZES[1] // divisor))
        linkset = loaded(rules()[label], sides)
        run, seconds = timed(linkset)
        others, pairs = splink(label, sides)
        size = f"{len(sides[0]):,} × {len(sides[1]):,}"
        report.add(label, size, 1e3 * seconds, run.links, 1e3 * others, pairs)
    report.show()


def on_spark(size: int) -> None:
    """Measure the name-only rule on Spark, with so many resources on each side: wall-clock seconds.

    First everything is matched, then what changed of one side. What the driver's Python held at most is told, too.
    """
    from evergraph.engines.spark.daemon import MODULE
    from evergraph.engines.spark.session import open_session, stop_session
    from evergraph.linking.spark import SparkMatcher

    columns = ("resources of each side", "changed", "seconds", "links", "driver GB")
    report = Report("linkset_spark", columns, packages=("evergraph", "pyspark"))
    random = Random(2)
    spark = open_session(memory="3g", conf={"spark.python.daemon.module": MODULE})
    try:
        matcher = SparkMatcher(rules()["name"], spark)
        names = []
        for number, side in enumerate(persons((size, size))):
            matcher.replace(number, {f"<{iri}>": ((text,), (born,)) for iri, (text, born) in side.items()})
            names.append(sorted(side))
        begin = time.perf_counter()
        links = len(matcher.full())
        report.add(size, "everything, at first", time.perf_counter() - begin, links, _peak())
        for share in SPARK_SHARES:
            some = random.sample(names[0], round(size * share))
            changed = {f"<{iri}>": ((name(random),), ("1900-01-01",)) for iri in some}
            begin = time.perf_counter()
            matcher.replace(0, changed)
            links = len(matcher.partners(0, changed))
            report.add(size, f"{len(some):,} ({share:.2%})", time.perf_counter() - begin, links, _peak())
    finally:
        stop_session(spark)
        report.show()


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Run the benchmark, with Splink beside it where that is installed.

    With ``EVERGRAPH_STREAMS`` in the environment also over the real streams in that folder; with
    ``EVERGRAPH_LINKSET_SPARK`` also on Spark, with so many resources on each side. ``EVERGRAPH_BENCH_ONLY`` is one of
    local, splink, streams and spark, and leaves the others out.
    """
    only = os.environ.get("EVERGRAPH_BENCH_ONLY", "")
    if only in ("", "local"):
        local()
    if only in ("", "splink"):
        beside_splink()
    if (streams := os.environ.get("EVERGRAPH_STREAMS")) and only in ("", "streams"):
        visible(Path(streams))
    if (size := os.environ.get("EVERGRAPH_LINKSET_SPARK")) and only in ("", "spark"):
        on_spark(int(size))


def local() -> None:
    """Measure both ways and the choice between them, in this process."""
    columns = ("rule", "sides", "changed", "share", "view ms", "full ms", "incremental ms", "choice", "links")
    report = Report("linkset", columns, packages=("evergraph", "rapidfuzz"))
    for label, rule in rules().items():
        for both in (False, True):
            measure(report, label, rule, SIZES, both)
    report.show()
    figure(report)
