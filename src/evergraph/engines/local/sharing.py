"""Which queries share a circuit: those of one template, from the second on.

The first query of a template is built on its own: a circuit for one choice of constants is leaner. It stays as it is
when others come.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from evergraph.engines.local.shared import SharedView, Template, plan_of
from evergraph.engines.local.store import Store
from evergraph.engines.local.views import View
from evergraph.plan.parameters import liftable
from evergraph.plan.templates import canonical, placeholder, with_constants
from evergraph.sparql.algebra import Ask, Query, Select
from evergraph.terms import Term

_Constants = tuple[Term, ...]


@dataclass(slots=True, eq=False)
class _Family:
    """All queries with one skeleton: equal but for constants, of which those with ``lifted`` numbers are parameters."""

    skeleton: Select | Ask
    lifted: tuple[int, ...]
    kinds: dict[_Constants, "_Kind"] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Kind:
    """The queries of a family that also agree in the constants that are no parameters."""

    family: _Family
    fixed: _Constants
    alone: int = 0
    template: Template | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a query belongs."""

    kind: _Kind
    constants: _Constants

    def is_first(self) -> bool:
        """Tell whether there is no other query of the template."""
        return not self.kind.alone and self.kind.template is None


class Sharing:
    """The templates of an engine. ``touch`` notes a template that has something to do."""

    def __init__(self, store: Store, touch: Callable[[Template, None], None], limit: int) -> None:
        self._store = store
        self._touch = touch
        self._limit = limit
        self._families: dict[Query, _Family] = {}
        self._alone: dict[View, _Kind] = {}
        self._shared: dict[Template, _Kind] = {}

    def place(self, query: Query) -> Place | None:
        """Find out where a query belongs; None if it can share nothing."""
        found = canonical(query)
        if found is None:
            return None
        skeleton, constants = found
        family = self._families.get(skeleton)
        if family is None:
            family = _Family(skeleton, liftable(plan_of(skeleton)[0], len(constants)))
        fixed = tuple([one for number, one in enumerate(constants) if number not in family.lifted])
        kind = family.kinds.get(fixed)
        return Place(_Kind(family, fixed) if kind is None else kind, constants)

    def keep_alone(self, view: View, place: Place) -> None:
        """Remember a view with a circuit of its own."""
        place.kind.alone += 1
        self._alone[view] = place.kind
        self._keep(place.kind)

    def join(self, query: Query, place: Place) -> SharedView:
        """Make a view that shares the circuit of its template."""
        assert isinstance(query, Select | Ask)
        kind, constants = place.kind, place.constants
        self._clear(kind)
        template = kind.template
        if template is None:
            template = kind.template = self._template(place)
            self._shared[template] = kind
        encode = self._store.dictionary.encode
        try:
            view = template.join(query, tuple([encode(constants[number]) for number in kind.family.lifted]))
        except BaseException:
            self._clear(kind)
            raise
        self._keep(kind)
        return view

    def remove(self, view: View) -> bool:
        """Forget a view; tell whether it has a circuit of its own, which is left to close."""
        if isinstance(view, SharedView):
            if view.failed is None:
                view.template.leave(view)
            if (kind := self._shared.get(view.template)) is not None:
                self._clear(kind)
            return False
        if (kind := self._alone.pop(view, None)) is not None:
            kind.alone -= 1
            self._clear(kind)
        return True

    def _template(self, place: Place) -> Template:
        family = place.kind.family
        fixed = {
            placeholder(number): constant
            for number, constant in enumerate(place.constants)
            if number not in family.lifted
        }
        return Template(self._store, with_constants(family.skeleton, fixed), family.lifted, self._touch, self._limit)

    def _keep(self, kind: _Kind) -> None:
        kind.family.kinds[kind.fixed] = kind
        self._families[kind.family.skeleton] = kind.family

    def _clear(self, kind: _Kind) -> None:
        """Drop what nobody uses any more."""
        family = kind.family
        if kind.template is not None and not kind.template.parts:
            kind.template.close()
            del self._shared[kind.template]
            kind.template = None
        if not kind.alone and kind.template is None:
            family.kinds.pop(kind.fixed, None)
        if not family.kinds:
            self._families.pop(family.skeleton, None)
