"""Regular expressions of standing queries, of which one could keep everybody waiting for ever.

Standing queries are evaluated in this process, by an engine for regular expressions that goes back when it is stuck: a
repetition within a repetition can take longer than anybody lives, on a text of fifty letters. Such patterns are
refused, some harmless ones among them. Queries that are asked once are evaluated by the store, in linear time.
"""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from evergraph.errors import UnsupportedQuery
from evergraph.sparql.algebra import Call, Function
from evergraph.terms import Literal

MOST_REPETITIONS = 3
_PLACES = {Function.REGEX: 1, Function.REPLACE: 1}
_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{\d+(?:,\d*)?\}|.", re.DOTALL)
_FEW = 20
"""A repetition of at most so often counts as none."""


def check_patterns(query: object) -> None:
    """Refuse a standing query, or part of one, with a pattern that could take very long or is not known beforehand."""
    for call in _calls(query):
        pattern = call.arguments[_PLACES[call.function]]
        if not isinstance(pattern, Literal):
            raise UnsupportedQuery(
                f"the pattern of {call.function.name} must be written out in a standing query of the broker",
                hint="use CONTAINS, STRSTARTS or STRENDS.",
            )
        check_pattern(pattern.value)


def check_pattern(pattern: str) -> None:
    """Refuse a pattern with a repetition or a choice within a repetition, with back-references, or many repetitions."""
    repetitions = 0
    groups: list[bool] = [False]
    """For each group that is open: whether something in it repeats, or is a choice."""
    last = False
    """The same for what stands before the next character."""
    for token in _TOKEN.findall(pattern):
        if _repeats(token):
            repetitions += 1
            if last or repetitions > MOST_REPETITIONS:
                raise _refused(pattern)
            groups[-1] = True
        elif token == "(":
            groups.append(False)
        elif token == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] = groups[-1] or last
            continue
        elif token == "|":
            groups[-1] = True
        elif re.fullmatch(r"\\[1-9]", token):
            raise _refused(pattern)
        last = False


def _repeats(token: str) -> bool:
    if token in ("*", "+"):
        return True
    bounds = re.fullmatch(r"\{(\d+)(,?)(\d*)\}", token)
    return bounds is not None and (bool(bounds[2] and not bounds[3]) or int((bounds[3] or bounds[1])[:9]) > _FEW)


def _refused(pattern: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"the pattern {pattern[:100]!r} could take very long, and keep everybody waiting",
        hint=f"repeat nothing that repeats or is a choice, and no more than {MOST_REPETITIONS} things.",
    )


def _calls(part: Any) -> Iterator[Call]:
    """Iterate over the calls of functions on texts in any part of a query."""
    waiting = [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Call) and one.function in _PLACES:
            yield one
        if isinstance(one, tuple | list | frozenset):
            waiting += one
        elif is_dataclass(one) and not isinstance(one, type):
            waiting += [getattr(one, field.name) for field in fields(one)]
