"""The oracle: all pairs, all choices of values, straight from the definition. Slow and obviously right."""

from collections.abc import Mapping
from itertools import product

from evergraph.linking.measures import Kind, Measure
from evergraph.linking.rules import Combine, Comparison, Node, Rule, Score, Side, Texts
from evergraph.linking.transformations import apply

Links = dict[tuple[str, str], float]
"""Pairs of resources that match, with their scores."""

Chosen = tuple[str | None, ...]
"""One text for each property; None where there is none."""


def all_pairs(rule: Rule, sources: Mapping[str, Texts], targets: Mapping[str, Texts]) -> Links:
    """Return every pair that matches."""
    found = {}
    for (source, one), (target, other) in product(sources.items(), targets.items()):
        score = match(rule.root, one, other)
        if score is not None:
            found[source, target] = score
    return found


def match(root: Node, source: Texts, target: Texts) -> Score:
    """Return the best score over all choices of one text for each property of each side."""
    best: Score = None
    for one, other in product(_choices(source), _choices(target)):
        score = evaluate(root, one, other, (source, target))
        if score is not None and (best is None or score > best):
            best = score
    return best


def _choices(texts: Texts) -> list[Chosen]:
    return list(product(*(several or (None,) for several in texts)))


def evaluate(node: Node, source: Chosen, target: Chosen, all_texts: tuple[Texts, Texts]) -> Score:
    """Return what a node says about one choice of texts."""
    if isinstance(node, Comparison):
        return _compare(node, source, target, all_texts)
    scores = [evaluate(part, source, target, all_texts) for part in node.parts]
    matching = [score for score in scores if score is not None]
    match node.combine:
        case Combine.AND:
            return min(matching) if len(matching) == len(scores) else None
        case Combine.OR:
            return max(matching) if matching else None
        case Combine.NOT:
            return None if matching else 1.0
        case Combine.AVERAGE | Combine.SUM:
            if any(score is None and part.required for score, part in zip(scores, node.parts, strict=True)):
                return None
            total = sum(part.weight * (score or 0) for score, part in zip(scores, node.parts, strict=True))
            if node.combine is Combine.AVERAGE:
                total /= sum(part.weight for part in node.parts)
            total = min(1.0, round(total, 12))
            return total if total >= node.least else None


def _compare(comparison: Comparison, source: Chosen, target: Chosen, all_texts: tuple[Texts, Texts]) -> Score:
    for side, texts in ((comparison.source, all_texts[0]), (comparison.target, all_texts[1])):
        if not any(_values(comparison, side, choice) for choice in _choices(texts)):
            return comparison.missing
    one, other = _values(comparison, comparison.source, source), _values(comparison, comparison.target, target)
    scores = [_score(comparison.measure, comparison.threshold, a, b) for a, b in product(one, other)]
    return max((score for score in scores if score is not None), default=None)


def _values(comparison: Comparison, side: Side, texts: Chosen) -> list[object]:
    chosen = [texts[number] for number in side.properties]
    if None in chosen:
        return []
    transformed = apply(side.transformations, " ".join(text for text in chosen if text is not None))
    prepared = [comparison.measure.prepare(text) for text in transformed]
    return [value for value in prepared if value is not None]


def _score(measure: Measure, threshold: float, one: object, other: object) -> Score:
    value = measure.value(one, other)
    match measure.kind:
        case Kind.EQUALITY:
            return 1.0 if value == 1 else None
        case Kind.SIMILARITY:
            return value if value >= threshold else None
        case Kind.DISTANCE:
            if value > threshold:
                return None
            return 1.0 if value == 0 else 1 - value / (2 * threshold)
