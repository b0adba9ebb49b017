"""The same standing queries in one database, each told of every change that concerns it."""

from pathlib import Path

import evergraph as eg
from evergraph.sources import open_source

folder = Path(__file__).parent


def write(row: tuple[object, ...]) -> str:
    return " ".join("-" if term is None else str(term) for term in row)


with eg.open() as db:
    db.load(folder / "mints.ttl")
    views = {path.stem: db.watch(path.read_text()) for path in sorted(folder.glob("*.rq"))}
    for change in open_source(folder / "changes").changes():
        db.apply(change.request)
    for name, view in views.items():
        print(f"# {name}: {len(view.result())} rows")
        for step in view.changes():
            for row in sorted(map(write, step.removed.rows())):
                print(step.sequence, "-", row)
            for row in sorted(map(write, step.added.rows())):
                print(step.sequence, "+", row)
