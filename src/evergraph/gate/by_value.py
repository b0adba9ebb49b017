"""Literals on servers that take those with equal values for one object, and keep the spelling that came first.

A delta must name what is stored, whatever spelling the request uses.
"""

from collections.abc import Collection, Hashable, Iterator
from typing import Protocol, TypeVar

from evergraph.errors import UpdateFailed
from evergraph.gate.dialects import ByValue
from evergraph.terms import Literal, Quad, Term

Item = TypeVar("Item")


class Spelled(Protocol):
    """What must be asked of a server."""

    def present(self, quads: Collection[Quad]) -> set[Quad]:
        """Tell which of the quads are there, in any spelling."""

    def spellings(self, literals: list[Literal]) -> list[Literal]:
        """Tell how the server writes literals."""

    def objects(self, quads: list[Quad]) -> list[tuple[int, Term]]:
        """Read all objects that stand with the graph, subject and predicate of quads."""


def stored_spellings(quads: set[Quad], ways: ByValue, most: int, server: Spelled) -> set[Quad]:
    """Write literals as the server holds them, and those that it does not hold as it would give them back.

    Of several with one value one remains.

    :param most: how many may be asked for at once.
    """
    concerned = {quad for quad in quads if has_value(quad, ways)}
    if not concerned:
        return quads
    rest, spelled = quads - concerned, _spelled(concerned, ways, most, server)
    there = server.present(spelled)
    new = {_key(quad, ways): quad for quad in sorted(spelled - there, key=str, reverse=True)}
    return rest | set(new.values()) | _held(list(there), ways, most, server)


def _spelled(quads: set[Quad], ways: ByValue, most: int, server: Spelled) -> set[Quad]:
    literals = {quad.object for quad in quads if _type(quad.object) in ways.unpredictable}
    known: dict[Term, Literal] = {}
    for part in _parts([literal for literal in literals if isinstance(literal, Literal)], most):
        known |= zip(part, server.spellings(part), strict=True)
    return {_with_object(quad, known[quad.object]) if quad.object in known else quad for quad in quads}


def _held(quads: list[Quad], ways: ByValue, most: int, server: Spelled) -> set[Quad]:
    """Find the spellings under which the server holds quads that it says are there."""
    alike: dict[Hashable, list[Quad]] = {}
    for quad in quads:
        alike.setdefault((quad.graph_name, quad.subject, quad.predicate), []).append(quad)
    held: set[Quad] = set()
    for part in _parts(list(alike.values()), most):
        found: list[dict[Hashable, Term]] = [{} for _ in part]
        for place, value in server.objects([group[0] for group in part]):
            found[place][ways.value_of(value)] = value
        for group, spellings in zip(part, found, strict=True):
            held.update(_with_object(quad, _spelling(quad, spellings, ways)) for quad in group)
    return held


def _spelling(quad: Quad, spellings: dict[Hashable, Term], ways: ByValue) -> Term:
    spelling = spellings.get(ways.value_of(quad.object))
    if spelling is None:
        raise UpdateFailed(
            f"the server holds this under another spelling, which cannot be told: {quad}",
            hint="write the value as the server gives it back",
        )
    return spelling


def refuse_equal_values(quads: Collection[Quad], ways: ByValue, server: str) -> None:
    """Refuse to insert two quads of which the server would keep one; they come from different operations."""
    seen: dict[Hashable, Quad] = {}
    for quad in quads:
        if has_value(quad, ways):
            other = seen.setdefault(_key(quad, ways), quad)
            if other is not quad:
                raise UpdateFailed(
                    f"{server} takes {quad.object} and {other.object} of {quad.subject} for one",
                    hint="insert one of them, or one after the other in requests of their own",
                )


def has_value(quad: Quad, ways: ByValue) -> bool:
    """Tell whether the object is a literal that is told apart by its value."""
    value = quad.object
    return type(value) is Literal and value.datatype.value in ways.types


def _key(quad: Quad, ways: ByValue) -> Hashable:
    return quad.subject, quad.predicate, quad.graph_name, ways.value_of(quad.object)


def _type(term: Term) -> str:
    return term.datatype.value if isinstance(term, Literal) else ""


def _with_object(quad: Quad, value: Term) -> Quad:
    return Quad(quad.subject, quad.predicate, value, quad.graph_name)


def _parts(items: list[Item], most: int) -> Iterator[list[Item]]:
    return (items[start : start + most] for start in range(0, len(items), most))
