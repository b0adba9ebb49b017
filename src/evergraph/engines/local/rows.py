"""Functions on rows, made from Python source: picking columns, and merging two rows."""

from collections.abc import Callable, Hashable
from functools import lru_cache

from evergraph.engines.local.dictionary import Row
from evergraph.plan.nodes import Variables


@lru_cache(maxsize=4096)
def _function(source: str) -> Callable[..., Row]:
    function: Callable[..., Row] = eval(source, {"__builtins__": {}})
    return function


def picker(columns: Variables, wanted: Variables) -> Callable[[Row], Row]:
    """Return a function that picks columns of a row, in a given order; those it lacks are unbound."""
    parts = [f"r[{columns.index(one)}]" if one in columns else "0" for one in wanted]
    return _function(f"lambda r: ({_tuple(parts)})")


def key_picker(columns: Variables, wanted: Variables) -> Callable[[Row], Hashable]:
    """Return a function that picks columns to hash on; one column is not wrapped in a tuple."""
    if len(wanted) == 1:
        return _function(f"lambda r: r[{columns.index(wanted[0])}]")
    return picker(columns, wanted)


def merger(left: Variables, right: Variables, wanted: Variables) -> Callable[[Row, Row], Row]:
    """Return a function that merges two compatible rows."""
    parts = []
    for one in wanted:
        sides = [f"l[{left.index(one)}]"] if one in left else []
        sides += [f"r[{right.index(one)}]"] if one in right else []
        parts.append(" or ".join(sides) or "0")
    return _function(f"lambda l, r: ({_tuple(parts)})")


def _tuple(parts: list[str]) -> str:
    return "".join(f"{part}, " for part in parts)
