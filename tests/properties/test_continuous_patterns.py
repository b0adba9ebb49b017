"""Basic graph patterns maintained without a store, against evaluation from scratch, message by message."""

from collections.abc import Callable, Iterator
from itertools import islice
from random import Random

import pytest
from tests.support.random_patterns import RandomPatterns

from evergraph.delta import Bag, Delta, Request
from evergraph.engines.local.continuous import (
    ContinuousPattern,
    PatternMaintainer,
    StateSize,
    components,
    source,
    tables,
)
from evergraph.engines.local.continuous.components import ConnectedMaintainer
from evergraph.engines.local.continuous.encodings import CountedIds
from evergraph.engines.local.continuous.part import Members
from evergraph.engines.local.continuous.product import ChangedFactor, ProductDelta
from evergraph.engines.local.continuous.star import StarMaintainer
from evergraph.engines.local.continuous.tables import IndexedTable
from evergraph.plan.continuous import PartClass, PatternClass, decompose, positions
from evergraph.sparql.algebra import BGP
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.evaluate import Evaluator
from evergraph.sparql.expressions import Environment, Row
from evergraph.terms import Quad, Variable

ENVIRONMENT = Environment()
CASES = 300
"""For each of the five classes, singly and in batches."""


def scratch(pattern: BGP, quads: set[Quad]) -> Bag[Row]:
    """Evaluate from scratch; the columns are in the order of their names."""
    return Evaluator(Dataset(quads), ENVIRONMENT).evaluate(pattern).rows


class Bound:
    """Computes from scratch how many entries a state may have; what a single quad matches is found once."""

    def __init__(self, pattern: BGP) -> None:
        parts = decompose(pattern).parts
        self.bits = sum(len(part.triples) for part in parts if part.kind is PartClass.GROUND)
        self.stars = [part.triples for part in parts if part.kind is PartClass.STAR]
        self.connected = [one for part in parts if part.kind is PartClass.CONNECTED for one in part.triples]
        self.known: dict[Quad, tuple[bool, list[set[Row]]]] = {}

    def of(self, quads: set[Quad]) -> int:
        found = [self._matched(quad) for quad in quads]
        centres = [len(set().union(*(values[n] for _, values in found))) for n in range(len(self.stars))]
        return self.bits + sum(centres) + sum(matches for matches, _ in found)

    def _matched(self, quad: Quad) -> tuple[bool, list[set[Row]]]:
        if quad not in self.known:
            centres = [{row for one in star for row in scratch(BGP((one,)), {quad})} for star in self.stars]
            matches = any(len(scratch(BGP((one,)), {quad})) for one in self.connected)
            self.known[quad] = (matches, centres)
        return self.known[quad]


class Follower:
    """A pattern, the quads that it should know of, and the sum of the changes that it reported."""

    def __init__(self, pattern: BGP) -> None:
        self.pattern = pattern
        self.continuous = ContinuousPattern(pattern)
        self.quads: set[Quad] = set()
        self.sum = scratch(pattern, set())
        self.bound = Bound(pattern)

    def check(self, delta: Bag[Row]) -> None:
        expected = scratch(self.pattern, self.quads)
        assert delta == expected - self.sum
        self.sum.update(delta)
        assert self.sum == expected
        assert self.continuous.result() == expected
        assert len(self.continuous) == len(expected)
        state = self.continuous.state()
        assert state.entries <= self.bound.of(self.quads)
        assert state.bytes > 0 or not state.entries

    def message(self, kind: str, quad: Quad) -> None:
        if kind == "insert":
            self.quads.add(quad)
            self.check(self.continuous.insert(quad))
        else:
            self.quads.discard(quad)
            self.check(self.continuous.delete(quad))

    def batch(self, change: Request | Delta) -> None:
        match change:
            case Request(removed, added):
                self.quads = (self.quads - removed) | added
            case Delta(inserted, deleted):
                self.quads = (self.quads - deleted) | inserted
        self.check(self.continuous.apply(change))


def follow_messages(wanted: PatternClass, seed: int) -> None:
    patterns = RandomPatterns(Random(f"{wanted} {seed}"))
    follower = Follower(patterns.pattern(wanted))
    for kind, quad in patterns.stream(24):
        follower.message(kind, quad)
    empty_again(follower)


def follow_batches(wanted: PatternClass, seed: int) -> None:
    patterns = RandomPatterns(Random(f"batches of {wanted} {seed}"))
    follower = Follower(patterns.pattern(wanted))
    messages = patterns.stream(40)
    while messages:
        size = patterns.random.randint(1, 10)
        follower.batch(patterns.batch(messages[:size]))
        messages = messages[size:]
    empty_again(follower)


def empty_again(follower: Follower) -> None:
    """Delete everything: nothing may be left but the bits of the ground part."""
    follower.batch(Request(removed=frozenset(follower.quads)))
    fresh = ContinuousPattern(follower.pattern)
    assert follower.continuous.state().entries == fresh.state().entries
    follower.continuous.apply(Delta())
    assert terms_held(follower.continuous) == terms_held(fresh)


def terms_held(pattern: ContinuousPattern) -> int:
    encoding = pattern._encoding
    return len(encoding) if isinstance(encoding, CountedIds) else 0


FOLLOW: tuple[Callable[[PatternClass, int], None], ...] = (follow_messages, follow_batches)


@pytest.mark.parametrize("follow", FOLLOW)
@pytest.mark.parametrize("wanted", PatternClass)
def test_maintained_is_from_scratch(wanted: PatternClass, follow: Callable[[PatternClass, int], None]) -> None:
    for seed in range(CASES):
        follow(wanted, seed)


