"""A remote dataset: any SPARQL 1.1 endpoint, read and written by standard requests only.

An endpoint has no transactions, so a change that fails half-way is taken back by its inverse, which is as exact as the
change. What is not settled is kept in a journal, if there is a place for one, and taken back on the next start.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import cast

from evergraph.errors import BlankNodeRefused, EndpointError, UncertainOutcome, UpdateFailed
from evergraph.gate.data_update import data_block
from evergraph.gate.endpoint import Answer, Endpoint
from evergraph.gate.extract import Effect
from evergraph.gate.journal import Journal
from evergraph.gate.operations import Row, Where
from evergraph.gate.tokens import tokenize
from evergraph.terms import (
    DEFAULT_GRAPH,
    BlankNode,
    DefaultGraph,
    GraphName,
    Literal,
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
        """Tell which of the quads are there, in batches."""
        self._refuse_blank_nodes(quads)
        return {quad for batch in _batches(list(quads), self._dialect.read_rows) for quad in self._present(batch)}

    def _present(self, quads: list[Quad]) -> Iterator[Quad]:
        default = [place for place, quad in enumerate(quads) if self._stored_graph(quad) == DEFAULT_GRAPH]
        named = [place for place, quad in enumerate(quads) if self._stored_graph(quad) != DEFAULT_GRAPH]
        if default:
            rows = " ".join(f"({place} {_spo(quads[place])})" for place in default)
            yield from self._at(quads, f"SELECT ?i {{ VALUES (?i ?s ?p ?o) {{ {rows} }} ?s ?p ?o }}")
        if named:
            rows = " ".join(f"({place} {self._stored_graph(quads[place])} {_spo(quads[place])})" for place in named)
            yield from self._at(quads, f"SELECT ?i {{ VALUES (?i ?g ?s ?p ?o) {{ {rows} }} GRAPH ?g {{ ?s ?p ?o }} }}")

    def _at(self, quads: list[Quad], query: str) -> Iterator[Quad]:
        for (place,) in self._endpoint.select(query):
            yield quads[int(cast(Literal, place).value)]

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
        return names - {self._default_graph}

    def stored_form(self, quads: set[Quad]) -> set[Quad]:
        """Give names to fresh blank nodes, and write literals as the server gives them back."""
        return {quad if self._is_foreign(quad) else skolemise_quad(quad) for quad in quads}

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
        requests = list(self._requests(effect))
        self._journal.record(effect.delta)
        for request in requests:
            self._endpoint.update(request)

    def _requests(self, effect: Effect) -> Iterator[str]:
        """Write the change as requests. A graph that is dropped is emptied: DROP could take more than was read."""
        for keyword, quads in (("DELETE", effect.delta.deleted), ("INSERT", effect.delta.inserted)):
            for batch in _batches([self._stored_quad(quad) for quad in quads], self._dialect.write_quads):
                yield f"{keyword} DATA {{ {data_block(batch)} }}"
        filled = {quad.graph_name for quad in effect.delta.inserted}
        for name in effect.created - filled:
            yield f"CREATE SILENT GRAPH {name}"

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

    def _stored_graph(self, quad: Quad) -> GraphName:
        if quad.graph_name != DEFAULT_GRAPH:
            return quad.graph_name
        if self._default_graph:
            return self._default_graph
        if not self._dialect.has_default_graph:
            raise UpdateFailed(
                f"{self._dialect.name} has no default graph to put this in: {quad}",
                hint="name a graph in the update, or one that serves as the default graph (--default-graph IRI)",
            )
        return DEFAULT_GRAPH

    def _stored_quad(self, quad: Quad) -> Quad:
        graph = self._stored_graph(quad)
        return quad if graph == quad.graph_name else Quad(quad.subject, quad.predicate, quad.object, graph)


def _spo(quad: Quad) -> str:
    return f"{quad.subject} {quad.predicate} {quad.object}"


def _mentions_graphs(pattern: str) -> bool:
    return any(token.is_word("GRAPH") for token in tokenize(pattern))


def _batches(quads: list[Quad], size: int) -> Iterator[list[Quad]]:
    for start in range(0, len(quads), size):
        yield quads[start : start + size]
