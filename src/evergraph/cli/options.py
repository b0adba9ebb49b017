"""Options that several commands share, and the databases that they name."""

from pathlib import Path
from typing import Annotated

import typer

from evergraph.database import Database, connect, open_database
from evergraph.errors import StoreError, UsageError
from evergraph.gate.extract import Loader
from evergraph.gate.load import load_document

Store = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of an embedded database; made if missing.")]
QueryEndpoint = Annotated[
    str | None, typer.Option("--endpoint", metavar="URL", help="Address of a SPARQL query service.")
]
UpdateEndpoint = Annotated[
    str | None, typer.Option(metavar="URL", help="Address of its update service; default: the query service.")
]
DefaultGraph = Annotated[
    str | None,
    typer.Option(metavar="IRI", help="Graph that serves as the default graph on servers without one (Virtuoso)."),
]


def open_target(
    store: Path | None,
    endpoint: str | None,
    update_endpoint: str | None = None,
    *,
    log: Path | None = None,
    default_graph: str | None = None,
    read_only: bool = False,
    load: Loader = load_document,
) -> Database:
    """Open what ``--store`` or ``--endpoint`` names; exactly one of them must be given."""
    if (store is None) == (endpoint is None):
        raise UsageError("name one database", hint="give either --store DIR or --endpoint URL")
    if store is not None:
        if update_endpoint or log or default_graph:
            raise UsageError("--update-endpoint, --log and --default-graph belong to --endpoint, not to --store")
        if read_only and not (store / "store").is_dir():
            raise StoreError(f"{store} is not a database", hint="check the path; 'evergraph load' makes a database")
        return open_database(store, read_only=read_only, load=load)
    assert endpoint is not None
    for url in (endpoint, update_endpoint):
        if url and not url.startswith(("http://", "https://")):
            raise UsageError(f"{url!r} is not the address of an endpoint", hint="begin it with http:// or https://")
    return connect(endpoint, update_endpoint or endpoint, log=log, default_graph=default_graph, load=load)
