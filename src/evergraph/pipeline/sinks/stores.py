"""An embedded database as a sink: each batch is a change of the database, or a few if it is large.

The changes are exact, so that telling them again changes nothing: a batch that was cut off is told again as a whole.
Several sinks may be graphs of one database.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pyoxigraph import RdfFormat

from evergraph.database import Database, open_database
from evergraph.delta import Request
from evergraph.errors import DataError
from evergraph.pipeline.outcomes import Outcome, lines, statement
from evergraph.rdfio import parse_quads
from evergraph.terms import DEFAULT_GRAPH, DefaultGraph, NamedNode, Quad

_AT_ONCE = 20_000


class Databases:
    """Databases that the sinks of a run have open: several may be graphs of one."""

    def __init__(self) -> None:
        self._opened: dict[Path, Database] = {}

    def open(self, path: Path) -> Database:
        """Open a database, or return it if it is open."""
        if path not in self._opened:
            self._opened[path] = open_database(path)
        return self._opened[path]

    def close(self) -> None:
        """Close all of them."""
        while self._opened:
            self._opened.popitem()[1].close()


class StoreWriter:
    """Keeps a graph of a database in step; None is the whole of it, and quads go where they say."""

    def __init__(self, database: Database, path: Path, graph: NamedNode | DefaultGraph | None, staging: Path) -> None:
        self._database = database
        self._path = path
        self._graph = graph
        self._staging = staging

    def check(self) -> None:
        """A sink begins with nothing."""
        if not self.is_empty():
            raise DataError(
                f"{self._path} holds something already, and not from this pipeline",
                hint="name another database, or a graph that is empty",
            )

    def is_empty(self) -> bool:
        """Tell whether nothing is there."""
        return not any(self._graph in (None, quad.graph_name) for quad in self._database.quads())

    def begin(self) -> None:
        """Take away what a first attempt left."""
        what = "ALL" if self._graph is None else "DEFAULT"
        self._database.update(f"CLEAR SILENT {f'GRAPH {self._graph}' if isinstance(self._graph, NamedNode) else what}")

    def write(self, outcome: Outcome, batch: int, sequence: int) -> None:
        """Make the change: as one, if it is not large."""
        if outcome.added + outcome.removed <= _AT_ONCE:
            removed, added = (frozenset(self._quads(outcome, sign)) for sign in (-1, 1))
            self._database.apply(Request(removed, added))
            return
        for sign in (-1, 1):
            quads = self._quads(outcome, sign)
            while chunk := frozenset(islice(quads, _AT_ONCE)):
                self._database.apply(Request(removed=chunk) if sign < 0 else Request(added=chunk))

    def finish(self, batch: int) -> None:
        """Do nothing: every change was visible at once."""

    def close(self) -> None:
        """Do nothing: other sinks may have the database, too."""

    def _quads(self, outcome: Outcome, sign: int) -> Iterator[Quad]:
        texts = lines(outcome, sign, statement, self._staging)
        while chunk := list(islice(texts, _AT_ONCE)):
            for quad in parse_quads(b"\n".join(chunk), RdfFormat.N_QUADS, rename_blank_nodes=False):
                inner = self._graph or DEFAULT_GRAPH if quad.graph_name == DEFAULT_GRAPH else quad.graph_name
                yield Quad(quad.subject, quad.predicate, quad.object, inner)
