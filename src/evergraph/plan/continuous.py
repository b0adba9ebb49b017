"""Classes of basic graph patterns, and their decomposition into parts that are maintained independently.

Two variables are *linked* if one triple pattern holds both: as subject, predicate, object or graph. The
**connected-variable decomposition** puts linked variables together, transitively; a part is a set of variables with
every triple pattern that touches it, and what holds no variable is the ground part. Parts share no variable, so that
the answer of the pattern is the product of the answers of its parts, and each part can be kept with as little state
as its own class needs:

* **ground**: no variable. One bit for each triple.
* **simple star**: one variable, the centre. For each value of the centre, one bit for each triple pattern.
* **connected**: two variables or more. The quads that match some triple pattern of the part, each once.

No part can do with less, if its triple patterns can match anything at all. If two sets of such quads, or of such
bits, differ in one quad, there is a continuation of the stream that tells them apart: insert what completes an answer
with this quad, at values that nothing else uses.
"""

from dataclasses import dataclass
from enum import StrEnum

from evergraph.sparql.algebra import BGP, GraphContext, TriplePattern
from evergraph.terms import DefaultGraph, Variable

Variables = tuple[Variable, ...]


class PatternClass(StrEnum):
    """What a basic graph pattern is, the narrowest class first."""

    GROUND = "ground"
    SIMPLE_STAR = "simple star"
    LOOSELY_CONNECTED = "loosely connected"
    CONNECTED_VARIABLE = "connected variables"
    ANY = "any"


class PartClass(StrEnum):
    """What a part of a decomposition is."""

    GROUND = "ground"
    STAR = "simple star"
    CONNECTED = "connected variables"


_BOUNDS = {
    PartClass.GROUND: "one bit for each of its triples",
    PartClass.STAR: "one entry for each candidate centre: a value for which some triple is there",
    PartClass.CONNECTED: "the quads that match some of its triple patterns",
}


@dataclass(frozen=True, slots=True)
class Part:
    """Triple patterns that share no variable with those of another part; no pattern is there twice."""

    kind: PartClass
    variables: Variables
    triples: tuple[TriplePattern, ...]

    @property
    def bound(self) -> str:
        """What the state of the part never exceeds."""
        return _BOUNDS[self.kind]


@dataclass(frozen=True, slots=True)
class Decomposition:
    """The connected-variable decomposition of a basic graph pattern: the ground part, if any, then the others.

    ``variables`` are all variables, in the order of their names.
    """

    variables: Variables
    parts: tuple[Part, ...]

    @property
    def pattern_class(self) -> PatternClass:
        """The narrowest class of the whole pattern."""
        kinds = [part.kind for part in self.parts]
        match kinds:
            case [] | [PartClass.GROUND]:
                return PatternClass.GROUND
            case [PartClass.STAR]:
                return PatternClass.SIMPLE_STAR
            case [PartClass.CONNECTED]:
                return PatternClass.CONNECTED_VARIABLE
            case _ if PartClass.CONNECTED not in kinds:
                return PatternClass.LOOSELY_CONNECTED
            case _:
                return PatternClass.ANY


def decompose(pattern: BGP) -> Decomposition:
    """Decompose a basic graph pattern. A triple pattern that occurs twice says nothing new, and counts once."""
    triples = tuple(dict.fromkeys(pattern.triples))
    component: dict[Variable, set[Variable]] = {}
    for triple in triples:
        merged = {variable for found in triple_variables(triple) for variable in component.get(found, {found})}
        component.update(dict.fromkeys(merged, merged))
    ground = tuple(triple for triple in triples if not triple_variables(triple))
    parts = [Part(PartClass.GROUND, (), ground)] if ground else []
    for members in {id(group): group for group in component.values()}.values():
        touching = tuple(triple for triple in triples if not members.isdisjoint(triple_variables(triple)))
        kind = PartClass.STAR if len(members) == 1 else PartClass.CONNECTED
        parts.append(Part(kind, _ordered(members), touching))
    return Decomposition(_ordered(set(component)), tuple(parts))


def classify(pattern: BGP) -> PatternClass:
    """Return the narrowest class of a basic graph pattern."""
    return decompose(pattern).pattern_class


def star_centres(pattern: BGP) -> tuple[GraphContext, ...]:
    """Return the nodes that every triple pattern has as subject or object.

    With one, the pattern is a generalised star.
    """
    ends = [dict.fromkeys((triple.subject, triple.object)) for triple in pattern.triples]
    return tuple(node for node in ends[0] if all(node in others for others in ends)) if ends else ()


def triple_variables(triple: TriplePattern) -> Variables:
    """Return the variables of a triple pattern, that of its graph included, each once."""
    return tuple(dict.fromkeys(term for term in positions(triple) if isinstance(term, Variable)))


def positions(triple: TriplePattern) -> tuple[GraphContext, GraphContext, GraphContext, GraphContext]:
    """Return subject, predicate, object and graph."""
    return (triple.subject, triple.predicate, triple.object, triple.graph)


def describe(triple: TriplePattern) -> str:
    """Write a triple pattern as people read it."""
    text = f"{triple.subject} {triple.predicate} {triple.object}"
    return text if isinstance(triple.graph, DefaultGraph) else f"GRAPH {triple.graph} {{ {text} }}"


def _ordered(variables: set[Variable]) -> Variables:
    return tuple(sorted(variables, key=str))
