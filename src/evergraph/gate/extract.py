"""The exact delta of one update operation, given what the dataset holds before it.

For templates instantiated to the candidate sets Cd and Ci the dataset becomes D' = (D ∖ Cd) ∪ Ci, hence

    deleted  = (Cd ∩ D) ∖ Ci        inserted = Ci ∖ D

Every other operation is a special case: CLEAR has Cd = the graph; COPY A TO B has Cd = B and Ci = A moved to B; and so
on. https://www.w3.org/TR/sparql11-update/#formalModelGraphUpdate
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol, assert_never

from evergraph.delta import Delta
from evergraph.errors import EvergraphError, UpdateFailed
from evergraph.gate.operations import (
    Add,
    Clear,
    Copy,
    Create,
    DeleteData,
    Drop,
    Graphs,
    InsertData,
    Load,
    Modify,
    Move,
    Operation,
    Original,
    QuadTemplate,
    Row,
    Template,
    Where,
    template_variables,
)
from evergraph.gate.templates import bindings, fill, fill_columns, has_literals, rewritten
from evergraph.terms import DEFAULT_GRAPH, BlankNode, DefaultGraph, GraphName, NamedNode, Quad


class Reader(Protocol):
    """What must be known of a dataset to tell what an operation does to it."""

    def surely_there(self, operation: Modify, candidates: set[Quad]) -> set[Quad]:
        """Tell which of the quads to delete, in stored form, need no check, because the WHERE clause matched them."""

    def matches(self, pattern: QuadTemplate) -> list[Quad] | None:
        """Look up the quads that match one of different variables; None if that takes a WHERE clause."""

    def solutions(self, where: Where, variables: tuple[str, ...]) -> Iterable[Row]:
        """Evaluate a WHERE clause once."""

    def present(self, quads: Collection[Quad], operation: Modify | None = None) -> set[Quad]:
        """Tell which of the quads are there; the operation, if given, is what they were made by."""

    def graph(self, name: GraphName) -> set[Quad]:
        """Read all quads of one graph."""

    def graph_names(self) -> set[NamedNode | BlankNode]:
        """List the named graphs."""

    def stored_form(self, quads: set[Quad]) -> set[Quad]:
        """Write quads as the store would give them back."""


Loader = Callable[[NamedNode, GraphName], Iterable[Quad]]
"""Fetches a document for LOAD, its triples in the given graph."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What an operation does: the quads, and the graphs that begin or cease to exist as such."""

    delta: Delta = field(default_factory=Delta)
    created: frozenset[NamedNode | BlankNode] = frozenset()
    dropped: frozenset[NamedNode | BlankNode] = frozenset()
    original: Original | None = field(default=None, compare=False)
    """The request that the effect was extracted from, if to run it has this very effect."""

    def __bool__(self) -> bool:
        return bool(self.delta or self.created or self.dropped)


def extract(operation: Operation, reader: Reader, load: Loader) -> Effect:
    """Compute the effect of an operation on the dataset behind ``reader``, without changing it."""
    match operation:
        case InsertData(quads, original):
            return Effect(_delta(reader, (), quads), original=original)
        case DeleteData(quads, original):
            return Effect(_delta(reader, quads, ()), original=original)
        case Modify(original=original):
            return Effect(_modify(operation, reader), original=original)
        case Load():
            return Effect(_load(operation, reader, load))
        case Clear():
            return Effect(Delta(deleted=frozenset(_quads_of(operation, reader))))
        case Drop():
            deleted = frozenset(_quads_of(operation, reader))
            return Effect(Delta(deleted=deleted), dropped=_dropped(operation, reader))
        case Create(graph, silent):
            if graph in reader.graph_names():
                return _fail_unless(silent, f"the graph {graph} exists already")
            return Effect(Delta(), created=frozenset([graph]))
        case Add() | Copy() | Move():
            return _transfer(operation, reader)
        case _:
            assert_never(operation)


def request_delta(reader: Reader, removed: Iterable[Quad], added: Iterable[Quad]) -> Delta:
    """Compute the exact delta of a requested change: first remove, then add."""
    return _delta(reader, removed, added)


def _delta(reader: Reader, delete: Iterable[Quad], insert: Iterable[Quad], operation: Modify | None = None) -> Delta:
    """Compute the delta of candidate sets; the operation, if given, tells what needs no check."""
    candidates_out, candidates_in = reader.stored_form(set(delete)), reader.stored_form(set(insert))
    known = reader.surely_there(operation, candidates_out) if operation else set()
    return _difference(reader, candidates_out, candidates_in, known, operation)


