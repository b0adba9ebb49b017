"""Exact changes, and a standing query that follows them."""

import re
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from evergraph.database import Database, open_database
from evergraph.delta import Change, Request
from evergraph.terms import Quad
from evergraph.views.queries import StandingQuery

_PREFIXES = "PREFIX : <http://harbour.example/> PREFIX foaf: <http://xmlns.com/foaf/0.1/>\n"

_QUERY = """SELECT ?who ?name ?boat
WHERE { GRAPH ?pier { ?who foaf:name ?name OPTIONAL { ?who :boat ?boat } } }"""

_STEPS = [
    (
        "A harbour keeps one graph of people per pier. The first load:",
        """INSERT DATA {
  GRAPH :pier1 { :ada foaf:name "Pietro" ; :boat :swift . :bea foaf:name "Pietro", "Mario" }
  GRAPH :pier2 { :carl foaf:name "Pietro"@it ; :berth 7 . :dora foaf:name "Dora" ; :boat :swift }
}""",
    ),
    (
        'Every "Pietro" becomes "Mario", in every graph. Bea has both names already: one deletion, no insertion.',
        """DELETE { GRAPH ?pier { ?who foaf:name "Pietro" } }
INSERT { GRAPH ?pier { ?who foaf:name "Mario" } }
WHERE  { GRAPH ?pier { ?who foaf:name "Pietro" } }""",
    ),
    (
        "What is there already is no insertion, what is not there is no deletion:",
        """INSERT DATA { GRAPH :pier2 { :dora foaf:name "Dora" ; :berth 9 } } ;
DELETE DATA { GRAPH :pier2 { :dora :boat :heron } }""",
    ),
    (
        "Operations see what those before them did, and what cancels within a request does not appear:",
        """INSERT DATA { GRAPH :pier1 { :swift :state "damaged" } } ;
INSERT { GRAPH :notices { ?boat :seenAt ?pier } } WHERE { GRAPH ?pier { ?who :boat ?boat . } } ;
DELETE WHERE { GRAPH :pier1 { :swift :state ?any } }""",
    ),
    ("A whole graph moves. Reported are the quads, not the command:", "MOVE :pier2 TO :pier1"),
    (
        "Random values and blank nodes are made once; the change tells which:",
        """INSERT { GRAPH :log { [] :ticket ?ticket } } WHERE { BIND(STRUUID() AS ?ticket) }""",
    ),
]


def show(out: Console, folder: Path) -> None:
    """Tell what each of some updates changes, and what that does to a query; then replay the log."""
    with open_database(folder / "db") as database:
        out.print(
            Text("A standing query follows every change: who goes by which name, and has which boat?", style="bold")
        )
        out.print(Syntax(_QUERY, "sparql", background_color="default", word_wrap=True))
        standing = database.watch(_PREFIXES + _QUERY)
        for number, (title, update) in enumerate(_STEPS, 1):
            out.print(Text(f"\n{number}. {title}", style="bold"))
            out.print(Syntax(update, "sparql", background_color="default", word_wrap=True))
            _show(out, database.update(_PREFIXES + update))
            _show_steps(out, standing)
        state = set(database.quads())
    _show_replay(out, folder, state)


def _show(out: Console, change: Change) -> None:
    out.print(Text(f"   change {change.sequence}: {len(change.deleted)} deleted, {len(change.inserted)} inserted"))
    for sign, style, quads in (("D", "red", change.deleted), ("A", "green", change.inserted)):
        for line in _lines(map(str, quads)):
            out.print(Text(f"   {sign} {line}", style=style), soft_wrap=True)


def _show_steps(out: Console, standing: StandingQuery) -> None:
    steps = list(standing.changes())
    if not steps:
        out.print(Text("   the query: as before", style="cyan"))
    for step in steps:
        for sign, rows in (("-", step.removed), ("+", step.added)):
            for line in _lines(
                " ".join("unbound" if term is None else str(term) for term in row) for row in rows.rows()
            ):
                out.print(Text(f"   the query: {sign} {line}", style="cyan"), soft_wrap=True)


def _lines(texts: Iterable[str]) -> list[str]:
    """Write terms for people: with prefixes, in order."""
    lines = "\n".join(sorted(texts))
    for prefix, iri in re.findall(r"PREFIX (\w*:) <(.*?)>", _PREFIXES):
        lines = re.sub(rf"<{re.escape(iri)}(\w+)>", rf"{prefix}\1", lines)
    return lines.splitlines()


def _show_replay(out: Console, folder: Path, state: set[Quad]) -> None:
    out.print(Text("\nThe change log, replayed into an empty database:", style="bold"))
    with open_database(folder / "db") as database, open_database() as copy:
        replayed = _replay(database, copy)
        same = set(copy.quads()) == state == set(database.quads())
    out.print(Text(f"   {replayed} changes, {len(state)} quads, {'the same dataset' if same else 'NOT THE SAME'}"))
    if not same:
        raise AssertionError("the replayed log does not give the dataset")


def _replay(database: Database, copy: Database) -> int:
    changes = list(database.changes())
    for change in changes:
        copy.apply(Request(removed=change.deleted, added=change.inserted))
    return len(changes)
