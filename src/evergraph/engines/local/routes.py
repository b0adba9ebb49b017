"""Where quads go, and the path of a single change, spelled out: it decides how long most changes take.

What happens to a quad that goes to one relation with two columns is Python source, made for the indexes that the
relation has and for the kinds of patterns that ask for its quads, so that nothing is tested that is known beforehand.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evergraph.engines.local.dictionary import SINGLES, Dictionary
from evergraph.engines.local.relations import EVERYTHING, FEW, Kind, Leaf, Relation
from evergraph.terms import Quad

Take = Callable[[Quad, int], None]
"""Takes in a quad that has come (+1) or gone (-1)."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where quads of one predicate in one graph go."""

    relations: tuple[Relation, ...]
    take: Take


def lean_route(relation: Relation, constants: tuple[int, int], dictionary: Dictionary, touched: list[Leaf]) -> Take:
    """Return the function for quads that all go to one relation with two columns."""
    indexes = relation.indexes
    make = _maker(tuple(column for column in "so" if column in indexes), frozenset(relation.kinds))
    taken = tuple(indexes.get(column) for column in "so")
    words = (dictionary.ids.get, dictionary.encode, dictionary.singles)
    take: Take = make(*words, *taken, *constants, relation.entries, touched.append)
    return take


@lru_cache(maxsize=64)
def _maker(columns: tuple[str, ...], kinds: frozenset[Kind]) -> Callable[..., Any]:
    lines = [
        "def make(known, encode, singles, by_s, by_o, predicate, graph, selected, touch):",
        *((f" everything = selected[{EVERYTHING!r}]",) if (False, False) in kinds else ()),
        " get = selected.get",
        *(f" get_{column} = by_{column}.get" for column in columns),
        " def take(quad, weight):",
        "  s_term, o_term = quad.subject, quad.object",
        "  s, o = known(s_term), known(o_term)",
        *_selection(kinds),
        "  if s is None: s = encode(s_term)",
        "  if o is None: o = encode(o_term)",
        "  if weight > 0:",
        *(line for column in columns for line in _growth(column, "so".replace(column, ""))),
        "   for run, leaf in entries:",
        "    run(s, predicate, o, graph, 1)",
        "    touch(leaf)",
        "   return",
        "  for run, leaf in entries:",
        "   run(s, predicate, o, graph, -1)",
        "   touch(leaf)",
        *(line for column in columns for line in _shrinkage(column, "so".replace(column, ""))),
        " return take",
        "",
    ]
    space: dict[str, Any] = {}
    exec(compile("\n".join(lines), "<route>", "exec"), space)
    make: Callable[..., Any] = space["make"]
    return make


def _selection(kinds: frozenset[Kind]) -> list[str]:
    """Find the entries of the patterns that a quad can match; leave if no plan can use it."""
    if kinds == {(False, False)}:
        return ["  entries = everything"]
    keys = {(True, False): "(s, 0)", (False, True): "(0, o)", (True, True): "(s, o)"}
    wanted = [keys[kind] for kind in keys if kind in kinds]
    if (False, False) in kinds:
        lines = ["  entries = everything"]
        for key in wanted:
            lines += [f"  found = get({key})", "  if found: entries = entries + found"]
        return lines
    if not wanted:
        return ["  return"]
    lines = [f"  entries = get({wanted[0]})"]
    for key in wanted[1:]:
        lines += [
            f"  found = get({key})",
            "  if found is not None: entries = found if entries is None else entries + found",
        ]
    return [*lines, "  if entries is None: return"]


def _growth(column: str, other: str) -> list[str]:
    return [
        f"   f = get_{column}({column})",
        "   if f is None:",
        *_single(column),
        f"   elif type(f) is not tuple: f.add({other})",
        f"   elif {other} not in f: by_{column}[{column}] = (*f, {other}) if len(f) < {FEW} else {{*f, {other}}}",
    ]


def _single(column: str) -> list[str]:
    """Keep the only value of a key: those of subjects in a tuple that others have as well."""
    if column == "o":
        return ["    by_o[o] = (s,)"]
    return [
        f"    f = singles[o & {SINGLES - 1}]",
        f"    if f[0] is not o: f = singles[o & {SINGLES - 1}] = (o,)",
        "    by_s[s] = f",
    ]


def _shrinkage(column: str, other: str) -> list[str]:
    return [
        f"  f = get_{column}({column})",
        "  if f is None: pass",
        "  elif type(f) is not tuple:",
        f"   f.discard({other})",
        f"   if len(f) < {FEW}: by_{column}[{column}] = tuple(f)",
        f"  elif f[0] == {other} and len(f) == 1: del by_{column}[{column}]",
        f"  else: by_{column}[{column}] = tuple([one for one in f if one != {other}])",
    ]
