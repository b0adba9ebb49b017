"""Property paths over one graph, node by node (https://www.w3.org/TR/sparql11-query/#PropertyPathPatterns)."""

from collections.abc import Iterator
from typing import assert_never

from evergraph.sparql.algebra import (
    Alternative,
    ClosurePath,
    Inverse,
    NegatedSet,
    OneOrMore,
    PathExpression,
    Sequence,
    ZeroOrMore,
    ZeroOrOne,
)
from evergraph.sparql.dataset import TripleIndex
from evergraph.terms import NamedNode, Term


def pairs(
    index: TripleIndex, path: ClosurePath, subject: Term | None, object_: Term | None
) -> Iterator[tuple[Term, Term]]:
    """Iterate over the pairs that a path joins, each once; a given end, in the graph or not, is kept."""
    if subject is not None:
        for end in reachable(index, path, subject):
            if object_ is None or end == object_:
                yield subject, end
    elif object_ is not None:
        for start in reachable(index, path, object_, backwards=True):
            yield start, object_
    else:
        for start in index.nodes():
            for end in reachable(index, path, start):
                yield start, end


def reachable(index: TripleIndex, path: PathExpression, start: Term, *, backwards: bool = False) -> set[Term]:
    """Return the nodes at the other end of a path that begins at a node."""
    match path:
        case NamedNode():
            if backwards:
                return {triple[0] for triple in index.match(None, path, start)}
            return {triple[2] for triple in index.match(start, path, None)}
        case Inverse(inner):
            return reachable(index, inner, start, backwards=not backwards)
        case Sequence(steps):
            frontier = {start}
            for step in reversed(steps) if backwards else steps:
                frontier = {end for node in frontier for end in reachable(index, step, node, backwards=backwards)}
            return frontier
        case Alternative(choices):
            return set().union(*(reachable(index, choice, start, backwards=backwards) for choice in choices))
        case NegatedSet(forward, inverse):
            ahead, behind = (inverse, forward) if backwards else (forward, inverse)
            found = set[Term]()
            if ahead is not None:
                found |= {triple[2] for triple in index.match(start, None, None) if triple[1] not in ahead}
            if behind is not None:
                found |= {triple[0] for triple in index.match(None, None, start) if triple[1] not in behind}
            return found
        case ZeroOrOne(inner):
            return {start} | reachable(index, inner, start, backwards=backwards)
        case ZeroOrMore(inner):
            return _closure(index, inner, {start}, backwards=backwards)
        case OneOrMore(inner):
            return _closure(index, inner, reachable(index, inner, start, backwards=backwards), backwards=backwards)
        case _:
            assert_never(path)


def _closure(index: TripleIndex, path: PathExpression, starts: set[Term], *, backwards: bool) -> set[Term]:
    found = set(starts)
    waiting = list(starts)
    while waiting:
        new = reachable(index, path, waiting.pop(), backwards=backwards) - found
        found |= new
        waiting.extend(new)
    return found
