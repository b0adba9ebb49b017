"""The same replicas in one embedded database, each in a graph of its own."""

import tempfile
from pathlib import Path

import evergraph as eg

folder = Path(__file__).parent

with tempfile.TemporaryDirectory() as temporary:
    database = Path(temporary, "db")
    done = eg.replicate(
        folder / "interests",
        init=folder / "mints.ttl",
        changes=folder / "changes",
        target=f"store:{database}",
        on_change=lambda step: print(f"{step.sequence} {step.interest}: +{step.added} -{step.removed}"),
    )
    with eg.open(database) as db:
        for name, (target, potential) in done.sizes.items():
            graph = f"urn:evergraph:replica:{name}"
            held = sum(1 for quad in db.quads() if quad.graph_name.value == graph)
            print(f"{graph} holds {held} triples, {target} as it should; {potential} are potentially interesting")
