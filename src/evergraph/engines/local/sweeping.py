"""Ids that nothing holds any more, found and given back.

Terms come with quads, constants and computed values. Their ids may be held by indexes, by the state of any operator,
by results and by remembered values. Rather than count references on the path of every change, a sweep looks which
numbers can be reached from the engine; the others are free. A number that is a weight or a count is taken for an id,
too: that keeps a term for longer than need be, never too short.
"""

import gc
from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import Any

_BATCH = 4096
_UNINTERESTING = (ModuleType, type)


def reachable(root: object, beyond: Iterable[object]) -> set[int]:
    """Return all integers that can be reached from an object, without a look into those beyond."""
    found: set[int] = set()
    kept = list(beyond)
    seen = set(map(id, kept))
    waiting: list[Any] = [root]
    while waiting:
        some, waiting[-_BATCH:] = waiting[-_BATCH:], []
        for one in gc.get_referents(*map(_without_globals, some)):
            kind = type(one)
            if kind is int:
                found.add(one)
            elif kind is tuple:
                waiting.append(one)
            elif (kind is dict or gc.is_tracked(one)) and id(one) not in seen:
                seen.add(id(one))
                if not isinstance(one, _UNINTERESTING):
                    waiting.append(one)
    return found


def _without_globals(one: Any) -> Any:
    return (one.__closure__, one.__defaults__, one.__kwdefaults__) if isinstance(one, FunctionType) else one
