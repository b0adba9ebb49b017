"""``evergraph watch``: maintain a standing query over a change source."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evergraph.cli.inputs import base_iri, display_name, read_text
from evergraph.cli.progress import progress
from evergraph.cli.run import SparkMaster, watch_on_spark
from evergraph.delta import Bag, Request
from evergraph.engines.local.pauses import watch_collector
from evergraph.errors import SyntaxProblem, UsageError
from evergraph.replication.filling import dump
from evergraph.sources import open_source
from evergraph.sparql.algebra import Query
from evergraph.sparql.parser import parse_query
from evergraph.views.queries import Step, json_step
from evergraph.views.streams import follow


class Engine(StrEnum):
    """Where a view is maintained."""

    LOCAL = "local"
    SPARK = "spark"


QueryFile = Annotated[str, typer.Argument(metavar="QUERY.rq", help="A SPARQL query; - is standard input.")]
Changes = Annotated[Path, typer.Option(metavar="PATH", help="A change source: changeset folder, RDF Patch, versions.")]
Init = Annotated[
    list[Path] | None, typer.Option(metavar="DATA", help="RDF files or folders to begin with; may be repeated.")
]
EngineOption = Annotated[Engine, typer.Option("--engine", help="Where to maintain the view.")]
Limit = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Entries of state that the view may need before it is given up (local engine)."
    ),
]


def watch(
    query: QueryFile,
    changes: Changes,
    init: Init = None,
    engine: EngineOption = Engine.LOCAL,
    limit: Limit = None,
    spark_master: SparkMaster = None,
    decisions: Annotated[
        bool,
        typer.Option("--decisions", help="Say on standard error how each large change was taken in (local engine)."),
    ] = False,
) -> None:
    """Maintain a standing query over a change source.

    Prints one line of JSON for the initial result (sequence 0) and one for every change that has an effect on it:
    `{"sequence":n,"added":RESULT,"removed":RESULT}`, where RESULT is SPARQL results JSON for SELECT and ASK, and a list
    of N-Triples for CONSTRUCT and DESCRIBE. The sum of the lines is the result at any time.

    **Examples**

    `evergraph watch people.rq --changes changesets/`

    `evergraph watch people.rq --init dump.nt.gz --changes history.rdfp | jq .added`
    """
    if query == "-" and str(changes) == "-":
        raise UsageError("standard input cannot be both the query and the changes", hint="put the query into a file")
    if engine is Engine.SPARK and (limit is not None or decisions):
        raise UsageError(
            "--limit and --decisions are for the local engine", hint="leave them out, or leave --engine spark out"
        )
    parsed = load_query(query)
    source = open_source(changes)
    if engine is Engine.SPARK:
        watch_on_spark(parsed, changes, init, spark_master)
        return
    watch_collector()
    view = follow(parsed, limit=limit)
    view.take(initial_data(init))

    def tell(step: Step) -> None:
        sys.stdout.write(
            json.dumps(json_step(parsed, step, view.variables), ensure_ascii=False, separators=(",", ":")) + "\n"
        )
        sys.stdout.flush()

    told = 0

    def tell_decisions() -> None:
        nonlocal told
        for decision in view.decisions() if decisions else ():
            if decision.batch > told:
                sys.stderr.write(f"{decision}\n")
                told = decision.batch

    tell(Step(0, view.result(), Bag()))
    tell_decisions()
    with progress("changes followed") as step_done:
        for change in source.changes():
            if effect := view.take(change.request):
                tell(Step(change.sequence, effect.positive(), effect.negative()))
            tell_decisions()
            step_done()


def load_query(name: str) -> Query:
    """Read and parse a query; errors name the file."""
    return parse(name, read_text(name))


def parse(name: str, text: str) -> Query:
    """Parse a query that was read from a file of that name."""
    try:
        return parse_query(text, base_iri(name))
    except SyntaxProblem as error:
        raise error.at(display_name(name), text) from None


def initial_data(paths: list[Path] | None) -> Request:
    """Read what a view begins with. Labels of blank nodes are kept, because changes use them."""
    return Request(added=frozenset(quad for path in paths or () for quad in dump(path)))
