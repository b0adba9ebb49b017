"""Measures: how far apart, or how much alike, two values are. Every definition is written down here, and only here.

Texts are compared in Unicode's form C, by code points. Thresholds are inclusive: a distance matches if it is at most
``max``, a similarity if it is at least ``min``. All measures are symmetric.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from rapidfuzz.distance import DamerauLevenshtein, Jaro, JaroWinkler, Levenshtein

from evergraph.linking import keys, values
from evergraph.linking.keys import Keys
from evergraph.linking.phonetics import metaphone, soundex


class Kind(Enum):
    """What a measure gives, and so which threshold it takes."""

    EQUALITY = "equality"
    DISTANCE = "distance"
    SIMILARITY = "similarity"


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure. ``prepare`` turns a text into what is compared, or into None if it is no value for this measure.

    ``keys`` gives the blocking keys for a threshold; None where the threshold lets everything be a partner.
    """

    name: str
    kind: Kind
    definition: str
    prepare: Callable[[str], Any | None]
    value: Callable[[Any, Any], float]
    keys: Callable[[float], Keys | None]
    whole: bool = False
    """Distances of this measure are whole numbers."""

    def __reduce__(self) -> "tuple[Callable[[str], Measure], tuple[str]]":
        return _named, (self.name,)


def _named(name: str) -> Measure:
    """Return a measure by its name: this is how one goes to another process."""
    return MEASURES[name]


Scorer = Callable[[Any, Any], float | None]
"""Takes two prepared values; returns their score between 0 and 1, or None if they are not within the threshold."""


def scorer(measure: Measure, threshold: float) -> Scorer:
    """Return what decides and scores.

    The score of a similarity is the similarity, that of an equality is 1. A distance d scores 1 - d / (2 · max): 1 if
    there is none, one half at the threshold.
    """
    value = measure.value
    match measure.kind:
        case Kind.EQUALITY:
            return lambda one, other: 1.0 if one == other else None
        case Kind.SIMILARITY:

            def similar(one: Any, other: Any) -> float | None:
                found = value(one, other)
                return found if found >= threshold else None

            return similar
        case Kind.DISTANCE:
            if measure.name in _CUT:
                return _edit_scorer(_CUT[measure.name], int(threshold))

            def near(one: Any, other: Any) -> float | None:
                return _closeness(value(one, other), threshold)

            return near


def _closeness(found: float, threshold: float) -> float | None:
    if found > threshold:
        return None
    return 1.0 if found == 0 else 1 - found / (2 * threshold)


def _edit_scorer(distance: Callable[..., int], limit: int) -> Scorer:
    """Score edit distances, which are given up as soon as they are above the limit."""
    scores: list[float | None] = [1.0, *(1 - found / (2 * limit) for found in range(1, limit + 1)), None]

    def near(one: str, other: str) -> float | None:
        return scores[distance(one, other, score_cutoff=limit)]

    return near


