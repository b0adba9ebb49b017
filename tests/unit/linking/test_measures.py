"""Measures and transformations against their definitions, written out as plainly as possible."""

import math
from collections import Counter
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergraph.linking import transformations, values
from evergraph.linking.measures import MEASURES, scorer
from evergraph.linking.phonetics import metaphone, soundex

TEXTS = st.text(st.sampled_from("abcé "), min_size=1, max_size=7).filter(str.strip)


def edits(one: str, other: str, *, swaps: bool) -> int:
    """The shortest way from one text to the other, by definition: breadth first, no table."""

    @cache
    def distance(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        best = min(distance(a[1:], b) + 1, distance(a, b[1:]) + 1, distance(a[1:], b[1:]) + (a[0] != b[0]))
        if swaps:
            # Unrestricted: between two neighbours that are swapped, others may be deleted or inserted.
            for i, j in product(range(1, len(a)), range(1, len(b))):
                if a[0] == b[j] and b[0] == a[i]:
                    best = min(best, distance(a[i + 1 :], b[j + 1 :]) + (i - 1) + 1 + (j - 1))
        return best

    return distance(one, other)


def jaro(one: str, other: str) -> float:
    reach = max(0, max(len(one), len(other)) // 2 - 1)
    free, matched = list(other), []
    for place, sign in enumerate(one):
        for there in range(max(0, place - reach), min(len(other), place + reach + 1)):
            if free[there] == sign:
                free[there] = ""
                matched.append(sign)
                break
    back = [sign for sign, left in zip(other, free, strict=True) if left == ""]
    if not matched:
        return 0.0
    count, swapped = len(matched), sum(a != b for a, b in zip(matched, back, strict=True)) // 2
    return (count / len(one) + count / len(other) + (count - swapped) / count) / 3


def grams(text: str, size: int) -> set[str]:
    padded = "#" * (size - 1) + text + "#" * (size - 1)
    return {padded[i : i + size] for i in range(len(padded)) if len(padded[i : i + size]) == size}


def value(name: str, one: str, other: str) -> float:
    measure = MEASURES[name]
    return measure.value(measure.prepare(one), measure.prepare(other))


@given(TEXTS, TEXTS)
def test_edit_distances(one: str, other: str) -> None:
    plain = edits(one, other, swaps=False)
    assert value("levenshtein", one, other) == plain
    assert value("damerau", one, other) == edits(one, other, swaps=True)
    assert value("levenshtein-similarity", one, other) == 1 - plain / max(len(one), len(other))


@given(TEXTS, TEXTS)
def test_jaro_and_winkler(one: str, other: str) -> None:
    found = jaro(one, other)
    assert value("jaro", one, other) == pytest.approx(found)
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    expected = found + min(common, 4) / 10 * (1 - found) if found > 0.7 else found
    assert value("jaro-winkler", one, other) == pytest.approx(expected)


@given(TEXTS, TEXTS)
def test_sets(one: str, other: str) -> None:
    a, b = set(one.split()), set(other.split())
    assert value("jaccard", one, other) == len(a & b) / len(a | b)
    assert value("dice", one, other) == 2 * len(a & b) / (len(a) + len(b))
    assert value("cosine", one, other) == pytest.approx(len(a & b) / math.sqrt(len(a)) / math.sqrt(len(b)))
    for name, size in (("bigrams", 2), ("trigrams", 3)):
        c, d = grams(one, size), grams(other, size)
        assert value(name, one, other) == len(c & d) / len(c | d)


@given(TEXTS, TEXTS)
def test_monge_elkan(one: str, other: str) -> None:
    a, b = set(one.split()), set(other.split())
    forth = sum(max(value("jaro-winkler", x, y) for y in b) for x in a) / len(a)
    back = sum(max(value("jaro-winkler", x, y) for x in a) for y in b) / len(b)
    assert value("monge-elkan", one, other) == pytest.approx((forth + back) / 2)


@pytest.mark.parametrize("name", MEASURES)
@given(one=TEXTS, other=TEXTS)
def test_all_are_symmetric(name: str, one: str, other: str) -> None:
    measure = MEASURES[name]
    a, b = measure.prepare(one), measure.prepare(other)
    if a is not None and b is not None:
        assert measure.value(a, b) == pytest.approx(measure.value(b, a))
        assert scorer(measure, 1)(a, a) == 1.0


def test_thresholds_are_inclusive_and_scores_are_defined() -> None:
    near = scorer(MEASURES["levenshtein"], 2)
    assert [near("abc", other) for other in ("abc", "abx", "axy", "xyz")] == [1.0, 0.75, 0.5, None]
    assert scorer(MEASURES["number"], 5)(1.0, 6.0) == 0.5
    assert scorer(MEASURES["number"], 5)(1.0, 6.1) is None
    assert scorer(MEASURES["dice"], 0.5)(frozenset("ab"), frozenset("bc")) == 0.5
    assert scorer(MEASURES["levenshtein"], 0)("a", "b") is None
    assert scorer(MEASURES["exact"], 0)("a", "a") == 1.0


def test_texts_are_compared_by_code_points_in_form_c() -> None:
    apart, together = "Jose\u0301", "José"
    assert transformations.apply((), apart) == (together,)
    assert value("levenshtein", together, "Jose") == 1
    assert value("levenshtein", "😀", "a") == 1


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("Robert", "R163"),
        ("Rupert", "R163"),
        ("Rubin", "R150"),
        ("Ashcraft", "A261"),
        ("Ashcroft", "A261"),
        ("Tymczak", "T522"),
        ("Pfister", "P236"),
        ("Honeyman", "H555"),
        ("Gutiérrez", "G362"),
        ("Lee", "L000"),
        ("42", ""),
    ],
)
def test_soundex(word: str, code: str) -> None:
    assert soundex(word) == code


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("Thompson", "0MPSN"),
        ("Smith", "SM0"),
        ("Smyth", "SM0"),
        ("Knight", "NT"),
        ("Night", "NT"),
        ("Phillips", "FLPS"),
        ("Xavier", "SFR"),
        ("Which", "WX"),
        ("Science", "SNS"),
        ("School", "SKL"),
        ("Bridge", "BRJ"),
        ("Nation", "NXN"),
        ("Thumb", "0M"),
        ("Wright", "RT"),
        ("Judge", "JJ"),
        ("", ""),
    ],
)
def test_metaphone(word: str, code: str) -> None:
    assert metaphone(word) == code


