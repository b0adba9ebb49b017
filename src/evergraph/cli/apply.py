"""``evergraph apply``: run updates and tell exactly what changed."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from evergraph.cli.inputs import base_iri, display_name, read_text
from evergraph.cli.options import DefaultGraph, QueryEndpoint, Store, UpdateEndpoint, open_target
from evergraph.cli.progress import progress
from evergraph.database import Database
from evergraph.delta import Change
from evergraph.errors import UsageError
from evergraph.patch import write_transaction
from evergraph.ports import Source
from evergraph.sources import open_source


def apply(
    updates: Annotated[
        list[str] | None, typer.Argument(metavar="UPDATE.ru…", help="SPARQL updates; - is standard input.")
    ] = None,
    store: Store = None,
    endpoint: QueryEndpoint = None,
    update_endpoint: UpdateEndpoint = None,
    changes: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A change source instead: changeset folder, RDF Patch, versions."),
    ] = None,
    log: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep a change log for an endpoint here.")] = None,
    default_graph: DefaultGraph = None,
) -> None:
    """Apply SPARQL updates and tell exactly what changed.

    Prints RDF Patch: one `TX … TC` per request, with a `D` row for every quad that was there and is gone, and an `A`
    row for every quad that was not there and is. A request counts wholly or not at all.

    **Examples**

    `evergraph apply --store db rename.ru`

    `echo 'CLEAR ALL' | evergraph apply --store db -`

    `evergraph apply --endpoint http://localhost:7878/query --update-endpoint http://localhost:7878/update rename.ru`

    `evergraph apply --store db --changes changesets/ > exact.rdfp`
    """
    if bool(updates) == bool(changes):
        problem = "updates and --changes exclude each other" if updates else "nothing to apply"
        raise UsageError(problem, hint="give update files, or a change source with --changes PATH")
    texts = [(name, read_text(name)) for name in updates or ()]  # before a database is made for nothing
    source = open_source(changes) if changes else None
    with open_target(store, endpoint, update_endpoint, log=log, default_graph=default_graph) as database:
        done = _apply_source(database, source) if source else _apply_updates(database, texts)
        for change in done:
            write_transaction(sys.stdout.buffer, change.delta)
            sys.stdout.buffer.flush()


def _apply_updates(database: Database, texts: list[tuple[str, str]]) -> Iterator[Change]:
    with progress("requests applied", len(texts)) as step:
        for name, text in texts:
            yield database.update(text, base=base_iri(name), where=display_name(name))
            step()


def _apply_source(database: Database, source: Source) -> Iterator[Change]:
    with progress("changes applied") as step:
        for change in source.changes():
            yield database.apply(change.request)
            step()
