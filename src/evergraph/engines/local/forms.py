"""ASK, CONSTRUCT and DESCRIBE: what stands on top of a plan."""

from collections.abc import Callable

from evergraph.delta import Bag
from evergraph.engines.local.dictionary import Dictionary, Row, ZSet, add
from evergraph.engines.local.leaves import QuadLeaf
from evergraph.engines.local.operators import DistinctOperator, Operator
from evergraph.engines.local.relations import EVERYTHING
from evergraph.engines.local.store import Store, Subscription
from evergraph.plan.nodes import Context, Variables
from evergraph.sparql.algebra import TripleTemplate
from evergraph.sparql.results import construct
from evergraph.sparql.values import FALSE, TRUE
from evergraph.terms import BlankNode


class AskOperator:
    """ASK: one row with a boolean. Rule (needs old state): it turns when the number of solutions crosses zero."""

    def __init__(self, operand: Operator, dictionary: Dictionary) -> None:
        self._operand = operand
        self._rows = ((dictionary.encode(FALSE),), (dictionary.encode(TRUE),))
        self._count = 0
        self._row: Row | None = None

    def pull(self) -> ZSet:
        """Report the boolean if it turned."""
        self._count += sum(self._operand.pull().values())
        row = self._rows[bool(self._count)]
        if row == self._row:
            return {}
        out: ZSet = {row: 1} if self._row is None else {row: 1, self._row: -1}
        self._row = row
        return out

    def size(self) -> int:
        """Count the count."""
        return 1


class TemplateOperator:
    """The triples that CONSTRUCT builds from solutions, as a bag; Distinct on top makes it a graph.

    Without blank nodes in the template this is linear. With them, equal solutions have blank nodes of their own, by
    number, so that the count of each solution is kept, and the numbers that come or go are reported.
    """

    def __init__(
        self, operand: Operator, template: tuple[TripleTemplate, ...], columns: Variables, dictionary: Dictionary
    ) -> None:
        self._operand = operand
        self._build = construct(template, columns)
        self._dictionary = dictionary
        self._numbered = any(isinstance(term, BlankNode) for one in template for term in (one.subject, one.object))
        self._counts: ZSet = {}

    def pull(self) -> ZSet:
        """Report the triples that the change builds and no longer builds."""
        out: ZSet = {}
        for row, weight in self._operand.pull().items():
            if self._numbered:
                before = self._counts.get(row, 0)
                add(self._counts, row, weight)
                self._emit(row, before + weight, 1, out)
                self._emit(row, before, -1, out)
            else:
                self._emit(row, 1, weight, out)
        return out

    def _emit(self, row: Row, times: int, weight: int, out: ZSet) -> None:
        if times:
            solution = self._dictionary.decode_row(row)
            for triple in self._build(Bag.weighted([(solution, times)])):
                add(out, self._dictionary.encode_row((triple.subject, triple.predicate, triple.object)), weight)

    def size(self) -> int:
        """Count the solutions that are numbered."""
        return len(self._counts)


class _Triples(QuadLeaf):
    """All triples of the default graph, and the index by subject."""

    def __init__(self, context: Context, store: Store, touch: Callable[[], None]) -> None:
        super().__init__(store, touch)
        relation = store.relation(store.context_key(context), 0)
        self.by_subject: dict[int, set[Row]] = self._index(relation, "s")
        self._subscribe(Subscription(relation, EVERYTHING, (self._run, self)))

    def _run(self, subject: int, predicate: int, object_: int, _graph: int, weight: int) -> None:
        add(self.pending, (subject, predicate, object_), weight)

    def load(self) -> None:
        """Leave out what is there: the operator looks it up."""


class DescribeOperator:
    """DESCRIBE: concise bounded descriptions, as a graph.

    Rule (needs old state): a triple of a described node is reported as it comes and goes. If a target, or a link to a
    blank node, comes or goes, the described nodes are found again from the targets, and the triples of those that came
    or went are reported. State: the count of each target, and the described nodes.
    """

    def __init__(self, targets: Operator, constants: set[int], triples: _Triples, dictionary: Dictionary) -> None:
        self._operand = targets
        self._targets: dict[int, int] = dict.fromkeys(constants, 1)
        self._triples = triples
        self._dictionary = dictionary
        self._nodes: set[int] = set()
        self._is_new = True

    def pull(self) -> ZSet:
        """Report the triples that came to be and ceased to be part of a description."""
        triples = self._triples.pull()
        moved = self._change_targets(self._operand.pull()) or self._is_new
        terms = self._dictionary.terms
        moved = moved or any(s in self._nodes and isinstance(terms[o], BlankNode) for s, _, o in triples)
        before = self._nodes
        if moved:
            self._is_new = False
            self._nodes = self._described()
        out = {row: weight for row, weight in triples.items() if row[0] in before}
        for node in before - self._nodes:
            for row in self._now(node):
                add(out, row, -1)
        for node in self._nodes - before:
            for row in self._now(node):
                add(out, row, 1)
        return out

    def _change_targets(self, delta: ZSet) -> bool:
        moved = False
        for row, weight in delta.items():
            for target in row:
                if target:
                    before = self._targets.get(target, 0)
                    self._targets[target] = before + weight
                    if not before + weight:
                        del self._targets[target]
                    moved = moved or not before or not before + weight
        return moved

    def _now(self, node: int) -> list[Row]:
        return [(node, predicate, object_) for object_, predicate in self._triples.by_subject.get(node, ())]

    def _described(self) -> set[int]:
        terms = self._dictionary.terms
        found = {target for target, count in self._targets.items() if count}
        waiting = list(found)
        while waiting:
            for _, _, object_ in self._now(waiting.pop()):
                if object_ not in found and isinstance(terms[object_], BlankNode):
                    found.add(object_)
                    waiting.append(object_)
        return found

    def size(self) -> int:
        """Count targets and described nodes."""
        return len(self._targets) + len(self._nodes)


def described_triples(context: Context, store: Store, touch: Callable[[], None]) -> _Triples:
    """Return the leaf that DESCRIBE looks its triples up in."""
    return _Triples(context, store, touch)


__all__ = ["AskOperator", "DescribeOperator", "DistinctOperator", "TemplateOperator", "described_triples"]
