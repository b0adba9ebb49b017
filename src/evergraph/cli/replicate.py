"""``evergraph replicate``: keep the part of a changing dataset that an interest describes."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from evergraph.cli.progress import progress
from evergraph.cli.run import SparkMaster
from evergraph.cli.watch import Engine, EngineOption
from evergraph.pipeline.replicas import replicate as run_replication
from evergraph.replication import ReplicaStep

Interests = Annotated[
    list[Path], typer.Argument(metavar="INTEREST.rq...", help="SPARQL queries, or folders of them (*.rq).")
]
Changes = Annotated[
    str, typer.Option(metavar="PATH", help="A change source: changeset folder or its address, RDF Patch, versions.")
]
Target = Annotated[
    str,
    typer.Option(
        metavar="DIR_or_URL", help="A folder, store:DIR for a database, delta:DIR for a Delta table, or an endpoint."
    ),
]
Init = Annotated[
    list[str] | None,
    typer.Option(metavar="DUMP", help="RDF files, folders or an endpoint to begin with; may be repeated."),
]


def replicate(
    interests: Interests,
    changes: Changes,
    target: Target,
    init: Init = None,
    potential: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where to write what is potentially interesting; 'paper': begin with none."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="What is needed to go on later; default: in the target or --potential."),
    ] = None,
    update_endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="The update service of an endpoint; default: the same address.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(metavar="IRI", help="The graph of the target; of several interests, what graphs begin with."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on when all changes are read, and wait for more.")
    ] = False,
    poll: Annotated[float, typer.Option(metavar="SECONDS", min=0.01, help="How often to look for more.")] = 5.0,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Set changes aside that cannot be read, and go on.")
    ] = False,
    page: Annotated[
        int, typer.Option(metavar="N", min=1, help="Triples in a page, to begin from an endpoint.")
    ] = 10_000,
    engine: EngineOption = Engine.LOCAL,
    spark_master: SparkMaster = None,
) -> None:
    """Keep a replica of the part of a changing dataset that an interest describes.

    An interest is a query. The replica holds all triples that take part in one of its matches, and what optional parts
    add to them. Prints one line of JSON for each change and interest:
    `{"sequence":n,"interest":NAME,"added":n,"removed":n,"potential":n}`, where `potential` counts the triples that
    match a pattern of the interest, but take part in no match yet. A folder has `data.nt` when all is done
    (`NAME/data.nt` of several interests). Stopped at any moment, it goes on where it was.

    **Examples**

    `evergraph replicate mints.rq --init dump.nt.gz --changes changesets/ --target replica/`

    `evergraph replicate a.rq b.rq --changes changesets/ --target http://localhost:7878/query
    --update-endpoint http://localhost:7878/update --state state/ --follow`
    """
    with progress("changes taken in") as step_done:
        last = 0

        def tell(step: ReplicaStep) -> None:
            nonlocal last
            line = {
                "sequence": step.sequence,
                "interest": step.interest,
                "added": step.added,
                "removed": step.removed,
                "potential": step.potential,
            }
            sys.stdout.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            if step.sequence != last:
                sys.stdout.flush()
                last = step.sequence
                step_done()

        run_replication(
            interests,
            changes=changes,
            target=target,
            init=init or (),
            potential=potential,
            state=state,
            update_endpoint=update_endpoint,
            graph=graph,
            follow=follow,
            poll=poll,
            skip_damaged=skip_damaged,
            page=page,
            engine=engine.value,
            spark_master=spark_master,
            on_change=tell,
            report=lambda message: typer.echo(f"evergraph: {message}", err=True),
        )
