"""Where quads go, and the path of a single change, spelled out: it decides how long most changes take."""

from collections.abc import Callable
from dataclasses import dataclass

from evergraph.engines.local.dictionary import Dictionary
from evergraph.engines.local.relations import EVERYTHING, Leaf, Relation
from evergraph.terms import Quad

Take = Callable[[Quad, int], None]
"""Takes in a quad that has come (+1) or gone (-1)."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where quads of one predicate in one graph go."""

    relations: tuple[Relation, ...]
    take: Take


def lean_route(
    relation: Relation, constants: tuple[int, int], dictionary: Dictionary, touched: dict[Leaf, None]
) -> Take:
    """Return the function for quads that all go to one relation with two columns, every one of which is wanted."""
    ids, encode = dictionary.ids, dictionary.encode
    by_subject, by_object = relation.indexes.get("s"), relation.indexes.get("o")
    entries = tuple(relation.entries[EVERYTHING])
    predicate, graph = constants

    def take(quad: Quad, weight: int) -> None:
        subject_term, object_term = quad.subject, quad.object
        subject, object_ = ids.get(subject_term), ids.get(object_term)
        if subject is None:
            subject = encode(subject_term)
        if object_ is None:
            object_ = encode(object_term)
        if weight > 0:
            if by_subject is not None:
                if (found := by_subject.get(subject)) is None:
                    by_subject[subject] = {object_}
                else:
                    found.add(object_)
            if by_object is not None:
                if (found := by_object.get(object_)) is None:
                    by_object[object_] = {subject}
                else:
                    found.add(subject)
        for run, leaf in entries:
            run(subject, predicate, object_, graph, weight)
            touched[leaf] = None
        if weight < 0:
            if by_subject is not None:
                found = by_subject[subject]
                found.discard(object_)
                if not found:
                    del by_subject[subject]
            if by_object is not None:
                found = by_object[object_]
                found.discard(subject)
                if not found:
                    del by_object[object_]

    return take
