"""The view controller: a catalogue view that follows its dataset and remembers which resources changed, and when."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import TypeAlias

from evergraph.delta import Delta, Request
from evergraph.engines.local.engine import LocalEngine
from evergraph.linking.catalogue import Catalogue, text
from evergraph.linking.rules import Texts
from evergraph.sparql.expressions import Environment, Row
from evergraph.terms import NamedNode, term_text

Value: TypeAlias = tuple[int, str, str]
"""The number of a property, or `_TYPE`; the text of the value, and the value itself as N-Triples has it."""

_TYPE = -1


@dataclass(frozen=True, slots=True)
class Affected:
    """The resources that one update changed in a view: those that lost triples, R⁻, and those that got some, R⁺."""

    removed: frozenset[str]
    added: frozenset[str]

    def all(self) -> frozenset[str]:
        """Return both."""
        return self.removed | self.added


class Resources:
    """The resources of a catalogue view, as the exact changes of its triples leave them.

    Changes come with a time that grows. The resources in R⁻ and R⁺ of each are stamped with it; their newest texts are
    P.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.time = 0
        self._numbers: dict[object, int] = {one: number for number, one in enumerate(catalogue.properties)}
        self._triples: dict[str, set[Value]] = {}
        self._stamps: dict[str, int] = {}

    def put(self, removed_rows: Iterable[Row], added_rows: Iterable[Row], time: int | None = None) -> Affected:
        """Take in a change of the view: triples that went, and triples that came."""
        self.time = self.time + 1 if time is None else time
        removed, added = set[str](), set[str]()
        for name, value in self._values(removed_rows):
            self._triples[name].discard(value)
            if not self._triples[name]:
                del self._triples[name]
            removed.add(name)
        for name, value in self._values(added_rows):
            self._triples.setdefault(name, set()).add(value)
            added.add(name)
        affected = Affected(frozenset(removed), frozenset(added))
        for name in affected.all():
            self._stamps.pop(name, None)  # the newest stand last
            self._stamps[name] = self.time
        return affected

    def changed(self, after: int) -> dict[str, Texts | None]:
        """Return P for all times above ``after``: the resources that changed, each once, with their newest texts.

        None stands for one that is not in the view any more.
        """
        newest = takewhile(lambda item: item[1] > after, reversed(self._stamps.items()))
        return {name: self.texts(name) for name, _ in newest}

    def forget(self, until: int) -> None:
        """Forget the stamps up to a time: nobody will ask for what changed before it."""
        self._stamps = {name: time for name, time in self._stamps.items() if time > until}

    def texts(self, name: str) -> Texts | None:
        """Return the texts of a resource; None if it is not in the view."""
        found: list[tuple[str, ...]] = [()] * len(self._numbers)
        typed = False
        for number, value, _ in self._triples.get(name, ()):
            if number < 0:
                typed = True
            else:
                found[number] += (value,)
        return tuple([one if len(one) < 2 else tuple(sorted(set(one))) for one in found]) if typed else None

    def _values(self, rows: Iterable[Row]) -> Iterator[tuple[str, Value]]:
        """Return what triples of the view say, with the names of the resources. Blank nodes are left out."""
        numbers = self._numbers
        for subject, predicate, value in rows:
            if isinstance(subject, NamedNode) and value is not None:
                yield str(subject), (numbers.get(predicate, _TYPE), text(value), term_text(value))

    def resources(self) -> dict[str, Texts]:
        """Return all resources of the view."""
        return {name: texts for name in self._triples if (texts := self.texts(name)) is not None}


class CatalogueView(Resources):
    """A catalogue view over one dataset, maintained by the local engine.

    For each update, R⁻ and R⁺ are taken from the exact change of the view, so they are no larger than they must be, and
    the view may use negation.
    """

    def __init__(self, catalogue: Catalogue, environment: Environment | None = None) -> None:
        super().__init__(catalogue)
        self._engine = LocalEngine()
        self._view = self._engine.register(catalogue.query, environment=environment)

    def exact(self, request: Request) -> Delta:
        """Return what a request really changes among the quads that the view can use."""
        return self._engine.exact(request)

    def take(self, delta: Delta, time: int | None = None) -> Affected:
        """Take in an exact change."""
        changes = self._engine.apply(delta) if delta else []
        if self._view.failed is not None:
            raise self._view.failed
        removed = chain.from_iterable(view.removed(rows) for view, rows in changes)
        return self.put(removed, chain.from_iterable(view.added(rows) for view, rows in changes), time)