@pytest.mark.parametrize("follow", FOLLOW)
def test_so_it_is_where_three_neighbours_are_many(
    follow: Callable[[PatternClass, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "FEW", 2)
    for seed in range(CASES):
        follow(PatternClass.CONNECTED_VARIABLE, seed)


def follow_tree(seed: int) -> None:
    patterns = RandomPatterns(Random(f"tree {seed}"))
    follower = Follower(patterns.tree())
    for kind, quad in patterns.sparse_stream(20):
        follower.message(kind, quad)
    empty_again(follower)


def test_so_it_is_for_branches_that_have_branches() -> None:
    for seed in range(CASES):
        follow_tree(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_so_it_is_for_branches_that_have_branches_long(block: int) -> None:
    for seed in range(CASES + block * 600, CASES + (block + 1) * 600):
        follow_tree(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("wanted", PatternClass)
def test_maintained_is_from_scratch_long(wanted: PatternClass, block: int) -> None:
    for seed in range(CASES + block * 600, CASES + (block + 1) * 600):
        for follow in FOLLOW:
            follow(wanted, seed)


def test_the_random_patterns_are_of_all_classes_and_forms() -> None:
    classes, forms = set(), set()
    for wanted in PatternClass:
        for seed in range(CASES):
            pattern = RandomPatterns(Random(f"{wanted} {seed}")).pattern(wanted)
            classes.add(decompose(pattern).pattern_class)
            forms |= {"a triple twice"} if len(set(pattern.triples)) < len(pattern.triples) else set()
            for triple in pattern.triples:
                terms = positions(triple)
                variables = [term for term in terms if isinstance(term, Variable)]
                forms |= {f"variable {name}" for name, term in zip("spog", terms, strict=True) if term in variables}
                forms |= {"a variable twice"} if len(set(variables)) < len(variables) else set()
                forms |= {f"{len(set(variables))} variables"}
    assert classes == set(PatternClass)
    assert forms >= {"a triple twice", "a variable twice", *(f"variable {name}" for name in "spog")}
    assert forms >= {f"{number} variables" for number in range(4)}


def test_a_state_that_holds_nothing_is_small() -> None:
    pattern = RandomPatterns(Random(1)).pattern(PatternClass.SIMPLE_STAR)
    assert ContinuousPattern(pattern).state() == StateSize(0, ContinuousPattern(pattern).state().bytes)
    assert ContinuousPattern(pattern).state().bytes < 1_000


# What tests like these must find: ten ways to be wrong.


def first_match_only(patch: pytest.MonkeyPatch) -> None:
    """The printed algorithm stops at the first triple pattern of a star that a message matches."""
    matched = StarMaintainer._matched
    patch.setattr(StarMaintainer, "_matched", lambda self, quad: matched(self, quad)[:1])


def first_match_of_a_join_only(patch: pytest.MonkeyPatch) -> None:
    join = components._join
    patch.setattr(components, "_join", lambda matched, *rest: join(matched[:1], *rest))


def first_instance_only(patch: pytest.MonkeyPatch) -> None:
    """The printed algorithm returns one answer for a message."""
    changes = PatternMaintainer.changes
    patch.setattr(PatternMaintainer, "changes", lambda self: dict(islice(changes(self).items(), 1)))


def forgets_no_candidate(patch: pytest.MonkeyPatch) -> None:
    delete = StarMaintainer.delete

    def deleted(self: StarMaintainer, quad: Members) -> bool:
        changed = delete(self, quad)
        for value, _ in self._matched(quad):
            if value not in self._answers:
                self._candidates.setdefault(value, 0)
        return changed

    patch.setattr(StarMaintainer, "delete", deleted)


def counts_self_joins_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(source._Function, "_skip", lambda self, other: None)


def joins_before_all_tables_know(patch: pytest.MonkeyPatch) -> None:
    def inserted(self: ConnectedMaintainer, quad: Members) -> bool:
        matched = self._matched(quad)
        if not matched or matched[0].table.holds(quad):
            return False
        for one in reversed(matched):
            one.table.insert(quad)
            components._join([one], quad, 1)
        self._entries += 1
        return True

    patch.setattr(ConnectedMaintainer, "insert", inserted)


def multiplies_old_answers_for_new(patch: pytest.MonkeyPatch) -> None:
    term = ProductDelta._term

    def old(self: ProductDelta, n: int, changed: tuple[Row, ...], later: object) -> Iterator[Row]:
        return term(self, n, changed, [one.before for one in self.factors[n + 1 :]])

    patch.setattr(ProductDelta, "_term", old)


def multiplies_new_answers_for_old(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChangedFactor, "before", lambda self: iter(self.factor.answers()))


def believes_every_insertion(patch: pytest.MonkeyPatch) -> None:
    insert = IndexedTable.insert
    patch.setattr(IndexedTable, "insert", lambda self, quad: insert(self, quad) or True)


def gives_ids_away_too_soon(patch: pytest.MonkeyPatch) -> None:
    release = CountedIds.release

    def released(self: CountedIds, quad: Members) -> None:
        release(self, quad)
        self.forget()

    patch.setattr(CountedIds, "release", released)


MISTAKES = (
    first_match_only,
    first_match_of_a_join_only,
    first_instance_only,
    forgets_no_candidate,
    counts_self_joins_twice,
    joins_before_all_tables_know,
    multiplies_old_answers_for_new,
    multiplies_new_answers_for_old,
    believes_every_insertion,
    gives_ids_away_too_soon,
)


@pytest.fixture
def fresh_code() -> Iterator[None]:
    source.join_code.cache_clear()
    yield
    source.join_code.cache_clear()


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_is_found(
    mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, fresh_code: None
) -> None:
    mistake(monkeypatch)
    with pytest.raises((AssertionError, LookupError)):
        for seed in range(CASES):
            for wanted in PatternClass:
                for follow in FOLLOW:
                    follow(wanted, seed)
