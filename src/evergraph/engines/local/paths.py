"""Path: closures of a step relation. Its rule is in `evergraph.plan.nodes`."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeAlias

from evergraph.engines.local.dictionary import Row, ZSet, add
from evergraph.engines.local.operators import Budget, Operator

Edges: TypeAlias = dict[int, set[int]]
Edge: TypeAlias = tuple[int, int]


class Steps:
    """The steps of one graph, in both directions."""

    __slots__ = ("back", "forth")

    def __init__(self) -> None:
        self.forth: Edges = {}
        self.back: Edges = {}

    def insert(self, source: int, target: int) -> None:
        """Add a step."""
        self.forth.setdefault(source, set()).add(target)
        self.back.setdefault(target, set()).add(source)

    def remove(self, source: int, target: int) -> None:
        """Take a step away."""
        for edges, a, b in ((self.forth, source, target), (self.back, target, source)):
            edges[a].discard(b)
            if not edges[a]:
                del edges[a]


class Reach:
    """The nodes that one root reaches in one or more steps, in a spanning tree: ``parent`` has the last step to each.

    The loss of a step that is not in the tree changes nothing. The loss of one that is takes its subtree out, and what
    can be reached another way is put back.
    """

    __slots__ = ("_back", "_forth", "_root", "parent")

    def __init__(self, root: int, forth: Edges, back: Edges) -> None:
        self._root = root
        self._forth = forth
        self._back = back
        self.parent: dict[int, int] = {}

    def update(self, inserted: Edges, removed: Edges) -> tuple[set[int], set[int]]:
        """Follow changes that the steps have already made; return the nodes that came and that went.

        ``inserted`` has new targets by source, ``removed`` old sources by target.
        """
        parent, root = self.parent, self._root
        cut = self._cut_off(removed) if parent else set()
        for node in cut:
            del parent[node]
        waiting = []
        for node in cut:
            for source in self._back.get(node, ()):
                if source == root or source in parent:
                    parent[node] = source
                    waiting.append(node)
                    break
        came = set[int]()
        for source in self._reached_among(inserted):
            for target in inserted[source]:
                if target not in parent:
                    parent[target] = source
                    came.add(target)
                    waiting.append(target)
        self._spread(waiting, came)
        return came - cut, {node for node in cut if node not in parent}

    def _reached_among(self, sources: Edges) -> list[int]:
        """Return the sources that are the root or reached from it."""
        found = _common(sources, self.parent)
        if self._root in sources and self._root not in self.parent:
            found.append(self._root)
        return found

    def _cut_off(self, removed: Edges) -> set[int]:
        """Find what the tree no longer ties to the root."""
        parent = self.parent
        reached = _common(removed, parent)
        waiting = [target for target in reached if parent[target] in removed[target]]
        cut = set(waiting)
        while waiting:
            node = waiting.pop()
            for target in self._forth.get(node, ()):
                if parent.get(target) == node and target not in cut:
                    cut.add(target)
                    waiting.append(target)
        return cut

    def _spread(self, waiting: list[int], came: set[int]) -> None:
        parent, forth = self.parent, self._forth
        while waiting:
            node = waiting.pop()
            for target in forth.get(node, ()):
                if target not in parent:
                    parent[target] = node
                    came.add(target)
                    waiting.append(target)


class PathOperator:
    """Path: one root if an end is constant, else every source."""

    def __init__(
        self, step: Operator, ends: tuple[int, int], fits: Callable[[Row], Row | None], budget: Budget
    ) -> None:
        self._step = step
        self._subject, self._object = ends
        self._fits = fits
        self._budget = budget
        self._weights: ZSet = {}
        self._graphs: dict[int, Steps] = {}
        self._reach: dict[Edge, Reach] = {}
        self._pairs = 0

    def pull(self) -> ZSet:
        """Follow the steps that came and went, graph by graph."""
        changes: dict[int, tuple[list[Edge], list[Edge]]] = {}
        for row, weight in self._step.pull().items():
            before = self._weights.get(row, 0)
            add(self._weights, row, weight)
            if not before or not before + weight:
                graph = row[2] if len(row) > 2 else 0
                inserted, removed = changes.setdefault(graph, ([], []))
                (removed if before else inserted).append((row[0], row[1]))
        out: ZSet = {}
        for graph, (inserted, removed) in changes.items():
            steps = self._graphs.setdefault(graph, Steps())
            roots = self._roots(steps, removed)
            for source, target in inserted:
                steps.insert(source, target)
            for source, target in removed:
                steps.remove(source, target)
            roots |= self._roots(steps, inserted)
            self._update(graph, steps, roots, (inserted, removed), out)
        return out

    def _roots(self, steps: Steps, edges: Iterable[Edge]) -> set[int]:
        """Return the roots that some edges concern: the constant end, or all that lead to an edge."""
        edges = list(edges)
        if not edges:
            return set()
        if self._subject or self._object:
            return {self._subject or self._object}
        found = {source for source, _ in edges}
        waiting = list(found)
        while waiting:
            for source in steps.back.get(waiting.pop(), ()):
                if source not in found:
                    found.add(source)
                    waiting.append(source)
        return found

    def _update(
        self, graph: int, steps: Steps, roots: set[int], changes: tuple[list[Edge], list[Edge]], out: ZSet
    ) -> None:
        backwards = not self._subject and bool(self._object)
        forth, back = (steps.back, steps.forth) if backwards else (steps.forth, steps.back)
        inserted, removed = _by_end(changes[0], backwards), _by_end(changes[1], not backwards)
        for root in roots:
            reach = self._reach.get((graph, root))
            if reach is None:
                reach = self._reach[graph, root] = Reach(root, forth, back)
            came, went = reach.update(inserted, removed)
            self._pairs += len(came) - len(went)
            self._budget.check(self._pairs)
            if not reach.parent:
                del self._reach[graph, root]
            for node, weight in _weighted(came, went):
                pair = (node, root, graph) if backwards else (root, node, graph)
                row = self._fits(pair)
                if row is not None:
                    add(out, row, weight)

    def size(self) -> int:
        """Count steps and pairs."""
        return len(self._weights) + self._pairs


def _common(one: Collection[int], other: Collection[int]) -> list[int]:
    """Return what is in both, at the price of the smaller one."""
    if len(other) < len(one):
        one, other = other, one
    return [node for node in one if node in other]


def _by_end(edges: list[Edge], backwards: bool) -> Edges:
    """Group edges by their source, or by their target."""
    grouped: Edges = {}
    for source, target in edges:
        if backwards:
            grouped.setdefault(target, set()).add(source)
        else:
            grouped.setdefault(source, set()).add(target)
    return grouped


def _weighted(came: set[int], went: set[int]) -> Iterator[tuple[int, int]]:
    for node in came:
        yield node, 1
    for node in went:
        yield node, -1
