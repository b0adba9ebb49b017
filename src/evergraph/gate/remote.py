"""A remote dataset: any SPARQL 1.1 endpoint, read and written by standard requests only.

An endpoint has no transactions, so a change that fails half-way is taken back by its inverse, which is as exact as the
change. What is not settled is kept in a journal, if there is a place for one, and taken back on the next start.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import cast

from evergraph.errors import BlankNodeRefused, EndpointError, UncertainOutcome, UpdateFailed
from evergraph.gate.data_update import chunks, data_row
from evergraph.gate.endpoint import Answer, Endpoint
from evergraph.gate.extract import Effect
from evergraph.gate.journal import Journal
from evergraph.gate.operations import Row, Where
from evergraph.gate.presence import PresenceCheck
from evergraph.gate.tokens import tokenize
from evergraph.terms import (
    DEFAULT_GRAPH,
    BlankNode,
    DefaultGraph,
    GraphName,
    NamedNode,
    Quad,
    quad_has_blank_node,
    skolemise_quad,
)


class RemoteDataset:
    """An endpoint behind the gate.

    Blank nodes that an update makes become IRIs (``urn:skolem:``). Blank nodes that the endpoint holds have no name in
    the protocol: a change that would need one is refused before it is written.

    :param default_graph: a named graph that serves as the default graph, for servers that have none.
    """

    atomic = False

    def __init__(self, endpoint: Endpoint, journal: Journal, default_graph: NamedNode | None = None) -> None:
        self._endpoint = endpoint
        self._dialect = endpoint.dialect
        self._check = PresenceCheck(endpoint)
        self._journal = journal
        self._default_graph = default_graph
        self._foreign: set[BlankNode] = set()

    # --- reading

    def query(self, text: str) -> Answer:
        """Run a SPARQL query."""
        return self._endpoint.query(text)

    def solutions(self, where: Where, variables: tuple[str, ...], unwritten: Effect) -> Iterable[Row]:
        """Evaluate a WHERE clause by one SELECT query."""
        assert not unwritten
        names = " ".join(f"?{name}" for name in variables) or "(0 AS ?evergraph_row)"
        found = self._endpoint.select(
            f"{where.prologue}SELECT {names} {self._dataset_clauses(where)} WHERE {where.pattern}"
        )
        rows: list[Row] = [tuple(row) for row in found]
        self._foreign.update(term for row in rows for term in row if isinstance(term, BlankNode))
        return rows if variables else [()] * len(rows)

    def present(self, quads: Collection[Quad]) -> set[Quad]:
        """Tell which of the quads are there."""
        self._refuse_blank_nodes(quads)
        placed = {self._placed(quad): quad for quad in quads}
        return {placed[quad] for quad in self._check.present(placed)}

    def graph(self, name: GraphName) -> set[Quad]:
        """Read all quads of one graph."""
        stored = self._default_graph if self._default_graph and name == DEFAULT_GRAPH else name
        pattern = "?s ?p ?o" if isinstance(stored, DefaultGraph) else f"GRAPH {stored} {{ ?s ?p ?o }}"
        quads = set()
        for subject, predicate, value in self._endpoint.select(f"SELECT ?s ?p ?o {{ {pattern} }}"):
            quads.add(Quad(subject, predicate, value, name))
            self._foreign.update(term for term in (subject, value) if isinstance(term, BlankNode))
        return quads

    def graph_names(self) -> set[NamedNode | BlankNode]:
        """List the graphs that hold anything."""
        found = self._endpoint.select("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }")
        names: set[NamedNode | BlankNode] = {cast(NamedNode, name) for (name,) in found}
        return names - self._dialect.system_graphs - {self._default_graph}

    def stored_form(self, quads: set[Quad]) -> set[Quad]:
        """Give names to fresh blank nodes, and write literals as the server gives them back."""
        return self._dialect.stored_form({quad if self._is_foreign(quad) else skolemise_quad(quad) for quad in quads})

    def _dataset_clauses(self, where: Where) -> str:
        """Write the dataset of a WHERE clause as FROM clauses.

        A query knows no "this default graph and all named graphs"; where both are needed the named ones are listed.
        """
        if where.using is not None and where.using_named is not None:
            named: Iterable[NamedNode | BlankNode] = where.using_named
            default: Iterable[NamedNode] = where.using
        else:
            graph = where.with_graph or self._default_graph
            if graph is None:
                return ""
            default = [graph]
            named = self.graph_names() if _mentions_graphs(where.pattern) else ()
        return " ".join([f"FROM {name}" for name in default] + [f"FROM NAMED {name}" for name in named])

    # --- blank nodes

    def _is_foreign(self, quad: Quad) -> bool:
        return any(term in self._foreign for term in (quad.subject, quad.object))

    def _refuse_blank_nodes(self, quads: Iterable[Quad]) -> None:
        for quad in quads:
            if quad_has_blank_node(quad):
                raise BlankNodeRefused(
                    f"the change needs a blank node of {self._endpoint.query_url}: {quad}",
                    hint="the SPARQL protocol cannot name it; give the node an IRI, or make the change on the server",
                )

    # --- writing

    def write(self, effect: Effect) -> None:
        """Apply an exact change in requests of bounded size."""
        self._refuse_blank_nodes(effect.delta.deleted | effect.delta.inserted)
        requests = self._requests(effect)
        self._journal.record(effect.delta)
        for request in requests:
            self._endpoint.update(request)

    def _requests(self, effect: Effect) -> list[str]:
        """Write the change as requests within the limits of the server."""
        parts = chunks(self._operations(effect), self._dialect.write_operations, self._dialect.write_bytes)
        return [";\n".join(part) for part in parts]

    def _operations(self, effect: Effect) -> Iterator[str]:
        """Write the change as operations. A graph that is dropped is emptied: DROP could take more than was read."""
        for keyword, quads in (("DELETE", effect.delta.deleted), ("INSERT", effect.delta.inserted)):
            placed = [self._placed(quad) for quad in quads]
            for group in _by_graph(placed) if self._dialect.graph_per_operation else [placed]:
                rows = (row for quad in group for row in self._data_rows(keyword, quad))
                for part in chunks(rows, self._dialect.write_quads, self._dialect.write_bytes):
                    yield f"{keyword} DATA {{ {' '.join(part)} }}"
        for name in effect.created - {quad.graph_name for quad in effect.delta.inserted}:
            yield f"CREATE SILENT GRAPH {name}"

    def _data_rows(self, keyword: str, quad: Quad) -> Iterator[str]:
        for value in self._dialect.spellings(quad) if keyword == "DELETE" else (str(quad.object),):
            yield data_row(quad, value)

    def settle(self, sequence: int) -> None:
        """Forget how to take back what counts now."""
        self._journal.clear()
        self._foreign.clear()

    def roll_back(self) -> None:
        """Take back what was written and does not count; keep the journal if the endpoint does not answer."""
        self._foreign.clear()
        unsettled = self._journal.unsettled()
        if unsettled:
            try:
                for request in self._requests(Effect(unsettled.inverse())):
                    self._endpoint.update(request)
            except EndpointError as error:
                raise UncertainOutcome(
                    f"a change was written in part, and could not be taken back: {error.message}",
                    hint="it will be taken back before the next update; until then the endpoint may hold some of it",
                ) from error
        self._journal.clear()

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    # --- the default graph

    def _placed(self, quad: Quad) -> Quad:
        """Put a quad of the default graph where the server keeps it."""
        if quad.graph_name != DEFAULT_GRAPH:
            return quad
        if self._default_graph:
            return Quad(quad.subject, quad.predicate, quad.object, self._default_graph)
        if not self._dialect.has_default_graph:
            raise UpdateFailed(
                f"{self._dialect.name} has no default graph to put this in: {quad}",
                hint="name a graph in the update, or one that serves as the default graph (--default-graph IRI)",
            )
        return quad


def _mentions_graphs(pattern: str) -> bool:
    return any(token.is_word("GRAPH") for token in tokenize(pattern))


def _by_graph(quads: list[Quad]) -> list[list[Quad]]:
    groups: dict[GraphName, list[Quad]] = {}
    for quad in quads:
        groups.setdefault(quad.graph_name, []).append(quad)
    return list(groups.values())
