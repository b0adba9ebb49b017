"""A replica: the part of a changing dataset that somebody is interested in, and nothing else."""

import re
from pathlib import Path

from pyoxigraph import RdfFormat
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from evergraph.delta import Request
from evergraph.rdfio import parse_quads, read_quads
from evergraph.replication import ReplicaStep, replicate
from evergraph.sources import open_source, write_changeset
from evergraph.terms import Quad
from evergraph.views.replicas import parse_interest
from evergraph.views.replicas.oracle import interesting

_PREFIX = "PREFIX : <http://harbour.example/>\n"

_INTEREST = """SELECT * {
  ?ship a :Ferry ; :at ?pier .
  OPTIONAL { ?ship :captain ?captain . ?captain :name ?name }
}"""

_STEPS = (
    (
        "Two ferries, a barge, and a captain whom nobody can place yet:",
        "",
        ":swift a :Ferry ; :at :pier1 . :heron a :Ferry . :tub a :Barge ; :at :pier1 . :ada :name 'Ada' .",
    ),
    ("Ada takes the Swift. Her name was set aside, and one triple brings it in:", "", ":swift :captain :ada ."),
    ("The Heron arrives; the barge leaves, which concerns nobody:", ":tub :at :pier1 .", ":heron :at :pier2 ."),
    ("Ada also takes the Heron. Her name is there already:", "", ":heron :captain :ada ."),
    (
        "The Swift leaves. Ada's name stays, because the Heron still holds it:",
        ":swift :at :pier1 .",
        "",
    ),
)


def show(out: Console, folder: Path) -> None:
    """Replicate change by change, and compare the replica with its definition."""
    folder.mkdir()
    interest = folder / "ferries.rq"
    interest.write_text(_PREFIX + _INTEREST)
    out.print(Text("Somebody wants the ferries at a pier, with their captains if they have one:", style="bold"))
    out.print(Syntax(_INTEREST, "sparql", background_color="default", word_wrap=True))
    for number, (title, removed, added) in enumerate(_STEPS, 1):
        out.print(Text(f"\n{number}. {title}", style="bold"))
        write_changeset(folder / "changes", number, Request(_quads(removed), _quads(added)))
        replicate(
            interest,
            changes=folder / "changes",
            target=folder / "target",
            on_change=lambda step: _tell(out, step),
        )
    held = frozenset(read_quads(folder / "target" / "data.nt"))
    for quad in sorted(map(str, held)):
        out.print(Text("   " + re.sub(r"<http://harbour\.example/([^>]*)>", r":\1", quad), style="green"))
    state: frozenset[Quad] = frozenset()
    for change in open_source(folder / "changes").changes():
        state = (state - change.request.removed) | change.request.added
    if held != interesting(parse_interest(_PREFIX + _INTEREST), state):
        raise AssertionError("the replica is not what its definition says")
    out.print(Text(f"   {len(held)} of {len(state)} triples, as the definition says"))


def _quads(text: str) -> frozenset[Quad]:
    return frozenset(parse_quads(_PREFIX + text, RdfFormat.TURTLE))


def _tell(out: Console, step: ReplicaStep) -> None:
    out.print(
        Text(f"   the replica: +{step.added} -{step.removed}; set aside as potentially interesting: {step.potential}")
    )
