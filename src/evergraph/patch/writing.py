"""Writing of RDF Patch."""

import re
from collections.abc import Mapping
from typing import BinaryIO

from evergraph.delta import Delta, Request
from evergraph.terms import Literal, Quad, Term

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def removed_and_added(change: Request | Delta) -> tuple[frozenset[Quad], frozenset[Quad]]:
    """Return what goes and what comes, disjoint: a quad that a request both removes and adds comes."""
    if isinstance(change, Delta):
        return change.deleted, change.inserted
    return change.removed - change.added, change.added


def transaction(change: Request | Delta, header: Mapping[str, Term] | None = None) -> bytes:
    """Return one change as ``H`` rows, then ``TX``, sorted ``D`` rows, sorted ``A`` rows and ``TC``."""
    removed, added = removed_and_added(change)
    lines = [f"H {_word(name)} {value} .\n" for name, value in (header or {}).items()]
    lines.append("TX .\n")
    lines += sorted([f"D {quad} .\n" for quad in removed])
    lines += sorted([f"A {quad} .\n" for quad in added])
    lines.append("TC .\n")
    return "".join(lines).encode()


def write_transaction(out: BinaryIO, change: Request | Delta, header: Mapping[str, Term] | None = None) -> None:
    """Write one change in a single call of ``write``; equal changes give equal bytes."""
    out.write(transaction(change, header))


def _word(name: str) -> str:
    return name if _WORD.fullmatch(name) else str(Literal(name))
