"""Explanations as text for people, and as JSON for programs."""

from collections.abc import Iterator, Sequence

from evergraph.plan.continuous import Part, PatternClass
from evergraph.plan.explain import Explanation, GraphPattern
from evergraph.plan.notation import Notation
from evergraph.plan.operations import Operation

HEADINGS = (
    "Graph patterns",
    "Delta plan",
    "Expected state",
    "Re-run in part",
    "On Spark",
    "Large changes",
    "Decisions so far",
    "Refused",
    "Notes",
)


def text(
    explanation: Explanation,
    *,
    entries: int | None = None,
    forecasts: Sequence[object] = (),
    decisions: Sequence[object] = (),
) -> str:
    """Write an explanation, in sections with a heading each.

    ``entries`` is the size of the present state, if known; ``forecasts`` say what an engine would do with large
    changes, ``decisions`` what it has done with the last ones.
    """
    columns = "".join(f" ?{name}" for name in explanation.columns)
    sections = [[explanation.form + columns], _patterns(explanation)]
    if explanation.plan is not None:
        sections.append(["Delta plan", *_tree(explanation.plan)])
        sections.append(["Expected state", *_state(explanation.plan, entries)])
        sections.append(["Re-run in part", *_reruns(explanation.plan)])
        sections.append(["On Spark", *(f"  {line}" for line in explanation.spark)])
    if forecasts:
        sections.append(["Large changes", *(f"  {one}" for one in forecasts)])
    if decisions:
        sections.append(["Decisions so far", *(f"  {one}" for one in decisions)])
    if explanation.refused is not None:
        hint = [f"  way out: {explanation.refused.hint}"] if explanation.refused.hint else []
        sections.append(["Refused", f"  {explanation.refused.message}", *hint])
    if explanation.notes:
        sections.append(["Notes", *(f"  {note}" for note in explanation.notes)])
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _patterns(explanation: Explanation) -> list[str]:
    lines = [line for one in explanation.patterns for line in _pattern(one, explanation.notation)]
    lines += [f"  property path: {path}" for path in explanation.paths]
    return ["Graph patterns", *(lines or ["  none"])]


def _pattern(pattern: GraphPattern, notation: Notation) -> Iterator[str]:
    found = pattern.decomposition
    several = sum(len(part.triples) for part in found.parts) > 1
    wide = found.pattern_class not in (PatternClass.GROUND, PatternClass.SIMPLE_STAR)
    star = f", a star around {' and '.join(pattern.centres)}" if several and wide and pattern.centres else ""
    yield f"  {pattern.place}: {found.pattern_class}{star}"
    if len(found.parts) == 1:
        yield from _part(found.parts[0], notation, "    ")
        return
    yield f"    {len(found.parts)} parts that share no variable; the answer is the product of theirs"
    for number, part in enumerate(found.parts, start=1):
        yield f"    part {number}: {part.kind}" + _of(part, notation)
        yield from _part(part, notation, "      ")


def _part(part: Part, notation: Notation, indent: str) -> Iterator[str]:
    for triple in part.triples:
        yield f"{indent}{notation.triple(triple)}"
    yield f"{indent}least state: {part.bound}"


def _of(part: Part, notation: Notation) -> str:
    return f" {notation.variables(part.variables)}" if part.variables else ""


def _tree(operation: Operation, depth: int = 0) -> Iterator[str]:
    indent = "  " * depth
    title = f"{operation.operator} {operation.detail}".rstrip()
    result = f" → {operation.variables}" if operation.variables else ""
    yield f"  {operation.number:>2} {indent}{title}{result} · {operation.law}"
    for line in operation.lines:
        yield f"       {indent}{line}"
    if operation.bound:
        yield f"       {indent}keeps {operation.keeps}"
    for operand in operation.operands:
        yield from _tree(operand, depth + 1)


def _state(plan: Operation, entries: int | None) -> Iterator[str]:
    if entries is not None:
        yield f"  now: {entries:,} {'entry' if entries == 1 else 'entries'}, the result included, and the shared quads"
    yield "  the result, each distinct row once"
    quads = dict.fromkeys(line for operation in plan.walk() for line in operation.quads)
    if quads:
        yield "  in indexes that all queries share, the quads that match"
        yield from (f"       {line}" for line in quads)
    bounds = [(operation, operation.bound) for operation in plan.walk() if operation.bound]
    for operation, bound in bounds:
        yield f"  {operation.number:>2} {operation.operator}: {bound}"
    if any("|" in bound for _, bound in bounds):
        yield "  where |n| is the number of distinct rows of operator n"


def _reruns(plan: Operation) -> Iterator[str]:
    found = [operation for operation in plan.walk() if operation.rerun]
    for operation in found:
        yield f"  {operation.number:>2} {operation.operator}: {operation.rerun}"
    if not found:
        yield "  nothing: every change is worked out from the change"


def to_json(explanation: Explanation) -> dict[str, object]:
    """Write an explanation as a JSON object; names and nesting are stable, texts are for people."""
    refused = explanation.refused
    return {
        "form": explanation.form,
        "columns": list(explanation.columns),
        "patterns": [_json_pattern(one, explanation.notation) for one in explanation.patterns],
        "paths": list(explanation.paths),
        "plan": None if explanation.plan is None else _json_operation(explanation.plan),
        "rerun": [
            {"operator": one.number, "name": one.operator, "reason": one.rerun}
            for one in (explanation.plan.walk() if explanation.plan else ())
            if one.rerun
        ],
        "spark": list(explanation.spark),
        "refused": refused and {"condition": refused.condition, "message": refused.message, "hint": refused.hint},
        "notes": list(explanation.notes),
    }


def _json_pattern(pattern: GraphPattern, notation: Notation) -> dict[str, object]:
    found = pattern.decomposition
    return {
        "place": pattern.place,
        "class": found.pattern_class.value,
        "star": list(pattern.centres),
        "parts": [
            {
                "class": part.kind.value,
                "variables": [variable.value for variable in part.variables],
                "triples": list(map(notation.triple, part.triples)),
                "state": part.bound,
            }
            for part in found.parts
        ],
    }


def _json_operation(operation: Operation) -> dict[str, object]:
    return {
        "number": operation.number,
        "operator": operation.operator,
        "detail": operation.detail,
        "lines": list(operation.lines),
        "quads": list(operation.quads),
        "variables": operation.variables.split(),
        "law": operation.law.value,
        "keeps": operation.keeps,
        "bound": operation.bound,
        "rerun": operation.rerun,
        "operands": list(map(_json_operation, operation.operands)),
    }
