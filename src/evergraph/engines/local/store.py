"""All relations of an engine, and the router: which relations, and which patterns, a changed quad concerns."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from evergraph.engines.local.dictionary import Dictionary
from evergraph.engines.local.relations import (
    EVERYTHING,
    ContextKey,
    Cover,
    Entry,
    Ids,
    Leaf,
    MergedRelation,
    Relation,
    RelationKey,
)
from evergraph.engines.local.routes import Route, lean_route
from evergraph.errors import UsageError
from evergraph.plan.nodes import Context, EachGraph, Merge
from evergraph.terms import DEFAULT_GRAPH, BlankNode, DefaultGraph, GraphName, NamedNode, Quad, Term

Source = Callable[[], Iterable[Quad]]
"""What gives all quads that are there now."""

Lookup = Callable[[Term | None, Term | None, Term | None, GraphName | None], Iterable[Quad]]
"""What finds the quads that are there now, by subject, predicate, object and graph name; None is any."""

_DEFAULT: ContextKey = ("default",)

_ROUTES = 10_000
"""For how many graphs it is remembered where quads of one predicate go: graphs come and go."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a leaf wants from a relation: the quads of a cover, and to be told of their changes."""

    relation: Relation
    cover: Cover
    entry: Entry | None = None


class Store:
    """Quads that some plan can use, in relations that plans share."""

    def __init__(self, source: Source | None = None, lookup: Lookup | None = None) -> None:
        self.dictionary = Dictionary()
        self.relations: dict[RelationKey, Relation] = {}
        self.source = source
        self.lookup = lookup
        self.has_seen_data = source is not None or lookup is not None
        self.touched: list[Leaf] = []
        self._owned: set[Relation] = set()
        self._by_predicate: Counter[int] = Counter()
        self._missing: list[tuple[Relation, Cover]] = []
        self._routes: dict[object, dict[GraphName, Route]] = {}
        self._other_routes: dict[GraphName, Route] | None = None

    # -- changes

    def change(self, quad: Quad, weight: int) -> None:
        """Take in an insertion (+1) or a deletion (-1) that is known to be exact."""
        routes = self._routes.get(quad.predicate, self._other_routes)
        if routes is None:
            self.has_seen_data = True
            return
        graph = quad.graph_name
        route = routes.get(graph)
        if route is None:
            self.has_seen_data = True
            if len(routes) >= _ROUTES:
                routes.clear()
            route = routes[graph] = self._route(quad.predicate, graph)
        route.take(quad, weight)

    def _change(self, quad: Quad, weight: int, relations: tuple[Relation, ...]) -> None:
        subject, object_ = self._known(quad.subject), self._known(quad.object)
        concerned = [one for one in relations if one.admits(subject, object_)]
        if concerned:
            self._apply(concerned, self._encoded(quad), weight)

    def _apply(self, relations: list[Relation], ids: Ids, weight: int) -> None:
        """Let the patterns see the quad while it is in the indexes: after an insertion, before a deletion."""
        subject, predicate, object_, graph = ids
        if weight > 0:
            concerned = [one for one in relations if one.insert(ids)]
        else:
            concerned = [one for one in relations if one.leaves(ids)]
        touched = self.touched
        for relation in concerned:
            for run, leaf in relation.selected(subject, object_):
                run(subject, predicate, object_, graph, weight)
                touched.append(leaf)
        if weight < 0:
            for relation in relations:
                relation.remove(ids)

    def concerned(self, quad: Quad) -> Iterator[list[Entry]]:
        """Iterate over the lists of what a changed quad is for."""
        routes = self._routes.get(quad.predicate, self._other_routes)
        if routes is None:
            return
        graph = quad.graph_name
        route = routes.get(graph)
        if route is None:
            route = routes[graph] = self._route(quad.predicate, graph)
        subject, object_ = self._known(quad.subject), self._known(quad.object)
        for relation in route.relations:
            for cover in (EVERYTHING, (subject, 0), (0, object_), (subject, object_)):
                found = relation.entries.get(cover)
                if found:
                    yield found

    def find(self, quad: Quad) -> bool | None:
        """Tell whether a quad is there; None if no plan can use it, so that nobody knows."""
        predicate = quad.predicate
        routes = self._routes.get(predicate, self._other_routes)
        if routes is None:
            return None
        graph = quad.graph_name
        route = routes.get(graph)
        if route is None:
            if len(routes) >= _ROUTES:
                routes.clear()
            route = routes[graph] = self._route(predicate, graph)
        known = self.dictionary.ids.get
        subject, object_ = known(quad.subject, -1), known(quad.object, -1)
        for one in route.relations:
            if one.admits(subject, object_):
                if subject < 0 or object_ < 0:
                    return False
                name = 0 if isinstance(graph, DefaultGraph) else known(graph, -1)
                return one.holds((subject, known(predicate, -1), object_, name))
        return None

    def size(self) -> int:
        """Count the quads, each once for every relation that holds it."""
        return sum(len(one) for one in self.relations.values() if one not in self._owned)

    def _known(self, term: Term) -> int:
        return self.dictionary.ids.get(term, -1)

    # -- routes

    def _route(self, predicate: NamedNode, graph: GraphName) -> Route:
        """Find the relations that hold quads of a predicate in a graph."""
        wanted = (self._known(predicate), 0)
        contexts = {context for context, _ in self.relations if self._is_in(graph, context)}
        keys = [(context, one) for context in contexts for one in wanted]
        relations = tuple(self.relations[key] for key in keys if key in self.relations)
        if len(relations) == 1 and relations[0].is_lean():
            name = 0 if isinstance(graph, DefaultGraph) else self._known(graph)
            return Route(relations, lean_route(relations[0], (wanted[0], name), self.dictionary, self.touched))
        return Route(relations, lambda quad, weight: self._change(quad, weight, relations))

    def _is_in(self, graph: GraphName, context: ContextKey) -> bool:
        if isinstance(graph, DefaultGraph):
            return context == _DEFAULT
        name = self._known(graph)
        match context:
            case ("one", one):
                return one == name
            case ("each", None):
                return True
            case ("each" | "merge", frozenset(names)):
                return name in names
            case _:
                return False

    def _reroute(self, predicate: int) -> None:
        """Forget where quads of a predicate, or of any, go; it is worked out again when one comes."""
        if predicate:
            term = self.dictionary.terms[predicate]
            if self._by_predicate[predicate]:
                self._routes[term] = {}
            else:
                self._routes.pop(term, None)
            return
        for routes in self._routes.values():
            routes.clear()
        self._other_routes = {} if self._by_predicate[0] else None

    # -- plans come and go

    def context_key(self, context: Context) -> ContextKey:
        """Return the name under which the relations of a context are kept."""
        encode = self.dictionary.encode
        match context:
            case DefaultGraph():
                return _DEFAULT
            case NamedNode() | BlankNode():
                return ("one", encode(context))
            case EachGraph(_, among):
                return ("each", None if among is None else frozenset(map(encode, among)))
            case Merge(graphs):
                return ("merge", frozenset(map(encode, graphs)))

    def relation(self, context: ContextKey, predicate: int) -> Relation:
        """Return a relation, made if need be; predicate 0 is any. Somebody must `subscribe` to it."""
        key = (context, predicate)
        if key not in self.relations:
            made = MergedRelation(key) if context[0] == "merge" else Relation(key)
            made.changed = partial(self._reroute, predicate)
            self.relations[key] = made
            self._by_predicate[predicate] += 1
        return self.relations[key]

    def subscribe(self, subscription: Subscription) -> None:
        """Let a leaf have quads and their changes; `fill` gets those that are there already."""
        relation, cover = subscription.relation, subscription.cover
        relation.hold()
        if not relation.covered(cover):
            self._missing.append((relation, cover))
        if relation.cover(cover):
            self._reroute(relation.key[1])
        if subscription.entry is not None:
            relation.entries[cover].append(subscription.entry)

    def own(self, relation: Relation) -> Subscription:
        """Hold a relation that only `put` fills: no source is asked for what it has."""
        relation.hold()
        relation.cover(EVERYTHING)
        self._owned.add(relation)
        return Subscription(relation, EVERYTHING)

    def put(self, relation: Relation, row: Ids, weight: int) -> None:
        """Change a relation that somebody owns."""
        self._apply([relation], row, weight)

    def cancel(self, subscription: Subscription) -> None:
        """End a subscription, and drop what nobody else uses."""
        relation, cover = subscription.relation, subscription.cover
        if subscription.entry is not None:
            relation.entries[cover].remove(subscription.entry)
        predicate = relation.key[1]
        if relation.uncover(cover):
            self._reroute(predicate)
        if cover in relation.covers:
            return
        if not relation.covers:
            del self.relations[relation.key]
            self._owned.discard(relation)
            self._by_predicate[predicate] -= 1
            self._reroute(predicate)
            if not self._by_predicate[predicate]:
                del self._by_predicate[predicate]
        elif EVERYTHING not in relation.covers:
            relation.prune(cover)

    def forget_missing(self) -> None:
        """Forget what subscriptions miss that were cancelled before they were filled."""
        self._missing = []

    def fill(self) -> None:
        """Fetch what new subscriptions miss: from relations that have it, else from the source."""
        missing, self._missing = self._missing, []
        if not self.has_seen_data:
            return
        needed = []
        unfilled = {relation for relation, _ in missing}
        for relation, cover in missing:
            known = self._covering(relation, cover, unfilled)
            if known is None:
                needed.append((relation, cover))
            else:
                _take(relation, cover, list(known))
        if needed:
            self._fetch(needed)

    def _covering(self, relation: Relation, cover: Cover, unfilled: set[Relation]) -> Iterator[Ids] | None:
        """Find a relation that holds all quads of another one."""
        context, predicate = relation.key
        wider = [context]
        if context[0] == "one":
            wider += [one for one, _ in self.relations if one[0] == "each" and (one[1] is None or context[1] in one[1])]  # type: ignore[operator]
        for one in wider:
            for candidate in ((one, predicate), (one, 0)):
                found = self.relations.get(candidate)
                if found is None or found is relation or found in unfilled or not found.covered(cover):
                    continue
                return _selected(found, context, predicate)
        return None

    def _fetch(self, needed: list[tuple[Relation, Cover]]) -> None:
        if self.source is None and self.lookup is None:
            raise UsageError(
                "this query needs quads that the engine has not kept",
                hint="register queries before the first change, or give the engine a source of the present quads.",
            )
        if self.lookup is not None:
            for relation, cover in needed:
                self._look_up(relation, cover, self.lookup)
        elif self.source is not None:
            self._scan(needed, self.source)

    def _look_up(self, relation: Relation, cover: Cover, lookup: Lookup) -> None:
        terms = self.dictionary.terms
        subject, predicate, object_ = (terms[one] for one in (cover[0], relation.key[1], cover[1]))
        for graph in self._graphs(relation.key[0]):
            found = lookup(subject, predicate, object_, graph)
            self._load(
                relation, (one for one in found if graph is not None or not isinstance(one.graph_name, DefaultGraph))
            )

    def _graphs(self, context: ContextKey) -> list[GraphName | None]:
        """List the graphs of a context; None stands for all named ones."""
        match context:
            case ("one", int(name)):
                return [self._graph_name(name)]
            case ("each", None):
                return [None]
            case ("each" | "merge", frozenset(names)):
                return [self._graph_name(name) for name in names]
            case _:
                return [DEFAULT_GRAPH]

    def _graph_name(self, name: int) -> GraphName:
        term = self.dictionary.terms[name]
        assert isinstance(term, NamedNode | BlankNode)
        return term

    def _scan(self, needed: list[tuple[Relation, Cover]], source: Source) -> None:
        wanted: dict[Relation, list[Cover]] = {}
        for relation, cover in needed:
            wanted.setdefault(relation, []).append(cover)
        whole: dict[Relation, list[Quad]] = {relation: [] for relation in wanted if EVERYTHING in wanted[relation]}
        for quad in source():
            routes = self._routes.get(quad.predicate, self._other_routes)
            if routes is None:
                continue
            route = routes.get(quad.graph_name)
            if route is None:
                route = routes[quad.graph_name] = self._route(quad.predicate, quad.graph_name)
            for relation in route.relations:
                if relation in whole:
                    whole[relation].append(quad)
                    continue
                for cover in wanted.get(relation, ()):
                    subject, object_ = self._known(quad.subject), self._known(quad.object)
                    if cover[0] in (0, subject) and cover[1] in (0, object_):
                        relation.insert(self._encoded(quad))
        for relation, quads in whole.items():
            self._load(relation, quads)

    def _load(self, relation: Relation, quads: Iterable[Quad]) -> None:
        """Put many quads into a relation that they belong to."""
        if relation.is_lean():
            encode = self.dictionary.encode
            relation.insert_pairs([(encode(quad.subject), encode(quad.object)) for quad in quads])
        else:
            for quad in quads:
                relation.insert(self._encoded(quad))

    def _encoded(self, quad: Quad) -> Ids:
        encode, graph = self.dictionary.encode, quad.graph_name
        name = 0 if isinstance(graph, DefaultGraph) else encode(graph)
        return encode(quad.subject), encode(quad.predicate), encode(quad.object), name


def _selected(found: Relation, context: ContextKey, predicate: int) -> Iterator[Ids]:
    quads = found.sources() if isinstance(found, MergedRelation) else found.quads()
    if context[0] == "one" and found.key[0][0] == "each" and "g" in found.indexes:
        index = found.indexes["g"].get(context[1], ())
        wide = found.wide.replace("g", "")
        quads = (
            (value[0], found.key[1] or value[wide.index("p")], value[1], context[1])  # type: ignore[misc]
            for value in index
        )
    for quad in quads:
        if (not predicate or quad[1] == predicate) and (context[0] != "one" or quad[3] == context[1]):
            yield quad


def _take(relation: Relation, cover: Cover, quads: list[Ids]) -> None:
    for quad in quads:
        if cover[0] in (0, quad[0]) and cover[1] in (0, quad[2]):
            relation.insert(quad)
