"""One update request in the making: later operations see what earlier ones did, and nobody else does yet."""

from collections.abc import Collection, Iterable
from copy import copy
from typing import Protocol

from evergraph.delta import Delta
from evergraph.gate.extract import Effect
from evergraph.gate.operations import Modify, QuadTemplate, Row, Where
from evergraph.terms import BlankNode, DefaultGraph, GraphName, NamedNode, Quad


class Dataset(Protocol):
    """A dataset that can be read and written: the embedded store, or a remote endpoint."""

    atomic: bool
    """Whether a write is one transaction, and a WHERE clause can be evaluated over changes that are not written."""

    def solutions(self, where: Where, variables: tuple[str, ...], unwritten: Effect) -> Iterable[Row]:
        """Evaluate a WHERE clause once, over the dataset with ``unwritten`` applied to it."""

    def matches(self, pattern: QuadTemplate) -> list[Quad] | None:
        """Look up the quads that match one of different variables; None if that takes a WHERE clause."""

    def surely_there(self, operation: Modify, candidates: set[Quad]) -> set[Quad]:
        """Tell which of the quads to delete, in stored form, need no check, because the WHERE clause matched them."""

    def present(self, quads: Collection[Quad], operation: Modify | None = None) -> set[Quad]:
        """Tell which of the quads are there; the operation, if given, is what they were made by."""

    def graph(self, name: GraphName) -> set[Quad]:
        """Read all quads of one graph."""

    def graph_names(self) -> set[NamedNode | BlankNode]:
        """List the named graphs."""

    def stored_form(self, quads: set[Quad]) -> set[Quad]:
        """Write quads as the dataset would give them back."""

    def write(self, effect: Effect) -> None:
        """Apply an exact change; its original, if it has one, does the same."""


class Transaction:
    """Reads of a dataset under the staged effects of the operations so far (a `Reader`).

    Where a dataset cannot evaluate a pattern over unwritten changes, they are written as late as possible.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._written = Delta()
        self._unwritten = Delta()
        self._created: set[NamedNode | BlankNode] = set()
        self._dropped: set[NamedNode | BlankNode] = set()
        self._emptied: set[NamedNode | BlankNode] = set()
        """Graphs that exist until the request is over, if the dataset knows only those that hold anything."""
        self._staged = False
        self._first: Effect | None = None
        """The effect of the first operation, while it is the only one: nobody has asked yet which graphs it touches."""

    @property
    def total(self) -> Delta:
        """The exact change of all staged operations together; what cancels does not appear."""
        return self._written.then(self._unwritten) if self._written else self._unwritten

    def branch(self) -> "Transaction":
        """Return a transaction that is at the same point and goes its own way."""
        other = copy(self)
        other._emptied = set(self._emptied)  # the only part that is changed in place
        return other

    def stage(self, effect: Effect) -> None:
        """Let an effect be seen by what follows."""
        self._note_graphs()
        if self._staged:
            self._unwritten = self._unwritten.then(effect.delta)
            self._note_graphs_of(effect)
        else:
            self._unwritten, self._first, self._staged = effect.delta, effect, True

    def _note_graphs(self) -> None:
        if self._first is not None:
            first, self._first = self._first, None
            self._note_graphs_of(first)

    def _note_graphs_of(self, effect: Effect) -> None:
        touched = {quad.graph_name for quad in effect.delta.inserted}
        appearing = effect.created | {name for name in touched if not isinstance(name, DefaultGraph)}
        self._created = (self._created - effect.dropped) | appearing
        self._dropped = (self._dropped | effect.dropped) - appearing
        emptied = {quad.graph_name for quad in effect.delta.deleted}
        self._emptied |= {name for name in emptied if not isinstance(name, DefaultGraph)}

    def commit(self) -> None:
        """Write what is not written yet."""
        if effect := self._first or self._unwritten_effect():
            self._dataset.write(effect)

    def _unwritten_effect(self) -> Effect:
        self._note_graphs()
        return Effect(self._unwritten, frozenset(self._created), frozenset(self._dropped))

    # --- what operations read

    def solutions(self, where: Where, variables: tuple[str, ...]) -> Iterable[Row]:
        """Evaluate a WHERE clause over the staged state."""
        if self._dataset.atomic:
            return self._dataset.solutions(where, variables, self._unwritten_effect())
        self._note_graphs()
        if self._unwritten:
            unwritten, self._unwritten = self._unwritten, Delta()
            self._written = self._written.then(unwritten)
            self._dataset.write(Effect(unwritten))
        return self._dataset.solutions(where, variables, Effect())

    def matches(self, pattern: QuadTemplate) -> list[Quad] | None:
        """Look up the quads that match one of different variables; None if that takes a WHERE clause."""
        return None if self._staged else self._dataset.matches(pattern)

    def surely_there(self, operation: Modify, candidates: set[Quad]) -> set[Quad]:
        """Tell which of the quads to delete need no check, because the WHERE clause matched them."""
        return self._dataset.surely_there(operation, candidates)

    def present(self, quads: Collection[Quad], operation: Modify | None = None) -> set[Quad]:
        """Tell which of the quads are there in the staged state."""
        if not self._unwritten:
            return self._dataset.present(quads, operation)
        inserted, deleted = self._unwritten.inserted, self._unwritten.deleted
        unknown = [quad for quad in quads if quad not in inserted and quad not in deleted]
        return self._dataset.present(unknown) | inserted.intersection(quads)

    def graph(self, name: GraphName) -> set[Quad]:
        """Read all quads of a graph in the staged state."""
        staged = {quad for quad in self._unwritten.inserted if quad.graph_name == name}
        return (self._dataset.graph(name) - self._unwritten.deleted) | staged

    def graph_names(self) -> set[NamedNode | BlankNode]:
        """List the named graphs of the staged state."""
        self._note_graphs()
        return ((self._dataset.graph_names() | self._emptied) - self._dropped) | self._created

    def stored_form(self, quads: set[Quad]) -> set[Quad]:
        """Write quads as the dataset would give them back."""
        return self._dataset.stored_form(quads)
