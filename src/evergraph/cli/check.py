"""``evergraph check``: compare a maintained view with a run from scratch."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from evergraph.cli.progress import progress
from evergraph.cli.run import SparkMaster
from evergraph.cli.watch import Init, initial_data, load_query
from evergraph.delta import Bag, Request
from evergraph.errors import UsageError
from evergraph.pipeline import check as check_pipeline
from evergraph.sources import open_source
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Row
from evergraph.terms import Quad
from evergraph.views.queries import Step, json_step, result_rows
from evergraph.views.streams import follow


def check(
    query: Annotated[str, typer.Argument(metavar="QUERY.rq | PIPELINE.toml", help="A SPARQL query, or a pipeline.")],
    changes: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A change source: changeset folder, RDF Patch, versions.")
    ] = None,
    init: Init = None,
    every: Annotated[
        int, typer.Option(metavar="N", min=0, help="Compare after every N changes; 0: only at the end.")
    ] = 0,
    spark_master: SparkMaster = None,
) -> None:
    """Compare a maintained view with a run from scratch.

    Follows the changes as `watch` does, and evaluates the query anew. Prints `{"ok":true,…}`, or where they differ:
    `added` is what the maintained result has too much, `removed` what it lacks. Exit code 1 if they differ.

    Of a pipeline, compares the tables of its views with a run of their queries from scratch, on Spark.

    **Examples**

    `evergraph check people.rq --changes changesets/`

    `evergraph check people.rq --init dump.nt --changes history.rdfp --every 100`

    `evergraph check places.toml`
    """
    if changes is None:
        _check_pipeline(query, spark_master)
    parsed = load_query(query)
    view, state = follow(parsed), set[Quad]()
    last = compared = 0
    wrong: Bag[Row] = Bag()
    with progress("changes followed") as step_done:
        for last, request in _requests(init, changes):
            view.take(request)
            state.difference_update(request.removed)
            state.update(request.added)
            step_done()
            if every and last % every == 0:
                compared += 1
                wrong = view.result() - result_rows(parsed, Dataset(state), view.environment)
                if wrong:
                    break
    if not wrong:
        compared += 1
        wrong = view.result() - result_rows(parsed, Dataset(state), view.environment)
    rows = sum(weight for _, weight in view.result().items())
    report: dict[str, object] = {"ok": not wrong, "changes": last, "compared": compared, "rows": rows}
    if wrong:
        report |= json_step(parsed, Step(last, wrong.positive(), wrong.negative()), view.variables)
    sys.stdout.write(json.dumps(report, ensure_ascii=False, separators=(",", ":")) + "\n")
    raise typer.Exit(1 if wrong else 0)


def _check_pipeline(name: str, spark_master: str | None) -> NoReturn:
    if not name.endswith(".toml"):
        raise UsageError("nothing to follow", hint="give --changes PATH, or the definition of a pipeline (.toml)")
    report = check_pipeline(name, spark_master)
    sys.stdout.write(json.dumps(report, ensure_ascii=False, separators=(",", ":")) + "\n")
    raise typer.Exit(0 if report["ok"] else 1)


def _requests(init: list[Path] | None, changes: Path) -> Iterator[tuple[int, Request]]:
    yield 0, initial_data(init)
    for change in open_source(changes).changes():
        yield change.sequence, change.request
