"""Configurations of LIMES.

Metric expressions: ``AND(a|0.8,b|0.9)``, ``OR(…)``, ``MIN``, ``MAX``, ``ADD(0.5*a,0.5*b)`` over atomic measures of
``x.property`` and ``y.property``, kept from the threshold of ACCEPTANCE on. LIMES defines Levenshtein in three ways;
we read it as 1 / (1 + distance), and say so.
"""

import math
import re
import xml.etree.ElementTree as Xml

from evergraph.linking.foreign import Converted, Leaf, Side, Tree, quoted, variable_renamed

_SIMILARITIES = {
    "jaro": "jaro",
    "jarowinkler": "jaro-winkler",
    "jaccard": "jaccard",
    "cosine": "cosine",
    "trigrams": "trigrams",
    "trigram": "trigrams",
    "mongeelkan": "monge-elkan",
}
_EQUALITIES = {"exactmatch": "exact", "soundex": "soundex", "metaphone": "metaphone"}
_TRANSFORMATIONS = {
    "lowercase": "lower",
    "uppercase": "upper",
    "cleaniri": "last-part",
    "regularalphabet": "punctuation",
}
_WITHOUT_EFFECT = ("nolang", "number", "")
_TOKEN = re.compile(r"\s*([A-Za-z_][\w.:/-]*|[0-9.]+|[(),|*])")


def read(root: Xml.Element) -> Converted:
    """Read a configuration."""
    found = Converted()
    for one in root.iter("PREFIX"):
        found.prefixes[(one.findtext("LABEL") or "").strip()] = (one.findtext("NAMESPACE") or "").strip()
    names = []
    for tag, side in (("SOURCE", found.source), ("TARGET", found.target)):
        element = root.find(tag)
        names.append(_Names(element, side, found) if element is not None else _Names(Xml.Element(tag), side, found))
    relation, accept = _acceptance(root, "ACCEPTANCE")
    _, review = _acceptance(root, "REVIEW")
    prefix, _, local = relation.partition(":")
    if relation:
        found.predicate = found.prefixes[prefix] + local if prefix in found.prefixes else relation
    metric = (root.findtext("METRIC") or "").strip()
    least = min(accept, review) if review is not None and review < accept else accept
    try:
        found.rule = _Metric(metric, names[0], names[1], found).read(least)
    except (ValueError, IndexError) as error:
        found.problems.append(f"METRIC {metric}: cannot be read: {error}")
    if least < accept:
        found.accept, found.review = accept, review
    return found


def _acceptance(root: Xml.Element, tag: str) -> tuple[str, float]:
    element = root.find(tag)
    if element is None:
        return "", 1.0
    return (element.findtext("RELATION") or "").strip(), float(element.findtext("THRESHOLD") or 0)


class _Names:
    """The properties of one side, by the names that the metric uses."""

    def __init__(self, element: Xml.Element, side: Side, found: Converted) -> None:
        self.variable = (element.findtext("VAR") or "").strip().lstrip("?")
        self._side = side
        side.restriction = variable_renamed((element.findtext("RESTRICTION") or "").strip(), self.variable)
        self._known: dict[str, tuple[str, list[str]]] = {}
        for one in element.findall("PROPERTY"):
            written = (one.text or "").strip()
            rest, _, name = written.partition(" RENAME ")
            path, _, functions = rest.partition(" AS ")
            chain = []
            for function in (part.strip() for part in functions.split("->")):
                if function in _TRANSFORMATIONS:
                    chain.append(_TRANSFORMATIONS[function])
                elif function not in _WITHOUT_EFFECT:
                    found.problems.append(f"PROPERTY {written}: there is no transformation {function}; left out")
            self._known[name.strip() or path.strip()] = path.strip(), chain

    def find(self, name: str) -> tuple[int, list[str]]:
        """Return the number of a property and its transformations."""
        path, chain = self._known.get(name, (name, []))
        return self._side.number(path), chain


class _Metric:
    def __init__(self, text: str, source: _Names, target: _Names, found: Converted) -> None:
        self._tokens = _TOKEN.findall(text)
        self._place = 0
        self._names = source, target
        self._found = found

    def read(self, least: float) -> Leaf | Tree:
        node = self._node(least)
        if self._place != len(self._tokens):
            raise ValueError(f"unexpected {self._tokens[self._place]!r}")
        return node

    def _next(self, expected: str = "") -> str:
        token: str = self._tokens[self._place]
        self._place += 1
        if expected and token != expected:
            raise ValueError(f"expected {expected!r}, found {token!r}")
        return token

    def _node(self, least: float) -> Leaf | Tree:
        name = self._next()
        self._next("(")
        upper = name.upper()
        if upper in ("AND", "OR", "MIN", "MAX", "ADD"):
            return self._operator(upper, least)
        arguments = [self._next()]
        self._next(",")
        arguments.append(self._next())
        self._next(")")
        return self._atom(name.lower(), arguments, least)

    def _operator(self, name: str, least: float) -> Tree:
        parts: list[Leaf | Tree] = []
        while True:
            weight = ""
            if re.fullmatch(r"[0-9.]+", self._tokens[self._place]):
                weight = self._next()
                self._next("*")
            start = self._place
            own = 0.0 if name == "ADD" else least
            part = self._node(own)
            if self._place < len(self._tokens) and self._tokens[self._place] == "|":
                self._next()
                own, end = max(own, float(self._next())), self._place
                self._place = start
                part = self._node(own)
                self._place = end
            if weight and name == "ADD":
                lines = (*part.lines, f"weight = {weight}")
                part = (
                    Leaf(part.source, part.target, lines)
                    if isinstance(part, Leaf)
                    else Tree(part.combine, part.parts, lines)
                )
            parts.append(part)
            if self._next() == ")":
                break
        if name == "ADD":
            return Tree("sum", tuple(parts), (f"min = {least:g}",))
        return Tree("and" if name in ("AND", "MIN") else "or", tuple(parts))

    def _atom(self, name: str, arguments: list[str], least: float) -> Leaf | Tree:
        numbers, chains = [], []
        for side, argument in zip(self._names, arguments, strict=True):
            number, chain = side.find(argument.partition(".")[2])
            numbers.append(number)
            chains.append(chain)
        if name in _EQUALITIES:
            lines = [f"measure = {quoted(_EQUALITIES[name])}"]
        elif _SIMILARITIES.get(name):
            lines = [f"measure = {quoted(_SIMILARITIES[name])}", f"min = {least:g}"]
        elif name == "levenshtein" and least > 0:
            note = "LIMES' levenshtein was read as 1 / (1 + distance)"
            if note not in self._found.notes:
                self._found.notes.append(note)
            lines = ['measure = "levenshtein"', f"max = {math.floor(1 / least - 1 + 1e-9)}"]
        else:
            problem = f"METRIC {name}: there is no such measure; taken as 'exact'"
            if problem not in self._found.problems:
                self._found.problems.append(problem)
            lines = ['measure = "exact"']
        for key, chain in zip(("source-transform", "target-transform"), chains, strict=True):
            if chain:
                lines.append(f"{key} = [{', '.join(map(quoted, chain))}]")
        return Leaf(numbers[0], numbers[1], tuple(lines))
