"""Which of many quads does an endpoint hold? Four ways to ask, none of them one request per quad.

* **At all.** Where many quads share graph and predicate, ask first whether the graph holds any such quad: what is new
  often comes with a graph or a predicate that is new.
* **By subject.** Quads of one graph and predicate: fetch the objects of all their subjects and compare here. The
  cheapest way, if the subjects do not have too many objects each; the request has a limit, and if the answer reaches
  it, the second way takes over. Only for objects that compare by their text.
* **Together.** Whole quads in a VALUES block, answered by their numbers.
* **Alone.** One pattern without variables, for values that are too long for VALUES.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import TypeVar, cast

from evergraph.gate.data_update import data_row
from evergraph.gate.dialects import Dialect
from evergraph.gate.endpoint import Endpoint
from evergraph.terms import DEFAULT_GRAPH, XSD, GraphName, Literal, NamedNode, Quad

Item = TypeVar("Item")

_GROUP = 8
"""How many quads of one graph and predicate make it worth to ask by subject."""


LARGE = 256
"""How many make it worth to ask first whether there is any."""


class PresenceCheck:
    """Asks an endpoint; quads must be without blank nodes, and in the graphs where the server keeps them."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._dialect: Dialect = endpoint.dialect

    def present(self, quads: Iterable[Quad]) -> set[Quad]:
        """Tell which of the quads are there."""
        groups: dict[tuple[GraphName, NamedNode], list[Quad]] = {}
        together: list[Quad] = []
        checks: list[Callable[[], Iterable[Quad]]] = []
        for quad in quads:
            if compares_by_text(quad):
                groups.setdefault((quad.graph_name, quad.predicate), []).append(quad)
            elif len(str(quad.object)) > self._dialect.long_value:
                checks.append(partial(self._alone, quad))
            else:
                together.append(quad)
        for group in groups.values():
            if len(group) >= LARGE and not self._any(group[0]):
                continue
            if len(group) >= _GROUP or any(len(str(quad.object)) > self._dialect.long_value for quad in group):
                checks += [partial(self._by_subject, part) for part in _parts(group, self._dialect.read_subjects)]
            else:
                together += group
        checks += [partial(self._together, part) for part in _parts(together, self._dialect.read_rows)]
        return self._run(checks)

    def _run(self, checks: list[Callable[[], Iterable[Quad]]]) -> set[Quad]:
        if len(checks) < 2 or self._dialect.connections < 2:
            return set(chain.from_iterable(check() for check in checks))
        with ThreadPoolExecutor(self._dialect.connections) as pool:
            return set(chain.from_iterable(pool.map(lambda check: check(), checks)))

    def _any(self, like: Quad) -> bool:
        """Tell whether there is any quad with the graph and predicate of one."""
        triple = f"?s {like.predicate} ?o"
        pattern = triple if like.graph_name == DEFAULT_GRAPH else f"GRAPH {like.graph_name} {{ {triple} }}"
        return bool(self._endpoint.select(f"SELECT (0 AS ?i) {{ {pattern} }} LIMIT 1"))

    def _by_subject(self, quads: list[Quad]) -> Iterable[Quad]:
        graph, predicate = quads[0].graph_name, quads[0].predicate
        subjects = {str(quad.subject) for quad in quads}
        triple = f"?s {predicate} ?o"
        pattern = triple if graph == DEFAULT_GRAPH else f"GRAPH {graph} {{ {triple} }}"
        limit = 2 * len(quads) + 1_000
        query = f"SELECT ?s ?o {{ VALUES ?s {{ {' '.join(subjects)} }} {pattern} }} LIMIT {limit}"
        rows = [(subject, value) for subject, value in self._endpoint.select(query)]
        if len(rows) >= limit:
            short = [quad for quad in quads if len(str(quad.object)) <= self._dialect.long_value]
            parts = [self._together(part) for part in _parts(short, self._dialect.read_rows)]
            return chain(*parts, *(self._alone(quad) for quad in set(quads).difference(short)))
        found = set(rows)
        return [quad for quad in quads if (quad.subject, quad.object) in found]

    def _together(self, quads: list[Quad]) -> Iterable[Quad]:
        """Check whole quads. VALUES comes first and the graph is a variable: Virtuoso is slow or wrong otherwise."""
        default, named = [], []
        for place, quad in enumerate(quads):
            for value in self._dialect.spellings(quad):
                if quad.graph_name == DEFAULT_GRAPH:
                    default.append(f"({place} {quad.subject} {quad.predicate} {value})")
                else:
                    named.append(f"({place} {quad.graph_name} {quad.subject} {quad.predicate} {value})")
        places: set[int] = set()
        if default:
            places |= self._places(f"SELECT ?i {{ VALUES (?i ?s ?p ?o) {{ {' '.join(default)} }} ?s ?p ?o }}")
        if named:
            rows = " ".join(named)
            places |= self._places(f"SELECT ?i {{ VALUES (?i ?g ?s ?p ?o) {{ {rows} }} GRAPH ?g {{ ?s ?p ?o }} }}")
        return [quads[place] for place in places]

    def _alone(self, quad: Quad) -> Iterable[Quad]:
        for value in self._dialect.spellings(quad):
            if self._places(f"SELECT (0 AS ?i) {{ {data_row(quad, value)} }} LIMIT 1"):
                return [quad]
        return []

    def _places(self, query: str) -> set[int]:
        return {int(cast(Literal, place).value) for (place,) in self._endpoint.select(query)}


def compares_by_text(quad: Quad) -> bool:
    """Tell whether the object is an IRI or a string: servers store numbers and dates in ways of their own."""
    value = quad.object
    if isinstance(value, Literal):
        return value.language is not None or value.datatype.value == XSD + "string"
    return isinstance(value, NamedNode)


def _parts(items: list[Item], size: int) -> list[list[Item]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
