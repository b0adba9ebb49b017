"""What the tokens of a WHERE clause tell about it, without an evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyoxigraph import RdfFormat, parse

from evergraph.gate.operations import Rest, Template, template_variables
from evergraph.gate.templates import VARIABLE
from evergraph.gate.tokens import Kind, Token
from evergraph.terms import NamedNode

_CLOSING = {"{": "}", "(": ")"}
_FULL_STOP = Token(Kind.MARK, ".", 0, 0)
_OTHER_EACH_TIME = ("SELECT", "SERVICE", "RAND", "NOW", "UUID", "STRUUID", "BNODE")
"""A subquery may have a LIMIT, or take the sum of what comes in any order; a service may change at any time."""


def is_repeatable(tokens: Sequence[Token]) -> bool:
    """Tell whether a pattern has the same solutions each time over the same data.

    Functions that have an IRI may do anything, and so do not count as such.
    """
    return not any(
        token.is_word(*_OTHER_EACH_TIME) or (token.kind in (Kind.IRI, Kind.NAME) and _is_mark(tokens, place + 1, "("))
        for place, token in enumerate(tokens)
    )


@dataclass(frozen=True, slots=True)
class Core:
    """What every solution of a pattern matches, and what there is besides.

    FILTER, OPTIONAL, MINUS, BIND and VALUES take solutions away, or add values to them, wherever they stand; the
    triples beside them are matched in any case.
    """

    tokens: list[Token]
    """What remains without those parts. If that is triples and GRAPH, and nothing else, each solution matches them."""
    conditions: frozenset[str] | None
    """The variables of simple conditions, if there are any: FILTER without patterns."""
    has_others: bool
    """Whether there are other parts."""

    def rest(self, pattern: Template) -> Rest:
        """Tell what there is besides the tokens, which are this pattern."""
        if self.has_others or not pattern:
            return Rest.OTHER
        if self.conditions is None:
            return Rest.NOTHING
        return Rest.CONDITIONS if self.conditions.issubset(template_variables(pattern)) else Rest.OTHER


def core(tokens: Sequence[Token]) -> Core:
    """Take apart what stands in the braces of a pattern."""
    kept: list[Token] = []
    conditions: frozenset[str] | None = None
    has_others = False
    place = 0
    while place < len(tokens):
        end = _part_end(tokens, place)
        if end is None:
            kept.append(tokens[place])
            place += 1
            continue
        part = tokens[place:end]
        if part[0].is_word("FILTER") and not any(token.is_mark("{") for token in part):
            variables = frozenset(token.text[1:] for token in part if token.kind is Kind.VARIABLE)
            conditions = variables | (conditions or frozenset())
        else:
            has_others = True
        if kept and not kept[-1].is_mark(".", "{", "}"):
            kept.append(_FULL_STOP)
        place = end + _is_mark(tokens, end, ".")
    return Core(kept, conditions, has_others)


def _part_end(tokens: Sequence[Token], place: int) -> int | None:
    """Find where a part that begins here ends, which is not triples; None if none begins."""
    token = tokens[place]
    if token.is_word("OPTIONAL", "MINUS", "VALUES"):
        return _after(tokens, place, "{")
    if token.is_word("BIND", "FILTER"):
        follower = tokens[place + 1]
        return _after(tokens, place, "{" if follower.is_word("EXISTS", "NOT") else "(")
    return None


def _after(tokens: Sequence[Token], place: int, opening: str) -> int:
    """Find the place after the brackets that open next."""
    depth = 0
    for number in range(place, len(tokens)):
        token = tokens[number]
        depth += token.is_mark(opening) - token.is_mark(_CLOSING[opening])
        if token.is_mark(_CLOSING[opening]) and depth == 0:
            return number + 1
    return len(tokens)


def fixed_graphs(prologue: str, tokens: Sequence[Token]) -> frozenset[NamedNode] | None:
    """Read the graphs that the tokens of a pattern name; None if one of them is a variable."""
    names = [tokens[place + 1] for place, token in enumerate(tokens) if token.is_word("GRAPH")]
    if any(name.kind is Kind.VARIABLE for name in names):
        return None
    text = "".join(f"<{VARIABLE}> <{VARIABLE}> {name.text} .\n" for name in names)
    named = (quad.object for quad in parse(f"{prologue}\n{text}", format=RdfFormat.TURTLE))
    return frozenset(name for name in named if isinstance(name, NamedNode))


def only_in_graphs(tokens: Sequence[Token]) -> bool:
    """Tell whether all triples of a pattern, and of the patterns in its expressions, stand in GRAPH."""
    outside: list[int] = []
    depth, place = 0, 0
    while place < len(tokens):
        token = tokens[place]
        if token.is_word("GRAPH", "VALUES"):
            place = _after(tokens, place, "{")
            continue
        if token.is_mark("{"):
            outside.append(depth)
            depth = 0
        elif token.is_mark("}"):
            depth = outside.pop()
        elif token.is_mark("(") and (depth or tokens[place - 1].kind is Kind.WORD):
            depth += 1
        elif token.is_mark(")"):
            depth -= 1
        elif depth == 0 and (token.is_mark("(", "[") or token.kind not in (Kind.WORD, Kind.MARK)):
            return False
        place += 1
    return True


def _is_mark(tokens: Sequence[Token], place: int, mark: str) -> bool:
    return place < len(tokens) and tokens[place].is_mark(mark)
