"""Silk's Link Specification Language.

A comparison of Silk has the score 1 - distance / threshold and matches from 0 on: its thresholds are inclusive
distances. Its aggregations min and max are our ``and`` and ``or``. Its average also counts how far a comparison is
beyond its threshold, which ours does not: that is told as a problem, as is everything else that is not known here.
"""

import math
import xml.etree.ElementTree as Xml
from collections.abc import Iterator

from evergraph.linking.foreign import Converted, Leaf, Side, Tree, quoted, variable_renamed

_DISTANCES = {"levenshteinDistance": "levenshtein", "num": "number", "date": "date", "wgs84": "geo"}
_SIMILARITIES = {
    "levenshtein": "levenshtein-similarity",
    "jaro": "jaro",
    "jaroWinkler": "jaro-winkler",
    "jaccard": "jaccard",
    "dice": "dice",
    "cosine": "cosine",
    "qGrams": "bigrams",
}
_TRANSFORMATIONS = {
    "lowerCase": "lower",
    "upperCase": "upper",
    "trim": "trim",
    "removeSpecialChars": "punctuation",
    "normalizeChars": "accents",
    "alphaReduce": "letters",
    "numReduce": "digits",
    "stripUriPrefix": "last-part",
    "tokenize": "tokens",
}


def read(root: Xml.Element) -> Converted:
    """Read the first interlink of a file."""
    found = Converted(prefixes={one.get("id", ""): one.get("namespace", "") for one in root.iter("Prefix")})
    links = list(root.iter("Interlink"))
    if not links:
        found.problems.append("there is no <Interlink>")
        return found
    if len(links) > 1:
        found.problems.append(f"only the first of {len(links)} interlinks was read: {links[0].get('id')}")
    link = links[0]
    kind = (link.findtext("LinkType") or "owl:sameAs").strip()
    found.predicate = _expanded(kind, found.prefixes)
    variables = []
    for tag, side in (("SourceDataset", found.source), ("TargetDataset", found.target)):
        dataset = link.find(tag)
        variable = dataset.get("var", "") if dataset is not None else ""
        variables.append(variable)
        restriction = dataset.findtext("RestrictTo") if dataset is not None else None
        side.restriction = variable_renamed((restriction or "").strip(), variable)
    rule = link.find("LinkageRule")
    rule = link.find("LinkCondition") if rule is None else rule
    parts = [] if rule is None else list(_parts(rule, found, variables))
    if len(parts) == 1:
        found.rule = parts[0]
    else:
        found.problems.append(f"expected one comparison or aggregation in the rule, found {len(parts)}")
    for one in link.iter("Filter"):
        if one.get("limit"):
            found.problems.append(f"Filter limit={one.get('limit')}: links are not limited in number")
        if one.get("threshold") not in (None, "0", "0.0"):
            found.problems.append(f"Filter threshold={one.get('threshold')}: scores are not the same")
    return found


def _parts(element: Xml.Element, found: Converted, variables: list[str]) -> Iterator[Leaf | Tree]:
    for child in element:
        if child.tag == "Compare":
            leaf = _compare(child, found, variables)
            if leaf is not None:
                yield leaf
        elif child.tag == "Aggregate":
            kind = child.get("type", "")
            combine = {"min": "and", "max": "or"}.get(kind)
            parts = tuple(_parts(child, found, variables))
            if combine is None:
                found.problems.append(
                    f"Aggregate type={kind}: scores beyond thresholds are not the same; taken as 'and'"
                )
            if parts:
                yield Tree(combine or "and", parts)


def _compare(element: Xml.Element, found: Converted, variables: list[str]) -> Leaf | None:
    metric, threshold = element.get("metric", ""), float(element.get("threshold") or 0)
    params = {one.get("name"): one.get("value") for one in element.findall("Param")}
    lines: list[str]
    if metric == "equality":
        lines = ['measure = "exact"']
    elif metric in _DISTANCES:
        if metric == "wgs84" and params.get("unit", "km") in ("m", "meter"):
            threshold /= 1000
        most = math.floor(threshold) if metric == "levenshteinDistance" else threshold
        lines = [f"measure = {quoted(_DISTANCES[metric])}", f"max = {most:g}"]
    elif metric in _SIMILARITIES:
        lines = [f"measure = {quoted(_SIMILARITIES[metric])}", f"min = {max(0.0, round(1 - threshold, 9)):g}"]
    else:
        found.problems.append(f"Compare metric={metric}: there is no such measure; the comparison is left out")
        return None
    if element.get("required") == "true":
        lines.append("required = true")
    inputs = [child for child in element if child.tag in ("Input", "TransformInput")]
    if len(inputs) != 2:
        found.problems.append(f"Compare metric={metric}: expected two inputs, found {len(inputs)}")
        return None
    numbers = []
    for side, one, variable, key in zip(
        (found.source, found.target), inputs, variables, ("source-transform", "target-transform"), strict=True
    ):
        number, transformations = _input(one, side, variable, found)
        numbers.append(number)
        if transformations:
            lines.append(f"{key} = [{', '.join(transformations)}]")
    return Leaf(numbers[0], numbers[1], tuple(lines))


def _input(element: Xml.Element, side: Side, variable: str, found: Converted) -> tuple[int, list[str]]:
    """Return the number of the property path, and what is done to its values, innermost first."""
    if element.tag == "Input":
        path = element.get("path", "").strip()
        path = path.removeprefix(f"?{variable}").lstrip("/").replace("\\", "/^")
        if "[" in path:
            found.problems.append(f"Input path={element.get('path')}: filters in paths are not read")
        return side.number(path.split("[")[0].removeprefix("/")), []
    inner = [child for child in element if child.tag in ("Input", "TransformInput")]
    function = element.get("function", "")
    if len(inner) != 1:
        found.problems.append(f"TransformInput function={function}: expected one input, found {len(inner)}")
    number, transformations = _input(inner[0], side, variable, found) if inner else (0, [])
    params = {one.get("name"): one.get("value") or "" for one in element.findall("Param")}
    if function in ("replace", "regexReplace"):
        key = "regex" if function == "regexReplace" else "search"
        text = f"{{ replace = {quoted(params.get(key, ''))}, with = {quoted(params.get('replace', ''))} }}"
        return number, [*transformations, text]
    if function == "removeBlanks":
        return number, [*transformations, "{ replace = '\\s+' }"]
    known = _TRANSFORMATIONS.get(function)
    if known is None:
        found.problems.append(f"TransformInput function={function}: there is no such transformation; left out")
        return number, transformations
    return number, [*transformations, quoted(known)]


def _expanded(name: str, prefixes: dict[str, str]) -> str:
    prefix, _, local = name.strip("<>").partition(":")
    return prefixes[prefix] + local if prefix in prefixes else name.strip("<>")
