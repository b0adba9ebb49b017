"""Property path expressions (https://www.w3.org/TR/sparql11-query/#pp-language)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from evergraph.terms import NamedNode


@dataclass(frozen=True, slots=True)
class Inverse:
    """``^path`` (https://www.w3.org/TR/sparql11-query/#defn_evalPP_inverse)."""

    path: "PathExpression"


@dataclass(frozen=True, slots=True)
class Sequence:
    """``path/path/…`` (https://www.w3.org/TR/sparql11-query/#defn_evalPP_sequence)."""

    steps: "tuple[PathExpression, ...]"


@dataclass(frozen=True, slots=True)
class Alternative:
    """``path|path|…`` (https://www.w3.org/TR/sparql11-query/#defn_evalPP_alternative)."""

    choices: "tuple[PathExpression, ...]"


@dataclass(frozen=True, slots=True)
class NegatedSet:
    """``!(a|^b|…)`` (https://www.w3.org/TR/sparql11-query/#defn_evalPP_negatedpropertyset).

    ``None`` stands for a direction that the set does not name at all, and in which nothing matches.
    """

    forward: tuple[NamedNode, ...] | None
    inverse: tuple[NamedNode, ...] | None


@dataclass(frozen=True, slots=True)
class ZeroOrOne:
    """``path?`` (https://www.w3.org/TR/sparql11-query/#defn_evalPP_zeroOrOnePath)."""

    path: "PathExpression"


@dataclass(frozen=True, slots=True)
class ZeroOrMore:
    """``path*`` (https://www.w3.org/TR/sparql11-query/#defn_evalPP_zeroOrMorePath)."""

    path: "PathExpression"


@dataclass(frozen=True, slots=True)
class OneOrMore:
    """``path+`` (https://www.w3.org/TR/sparql11-query/#defn_evalPP_oneOrMorePath)."""

    path: "PathExpression"


ClosurePath: TypeAlias = ZeroOrOne | ZeroOrMore | OneOrMore
PathExpression: TypeAlias = NamedNode | Inverse | Sequence | Alternative | NegatedSet | ClosurePath


def path_predicates(path: PathExpression) -> Iterator[NamedNode | None]:
    """Iterate over the predicates of the steps along a path; None where it may be any."""
    match path:
        case NamedNode():
            yield path
        case Inverse(inner) | ZeroOrOne(inner) | ZeroOrMore(inner) | OneOrMore(inner):
            yield from path_predicates(inner)
        case Sequence(parts) | Alternative(parts):
            for part in parts:
                yield from path_predicates(part)
        case NegatedSet():
            yield None
        case _:
            assert_never(path)
