"""``evergraph run``: a whole pipeline on Spark."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from evergraph.cli.progress import progress
from evergraph.errors import UsageError
from evergraph.pipeline import run as run_pipeline
from evergraph.pipeline import watch
from evergraph.sparql.algebra import Query

PipelineFile = Annotated[Path, typer.Argument(metavar="PIPELINE.toml", help="The definition of a pipeline.")]
SparkMaster = Annotated[
    str | None, typer.Option("--spark-master", metavar="URL", help="Where Spark runs; default: local[*], this machine.")
]


def run(
    definition: PipelineFile,
    follow: Annotated[bool, typer.Option("--follow", help="Go on as changes come, until interrupted.")] = False,
    spark_master: SparkMaster = None,
) -> None:
    """Run a pipeline on Spark: a change source, views over it, and sinks.

    Prints one line of JSON for every committed batch:
    `{"batch":n,"sequence":n,"changes":n,"inserted":n,"deleted":n,"views":{NAME:{"added":n,"removed":n}},"seconds":s,…}`.
    Each change takes effect exactly once, however a run ends; the next run goes on where it was. Ctrl-C and SIGTERM end
    a run after the batch at hand.

    **Examples**

    `evergraph run places.toml`

    `evergraph run places.toml --follow --spark-master spark://host:7077`
    """
    with progress("batches committed") as step_done:

        def tell(report: dict[str, object]) -> None:
            sys.stdout.write(json.dumps(report, ensure_ascii=False, separators=(",", ":")) + "\n")
            sys.stdout.flush()
            step_done()

        def warn(message: str) -> None:
            typer.echo(f"evergraph: {message}", err=True)

        run_pipeline(definition, follow, spark_master, report=tell, warn=warn)


def watch_on_spark(query: Query, changes: Path, init: list[Path] | None, master: str | None) -> None:
    """Do what ``evergraph watch`` does, on Spark."""
    if str(changes) == "-":
        raise UsageError("Spark cannot read changes from standard input", hint="put them into a file or a folder")
    with progress("changes followed") as step_done:
        watch(query, changes, init or (), master, report=lambda report: step_done())