def _difference(
    reader: Reader, candidates_out: set[Quad], candidates_in: set[Quad], known: set[Quad], operation: Modify | None
) -> Delta:
    """Compute the delta of candidates in stored form, of which some are known to be there."""
    if known is candidates_out:
        present = reader.present(candidates_in - known, operation)
        return Delta(
            inserted=frozenset(candidates_in - known - present), deleted=frozenset(candidates_out - candidates_in)
        )
    present = known | reader.present((candidates_out | candidates_in) - known, operation)
    return Delta(
        inserted=frozenset(candidates_in - present),
        deleted=frozenset((candidates_out & present) - candidates_in),
    )


def _modify(operation: Modify, reader: Reader) -> Delta:
    only = operation.where.only
    matches = reader.matches(only) if only else None
    if only and matches is not None:
        return _modify_matches(operation, only, matches, reader)
    variables = template_variables(operation.delete, operation.insert)
    rows = list(reader.solutions(operation.where, variables))
    delete, insert = (fill(template, variables, rows) for template in (operation.delete, operation.insert))
    return _delta(reader, delete, insert, operation)


def _modify_matches(operation: Modify, only: QuadTemplate, matches: list[Quad], reader: Reader) -> Delta:
    """Compute the delta where each solution is a quad of the dataset, which is in stored form then."""
    insert = _instances(operation.insert, only, matches, reader)
    if operation.delete == (only,):
        delete = known = set(matches)
    else:
        delete, known = _instances(operation.delete, only, matches, reader), set()
    return _difference(reader, delete, insert, known, operation)


def _instances(template: Template, only: QuadTemplate, matches: list[Quad], reader: Reader) -> set[Quad]:
    """Instantiate a template with quads of the dataset, and write what it makes in stored form."""
    quads = rewritten(template, only, matches)
    if quads is not None:
        return quads
    quads = fill_columns(template, bindings(only, template_variables(template), matches), len(matches))
    return reader.stored_form(quads) if has_literals(template) else quads


def _load(operation: Load, reader: Reader, load: Loader) -> Delta:
    try:
        quads = set(load(operation.source, operation.into))
    except (EvergraphError, OSError, ValueError) as error:
        if operation.silent:
            return Delta()
        reason, hint = (error.message, error.hint) if isinstance(error, EvergraphError) else (str(error), "")
        raise UpdateFailed(f"{operation.source} cannot be loaded: {reason}", hint=hint) from error
    return _delta(reader, (), quads)


def _quads_of(operation: Clear | Drop, reader: Reader) -> Iterable[Quad]:
    match operation.target:
        case Graphs.NAMED:
            names: list[GraphName] = list(reader.graph_names())
        case Graphs.ALL:
            names = [DEFAULT_GRAPH, *reader.graph_names()]
        case DefaultGraph():
            names = [DEFAULT_GRAPH]
        case name:
            if not operation.silent and name not in reader.graph_names():
                raise _unknown_graph(name)
            names = [name]
    return (quad for name in names for quad in reader.graph(name))


def _dropped(operation: Drop, reader: Reader) -> frozenset[NamedNode | BlankNode]:
    match operation.target:
        case Graphs():
            return frozenset(reader.graph_names())
        case DefaultGraph():
            return frozenset()
        case name:
            return frozenset([name])


def _transfer(operation: Add | Copy | Move, reader: Reader) -> Effect:
    source, destination = operation.source, operation.destination
    if not isinstance(source, DefaultGraph) and source not in reader.graph_names():
        if operation.silent:
            return Effect(Delta())
        raise _unknown_graph(source)
    if source == destination:
        return Effect(Delta())
    moving = reader.graph(source)
    arriving = reader.stored_form({Quad(quad.subject, quad.predicate, quad.object, destination) for quad in moving})
    there = reader.graph(destination)
    leaving = set() if isinstance(operation, Add) else there - arriving
    if isinstance(operation, Move):
        leaving |= moving
    delta = Delta(inserted=frozenset(arriving - there), deleted=frozenset(leaving))
    dropped = {
        *([source] if isinstance(operation, Move) else []),
        *([destination] if not isinstance(operation, Add) and not arriving else []),
    }
    return Effect(delta, dropped=frozenset(name for name in dropped if not isinstance(name, DefaultGraph)))


def _fail_unless(silent: bool, message: str) -> Effect:
    if silent:
        return Effect(Delta())
    raise UpdateFailed(message, hint="use the keyword SILENT if that is no mistake")


def _unknown_graph(name: GraphName) -> UpdateFailed:
    return UpdateFailed(f"the graph {name} does not exist", hint="use the keyword SILENT if that is no mistake")
