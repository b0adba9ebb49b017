"""The embedded dataset: a pyoxigraph store, in memory or on disk."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import cast

from pyoxigraph import QueryBoolean, QuerySolutions, QueryTriples, Store

from evergraph.errors import DataError, StoreError, UpdateFailed
from evergraph.files import open_output
from evergraph.gate.data_update import embedded_update
from evergraph.gate.extract import Effect
from evergraph.gate.operations import DatasetGraphs, Modify, QuadTemplate, Row, Where
from evergraph.gate.own import OWN, OWN_VARIABLE
from evergraph.gate.rows import rows_of
from evergraph.gate.stored_form import stored_quads
from evergraph.gate.syntax import Judge
from evergraph.gate.tokens import tokenize
from evergraph.log import ChangeLog
from evergraph.terms import BlankNode, DefaultGraph, GraphName, Literal, NamedNode, Quad, Term, Triple, Variable

_UNBOUND = NamedNode(OWN + "unbound")
_COLLECT = NamedNode(OWN + "collect")
_ROLLBACK = NamedNode(OWN + "rollback")
_ROW = OWN_VARIABLE
_CHECKPOINT = "checkpoint"
_FLUSH_EVERY = 10_000
_FLUSH_QUADS = 10_000
_MANY = 64
"""After so many changes, or quads, the store is made to write what it holds in memory: the more, the slower it gets."""


class EmbeddedDataset:
    """A pyoxigraph store behind the gate. Every write is one transaction of the store."""

    atomic = True

    def __init__(self, store: Store, path: Path | None = None) -> None:
        self.store = store
        self.path = path
        self.snapshots = path is not None  # in memory, a change is written step by step
        self._settled = 0
        self._flushed = 0
        self._unflushed = 0

    @classmethod
    def open(cls, path: Path | None, *, read_only: bool = False) -> "EmbeddedDataset":
        """Open the store in a folder, made if missing; without a path, a new one in memory."""
        if path is None:
            return cls(Store())
        try:
            if read_only:
                return cls(Store.read_only(str(path)), path)
            path.parent.mkdir(parents=True, exist_ok=True)
            return cls(Store(str(path)), path)
        except (OSError, RuntimeError) as error:
            raise _cannot_open(path, error) from error

    # --- reading

    def matches(self, pattern: QuadTemplate) -> list[Quad] | None:
        """Look up the quads that match one of different variables."""
        terms = [None if isinstance(slot, Variable) else slot for slot in pattern.slots()]
        found = list(self.store.quads_for_pattern(*terms))  # type: ignore[arg-type]
        if terms[3] is None:
            return [quad for quad in found if type(quad.graph_name) is not DefaultGraph]
        return found

    def surely_there(self, operation: Modify, candidates: set[Quad]) -> set[Quad]:
        """Tell which of the quads to delete need no check, because the WHERE clause matched them."""
        return candidates if operation.deletes_matches else set()

    def present(self, quads: Collection[Quad], operation: Modify | None = None) -> set[Quad]:
        """Tell which of the quads are there.

        Of many, it is asked first whether there is any with this graph and predicate: what is new often comes with a
        graph or a predicate that is new.
        """
        store = self.store
        if len(quads) >= _MANY:
            kinds = {(quad.predicate, quad.graph_name) for quad in quads}
            if len(kinds) * _MANY <= len(quads):
                known = {kind for kind in kinds if self._any(*kind)}
                quads = [quad for quad in quads if (quad.predicate, quad.graph_name) in known] if known else ()
        return {quad for quad in quads if quad in store}

    def _any(self, predicate: NamedNode, graph: GraphName) -> bool:
        return next(self.store.quads_for_pattern(None, predicate, None, graph), None) is not None

    def graph(self, name: GraphName) -> set[Quad]:
        """Read all quads of one graph."""
        return set(self.store.quads_for_pattern(None, None, None, name))

    def graph_names(self) -> set[NamedNode | BlankNode]:
        """List the named graphs, empty ones included."""
        return set(self.store.named_graphs())

    def match(
        self, subject: Term | None, predicate: Term | None, value: Term | None, graph: GraphName | None
    ) -> Iterable[Quad]:
        """Find quads by some of their terms; None matches anything."""
        if isinstance(subject, Literal | Triple) or isinstance(predicate, BlankNode | Literal | Triple):
            return ()
        return self.store.quads_for_pattern(subject, predicate, value, graph)

    def stored_form(self, quads: set[Quad]) -> set[Quad]:
        """Write quads as the store would give them back."""
        return stored_quads(quads)

    def solutions(self, where: Where, variables: tuple[str, ...], unwritten: Effect) -> Iterable[Row]:
        """Evaluate a WHERE clause."""
        try:
            return (
                self._solutions_unwritten(where, variables, unwritten)
                if unwritten
                else self._solutions(where, variables)
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise UpdateFailed(f"the WHERE clause could not be evaluated: {error}") from error

    def _solutions(self, where: Where, variables: tuple[str, ...]) -> list[Row]:
        found = self.store.query(
            f"{where.prologue}SELECT {_projection(variables)} WHERE {where.pattern}",
            default_graph=where.with_graph if where.using is None else list(where.using),
            named_graphs=None if where.using_named is None else list(where.using_named),
        )
        rows = rows_of(cast(QuerySolutions, found))
        return rows if variables else [()] * len(rows)

    def _solutions_unwritten(self, where: Where, variables: tuple[str, ...], unwritten: Effect) -> list[Row]:
        """Evaluate inside a transaction of the store that makes the changes, and is rolled back in the end.

        pyoxigraph has no transactions to hold open, but an update request is one. The solutions come out through a
        custom function. The LIMIT keeps the optimiser from calling it for rows that are not solutions.
        """
        rows: list[Row] = []

        def collect(*values: Term) -> None:
            rows.append(tuple(None if value == _UNBOUND else value for value in values))

        changes, functions = embedded_update(unwritten)
        functions[_COLLECT] = collect
        arguments = ", ".join(f"COALESCE(?{name}, {_UNBOUND})" for name in variables or (_ROW,))
        with_clause, using_clauses = _dataset_clauses(where)
        select = f"SELECT {_projection(variables)} WHERE {where.pattern} LIMIT {2**63 - 1}"
        request = (
            f"{where.prologue}{changes}"
            f"{with_clause} INSERT {{ {_UNBOUND} {_UNBOUND} ?{_ROW}s }} {using_clauses} "
            f"WHERE {{ {{ {select} }} BIND({_COLLECT}({arguments}) AS ?{_ROW}s) }};\n"
            f"CREATE GRAPH {_ROLLBACK}; CREATE GRAPH {_ROLLBACK}"
        )
        try:
            self.store.update(request, custom_functions=functions)
        except RuntimeError as error:
            if _ROLLBACK.value not in str(error):
                raise
        return rows if variables else [()] * len(rows)

    def query(
        self, text: str, base: str | None = None, graphs: DatasetGraphs | None = None
    ) -> QuerySolutions | QueryBoolean | QueryTriples:
        """Run a SPARQL query; ``graphs`` are what the default graph is made of, and the named graphs."""
        default: list[NamedNode | BlankNode | DefaultGraph] | None = None if graphs is None else [*graphs[0]]
        named: list[NamedNode | BlankNode] | None = None if graphs is None else [*graphs[1]]
        try:
            return self.store.query(text, base_iri=base, default_graph=default, named_graphs=named)
        except SyntaxError as error:
            raise Judge(text, list(tokenize(text)), "query").explained(error, "", 0, len(text)) from None

    # --- writing

    def write(self, effect: Effect) -> None:
        """Apply an exact change, wholly or not at all."""
        try:
            if self.path is None:
                self._write_in_memory(effect)
            else:
                self._write_on_disk(effect)
        except (OSError, RuntimeError) as error:
            raise StoreError(
                f"the store could not be written: {error}", hint="see that its disk is not full, then open it again"
            ) from error

    def _write_in_memory(self, effect: Effect) -> None:
        """Write step by step: nothing can fail, and readers are kept out by the database's lock."""
        for quad in effect.delta.deleted:
            self.store.remove(quad)
        self.store.extend(effect.delta.inserted)
        for name in effect.dropped:
            self.store.remove_graph(name)
        for name in effect.created:
            self.store.add_graph(name)

    def _write_on_disk(self, effect: Effect) -> None:
        """Write in one transaction of the store: a call of ``extend``, or an update request.

        The request that the change comes from need not be put together again.
        """
        self._unflushed += len(effect.delta)
        if effect.original is not None:
            self.store.update(effect.original.text)
            return
        created = effect.created and effect.created - {quad.graph_name for quad in effect.delta.inserted}
        if effect.delta.deleted or effect.dropped or created:
            request, functions = embedded_update(effect)
            self.store.update(request, custom_functions=functions)
            self._forget_nameless_graphs(effect)
        else:
            self.store.extend(effect.delta.inserted)

    def _forget_nameless_graphs(self, effect: Effect) -> None:
        """Drop graphs that SPARQL cannot name. They are empty by now, so that it does not matter if this fails."""
        with suppress(OSError, RuntimeError):
            for name in effect.dropped:
                if isinstance(name, BlankNode):
                    self.store.remove_graph(name)

    # --- what a crash may leave

    def settle(self, sequence: int) -> None:
        """Take note of a change that counts, and once in a while let the store reach the disk."""
        self._settled = sequence
        if self.path and (sequence - self._flushed >= _FLUSH_EVERY or self._unflushed >= _FLUSH_QUADS):
            self._flush()

    def roll_back(self) -> None:
        """Do nothing: a write of the store is there wholly or not at all."""

    def catch_up(self, log: ChangeLog) -> None:
        """Write the logged changes again that a crash may have kept from the store.

        Changes are exact, so writing some of them twice ends in the same state as writing each once.
        """
        self._flushed = self._settled = self._read_checkpoint()
        if log.last < self._settled:
            raise StoreError(
                f"the change log {log.folder} ends with change {log.last}, but the store holds change {self._settled}",
                hint="restore the whole folder of the database from a backup",
            )
        for change in log.read(after=self._flushed):
            self.write(Effect(change.delta))
            self._settled = change.sequence
        if self._settled > self._flushed:
            self._flush()

    def close(self) -> None:
        """Let the store reach the disk and let go of it."""
        if self.path and self._settled > self._flushed:
            self._flush()
        self.store = Store()

    def _flush(self) -> None:
        """Let the store reach the disk. If that fails nothing is lost: there is more to catch up with next time."""
        assert self.path is not None
        with suppress(OSError, RuntimeError, DataError):
            self.store.flush()
            with open_output(self.path.parent / _CHECKPOINT) as out:
                out.write(f"{self._settled} {self._identity()}\n".encode())
            self._flushed, self._unflushed = self._settled, 0

    def _read_checkpoint(self) -> int:
        """Read how far the store is; 0 if nobody knows, or if the store is not the one that the checkpoint is about."""
        assert self.path is not None
        found = read_checkpoint(self.path.parent)
        return found[0] if found and found[1] == self._identity() else 0

    def _identity(self) -> str:
        """Return the name that RocksDB gives to a store when it is made."""
        assert self.path is not None
        with suppress(OSError, UnicodeDecodeError):
            return (self.path / "IDENTITY").read_text().strip()
        return ""


def read_checkpoint(folder: Path) -> tuple[int, str] | None:
    """Read the checkpoint of a database: the number of a change, and the identity of the store that holds it."""
    try:
        number, identity = (folder / _CHECKPOINT).read_text().split()
        return int(number), identity
    except (OSError, ValueError):
        return None


def _projection(variables: tuple[str, ...]) -> str:
    return " ".join(f"?{name}" for name in variables) or f"(0 AS ?{_ROW})"


def _dataset_clauses(where: Where) -> tuple[str, str]:
    if where.using is None or where.using_named is None:
        return (f"WITH {where.with_graph}" if where.with_graph else ""), ""
    return "", " ".join(
        [f"USING {name}" for name in where.using] + [f"USING NAMED {name}" for name in where.using_named]
    )


def _cannot_open(path: Path, error: Exception) -> StoreError:
    reason = str(error)
    if "lock" in reason.lower():
        return StoreError(f"{path} is in use already", hint="wait until the other one has closed it")
    return StoreError(
        f"{path} cannot be opened as a database: {reason}",
        hint="check the path, its permissions and the space on its disk",
    )
