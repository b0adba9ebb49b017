"""Where replicas live: folders of files, embedded stores, Delta tables, SPARQL endpoints.

A target is told exact changes, and telling one again does no harm: after a crash the last change is told again. What a
target holds belongs to the replica; nobody else may write it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Protocol

from evergraph.database import Database, open_database
from evergraph.delta import Delta, Request
from evergraph.errors import EndpointError, UsageError
from evergraph.files import is_address
from evergraph.gate.endpoint import Endpoint
from evergraph.gate.extract import Effect
from evergraph.gate.journal import Journal
from evergraph.gate.remote import RemoteDataset
from evergraph.rdfio import write_statements
from evergraph.sources.folders import make_folder
from evergraph.terms import DEFAULT_GRAPH, DefaultGraph, NamedNode, Quad, skolemise_quad

_AT_ONCE = 20_000
"""How many triples of a first fill are told at once."""


_STORE, _TABLE = "store:", "delta:"
"""What stands before the folder of a database, and of a table."""


class Target(Protocol):
    """What holds the triples of one interest.

    ``each``: every change is made at once, so that the position must follow each. Others may be told many changes,
    which are made safe together.
    """

    @property
    def each(self) -> bool:
        """Tell whether `write` makes a change at once."""

    def is_empty(self) -> bool:
        """Tell whether there is nothing yet."""

    def write(self, delta: Delta, sequence: int) -> None:
        """Take in a change of the source, by its number; 0 is the first fill. It may be told again after a crash."""

    def flush(self) -> None:
        """Make everything safe that was written."""

    def finish(self, statements: Callable[[], list[str]]) -> None:
        """Make everything visible: all changes so far have been written. ``statements`` gives all triples, as text."""

    def close(self) -> None:
        """Let go of files and connections."""


class FolderTarget:
    """A folder with ``data.nt``, sorted, written when all changes are there.

    Between that, the state beside it is what is safe; a file that is written anew for each change would cost as much as
    the replica is large.
    """

    each = False

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self._file = folder / "data.nt"
        self._changed = True  # a run that broke off may have left an old file

    def is_empty(self) -> bool:
        """Tell whether there is no file, or an empty one."""
        return not self._file.exists() or not self._file.stat().st_size

    def write(self, delta: Delta, sequence: int) -> None:
        """Remember that there is something to write."""
        self._changed = self._changed or bool(delta)

    def flush(self) -> None:
        """Do nothing: the state is what is safe."""

    def finish(self, statements: Callable[[], list[str]]) -> None:
        """Write the file, if it is not what it should be."""
        if self._changed:
            write_statements(self._file, sorted(statements()), keep_equal=True)
            self._changed = False

    def close(self) -> None:
        """Do nothing."""


class StoreTarget:
    """A graph of an embedded database; each change is one of the database, with its number and its place in the log."""

    each = True

    def __init__(self, database: Database, graph: NamedNode | DefaultGraph, *, owned: bool = True) -> None:
        self._database = database
        self._graph = graph
        self._owned = owned

    def is_empty(self) -> bool:
        """Look for a triple."""
        return not any(quad.graph_name == self._graph for quad in self._database.quads())

    def write(self, delta: Delta, sequence: int) -> None:
        """Make the change; one that has been made already changes nothing."""
        if delta:
            self._database.apply(Request(removed=self._placed(delta.deleted), added=self._placed(delta.inserted)))

    def _placed(self, quads: frozenset[Quad]) -> frozenset[Quad]:
        return frozenset(Quad(quad.subject, quad.predicate, quad.object, self._graph) for quad in quads)

    def flush(self) -> None:
        """Do nothing: every change was safe at once."""

    def finish(self, statements: Callable[[], list[str]]) -> None:
        """Do nothing: every change was visible at once."""

    def close(self) -> None:
        """Close the database."""
        if self._owned:
            self._database.close()


class EndpointTarget:
    """A graph of a SPARQL endpoint. A change is one update request, or a few where the server has limits.

    Blank nodes become IRIs (``urn:skolem:``), which is the only way to name them. A request that fails is sent again,
    ``retries`` times; it does no harm if the endpoint had done it already.
    """

    each = True

    def __init__(
        self,
        endpoint: Endpoint,
        graph: NamedNode | DefaultGraph,
        *,
        retries: int = 5,
        pause: float = 0.5,
        owned: bool = True,
    ) -> None:
        self._endpoint = endpoint
        self._graph = graph
        self._retries = retries
        self._pause = pause
        self._owned = owned
        self._dataset = RemoteDataset(endpoint, Journal(), None)

    def is_empty(self) -> bool:
        """Ask for a triple."""
        pattern = "?s ?p ?o" if isinstance(self._graph, DefaultGraph) else f"GRAPH {self._graph} {{ ?s ?p ?o }}"
        return not self._endpoint.select(f"SELECT ?s {{ {pattern} }} LIMIT 1")

    def write(self, delta: Delta, sequence: int) -> None:
        """Send the change until it has been taken."""
        for part in _parts(delta):
            placed = Delta(inserted=self._placed(part.inserted), deleted=self._placed(part.deleted))
            for attempt in range(self._retries + 1):
                try:
                    self._dataset.write(Effect(placed))
                    break
                except EndpointError as error:
                    if attempt == self._retries:
                        raise EndpointError(
                            error.message, hint="the position has not advanced: run again when the endpoint answers"
                        ) from error
                    time.sleep(self._pause * 2**attempt)
                finally:
                    self._dataset.settle(0)  # the change is told again as a whole, and never taken back

    def _placed(self, quads: frozenset[Quad]) -> frozenset[Quad]:
        placed = {Quad(quad.subject, quad.predicate, quad.object, self._graph) for quad in map(skolemise_quad, quads)}
        return frozenset(self._dataset.stored_form(placed))

    def flush(self) -> None:
        """Do nothing: every change was safe at once."""

    def finish(self, statements: Callable[[], list[str]]) -> None:
        """Do nothing: every change was visible at once."""

    def close(self) -> None:
        """Close the connections."""
        if self._owned:
            self._endpoint.close()


def _parts(delta: Delta) -> Iterator[Delta]:
    """Cut a large change into parts: deletions first."""
    if len(delta) <= _AT_ONCE:
        if delta:
            yield delta
        return
    for deleted in _chunks(delta.deleted):
        yield Delta(deleted=deleted)
    for inserted in _chunks(delta.inserted):
        yield Delta(inserted=inserted)


def _chunks(quads: frozenset[Quad]) -> Iterator[frozenset[Quad]]:
    rest = iter(quads)
    while chunk := frozenset(islice(rest, _AT_ONCE)):
        yield chunk


def is_folder(place: str) -> bool:
    """Tell whether a target is a folder of files: no address, no database and no table."""
    return not (is_address(place) or is_store(place) or is_table(place))


def is_table(place: str) -> bool:
    """Tell whether a target is a Delta table."""
    return place.startswith(_TABLE) or (not is_address(place) and (Path(place) / "_delta_log").is_dir())


def table_folders(place: str, names: list[str]) -> dict[str, Path]:
    """Return the folders of the tables of interests: one has the folder itself, several have one each in it."""
    folder = Path(place.removeprefix(_TABLE)).absolute()
    return {name: folder / name if len(names) > 1 else folder for name in names}


def is_store(place: str) -> bool:
    """Tell whether a target is an embedded database."""
    return place.startswith(_STORE) or (not is_address(place) and (Path(place) / "store").is_dir())


def store_folder(place: str) -> Path:
    """Return the folder of an embedded database."""
    return Path(place.removeprefix(_STORE)).absolute()


def open_targets(
    place: str, names: list[str], *, update_url: str | None = None, graph: str | None = None
) -> dict[str, Target]:
    """Open the targets of interests: an address, a folder, ``store:FOLDER`` (a database) or ``delta:FOLDER`` (a table).

    Of several interests, each has a folder, a table or a graph of its own, with its name.
    """
    graphs = {name: graph_of(graph, name, single=len(names) == 1) or DEFAULT_GRAPH for name in names}
    if is_address(place):
        endpoint = Endpoint(place, update_url or place)
        return {name: EndpointTarget(endpoint, graphs[name], owned=name == names[0]) for name in names}
    if is_store(place):
        database = open_database(store_folder(place))
        return {name: StoreTarget(database, graphs[name], owned=name == names[0]) for name in names}
    if update_url or graph:
        raise UsageError("--update-endpoint and --graph belong to endpoints and stores, not to files and tables")
    if is_table(place):
        from evergraph.replication.tables import TableTarget  # it imports Spark, which takes its time

        return {name: TableTarget(folder) for name, folder in table_folders(place, names).items()}
    folder = Path(place)
    return {name: FolderTarget(folder / name if len(names) > 1 else folder) for name in names}


def graph_of(graph: str | None, name: str, *, single: bool) -> NamedNode | None:
    """Return the graph of an interest; None is the default graph, which only a single one may have."""
    if graph is None and single:
        return None
    text = graph or "urn:evergraph:replica:"
    with suppress(ValueError):
        return NamedNode(text if single else text + name)
    raise UsageError(f"{text!r} is not an absolute IRI", hint="give the graph an IRI, such as urn:replica")
