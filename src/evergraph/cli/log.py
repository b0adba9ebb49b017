"""``evergraph log``: read the change log of a database."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from evergraph.errors import StoreError
from evergraph.gate.embedded import read_checkpoint
from evergraph.log import ChangeLog
from evergraph.patch import write_transaction
from evergraph.terms import XSD, Literal, NamedNode


def log(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a database, or of the log of an endpoint.")],
    after: Annotated[int, typer.Option(metavar="N", min=0, help="Only the changes after this sequence number.")] = 0,
) -> None:
    """Print the change log as RDF Patch, from any sequence number on.

    The changes of a database, applied in order to an empty one, give the same dataset. A database that is in use can be
    read.

    **Examples**

    `evergraph log db --after 41`

    `evergraph log db > history.rdfp && evergraph apply --store copy --changes history.rdfp`
    """
    place = folder / "log" if (folder / "log").is_dir() else folder
    if not any(place.glob("*.rdfp")) and not (folder / "store").is_dir():
        raise StoreError(f"{folder} holds no change log", hint="name the folder given to --store or --log")
    changes = ChangeLog(place, read_only=True)
    checkpoint = read_checkpoint(folder)
    if checkpoint and changes.last < checkpoint[0]:
        raise StoreError(f"{place} ends with change {changes.last}: its end is lost", hint="restore it from a backup")
    for change in changes.read(after):
        number = Literal(str(change.sequence), datatype=NamedNode(XSD + "integer"))
        write_transaction(sys.stdout.buffer, change.delta, {"sequence": number})
    sys.stdout.buffer.flush()
