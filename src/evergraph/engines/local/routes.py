"""Where quads go, and the path of a single change, spelled out: it decides how long most changes take."""

from collections.abc import Callable
from dataclasses import dataclass

from evergraph.engines.local.dictionary import Dictionary
from evergraph.engines.local.relations import EVERYTHING, Entry, Leaf, Relation, grow, shrink
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
    """Return the function for quads that all go to one relation with two columns."""
    ids, encode = dictionary.ids, dictionary.encode
    by_subject, by_object = relation.indexes.get("s"), relation.indexes.get("o")
    predicate, graph = constants
    select = None if list(relation.kinds) == [(False, False)] else _selector(relation)
    everything = relation.entries.get(EVERYTHING, [])

    def take(quad: Quad, weight: int) -> None:
        subject_term, object_term = quad.subject, quad.object
        subject, object_ = ids.get(subject_term), ids.get(object_term)
        if select is None:
            entries = everything
        else:
            selected = select(subject, object_)
            if selected is None:
                return
            entries = selected
        if subject is None:
            subject = encode(subject_term)
        if object_ is None:
            object_ = encode(object_term)
        if weight > 0:
            if by_subject is not None:
                if subject in by_subject:
                    grow(by_subject, subject, object_)
                else:
                    by_subject[subject] = (object_,)
            if by_object is not None:
                if object_ in by_object:
                    grow(by_object, object_, subject)
                else:
                    by_object[object_] = (subject,)
        for run, leaf in entries:
            run(subject, predicate, object_, graph, weight)
            touched[leaf] = None
        if weight < 0:
            if by_subject is not None:
                if by_subject.get(subject) == (object_,):
                    del by_subject[subject]
                else:
                    shrink(by_subject, subject, object_)
            if by_object is not None:
                if by_object.get(object_) == (subject,):
                    del by_object[object_]
                else:
                    shrink(by_object, object_, subject)

    return take


def _selector(relation: Relation) -> Callable[[int | None, int | None], list[Entry] | None]:
    """Return what finds the entries of the patterns that a quad can match; None if no plan can use it."""
    entries = relation.entries
    kinds = relation.kinds
    plain = entries.get(EVERYTHING)
    with_subject, with_object, with_both = (True, False) in kinds, (False, True) in kinds, (True, True) in kinds
    if kinds and not with_subject and not with_both and plain is None:
        return lambda subject, object_: entries.get((0, object_ or -1))

    def select(subject: int | None, object_: int | None) -> list[Entry] | None:
        subject, object_ = subject or -1, object_ or -1
        found = [] if plain is None else [plain]
        if with_subject and (one := entries.get((subject, 0))) is not None:
            found.append(one)
        if with_object and (one := entries.get((0, object_))) is not None:
            found.append(one)
        if with_both and (one := entries.get((subject, object_))) is not None:
            found.append(one)
        if len(found) == 1:
            return found[0]
        return [entry for one in found for entry in one] if found else None

    return select
