"""The view controller: a catalogue view that follows its dataset and remembers which resources changed, and when."""

from dataclasses import dataclass

from evergraph.delta import Delta, Request
from evergraph.engines.local.engine import LocalEngine
from evergraph.linking.catalogue import Catalogue
from evergraph.linking.rules import Texts
from evergraph.sparql.expressions import Environment, Row


@dataclass(frozen=True, slots=True)
class Affected:
    """The resources that one update changed in a view: those that lost triples, R⁻, and those that got some, R⁺."""

    removed: frozenset[str]
    added: frozenset[str]

    def all(self) -> frozenset[str]:
        """Return both."""
        return self.removed | self.added


class CatalogueView:
    """A catalogue view over one dataset.

    Updates come with a time that grows. For each, R⁻ and R⁺ are taken from the exact change of the view, so they are
    no larger than they must be, and the view may use negation. The resources in them are stamped with the time; their
    newest texts are P.
    """

    def __init__(self, catalogue: Catalogue, environment: Environment | None = None) -> None:
        self.catalogue = catalogue
        self.time = 0
        self._engine = LocalEngine()
        self._view = self._engine.register(catalogue.query, environment=environment)
        self._triples: dict[str, set[Row]] = {}
        self._stamps: dict[str, int] = {}

    def exact(self, request: Request) -> Delta:
        """Return what a request really changes among the quads that the view can use."""
        return self._engine.exact(request)

    def take(self, delta: Delta, time: int | None = None) -> Affected:
        """Take in an exact change."""
        self.time = self.time + 1 if time is None else time
        if not delta:
            return Affected(frozenset(), frozenset())
        changes = self._engine.apply(delta)
        if self._view.failed is not None:
            raise self._view.failed
        removed, added = set[str](), set[str]()
        for change in changes:
            for row in change.removed:
                name = str(row[0])
                self._triples[name].discard(row)
                if not self._triples[name]:
                    del self._triples[name]
                removed.add(name)
            for row in change.added:
                name = str(row[0])
                self._triples.setdefault(name, set()).add(row)
                added.add(name)
        affected = Affected(frozenset(removed), frozenset(added))
        self._stamps.update(dict.fromkeys(affected.all(), self.time))
        return affected

    def changed(self, after: int) -> dict[str, Texts | None]:
        """Return P for all times above ``after``: the resources that changed, each once, with their newest texts.

        None stands for one that is not in the view any more.
        """
        names = [name for name, time in self._stamps.items() if time > after]
        return {name: self.texts(name) for name in names}

    def forget(self, until: int) -> None:
        """Forget the stamps up to a time: nobody will ask for what changed before it."""
        self._stamps = {name: time for name, time in self._stamps.items() if time > until}

    def texts(self, name: str) -> Texts | None:
        """Return the texts of a resource; None if it is not in the view."""
        return self.catalogue.texts(self._triples.get(name, ())).get(name)

    def resources(self) -> dict[str, Texts]:
        """Return all resources of the view."""
        return {name: texts for name in self._triples if (texts := self.texts(name)) is not None}
