"""A pipeline on Spark: three months of arrivals and departures, four views, every batch committed exactly once."""

import os
import time
from pathlib import Path
from random import Random

from rich.console import Console
from rich.progress import Progress
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from evergraph.delta import Bag, Request
from evergraph.pipeline import run
from evergraph.sources import open_source, write_changeset
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.terms import DEFAULT_GRAPH, Literal, NamedNode, Quad
from evergraph.views.queries import result_rows

_NS = "http://harbour.example/"
_PREFIX = f"PREFIX : <{_NS}>"
_SHIPS, _PIERS, _DAYS = 600, 40, 90

_VIEWS = {
    "berths": "SELECT ?ship ?pier ?captain { ?ship :at ?pier OPTIONAL { ?ship :captain ?captain } }",
    "traffic": "SELECT ?pier (COUNT(*) AS ?ships) { ?ship :at ?pier } GROUP BY ?pier",
    "adrift": "SELECT ?ship { ?ship :at ?pier FILTER NOT EXISTS { ?ship :captain ?captain } }",
    "meetings": "CONSTRUCT { ?one :couldMeet ?other } WHERE { ?a :at ?pier ; :captain ?one . "
    "?b :at ?pier ; :captain ?other FILTER(?one != ?other) }",
}


def show(out: Console, folder: Path) -> None:
    """Write changesets, run the pipeline over them, and compare each view with a run from scratch."""
    changes = folder / "changes"
    changed = _write_history(changes)
    definition = folder / "harbour.toml"
    definition.write_text(_definition())
    out.print(Text(f"{_DAYS} changesets, {changed:,} arrivals, departures and new captains, and this pipeline:"))
    out.print(Syntax(definition.read_text(), "toml", background_color="default", word_wrap=True))
    begin = time.perf_counter()
    reports = _run(out, definition)
    seconds = time.perf_counter() - begin
    table = Table("batch", "sets", "in", "out", *_VIEWS, "s")
    for report in reports:
        effects = report["views"]
        assert isinstance(effects, dict)
        cells = [effects.get(name, {"added": 0, "removed": 0}) for name in _VIEWS]
        table.add_row(
            *(str(report[key]) for key in ("batch", "changes", "inserted", "deleted")),
            *(f"+{cell['added']} -{cell['removed']}" for cell in cells),
            f"{report['seconds']:.1f}",
        )
    out.print(table)
    out.print(
        Text("   in, out: triples that a batch inserts and deletes in the end; who comes and leaves in it is in none")
    )
    _compare(out, folder)
    out.print(Text(f"   all of it, starting Spark included: {seconds:.0f} s"))


def _run(out: Console, definition: Path) -> list[dict[str, object]]:
    reports: list[dict[str, object]] = []
    with Progress(console=out, transient=True) as progress:
        task = progress.add_task("starting Spark", total=_DAYS)

        def tell(report: dict[str, object]) -> None:
            reports.append(report)
            progress.update(task, description="changesets", completed=int(str(report["sequence"])))

        # For a run of a minute, the second compiler of the JVM takes more time than it gains.
        os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
        run(definition, report=tell)
    return reports


def _definition() -> str:
    text = '[pipeline]\nstate = "state"\n\n[source]\nchanges = "changes"\n\n[batch]\nchanges = 30\n'
    for name, query in _VIEWS.items():
        text += f'\n[[view]]\nname = "{name}"\ntext = """\n{_PREFIX}\n{query}\n"""\n'
        text += f'[[view.sink]]\nkind = "table"\npath = "out/{name}"\n'
    return text


def _write_history(folder: Path) -> int:
    """Write what happens day by day; return how many triples that is."""
    chance = Random(7)
    places: dict[int, int] = {}
    captains: dict[int, int] = {}
    changed = 0
    for day in range(1, _DAYS + 1):
        removed: set[Quad] = set()
        added: set[Quad] = set()
        for ship in chance.sample(range(_SHIPS), 60):
            if ship in places:
                removed.add(_quad(f"ship{ship}", "at", f"pier{places.pop(ship)}"))
            if chance.random() < 0.6:
                places[ship] = chance.randrange(_PIERS)
                added.add(_quad(f"ship{ship}", "at", f"pier{places[ship]}"))
            if chance.random() < 0.1:
                if ship in captains:
                    removed.add(_quad(f"ship{ship}", "captain", f"captain{captains.pop(ship)}"))
                captains[ship] = chance.randrange(_SHIPS // 4)
                added.add(_quad(f"ship{ship}", "captain", f"captain{captains[ship]}"))
        added.add(Quad(NamedNode(_NS + f"day{day}"), NamedNode(_NS + "number"), Literal(day), DEFAULT_GRAPH))
        write_changeset(folder, day, Request(removed=frozenset(removed), added=frozenset(added)))
        changed += len(removed) + len(added)
    return changed


def _quad(subject: str, predicate: str, object_: str) -> Quad:
    return Quad(NamedNode(_NS + subject), NamedNode(_NS + predicate), NamedNode(_NS + object_), DEFAULT_GRAPH)


def _compare(out: Console, folder: Path) -> None:
    present: set[Quad] = set()
    for change in open_source(folder / "changes").changes():
        present = (present - change.request.removed) | change.request.added
    for name, query in _VIEWS.items():
        expected = result_rows(parse_query(f"{_PREFIX} {query}"), Dataset(present))
        same = _table_rows(folder / "out" / name) == expected
        verdict = "the same as from scratch" if same else "NOT THE SAME"
        out.print(Text(f"   {name}: {len(expected):,} rows, {verdict}", style="green" if same else "red"))
        if not same:
            raise AssertionError(f"the view {name} is not what a run from scratch gives")


def _table_rows(path: Path) -> Bag[Row]:
    """Read a table of a view with any Delta reader: the sum of its rows is the view."""
    import pyarrow as pa
    from deltalake import DeltaTable

    from evergraph.engines.spark.rows import WEIGHT, term_of

    table = pa.table(DeltaTable(path).to_pyarrow_table())
    names = [name for name in table.column_names if name != WEIGHT and not name.startswith("_")]
    columns = [table[name].to_pylist() for name in names]
    rows: Bag[Row] = Bag()
    for place, weight in enumerate(table[WEIGHT].to_pylist()):
        rows.add(tuple(None if column[place] is None else term_of(column[place]) for column in columns), weight)
    return rows
