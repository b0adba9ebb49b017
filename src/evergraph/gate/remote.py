"""A remote dataset: any SPARQL 1.1 endpoint, read and written by standard requests only.

An endpoint has no transactions, so a change that fails half-way is taken back by its inverse, which is as exact as the
change. What is not settled is kept in a journal, if there is a place for one, and taken back on the next start.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice
from typing import cast

from evergraph.delta import Delta
from evergraph.errors import BlankNodeRefused, EndpointError, UncertainOutcome, UpdateFailed
from evergraph.gate import presence
from evergraph.gate.by_value import has_value, refuse_equal_values, stored_spellings
from evergraph.gate.data_update import chunks, data_operation, is_nameless, sent_length
from evergraph.gate.endpoint import Answer, Endpoint, NotTaken
from evergraph.gate.extract import Effect
from evergraph.gate.journal import Journal
from evergraph.gate.operations import DatasetGraphs, Modify, Original, QuadTemplate, Rest, Row, Rows, Where
from evergraph.gate.own import OWN, OWN_VARIABLE
from evergraph.gate.patterns import fixed_graphs, only_in_graphs
from evergraph.gate.presence import PresenceCheck, compares_by_text
from evergraph.gate.templates import made_alone
from evergraph.gate.tokens import tokenize
from evergraph.terms import (
    DEFAULT_GRAPH,
    BlankNode,
    DefaultGraph,
    GraphName,
    Literal,
    NamedNode,
    Quad,
    Term,
    Triple,
    Variable,
    skolemise_quad,
    term_text,
)

_SAMPLE = 100
_LIST = 2**20
"""How long a list of quads may be to be sent as it came."""
_NO_GRAPH = NamedNode(OWN + "no-graph")


class RemoteDataset:
    """An endpoint behind the gate.

    Blank nodes that an update makes become IRIs (``urn:skolem:``). Blank nodes that the endpoint holds have no name in
    the protocol: a change that would need one is refused before it is written.

    :param default_graph: a named graph that serves as the default graph, for servers that have none.
    :param close: lets go of connections and files.
    """

    atomic = False
    snapshots = False

    def __init__(
        self,
        endpoint: Endpoint,
        journal: Journal,
        default_graph: NamedNode | None = None,
        *,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.close = close
        self._endpoint = endpoint
        self._dialect = endpoint.dialect
        self._check = PresenceCheck(endpoint)
        self._journal = journal
        self._default_graph = default_graph
        self._foreign: set[BlankNode] = set()
        self._proven = False
        self._uncertain = False

    # --- reading

    def query(self, text: str, base: str | None = None, graphs: DatasetGraphs | None = None) -> Answer:
        """Run a SPARQL query; ``graphs`` are what the default graph is made of, and the named graphs."""
        return self._endpoint.query(f"BASE <{base}> {text}" if base else text, graphs)

    def solutions(self, where: Where, variables: tuple[str, ...], unwritten: Effect) -> Iterable[Row]:
        """Evaluate a WHERE clause by one SELECT query."""
        assert not unwritten
        rows = self._rows(where.prologue, variables, f"{self._dataset_clauses(where)} WHERE {where.pattern}")
        self._foreign.update(node for row in rows for term in row if term is not None for node in _blank_nodes(term))
        return rows

    def _rows(self, prologue: str, variables: tuple[str, ...], rest: str) -> Rows:
        """Run a SELECT query; where the server rounds numbers in its answers, ask for their text too."""
        names = " ".join(f"?{name}" for name in variables) or f"(0 AS ?{OWN_VARIABLE})"
        by_value = self._dialect.by_value
        plain = f"{prologue}SELECT {names} {rest}"
        rows = self._endpoint.select_exactly(plain) if by_value else self._endpoint.select(plain)
        if rows is not None or not by_value:
            assert rows is not None
            return rows if variables else [()] * len(rows)
        texts = " ".join(f"(STR(?{name}) AS ?evergraph_text_{name})" for name in variables)
        rows = self._endpoint.select(f"{prologue}SELECT {names} {texts} {rest}")
        width = len(variables)
        return [tuple(map(by_value.exact, row[:width], row[width:])) for row in rows]

    def matches(self, pattern: QuadTemplate) -> list[Quad] | None:
        """Leave it to a WHERE clause."""
        return None

    def surely_there(self, operation: Modify, candidates: set[Quad]) -> set[Quad]:
        """Tell which of the quads to delete need no check, because the WHERE clause matched them.

        Where literals are told apart by value, only plain patterns are trusted, and only for objects that are no such
        literals: what such a literal is in the answer may not be what it is in the store.
        """
        if self._dialect.exact_matches:
            return candidates if operation.deletes_matches else set()
        return {quad for quad in candidates if compares_by_text(quad)} if operation.matches_plainly else set()

    def present(self, quads: Collection[Quad], operation: Modify | None = None) -> set[Quad]:
        """Tell which of the quads are there.

        Many that a template has made of what a WHERE clause matched need not be named: the same clause, and the values
        that its subjects have, tell it too.
        """
        self._refuse_blank_nodes(quads)
        rest, found = set(quads), set[Quad]()
        if operation and len(quads) >= presence.LARGE:
            for template in made_alone(operation):
                kind = template.predicate, template.graph
                group = [quad for quad in rest if (quad.predicate, quad.graph_name) == kind and compares_by_text(quad)]
                if len(group) < presence.LARGE:
                    continue
                if (values := self._values(operation.where, template, len(group))) is not None:
                    found.update(quad for quad in group if (quad.subject, quad.object) in values)
                    rest.difference_update(group)
        placed = {self._placed(quad): quad for quad in rest}
        return found | {placed[quad] for quad in self._check.present(placed)}

    def _values(self, where: Where, template: QuadTemplate, count: int) -> set[Row] | None:
        """Return the subjects that a WHERE clause gives to a template, with the values they have; None if too many."""
        assert isinstance(template.subject, Variable)
        subject, limit = template.subject, 2 * count + 1_000
        pattern = f"{{ {where.pattern} GRAPH {template.graph} {{ {subject} {template.predicate} ?{OWN_VARIABLE} }} }}"
        clauses = self._dataset_clauses(Where(where.prologue, pattern))
        query = f"SELECT DISTINCT {subject} ?{OWN_VARIABLE} {clauses} WHERE {pattern} LIMIT {limit}"
        rows = self._endpoint.select(where.prologue + query)
        return set(rows) if len(rows) < limit else None

    def graph(self, name: GraphName) -> set[Quad]:
        """Read all quads of one graph."""
        stored = self._default_graph if self._default_graph and name == DEFAULT_GRAPH else name
        pattern = "?s ?p ?o" if isinstance(stored, DefaultGraph) else f"GRAPH {stored} {{ ?s ?p ?o }}"
        quads = set()
        for row in self._rows("", ("s", "p", "o"), f"{{ {pattern} }}"):
            subject, predicate, value = cast(tuple[NamedNode, NamedNode, Term], row)
            quads.add(Quad(subject, predicate, value, name))
            self._foreign.update(_blank_nodes(subject), _blank_nodes(value))
        return quads

    def graph_names(self) -> set[NamedNode | BlankNode]:
        """List the graphs that hold anything."""
        hidden = self._hidden()
        others = f"FILTER(?g NOT IN ({', '.join(map(str, hidden))}))" if hidden else ""
        found = self._endpoint.select(f"SELECT DISTINCT ?g {{ GRAPH ?g {{ ?s ?p ?o }} {others} }}")
        return {cast(NamedNode, name) for (name,) in found}

    def _hidden(self) -> frozenset[NamedNode]:
        """Return the graphs that are no named graphs of the dataset."""
        return self._dialect.system_graphs | ({self._default_graph} if self._default_graph else frozenset())

    def stored_form(self, quads: set[Quad]) -> set[Quad]:
        """Give names to fresh blank nodes, and write literals as the server gives them back."""
        named = {skolemise_quad(quad) if is_nameless(quad) and not self._is_foreign(quad) else quad for quad in quads}
        stored = self._dialect.stored_form(named)
        if self._dialect.by_value:
            return stored_spellings(stored, self._dialect.by_value, self._dialect.read_rows, self)
        return stored

    def spellings(self, literals: list[Literal]) -> list[Literal]:
        """Ask the server how it writes literals."""
        values = " ".join(f"({place} {literal})" for place, literal in enumerate(literals))
        rows = self._endpoint.select(f"SELECT ?i ?v {{ VALUES (?i ?v) {{ {values} }} }}")
        return [cast(Literal, value) for _, value in sorted(rows, key=lambda row: int(cast(Literal, row[0]).value))]

    def objects(self, quads: list[Quad]) -> list[tuple[int, Term]]:
        """Read all objects with the graph, subject and predicate of a quad; each comes with the place of that quad."""
        values = " ".join(
            f"({place} {quad.graph_name} {quad.subject} {quad.predicate})"
            for place, quad in enumerate(map(self._placed, quads))
        )
        rows = self._rows("", ("i", "o"), f"{{ VALUES (?i ?g ?s ?p) {{ {values} }} GRAPH ?g {{ ?s ?p ?o }} }}")
        return [(int(cast(Literal, place).value), cast(Term, value)) for place, value in rows]

    def _dataset_clauses(self, where: Where) -> str:
        """Write the dataset of a WHERE clause as FROM clauses.

        A query knows no "this default graph and all named graphs"; where both are needed the named ones are listed:
        those that the clause names, if it names them all, or else all that there are.
        """
        tokens = list(tokenize(where.pattern))
        mentions_graphs = any(token.is_word("GRAPH") for token in tokens)
        named: Collection[NamedNode | BlankNode]
        default: Collection[NamedNode | BlankNode]
        if where.using is not None and where.using_named is not None:
            default, named = where.using, where.using_named
        else:
            graph = where.with_graph or self._default_graph
            if graph is None and not (mentions_graphs and self._dialect.system_graphs):
                return ""
            fixed = fixed_graphs(where.prologue, tokens)
            if fixed is None or (graph is None and not only_in_graphs(tokens)):
                named = self.graph_names()
                default = [graph] if graph else named
            else:
                named = sorted(fixed - self._hidden(), key=str)
                default = [graph] if graph else ()
        if self._dialect.open_datasets:
            default, named = default or [_NO_GRAPH], named or [_NO_GRAPH]
        clauses = [f"FROM {name}" for name in default] + [f"FROM NAMED {name}" for name in named]
        return " ".join(dict.fromkeys(clauses))  # Fuseki refuses a graph that is named twice

    # --- blank nodes

    def _is_foreign(self, quad: Quad) -> bool:
        if not self._foreign:
            return False
        nodes = chain(_blank_nodes(quad.subject), _blank_nodes(quad.object), _blank_nodes(quad.graph_name))
        return not self._foreign.isdisjoint(nodes)

    def _refuse_blank_nodes(self, quads: Iterable[Quad]) -> None:
        for quad in quads:
            if is_nameless(quad):
                raise BlankNodeRefused(
                    f"the change needs a blank node of {self._endpoint.query_url}: {quad}",
                    hint="the SPARQL protocol cannot name it (nor one that BNODE() made in a WHERE clause); "
                    "give the node an IRI, or make the change on the server",
                )

    # --- writing

    def write(self, effect: Effect) -> None:
        """Apply an exact change in requests of bounded size."""
        quads = [*effect.delta.deleted, *effect.delta.inserted]
        self._refuse_blank_nodes(quads)
        self._refuse_default_graph(quads)
        if self._dialect.by_value:
            refuse_equal_values(effect.delta.inserted, self._dialect.by_value, self._dialect.name)
        original = effect.original
        if original is not None and self._does_the_same(original, effect.delta):
            requests = [original.text]
        else:
            requests = self._requests(effect)
        self._journal.record(effect.delta)
        for number, request in enumerate(requests):
            try:
                self._endpoint.update(request)
            except NotTaken:
                if number == 0:
                    self._journal.forget_last()
                raise
            except UncertainOutcome:
                self._uncertain = True
                raise
        if effect.delta and not self._proven:
            self._prove(effect.delta)

    def _does_the_same(self, original: Original, delta: Delta) -> bool:
        """Tell whether the request that a change comes from, sent as it is, has this very effect on the server.

        What is too long is sent in parts. Where literals are told apart by value, so are strings by whether their type
        was written; and Virtuoso answers a query about a variable without a value otherwise than it updates.
        """
        limit = _LIST if original.is_data else self._dialect.write_bytes
        if len(original.text) > limit or not self._means_the_same(original):
            return False
        if not self._dialect.by_value:
            return True
        if original.is_data:
            return False
        quads = delta.deleted | delta.inserted
        return (
            original.deletes_plainly
            and original.rest is not Rest.OTHER
            and all(map(compares_by_text, quads))
            and (
                original.rest is Rest.NOTHING or all(len(self._dialect.spellings(quad)) == 1 for quad in delta.deleted)
            )
        )

    def _means_the_same(self, original: Original) -> bool:
        """Tell whether the graphs of a request are those of the server: none is hidden, or stands for another."""
        if self._hidden() or not self._dialect.has_default_graph:
            return original.graphs is not None and original.graphs.isdisjoint(self._hidden())
        return True

    def _prove(self, delta: Delta) -> None:
        """See once that what the update service is told shows in the query service."""
        inserted, deleted = (set(islice(quads, _SAMPLE)) for quads in (delta.inserted, delta.deleted))
        if self.present(inserted | deleted) != inserted:
            raise EndpointError(
                f"{self._endpoint.update_url} took a change that {self._endpoint.query_url} does not show",
                hint="check that the two are services of the same dataset, and that nobody else writes to it",
            )
        self._proven = True

    def _requests(self, effect: Effect) -> list[str]:
        """Write the change as requests within the limits of the server.

        Where literals are told apart by value, deletions of values come in requests of their own: Virtuoso gives one
        that is deleted and inserted in one request its old spelling again.
        """
        limit = self._dialect.write_bytes
        apart = self._dialect.by_value and any(has_value(quad, self._dialect.by_value) for quad in effect.delta.deleted)
        deletions, insertions = self._operations("DELETE", effect.delta.deleted), self._insertions(effect)
        groups = [deletions, insertions] if apart else [chain(deletions, insertions)]
        parts = [part for group in groups for part in chunks(group, self._dialect.write_operations, limit)]
        for part in parts:
            if (length := sum(map(sent_length, part))) > 2 * limit:
                raise UpdateFailed(
                    f"a quad that takes {length} bytes is too long for {self._dialect.name}: {part[0][:200]}…",
                    hint="leave the value out, or keep it elsewhere and link to it",
                )
        return [";\n".join(part) for part in parts]

    def _insertions(self, effect: Effect) -> Iterator[str]:
        """Write what appears. (What is dropped is emptied: DROP could take more than was read.)"""
        yield from self._operations("INSERT", effect.delta.inserted)
        for name in effect.created - {quad.graph_name for quad in effect.delta.inserted}:
            yield f"CREATE SILENT GRAPH {name}"

    def _operations(self, keyword: str, quads: Iterable[Quad]) -> Iterator[str]:
        for graph, group in _by_graph(map(self._placed, quads)).items():
            triples = (text for quad in group for text in self._triples(keyword, quad))
            for part in chunks(triples, self._dialect.write_quads, self._dialect.write_bytes):
                yield data_operation(keyword, graph, part)

    def _triples(self, keyword: str, quad: Quad) -> Iterator[str]:
        for value in self._dialect.spellings(quad) if keyword == "DELETE" else (term_text(quad.object),):
            yield f"{quad.subject} {quad.predicate} {value} ."

    def settle(self, sequence: int) -> None:
        """Forget how to take back what counts now."""
        self._journal.settle(sequence)
        self._foreign.clear()

    def roll_back(self) -> None:
        """Take back what was written and does not count; keep the journal if the endpoint does not answer.

        After a write that broke off the journal is kept for a second time, before the next change: the endpoint may
        still have been at work on the write when the first came.
        """
        self._foreign.clear()
        unsettled = self._journal.unsettled()
        if unsettled:
            try:
                for request in self._requests(Effect(unsettled.inverse())):
                    self._endpoint.update(request)
            except EndpointError as error:
                raise self._stuck(error) from error
        if self._uncertain:
            self._uncertain = False
        else:
            self._journal.clear()

    def _stuck(self, error: EndpointError) -> UncertainOutcome:
        hint = "it will be taken back before the next update; until then the endpoint may hold some of it"
        if self._journal.path:
            hint += f"; what is to be taken back is kept in {self._journal.path}"
        else:
            hint += "; with a log folder (--log DIR) a later process could take it back too"
        return UncertainOutcome(
            f"a change was written in part, and could not be taken back: {error.message}", hint=hint
        )

    # --- the default graph

    def _refuse_default_graph(self, quads: Iterable[Quad]) -> None:
        """Refuse quads that name the graph that serves as the default graph: they are read back as quads of that."""
        name = self._default_graph
        if name and (found := next((quad for quad in quads if quad.graph_name == name), None)):
            raise UpdateFailed(
                f"the change names {name}, which serves as the default graph: {found}",
                hint="write it without GRAPH; if a variable stands for the graph, exclude this one by a FILTER",
            )

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


def _blank_nodes(term: Term | GraphName) -> Iterator[BlankNode]:
    if isinstance(term, BlankNode):
        yield term
    elif isinstance(term, Triple):
        yield from _blank_nodes(term.subject)
        yield from _blank_nodes(term.object)


def _by_graph(quads: Iterable[Quad]) -> dict[GraphName, list[Quad]]:
    groups: dict[GraphName, list[Quad]] = {}
    for quad in quads:
        groups.setdefault(quad.graph_name, []).append(quad)
    return groups
