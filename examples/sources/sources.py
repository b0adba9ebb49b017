"""Read any change source; what it asks for goes through the gate, which knows what is there."""

from pathlib import Path

import evergraph as eg
from evergraph.sources import open_source

folder = Path(__file__).parent

for name in ("history.rdfp", "changesets", "versions"):
    with eg.open() as db:
        for change in open_source(folder / name).changes():
            exact = db.apply(change.request)
            print(name, change.sequence, f"+{len(exact.inserted)} -{len(exact.deleted)}")
