"""Why two resources are linked, or are not: which values, which scores; and how a linkset finds its pairs."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from evergraph.errors import UsageError
from evergraph.linking.blocking import Blocking
from evergraph.linking.definition import Definition
from evergraph.linking.measures import Kind
from evergraph.linking.rules import Combine, Comparison, Entity, Node, Rule, Score
from evergraph.linking.values import EARTH_RADIUS
from evergraph.views.linksets.running import opened


@dataclass(frozen=True, slots=True)
class Line:
    """What one node of a rule says about two resources; values are only those of comparisons."""

    depth: int
    node: str
    score: Score
    source: str | None = None
    target: str | None = None
    measured: float | None = None


def explain_pair(definition: Definition, source: str, target: str) -> dict[str, Any]:
    """Tell what a rule says about two resources, as they were in the last run."""
    with opened(definition) as runner:
        linkset = runner.linkset
        pair = tuple(name if name.startswith("<") else f"<{name}>" for name in (source, target))
        entities = [linkset.matcher.entity(side, name) for side, name in enumerate(pair)]
        for name, entity, side in zip(pair, entities, ("source", "target"), strict=True):
            if entity is None:
                raise UsageError(
                    f"{name} is not in the view of the {side}",
                    hint="run `evergraph link` first; then only resources of its views can be explained",
                )
        one, other = entities
        assert one is not None
        assert other is not None
        score = linkset.rule.match(one, other)
        key = (pair[0], pair[1])
        return {
            "source": pair[0],
            "target": pair[1],
            "score": score,
            "link": key in linkset.selection.links,
            "verdict": _verdict(definition, score, key in linkset.selection.links),
            "nodes": [_row(line) for line in lines(linkset.rule, one, other)],
        }


def _verdict(definition: Definition, score: Score, is_link: bool) -> str:
    if is_link:
        return "linked"
    if score is None:
        return "not linked: the rule does not match"
    if score < definition.accept:
        return f"not linked: the score is below {definition.accept:g}"
    return "not linked: one of them has a better partner (one to one), or the last run was before"


def _row(line: Line) -> dict[str, Any]:
    row: dict[str, Any] = {"depth": line.depth, "node": line.node, "score": line.score}
    if line.measured is not None or line.source is not None or line.target is not None:
        row |= {"values": [line.source, line.target], "measured": line.measured}
    return row


def lines(rule: Rule, source: Entity, target: Entity) -> Iterator[Line]:
    """Tell what each node says, each comparison by the values that are best for it."""
    numbers = {comparison: number for number, comparison in enumerate(rule.comparisons)}

    def best(comparison: Comparison) -> tuple[Any, Any, float] | None:
        number, measure = numbers[comparison], comparison.measure
        found = [(a, b, measure.value(a, b)) for a, b in product(source[1][number], target[1][number])]
        nearest = min if measure.kind is Kind.DISTANCE else max
        return nearest(found, key=lambda one: one[2]) if found else None

    def walk(node: Node, depth: int) -> Iterator[Line]:
        if isinstance(node, Comparison):
            number, chosen = numbers[node], best(node)
            score = node.best(source[1][number], target[1][number])
            values = (_shown(chosen[0]), _shown(chosen[1]), chosen[2]) if chosen else (None, None, None)
            yield Line(depth, f"{node.name}{_threshold(node)}", score, *values)
            return
        compiled = rule._compile(node)
        score = compiled(lambda number: rule.comparisons[number].best(source[1][number], target[1][number]))
        least = f" of at least {node.least:g}" if node.combine in (Combine.AVERAGE, Combine.SUM) else ""
        yield Line(depth, f"{node.combine}{least}", score)
        for part in node.parts:
            yield from walk(part, depth + 1)

    return walk(rule.root, 0)


def _threshold(comparison: Comparison) -> str:
    match comparison.measure.kind:
        case Kind.DISTANCE:
            return f", at most {comparison.threshold:g}"
        case Kind.SIMILARITY:
            return f", at least {comparison.threshold:g}"
        case Kind.EQUALITY:
            return ""


def _shown(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], float):
        east, north, up = value
        return f"{math.degrees(math.asin(up / EARTH_RADIUS)):.6g} {math.degrees(math.atan2(north, east)):.6g}"
    return " ".join(sorted(value)) if isinstance(value, frozenset | tuple) else str(value)


def pair_text(report: dict[str, Any]) -> str:
    """Write what `explain_pair` tells for people."""
    score = "no match" if report["score"] is None else f"score {report['score']:.4g}"
    text = [f"{report['source']}\n{report['target']}\n{report['verdict']} ({score})\n"]
    for row in report["nodes"]:
        said = "no match" if row["score"] is None else f"{row['score']:.4g}"
        text.append(f"{'  ' * (row['depth'] + 1)}{row['node']}: {said}")
        if "values" in row:
            one, other = ("no value" if value is None else repr(value) for value in row["values"])
            measured = "" if row["measured"] is None else f", measured {row['measured']:.6g}"
            text.append(f"{'  ' * (row['depth'] + 3)}{one} and {other}{measured}")
    return "\n".join(text) + "\n"


def explain_linkset(definition: Definition) -> dict[str, Any]:
    """Tell what a linkset compares and how it finds the pairs to compare."""
    with opened(definition) as runner:
        matcher = runner.linkset.matcher
        matcher.plan()
        return {
            "name": definition.name,
            "predicate": str(definition.predicate),
            "resources": list(matcher.sizes()),
            "properties": [
                [str(one) for one in side.catalogue.properties] for side in (definition.source, definition.target)
            ],
            "rule": [{"depth": depth, "node": node} for depth, node in _tree(definition.rule.root, 0)],
            "blocking": _blocking(definition.rule, matcher.blocking),
        }


def linkset_text(report: dict[str, Any]) -> str:
    """Write what `explain_linkset` tells for people."""
    one, other = report["resources"]
    text = [f"{report['name']}: {report['predicate']} between {one:,} and {other:,} resources", "", "Rule"]
    text += [f"{'  ' * (row['depth'] + 1)}{row['node']}" for row in report["rule"]]
    text += ["", "Blocking"]
    blocks = report["blocking"]
    if blocks is None:
        text.append("  all pairs: no comparison must match that could narrow the search")
    else:
        text += [f"  pairs that share a key of {' and '.join(block)}" for block in blocks]
    return "\n".join(text) + "\n"


def _tree(node: Node, depth: int) -> Iterator[tuple[int, str]]:
    if isinstance(node, Comparison):
        yield depth, f"{node.name}{_threshold(node)}: {node.measure.definition}"
        return
    yield depth, node.combine.value
    for part in node.parts:
        yield from _tree(part, depth + 1)


def _blocking(rule: Rule, blocking: Blocking | None) -> list[list[str]] | None:
    return None if blocking is None else [[rule.comparisons[number].name for number in block] for block in blocking]