def test_numbers_dates_and_years() -> None:
    assert [values.number(text) for text in ("1", "-2.5", " 1e3 ", ".5", "1_000", "nan", "inf", "x", "1e999")] == [
        1.0, -2.5, 1000.0, 0.5, None, None, None, None, None,
    ]  # fmt: skip
    assert value("date", "1958-08-25", "1958-08-26T23:59:59Z") == 1
    assert value("date", "2024-02-28", "2024-03-01") == 2
    assert value("date", "0001-01-01", "0000-12-31") == 1
    assert [values.day(text) for text in ("2023-02-29", "2023-13-01", "2023", "1958-8-25")] == [None] * 4
    assert [values.year(text) for text in ("1958", "-0044-03-15", "1958-08", "1958-08-25T00:00:00Z", "c. 1958")] == [
        1958, -44, 1958, 1958, None,
    ]  # fmt: skip


def test_days_are_those_of_the_calendar() -> None:
    from datetime import date, timedelta

    start = date(1, 1, 1)
    for step in range(0, 800_000, 997):
        one = start + timedelta(step)
        assert values.day(one.isoformat()) == one.toordinal() - date(1970, 1, 1).toordinal()


def test_points() -> None:
    def haversine(a: float, b: float, c: float, d: float) -> float:
        a, b, c, d = map(math.radians, (a, b, c, d))
        h = math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2
        return 2 * values.EARTH_RADIUS * math.asin(math.sqrt(h))

    assert value("geo", "48.2 16.37", "48.14,11.58") == pytest.approx(haversine(48.2, 16.37, 48.14, 11.58))
    assert value("geo", "POINT(16.37 48.2)", "48.2 16.37") == pytest.approx(0, abs=1e-9)
    assert value("geo", "90 10", "90 170") == pytest.approx(0, abs=1e-9)
    assert value("geo", "0 179.5", "0 -179.5") == pytest.approx(haversine(0, 179.5, 0, 180.5))
    assert [values.point(text) for text in ("91 0", "0 400", "x y", "12")] == [None] * 4


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("lower", "ÄB", ["äb"]),
        ("upper", "äß", ["ÄSS"]),
        ("fold", "Straße", ["strasse"]),
        ("trim", " a b ", ["a b"]),
        ("spaces", " a \t b ", ["a b"]),
        ("punctuation", "St. Paul's (old)", ["St Paul s old"]),
        ("accents", "Éphèse øß", ["Ephese øß"]),
        ("letters", "a1-b2", ["ab"]),
        ("digits", "a1-b2", ["12"]),
        ("last-part", "http://example.org/x#Tim_Burton", ["Tim Burton"]),
        ("last-part", "http://example.org/id/7/", ["7"]),
        ("tokens", "a b a", ["a", "b"]),
        ("sort-tokens", "b a", ["a b"]),
        ("stop-words", "The House of the Rising Sun", ["House Rising Sun"]),
        ("punctuation", "...", []),
    ],
)
def test_transformations(name: str, text: str, expected: list[str]) -> None:
    assert list(transformations.apply((transformations.PLAIN[name],), text)) == expected


def test_transformations_with_arguments() -> None:
    def done(text: str, *chain: transformations.Transformation) -> list[str]:
        return list(transformations.apply(chain, text))

    assert done("Rome (Italy)", transformations.replace(r"\s*\(.*\)")) == ["Rome"]
    assert done("b a", transformations.replace(r"(\w) (\w)", r"\2 \1")) == ["a b"]
    assert done("a1 b2", transformations.extract(r"[a-z](\d)")) == ["1", "2"]
    assert done("Roma/Rome", transformations.split("/")) == ["Roma", "Rome"]
    assert done("Abcd", transformations.begin(2)) == ["Ab"]
    assert done("Mint of Rome", transformations.stop_words(["mint", "of"])) == ["Rome"]
    with pytest.raises(ValueError, match="whole number"):
        transformations.begin("x")


def test_every_code_point_counts_once_in_a_multiset() -> None:
    from evergraph.linking.keys import _numbered

    assert Counter(member[0] for member in _numbered("banana")) == Counter("banana")
    assert len(set(_numbered("banana"))) == 6