def _normalised(one: str, other: str) -> float:
    distance: int = Levenshtein.distance(one, other)
    return 1 - distance / max(len(one), len(other))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def _cosine(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / math.sqrt(len(one) * len(other))


def _monge_elkan(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    table: list[list[float]] = [[JaroWinkler.similarity(a, b) for b in other] for a in one]
    forth = sum(max(row) for row in table) / len(one)
    back = sum(max(column) for column in zip(*table, strict=True)) / len(other)
    return (float(forth) + float(back)) / 2


def _words_by(code: Callable[[str], str]) -> Callable[[str], str | None]:
    return lambda text: " ".join(filter(None, map(code, text.split()))) or None


def _jaccard_keys(least: float) -> Keys | None:
    return keys.token_prefixes(lambda x, y: least / (1 + least) * (x + y), least)


def _dice_keys(least: float) -> Keys | None:
    return keys.token_prefixes(lambda x, y: least / 2 * (x + y), least / (2 - least))


def _cosine_keys(least: float) -> Keys | None:
    return keys.token_prefixes(lambda x, y: least * math.sqrt(x * y), least * least)


def _monge_elkan_keys(least: float) -> Keys | None:
    inner = keys.jaro_winkler(least - keys.EPSILON)
    return None if inner is None else keys.AnyToken(inner)


def _difference(one: float, other: float) -> float:
    return abs(one - other)


def _text(text: str) -> str | None:
    return text or None


def _token_set(text: str) -> frozenset[str] | None:
    return values.tokens(text) or None


def _token_list(text: str) -> tuple[str, ...] | None:
    return tuple(sorted(values.tokens(text))) or None


def _grams(size: int) -> Callable[[str], frozenset[str] | None]:
    return lambda text: values.qgrams(text, size) if text else None


_EQUALITY, _DISTANCE, _SIMILARITY = Kind.EQUALITY, Kind.DISTANCE, Kind.SIMILARITY

_ALL = (
    Measure("exact", _EQUALITY, "the same text", _text, lambda a, b: float(a == b), lambda _: keys.equality()),
    Measure(
        "soundex",
        _EQUALITY,
        "the same American Soundex code, word by word",
        _words_by(soundex),
        lambda a, b: float(a == b),
        lambda _: keys.equality(),
    ),
    Measure(
        "metaphone",
        _EQUALITY,
        "the same Metaphone code, word by word",
        _words_by(metaphone),
        lambda a, b: float(a == b),
        lambda _: keys.equality(),
    ),
    Measure(
        "levenshtein",
        _DISTANCE,
        "the least number of code points to insert, delete or replace",
        _text,
        Levenshtein.distance,
        lambda most: keys.edits(int(most)),
        whole=True,
    ),
    Measure(
        "damerau",
        _DISTANCE,
        "as levenshtein, where to swap two neighbours also counts 1 (unrestricted)",
        _text,
        DamerauLevenshtein.distance,
        lambda most: keys.edits(2 * int(most)),
        whole=True,
    ),
    Measure(
        "levenshtein-similarity",
        _SIMILARITY,
        "1 - levenshtein / length of the longer text",
        _text,
        _normalised,
        keys.relative_edits,
    ),
    Measure(
        "jaro",
        _SIMILARITY,
        "the Jaro similarity",
        _text,
        Jaro.similarity,
        lambda least: keys.jaro(least - keys.EPSILON),
    ),
    Measure(
        "jaro-winkler",
        _SIMILARITY,
        "j + l/10 · (1 - j) with j = jaro, if that is above 0.7, and the length l ≤ 4 of the common beginning",
        _text,
        JaroWinkler.similarity,
        lambda least: keys.jaro_winkler(least - keys.EPSILON),
    ),
    Measure("jaccard", _SIMILARITY, "shared words / all words of both, as sets", _token_set, _jaccard, _jaccard_keys),
    Measure(
        "dice", _SIMILARITY, "2 · shared words / sum of the numbers of words, as sets", _token_set, _dice, _dice_keys
    ),
    Measure(
        "cosine",
        _SIMILARITY,
        "shared words / √(product of the numbers of words), as sets",
        _token_set,
        _cosine,
        _cosine_keys,
    ),
    Measure(
        "bigrams",
        _SIMILARITY,
        "jaccard of the sets of q-grams with q = 2, the text within # signs",
        _grams(2),
        _jaccard,
        _jaccard_keys,
    ),
    Measure(
        "trigrams",
        _SIMILARITY,
        "jaccard of the sets of q-grams with q = 3, the text within ## signs",
        _grams(3),
        _jaccard,
        _jaccard_keys,
    ),
    Measure(
        "monge-elkan",
        _SIMILARITY,
        "for each word the highest jaro-winkler with a word of the other text; the average by side, then of both",
        _token_list,
        _monge_elkan,
        _monge_elkan_keys,
    ),
    Measure("number", _DISTANCE, "the difference of two numbers", values.number, _difference, keys.Buckets),
    Measure(
        "date",
        _DISTANCE,
        "the number of days between two dates; times and time zones do not count",
        values.day,
        _difference,
        keys.Buckets,
    ),
    Measure(
        "year", _DISTANCE, "the difference of the years of two dates or years", values.year, _difference, keys.Buckets
    ),
    Measure(
        "geo",
        _DISTANCE,
        f"kilometres along the great circle, on a sphere with a radius of {values.EARTH_RADIUS} km",
        values.point,
        values.arc,
        keys.Buckets,
    ),
)

MEASURES: Mapping[str, Measure] = MappingProxyType({measure.name: measure for measure in _ALL})
"""All measures, by name."""

_CUT: Mapping[str, Callable[..., int]] = MappingProxyType(
    {"levenshtein": Levenshtein.distance, "damerau": DamerauLevenshtein.distance}
)
