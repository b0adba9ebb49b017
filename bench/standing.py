"""Standing queries in the local engine: latency, memory, pauses, worst cases, the optimiser, and peers.

100,000 persons with a class, an age, one of 1,000 cities, a name and six acquaintances: a million triples. Single
changes delete and insert again what is there, quad by quad, without parsing and delivery. "star3" is
``?s a Person ; age ?a ; city ?c``, "path3" ``?a knows ?b . ?b knows ?d . ?d city ?c``. Worst cases are as large as fits
in 3 GB. Times are in µs; "bytes/triple" is the growth of the process over the triples that are in indexes.

Peers: pyoxigraph evaluates the query again for the changed subject only, the least that a system without deltas could
do; Pathway runs in a process of its own, if the interpreter in ``EVERGRAPH_PATHWAY_PYTHON``, or else this one, has it.
"""

import gc
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from random import Random

import pyoxigraph

from bench.continuous import AGE, CITY, KIND, KNOWS, NAME, NS, city, person, quads
from bench.report import Report
from evergraph.delta import Delta
from evergraph.engines.local.engine import LocalEngine
from evergraph.engines.local.optimizer import Optimizer, Way
from evergraph.engines.local.pauses import watch_collector
from evergraph.terms import Literal, NamedNode, Quad

PERSONS = 100_000
PREFIX = f"PREFIX : <{NS}> "
STAR = "SELECT * { ?s a :Person ; :age ?a ; :city ?c }"
PATH = "SELECT * { ?a :knows ?b . ?b :knows ?d . ?d :city ?c }"
COLUMNS = ("what", "case", "p50", "p99", "most", "target p50", "note")
Row = tuple[object, ...]


