"""Quads in shared indexes. A relation is the set of quads with one predicate, or any, in one context.

Its columns are subject and object, and predicate and graph where they vary. An index of a relation maps values of some
columns to the set of the values of the others; a set of all rows is the index by no column. Indexes are made when the
first plan asks for them and dropped with the last. A relation holds only quads that some plan can use: all of them, or
those with the constants that patterns ask for.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Protocol, TypeAlias

from evergraph.engines.local.dictionary import Row, ZSet

ContextKey: TypeAlias = tuple[object, ...]
RelationKey: TypeAlias = tuple[ContextKey, int]
Ids: TypeAlias = tuple[int, int, int, int]
"""Subject, predicate, object and graph; the graph is 0 in the default graph."""

Cover: TypeAlias = tuple[int, int]
"""Which quads a pattern can match: those with this subject and this object, 0 for any."""

EVERYTHING: Cover = (0, 0)

Kind: TypeAlias = tuple[bool, bool]
"""Whether a cover has a subject, and whether it has an object."""


class Leaf(Protocol):
    """What takes quads in: the leaves of plans."""

    pending: ZSet
    top: Any
    """The view that is to be refreshed, or the views that share a plan; None if only `touch` knows."""
    is_whole: bool
    """Whether its rows are those of the result, and none can be there twice."""
    owner: Any
    """What the plan was built with; see `evergraph.engines.local.optimizer.Owner`."""

    def touch(self) -> None:
        """Say that the plan has something to do."""
        ...


Entry: TypeAlias = tuple[Callable[[int, int, int, int, int], object], Leaf]
"""A function of a quad and its weight, and the leaf that it feeds."""


class Relation:
    """The quads of one predicate, or any, in one context."""

    __slots__ = ("_references", "changed", "covers", "entries", "indexes", "key", "kinds", "wide")

    def __init__(self, key: RelationKey) -> None:
        self.key = key
        self.changed: Callable[[], None] = lambda: None
        context, predicate = key
        self.wide = "so" + ("" if predicate else "p") + ("g" if context[0] == "each" else "")
        self.indexes: dict[str, Any] = {}
        self._references: Counter[str] = Counter()
        self.covers: Counter[Cover] = Counter()
        self.entries: dict[Cover, list[Entry]] = {}
        self.kinds: Counter[Kind] = Counter()
        """How many covers have a subject, an object, both or none: routes depend on that, not on the covers."""

    # -- which quads

    def covered(self, cover: Cover) -> bool:
        """Tell whether all quads that such a pattern can match are here."""
        subject, object_ = cover
        covers = self.covers
        return bool(covers) and (
            EVERYTHING in covers or cover in covers or (subject, 0) in covers or (0, object_) in covers
        )

    def cover(self, cover: Cover) -> bool:
        """Take in quads of a cover from now on; tell whether it is the first of its kind."""
        self.covers[cover] += 1
        if self.covers[cover] > 1:
            return False
        self.entries[cover] = []
        kind = (cover[0] > 0, cover[1] > 0)
        self.kinds[kind] += 1
        return self.kinds[kind] == 1

    def uncover(self, cover: Cover) -> bool:
        """Take back a `cover`; tell whether it was the last of its kind."""
        self.covers[cover] -= 1
        if self.covers[cover]:
            return False
        del self.covers[cover], self.entries[cover]
        kind = (cover[0] > 0, cover[1] > 0)
        self.kinds[kind] -= 1
        if not self.kinds[kind]:
            del self.kinds[kind]
        return kind not in self.kinds

    def admits(self, subject: int, object_: int) -> bool:
        """Tell whether some plan can use a quad with this subject and object."""
        covers = self.covers
        return EVERYTHING in covers or (subject, 0) in covers or (0, object_) in covers or (subject, object_) in covers

    def selected(self, subject: int, object_: int) -> Iterator[Entry]:
        """Iterate over the entries of the patterns that a quad can match."""
        entries = self.entries
        for cover in (EVERYTHING, (subject, 0), (0, object_), (subject, object_)):
            found = entries.get(cover)
            if found:
                yield from found

    # -- what is there

    def is_lean(self) -> bool:
        """Tell whether the relation has two columns, and each of its rows is one quad."""
        return self.wide == "so"

    def insert(self, quad: Ids) -> bool:
        """Add a quad to all indexes; False if that changes nothing, which an exact delta never does."""
        for columns, index in self.indexes.items():
            _insert(index, columns, self.wide, quad)
        return True

    def insert_pairs(self, pairs: list[tuple[int, int]]) -> None:
        """Add many quads to a lean relation, by their subjects and objects."""
        for columns, index in self.indexes.items():
            grow_all(index, pairs if columns == "s" else [(object_, subject) for subject, object_ in pairs])

    def remove(self, quad: Ids) -> None:
        """Take a quad out of all indexes."""
        for columns, index in self.indexes.items():
            _remove(index, columns, self.wide, quad)

    def leaves(self, quad: Ids) -> bool:
        """Tell whether the deletion of a quad takes a row out of this relation."""
        return True

    def holds(self, quad: Ids) -> bool:
        """Tell whether a quad is there."""
        columns = next(iter(self.indexes))
        index = self.indexes[columns]
        if columns == "s" and self.wide == "so":  # most are so
            return quad[2] in index.get(quad[0], ())
        if not columns:
            return _values(quad, self.wide) in index
        rest = "".join(column for column in self.wide if column not in columns)
        return _values(quad, rest) in index.get(_values(quad, columns), ())

    def quads(self) -> Iterator[Ids]:
        """Iterate over the quads, from whichever index there is."""
        context, predicate = self.key
        fixed = {"p": predicate, "g": context[1] if context[0] == "one" else 0}
        columns = next(iter(self.indexes), None)
        if columns is None:
            return
        rest = "".join(column for column in self.wide if column not in columns)
        index = self.indexes[columns]
        for key, values in index.items() if columns else (((), index),):
            for value in values:
                members = fixed | _members(columns, key) | _members(rest, value)
                yield members["s"], members["p"], members["o"], members["g"]  # type: ignore[misc]

    def index(self, columns: str) -> Any:
        """Return an index, made if need be; `release` it in the end."""
        if columns not in self.indexes:
            made: Any = {} if columns else set()
            turned = self.indexes.get({"s": "o", "o": "s"}.get(columns, "")) if self.is_lean() else None
            if turned is not None:
                grow_all(made, [(value, key) for key, values in turned.items() for value in values])
            else:
                for quad in self.quads():
                    _insert(made, columns, self.wide, quad)
            self.indexes[columns] = made
            self.changed()
        self._references[columns] += 1
        return self.indexes[columns]

    def release(self, columns: str) -> None:
        """Drop an index that nobody uses any more, unless it is the last."""
        self._references[columns] -= 1
        for name in [name for name in self.indexes if self._references[name] <= 0]:
            if len(self.indexes) > 1:
                del self.indexes[name]
                self.changed()

    def hold(self) -> None:
        """Have some index, so that the quads are there at all."""
        if not self.indexes:
            columns = "s" if self.wide == "so" else ""
            self.indexes[columns] = {} if columns else set()

    def prune(self, cover: Cover) -> None:
        """Drop the quads of a cover that no plan can use any more."""
        for quad in [quad for quad in self._of(cover) if not self.admits(quad[0], quad[2])]:
            self.remove(quad)

    def _of(self, cover: Cover) -> Iterator[Ids]:
        """Iterate over the quads of a cover, or more if there is no index for it."""
        for column, value in zip("so", cover, strict=True):
            if value and self.wide == "so" and column in self.indexes:
                context, predicate = self.key
                graph: Any = context[1] if context[0] == "one" else 0
                for other in self.indexes[column].get(value, ()):
                    yield (value, predicate, other, graph) if column == "s" else (other, predicate, value, graph)
                return
        yield from self.quads()

    def __len__(self) -> int:
        columns = next(iter(self.indexes), None)
        if columns is None:
            return 0
        index = self.indexes[columns]
        return sum(map(len, index.values())) if columns else len(index)


class MergedRelation(Relation):
    """A relation over the RDF merge of graphs: a triple comes with its first graph and goes with its last."""

    __slots__ = ("_graphs",)

    def __init__(self, key: RelationKey) -> None:
        super().__init__(key)
        self._graphs: dict[Row, set[int]] = {}

    def is_lean(self) -> bool:
        """Not so: a triple may be in several graphs."""
        return False

    def insert(self, quad: Ids) -> bool:
        """Add a quad; False if another graph of the merge has the triple already."""
        graphs = self._graphs.setdefault(quad[:3], set())
        graphs.add(quad[3])
        return len(graphs) == 1 and super().insert(quad)

    def remove(self, quad: Ids) -> None:
        """Take a quad out."""
        graphs = self._graphs[quad[:3]]
        graphs.discard(quad[3])
        if not graphs:
            del self._graphs[quad[:3]]
            super().remove(quad)

    def leaves(self, quad: Ids) -> bool:
        """Tell whether no other graph of the merge has the triple."""
        return len(self._graphs.get(quad[:3], ())) == 1

    def holds(self, quad: Ids) -> bool:
        """Tell whether a quad is there, in its own graph."""
        return quad[3] in self._graphs.get(quad[:3], ())

    def sources(self) -> Iterator[Ids]:
        """Iterate over the quads of all graphs."""
        for (subject, predicate, object_), graphs in self._graphs.items():
            for graph in graphs:
                yield subject, predicate, object_, graph

    def prune(self, cover: Cover) -> None:
        """Drop the quads of a cover that no plan can use any more."""
        for quad in [quad for quad in self.sources() if not self.admits(quad[0], quad[2])]:
            self.remove(quad)


_PLACES = {"s": 0, "p": 1, "o": 2, "g": 3}


def _values(quad: Ids, columns: str) -> Hashable:
    if len(columns) == 1:
        return quad[_PLACES[columns]]
    return tuple([quad[_PLACES[column]] for column in columns])


def _members(columns: str, value: Any) -> dict[str, int]:
    return {columns: value} if len(columns) == 1 else dict(zip(columns, value, strict=True))


def _insert(index: Any, columns: str, wide: str, quad: Ids) -> None:
    if columns:
        rest = "".join([column for column in wide if column not in columns])
        grow(index, _values(quad, columns), _values(quad, rest))
    else:
        index.add(_values(quad, wide))


def _remove(index: Any, columns: str, wide: str, quad: Ids) -> None:
    if columns:
        rest = "".join([column for column in wide if column not in columns])
        shrink(index, _values(quad, columns), _values(quad, rest))
    else:
        index.discard(_values(quad, wide))


FEW = 4


def grow(index: dict[Any, Any], key: Hashable, value: Hashable) -> None:
    """Add a value to a key. Few values are a tuple: a set takes four times the memory, and time of the collector."""
    found = index.get(key)
    if found is None:
        index[key] = (value,)
    elif type(found) is not tuple:
        found.add(value)
    elif value not in found:
        index[key] = (*found, value) if len(found) < FEW else {*found, value}


def grow_all(index: dict[Any, Any], pairs: list[tuple[int, int]]) -> None:
    """Add a value to a key, many times; as `grow` does."""
    get = index.get
    for key, value in pairs:
        found = get(key)
        if found is None:
            index[key] = (value,)
        elif type(found) is not tuple:
            found.add(value)
        elif value not in found:
            index[key] = (*found, value) if len(found) < FEW else {*found, value}


def shrink(index: dict[Any, Any], key: Hashable, value: Hashable) -> None:
    """Take a value from a key; nothing happens if it is not there."""
    found = index.get(key)
    if found is None:
        return
    if type(found) is not tuple:
        found.discard(value)
        if len(found) < FEW:
            index[key] = tuple(found)
    elif found == (value,):
        del index[key]
    else:
        index[key] = tuple([one for one in found if one != value])


def meet(one: Any, other: Any) -> Any:
    """Return what is in two collections of values, at the price of the smaller one."""
    if type(one) is set and type(other) is set:
        return one & other
    if len(other) < len(one):
        one, other = other, one
    return [value for value in one if value in other]
