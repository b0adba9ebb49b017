"""``evergraph link``: materialise or maintain a linkset."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from evergraph.cli.progress import progress
from evergraph.cli.run import SparkMaster
from evergraph.cli.watch import Engine, EngineOption
from evergraph.linking.definition import load_linkset
from evergraph.linking.foreign import convert as convert_file
from evergraph.views.linksets import Run
from evergraph.views.linksets import link as run_linkset
from evergraph.views.linksets.explaining import explain_linkset, explain_pair, linkset_text, pair_text

LinksetFile = Annotated[Path, typer.Argument(metavar="LINKSET.toml", help="The definition of a linkset.")]

Link = Annotated[
    tuple[str, str] | None,
    typer.Option("--link", metavar="SOURCE TARGET", help="Of a linkset: two resources, by their IRIs."),
]


def link(
    definition: LinksetFile,
    engine: EngineOption = Engine.LOCAL,
    full: Annotated[bool, typer.Option("--full", help="Match everything anew in the first run.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the state of earlier runs first.")] = False,
    every: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0.01, help="Go on, looking for changes at this pace.")
    ] = None,
    convert: Annotated[
        bool, typer.Option("--convert", help="Print a Silk-LSL or LIMES file as a definition, and run nothing.")
    ] = False,
    spark_master: SparkMaster = None,
) -> None:
    """Materialise a linkset, or bring it up to date with its change sources.

    Prints one line of JSON for every run: `{"sequence":n,"added":n,"removed":n,"links":n,"mode":"incremental"}`, where
    mode is `incremental` or `full`, whichever was likely to cost less. A run matches again only the resources that
    changed since the last one, on either side. The files are those that the definition names. However a run ends, the
    next one goes on where the last one was.

    **Examples**

    `evergraph link mints.toml`

    `evergraph link mints.toml --every 60`

    `evergraph link mints.toml --fresh --engine spark`

    `evergraph link silk.xml --convert > mints.toml`
    """
    if convert:
        _print_converted(definition)
        return
    with progress("runs made") as step_done:

        def tell(run: Run) -> None:
            line = {
                "sequence": run.sequence,
                "added": len(run.added),
                "removed": len(run.removed),
                "links": run.links,
                "mode": run.mode.value,
            }
            sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
            sys.stdout.flush()
            step_done()

        run_linkset(
            definition,
            full=full,
            fresh=fresh,
            every=every,
            engine=engine.value,
            spark_master=spark_master,
            report=tell,
        )


def _print_converted(path: Path) -> None:
    """Print the definition, and on standard error what could not be expressed: then the exit code is 1."""
    converted = convert_file(path)
    sys.stdout.write(converted.toml())
    for problem in converted.problems:
        typer.echo(f"evergraph: not expressed: {problem}", err=True)
    raise typer.Exit(1 if converted.problems else 0)


def explain_linkset_file(name: str, pair: tuple[str, str] | None, as_json: bool) -> None:
    """Do what ``evergraph explain`` does with the definition of a linkset."""
    definition = load_linkset(name)
    report = explain_linkset(definition) if pair is None else explain_pair(definition, *pair)
    if as_json:
        sys.stdout.write(json.dumps(report, ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write(linkset_text(report) if pair is None else pair_text(report))