def memory() -> int:
    """Return the bytes that the process has in memory."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def times(actions: Iterable[Callable[[], object]]) -> tuple[float, float, float]:
    """Return the median, the 99th percentile and the maximum of times, in µs."""
    taken = []
    for action in actions:
        begin = time.perf_counter_ns()
        action()
        taken.append(time.perf_counter_ns() - begin)
    taken.sort()
    return taken[len(taken) // 2] / 1000, taken[len(taken) * 99 // 100] / 1000, taken[-1] / 1000


def single_changes(engine: LocalEngine, sample: Iterable[Quad]) -> tuple[float, float, float]:
    """Delete and insert quads, one at a time."""
    taken = []
    for quad in sample:
        one = frozenset((quad,))
        for delta in (Delta(deleted=one), Delta(inserted=one)):
            begin = time.perf_counter_ns()
            engine.apply(delta)
            taken.append(time.perf_counter_ns() - begin)
    taken.sort()
    return taken[len(taken) // 2] / 1000, taken[len(taken) * 99 // 100] / 1000, taken[-1] / 1000


class Pauses:
    """The longest collection of garbage, as the collector tells it."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._begin = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """Take the time."""
        if phase == "start":
            self._begin = time.perf_counter()
        else:
            self.longest = max(self.longest, time.perf_counter() - self._begin)

    def __enter__(self) -> "Pauses":
        gc.callbacks.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self)


def latency(name: str) -> list[Row]:
    """Measure single changes of each predicate."""
    text, target, predicates = {
        "star3": (STAR, 4.0, (KIND, AGE, CITY, KNOWS)),
        "path3": (PATH, 30.0, (KNOWS, CITY, NAME)),
    }[name]
    data = list(quads(PERSONS))
    gc.collect()
    before = memory()
    watch_collector()
    engine = LocalEngine()
    view = engine.register(PREFIX + text)
    for start in range(0, len(data), 100_000):
        engine.apply(Delta(inserted=frozenset(data[start : start + 100_000])))
    grown = memory() - before
    rows: list[Row] = []
    with Pauses() as pauses:
        for predicate in predicates:
            sample = Random(2).sample([quad for quad in data if quad.predicate == predicate], 20_000)
            label = predicate.value.rsplit("/", 1)[-1].rsplit("#", 1)[-1]
            unconcerned = predicate == NAME or (name == "star3" and predicate == KNOWS)
            measured = single_changes(engine, sample)
            what = "no query" if unconcerned else name
            rows.append((what, f"± {label}", *measured, 1.5 if unconcerned else target, "single change"))
        random = Random(3)
        for _ in range(4):  # churn: large enough for several full collections
            some = random.sample(data, 40_000)
            single_changes(engine, some)
    rows.append((name, "garbage collection", "—", "—", pauses.longest * 1e6, 50_000.0, "longest of 400,000 changes"))
    size, result = engine.size(), len(view._result)
    note = f"{size:,} in indexes, {result:,} rows of result included"
    rows.append((name, "bytes/triple", grown / size, "—", "—", 400.0 if name == "star3" else "—", note))
    return rows


def all_indexed() -> list[Row]:
    """Measure the memory of a million triples that are all in indexes."""
    data = list(quads(PERSONS))
    gc.collect()
    before = memory()
    engine = LocalEngine()
    names = ("age", "city", "name", "knows")
    engine.register(PREFIX + "ASK { ?a a :Person . " + " . ".join(f"?a :{name} ?{name}" for name in names) + " }")
    engine.apply(Delta(inserted=frozenset(data)))
    size = engine.size()
    note = f"{size:,} in indexes by subject, terms included, data objects not"
    return [("memory", "bytes/triple", (memory() - before) / size, "—", "—", 400.0, note)]


# -- the optimiser

VIEWS = {
    "star3": STAR,
    "path3 of a city": "SELECT * { ?a :knows ?b . ?b :knows ?d . ?d :city <http://example.org/city/1> }",
    "OPTIONAL": "SELECT * { ?s :city ?c OPTIONAL { ?s :age ?a FILTER(?a = '7') } }",
    "DISTINCT": "SELECT DISTINCT ?c ?a { ?s :city ?c ; :age ?a }",
    "GROUP BY": "SELECT ?c (COUNT(*) AS ?n) { ?s :city ?c ; :age ?a } GROUP BY ?c",
    "shared by 500": "SELECT * { ?s :city <http://example.org/city/%d> ; :age ?a OPTIONAL { ?s :knows ?k } }",
}


def choices(name: str) -> list[Row]:
    """Compare the way that is chosen with both ways, for batches of several sizes."""
    data = list(quads(PERSONS // 2))
    concerned = [quad for quad in data if quad.predicate in (CITY, AGE, KIND if name == "star3" else KNOWS)]
    forced: list[Way | None] = ["incremental"]
    engine = LocalEngine(optimizer=Optimizer(force=lambda: forced[0]))
    text = PREFIX + VIEWS[name]
    views = [engine.register(text % number if "%d" in text else text) for number in range(500 if "%d" in text else 1)]
    view = views[-1]
    forced[0] = "direct"
    engine.apply(Delta(inserted=frozenset(data)))
    rows: list[Row] = []
    random = Random(4)
    for size in (1, 100, 10_000, 100_000):
        taken: dict[Way | None, list[float]] = {"incremental": [], "direct": [], None: []}
        for _ in range(3 if size > 1_000 else 9):
            some = frozenset(random.sample(concerned, size))
            for way, spent in taken.items():
                forced[0] = way
                for delta in (Delta(deleted=some), Delta(inserted=some)):
                    begin = time.perf_counter()
                    engine.apply(delta)
                    spent.append(1e6 * (time.perf_counter() - begin))
        each = {way: statistics.median(spent) for way, spent in taken.items()}
        ratio = each[None] / min(each["incremental"], each["direct"])
        note = "always incremental"
        if size > 1:
            chosen = " and ".join(sorted({one.chosen for one in view.decisions()[-2:]}))
            note = f"incremental {each['incremental']:,.0f}, direct {each['direct']:,.0f}; chosen: {chosen}"
            note = f"× {ratio:.2f} of the better: {note}"
        rows.append((f"batch, {name}", f"{size:,} changes", each[None], "—", "—", "—", note))
    return rows


# -- worst cases


def hub() -> list[Row]:
    """A node with 100,000 edges, in patterns that meet there."""
    engine = LocalEngine()
    engine.register(PREFIX + "SELECT ?b ?c { ?a :knows ?b . ?b :city ?c . ?a :age '7' }")
    engine.register(PREFIX + "SELECT * { ?a :knows ?b . ?b :knows ?a }")
    edges = [Quad(person(0), KNOWS, person(number)) for number in range(1, 100_001)]
    some = [Quad(person(number), CITY, city(number % 1_000)) for number in range(1, 31)]
    old = Quad(person(0), AGE, Literal("7"))
    engine.apply(Delta(inserted=frozenset([*edges, *some, old])))
    rows: list[Row] = []
    for label, sample in (
        ("± edge of the hub", edges[:2_000]),
        ("± city of a neighbour", some),
        ("± age of the hub", [old] * 5),
        ("± edge to the hub", [Quad(person(number), KNOWS, person(0)) for number in range(200_000, 201_000)]),
    ):
        if label == "± edge to the hub":
            engine.apply(Delta(inserted=frozenset(sample)))
        rows.append(("hub, 100,000 edges", label, *single_changes(engine, sample), "—", "single change"))
    return rows


def large_batch() -> list[Row]:
    """A batch of 100,000 changes on both patterns at once."""
    data = list(quads(PERSONS))
    engine = LocalEngine()
    views = [engine.register(PREFIX + text) for text in (STAR, PATH)]
    engine.apply(Delta(inserted=frozenset(data)))
    rows: list[Row] = []
    some = frozenset(Random(5).sample(data, 100_000))
    for label, delta in (("delete", Delta(deleted=some)), ("insert", Delta(inserted=some))):
        begin = time.perf_counter()
        engine.apply(delta)
        micros = 1e6 * (time.perf_counter() - begin)
        chosen = ", ".join(view.decisions()[-1].chosen for view in views)
        note = f"per change; most: the whole batch; star3 and path3: {chosen}"
        rows.append(("100,000 changes at once", label, micros / 100_000, "—", micros, "—", note))
    return rows


def large_optional() -> list[Row]:
    """OPTIONAL over all acquaintances."""
    data = [quad for quad in quads(PERSONS) if quad.predicate in (KNOWS, CITY, AGE)]
    engine = LocalEngine()
    view = engine.register(PREFIX + "SELECT * { ?s :knows ?k OPTIONAL { ?k :age ?a } }")
    for start in range(0, len(data), 100_000):
        engine.apply(Delta(inserted=frozenset(data[start : start + 100_000])))
    rows: list[Row] = []
    for predicate in (KNOWS, AGE):
        sample = Random(6).sample([quad for quad in data if quad.predicate == predicate], 5_000)
        label = predicate.value.rsplit("/", 1)[-1]
        rows.append(("large OPTIONAL", f"± {label}", *single_changes(engine, sample), "—", f"{view.size():,} entries"))
    return rows


def large_distinct() -> list[Row]:
    """DISTINCT over two million rows."""
    persons = 60_000
    data = [quad for quad in quads(persons) if quad.predicate in (KNOWS, CITY)]
    engine = LocalEngine()
    view = engine.register(PREFIX + "SELECT DISTINCT ?a ?d { ?a :knows ?b . ?b :knows ?d }")
    for start in range(0, len(data), 100_000):
        engine.apply(Delta(inserted=frozenset(data[start : start + 100_000])))
    sample = Random(7).sample([quad for quad in data if quad.predicate == KNOWS], 5_000)
    note = f"{len(view._result):,} rows, scaled to fit 3 GB: {memory() / 1e9:.1f} GB"
    return [("DISTINCT over millions", "± knows", *single_changes(engine, sample), "—", note)]


def deep_hierarchy() -> list[Row]:
    """``+`` on a tree of 20,000 classes and on a chain of 1,000."""
    broader = NamedNode(NS + "broader")
    random = Random(8)
    rows: list[Row] = []
    nodes = [NamedNode(f"{NS}class/{number}") for number in range(20_000)]
    tree = [Quad(nodes[number], broader, nodes[random.randrange(number)]) for number in range(1, len(nodes))]
    chain = [Quad(one, broader, other) for one, other in pairwise(nodes[:1_000])]
    for label, data, text in (
        ("tree of 20,000, both ends open", tree, "SELECT * { ?a :broader+ ?b }"),
        ("tree of 20,000, to the root", tree, f"SELECT ?a {{ ?a :broader+ <{nodes[0].value}> }}"),
        ("chain of 1,000, both ends open", chain, "SELECT * { ?a :broader+ ?b }"),
    ):
        engine = LocalEngine()
        view = engine.register(PREFIX + text)
        engine.apply(Delta(inserted=frozenset(data)))
        sample = random.sample(data, 2_000 if data is tree else 10)
        rows.append(("path +", label, *single_changes(engine, sample), "—", f"{view.size():,} entries"))
    return rows


def limits() -> list[Row]:
    """A view without bounds fails at its limit, and the others go on."""
    data = [quad for quad in quads(20_000) if quad.predicate == KNOWS]
    engine = LocalEngine()
    greedy = engine.register(PREFIX + "SELECT * { ?a :knows+ ?b }", limit=1_000_000)
    other = engine.register(PREFIX + "SELECT * { ?a :knows ?b }")
    begin = time.perf_counter()
    engine.apply(Delta(inserted=frozenset(data)))
    micros = 1e6 * (time.perf_counter() - begin)
    assert greedy.failed is not None
    assert len(other._result) == len(data)
    return [("unbounded +", "limit of 1,000,000", "—", "—", micros, "—", f"{greedy.failed.condition}; others go on")]


# -- peers


def reevaluation() -> list[Row]:
    """Evaluate the queries again after each change, for the changed subject only, with pyoxigraph."""
    store = pyoxigraph.Store()
    data = list(quads(PERSONS))
    store.bulk_extend(data)
    rows: list[Row] = []
    sample = Random(2).sample([quad for quad in data if quad.predicate == AGE], 1_000)

    def star(quad: Quad) -> Callable[[], object]:
        text = PREFIX + f"SELECT * {{ {quad.subject} a :Person ; :age ?a ; :city ?c }}"

        def both() -> None:
            for change in (store.remove, store.add):
                change(quad)
                list(store.query(text))  # type: ignore[arg-type]

        return both

    taken = times(star(quad) for quad in sample)
    rows.append(("star3", "± age", *(one / 2 for one in taken), "—", "pyoxigraph again, changed subject only"))
    sample = Random(2).sample([quad for quad in data if quad.predicate == KNOWS], 300)

    def path(quad: Quad) -> Callable[[], object]:
        one = f"SELECT * {{ {quad.object} :knows ?d . ?d :city ?c }}"
        two = f"SELECT * {{ ?a :knows {quad.subject} . {quad.object} :city ?c }}"
        return lambda: [list(store.query(PREFIX + text)) for text in (one, two)]  # type: ignore[arg-type]

    taken = times(path(quad) for quad in sample)
    rows.append(("path3", "± knows", *taken, "—", "pyoxigraph again, joined with the changed edge only"))
    begin = time.perf_counter()
    count = len(list(store.query(PREFIX + STAR)))  # type: ignore[arg-type]
    micros = 1e6 * (time.perf_counter() - begin)
    rows.append(("star3", "whole query", micros, "—", "—", "—", f"pyoxigraph again, all {count:,} rows"))
    return rows


def pathway() -> list[Row]:
    """Run Pathway on the same data and changes, where it is installed."""
    python = os.environ.get("EVERGRAPH_PATHWAY_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", "import pathway"], capture_output=True, check=False)
    if found.returncode:
        return [("star3", "Pathway", "—", "—", "—", "—", "not installed: pip install pathway")]
    script = Path(__file__).with_name("standing_pathway.py")
    ran = subprocess.run([python, script, str(PERSONS)], capture_output=True, text=True, check=False, timeout=240)
    if ran.returncode:
        return [("star3", "Pathway", "—", "—", "—", "—", f"failed: {ran.stderr.strip().splitlines()[-1][:80]}")]
    version, p50, p99, most, loaded = ran.stdout.split()[-5:]
    note = f"Pathway {version}, commit to callback; loads in {float(loaded):.0f} s"
    return [("star3", "± age", float(p50), float(p99), float(most), "—", note)]


def incremunica() -> list[Row]:
    """Say why Incremunica is not measured."""
    return [
        (
            "star3",
            "Incremunica",
            "—",
            "—",
            "—",
            "—",
            "not installed: npm does not find @incremunica/query-sparql-incremental",
        )
    ]


CASES: tuple[tuple[Callable[..., list[Row]], tuple[str, ...]], ...] = (
    (latency, ("star3",)),
    (latency, ("path3",)),
    (all_indexed, ()),
    *((choices, (name,)) for name in VIEWS),
    (hub, ()),
    (large_batch, ()),
    (large_optional, ()),
    (large_distinct, ()),
    (deep_hierarchy, ()),
    (limits, ()),
    (reevaluation, ()),
    (pathway, ()),
    (incremunica, ()),
)


def main() -> None:
    """Run everything, each case in a process of its own, and write the results."""
    report = Report("standing", COLUMNS)
    context = get_context("spawn")
    for case, arguments in CASES:
        with context.Pool(1) as pool:
            for row in pool.apply(case, arguments):
                report.add(*row)
    load = os.getloadavg()[0]
    report.add("machine", "load", "—", "—", "—", "—", f"{load:.1f} at the end, this benchmark included")
    report.show()


if __name__ == "__main__":
    main()
