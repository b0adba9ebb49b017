"""Blocking loses nothing, and matching means what the oracle says: for every measure and combination."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.random_rules import (
    THRESHOLDS,
    random_comparison,
    random_rule,
    random_side,
    random_text,
    random_threshold,
)

from evergraph.linking.matching import Matcher
from evergraph.linking.measures import MEASURES, Kind, scorer
from evergraph.linking.oracle import all_pairs
from evergraph.linking.rules import Rule, Texts

SEEDS = st.integers(0, 2**32)
TEXTS = st.text(st.sampled_from("aabcé# "), min_size=1, max_size=9)


def check_keys(name: str, seed: int) -> None:
    """Every two values within a threshold share a key, whichever side is the index."""
    random = Random(seed)
    measure = MEASURES[name]
    threshold = random_threshold(random, measure)
    keys = measure.keys(threshold)
    if keys is None:
        assert threshold <= 0.7, "only low similarities may have no keys"
        return
    score = scorer(measure, threshold)
    values = [measure.prepare(random_text(random, name)) for _ in range(14)]
    known = [value for value in values if value is not None]
    for one in known:
        found = set(keys.probe(one))
        for other in known:
            if score(one, other) is not None:
                assert found & set(keys.index(other)), (name, threshold, one, other)


def check_matching(seed: int, measure: str | None = None) -> None:
    """A full run finds what the oracle finds, with the same scores, and so does every probe."""
    random = Random(seed)
    rule, measures = random_rule(random, measure)
    sources, targets = random_side(random, measures, "s", random.randint(0, 7)), random_side(random, measures, "t", 7)
    expected = all_pairs(rule, sources, targets)
    matcher = Matcher(rule)
    matcher.replace(0, sources)
    matcher.replace(1, targets)
    assert matcher.full() == expected
    assert matcher.partners(0, sources) == expected
    assert matcher.partners(1, targets) == expected


def check_changes(seed: int) -> None:
    """Indexes follow their resources."""
    random = Random(seed)
    rule, measures = random_rule(random)
    sides: tuple[dict[str, Texts], dict[str, Texts]] = ({}, {})
    matcher = Matcher(rule)
    for _ in range(4):
        for number, side in enumerate(sides):
            changed: dict[str, Texts | None] = dict(random_side(random, measures, "st"[number], random.randint(0, 4)))
            for name in changed:
                if random.random() < 0.3:
                    changed[name] = None
            matcher.replace(number, changed)
            side.update({name: texts for name, texts in changed.items() if texts is not None})
            for name in [name for name, texts in changed.items() if texts is None]:
                side.pop(name, None)
        expected = all_pairs(rule, *sides)
        assert matcher.partners(0, sides[0]) == expected
        assert matcher.partners(1, sides[1]) == expected


@pytest.mark.parametrize("name", MEASURES)
def test_keys_lose_nothing(name: str) -> None:
    for seed in range(60):
        check_keys(name, seed)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.long
@given(seed=SEEDS)
def test_keys_lose_nothing_for_long(name: str, seed: int) -> None:
    check_keys(name, seed)


@pytest.mark.parametrize("name", [name for name, one in MEASURES.items() if one.prepare("abc") == "abc"])
@given(one=TEXTS, other=TEXTS, data=st.data())
def test_keys_of_any_texts(name: str, one: str, other: str, data: st.DataObject) -> None:
    measure = MEASURES[name]
    threshold = data.draw(st.sampled_from(THRESHOLDS[measure.kind]))
    keys = measure.keys(threshold)
    if keys is not None and scorer(measure, threshold)(one, other) is not None:
        assert set(keys.probe(one)) & set(keys.index(other))


@pytest.mark.parametrize("name", MEASURES)
def test_keys_of_values_that_are_too_large(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where most values have too many keys to be listed, nothing is lost, either."""
    monkeypatch.setattr("evergraph.linking.keys.LONG", 4)
    monkeypatch.setattr("evergraph.linking.keys.MOST_KEYS", 20)
    for seed in range(60):
        check_keys(name, seed)


@pytest.mark.parametrize("name", MEASURES)
def test_huge_values_have_few_keys(name: str) -> None:
    measure = MEASURES[name]
    for threshold in THRESHOLDS[measure.kind]:
        keys = measure.keys(threshold)
        for text in ("x" * 50_000, "word " * 10_000, " ".join(map(str, range(10_000)))):
            value = measure.prepare(text)
            if keys is not None and value is not None:
                found = [list(keys.probe(value)), list(keys.index(value))]
                assert set(found[0]) & set(found[1])
                assert max(map(len, found)) < 50_000


def test_more_edits_than_anybody_means() -> None:
    assert MEASURES["levenshtein"].keys(1_000_000) is None


def test_a_matching_rule_means_what_the_oracle_says() -> None:
    for seed in range(90):
        check_matching(seed)


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_in_rules(measure: str) -> None:
    for seed in range(8):
        check_matching(seed, measure)


def test_indexes_follow_changes() -> None:
    for seed in range(60):
        check_changes(seed)


@pytest.mark.long
@given(seed=SEEDS)
def test_matching_for_long(seed: int) -> None:
    check_matching(seed)
    check_changes(seed)


def test_no_measure_forces_all_pairs_with_a_useful_threshold() -> None:
    for measure in MEASURES.values():
        threshold = {Kind.EQUALITY: 0.0, Kind.DISTANCE: 2.0, Kind.SIMILARITY: 0.8}[measure.kind]
        assert measure.keys(threshold) is not None, measure.name


def test_random_rules_find_links_and_block() -> None:
    """The tests above would be worth nothing if their rules matched nothing, or compared all pairs anyway."""
    links = blocked = 0
    for seed in range(100):
        random = Random(seed)
        comparison = random_comparison(random, ["levenshtein", "jaccard", "geo"])
        sides = [random_side(random, ["levenshtein", "jaccard", "geo"], name, 7) for name in "st"]
        matcher = Matcher(Rule(comparison))
        matcher.replace(0, sides[0])
        matcher.replace(1, sides[1])
        links += bool(matcher.full())
        blocked += matcher.blocking is not None
    assert links > 50
    assert blocked > 50
