"""``evergraph load``: add RDF files to a database."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from evergraph.cli.options import DefaultGraph, QueryEndpoint, Store, UpdateEndpoint, open_target
from evergraph.cli.progress import progress


def load(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="RDF files in any syntax; .gz allowed.")],
    store: Store = None,
    endpoint: QueryEndpoint = None,
    update_endpoint: UpdateEndpoint = None,
    log: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep a change log for an endpoint here.")] = None,
    default_graph: DefaultGraph = None,
) -> None:
    """Add RDF files to a database, named graphs included, as one change.

    Prints one line, `{"sequence":n,"inserted":n}`: what was there already does not count. `evergraph log` tells which.

    **Examples**

    `evergraph load --store db catalogue.trig people.ttl.gz`
    """
    with open_target(store, endpoint, update_endpoint, log=log, default_graph=default_graph) as database:
        with progress("files loaded", len(files)):
            change = database.load(*files)
        sys.stdout.write(json.dumps({"sequence": change.sequence, "inserted": len(change.inserted)}) + "\n")
