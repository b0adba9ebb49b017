"""Where each document came from, what failed and what was skipped: for people, and for programs."""

from collections.abc import Iterator

from evergraph.traversal.frontier import State, Visit
from evergraph.traversal.links import Rank
from evergraph.traversal.traversal import Traversal

SHOWN = 100
"""Addresses that are listed for people; programs get them all."""


def progress_line(traversal: Traversal) -> str:
    """Say how far a traversal is, in one line."""
    counts = traversal.counts()
    queued = counts[State.QUEUED] + counts[State.UNDER_WAY]
    line = f"documents fetched {len(traversal.dataset.documents):,}, queued {queued:,}, failed {counts[State.FAILED]:,}"
    return f"{line}, skipped {counts[State.SKIPPED]:,}" if counts[State.SKIPPED] else line


def summary(traversal: Traversal, seconds: float) -> Iterator[str]:
    """List for people what became of each address, the failures first."""
    visits = sorted(traversal.report(), key=lambda visit: (_ORDER.index(visit.state), visit.depth, visit.url))
    for visit in visits[:SHOWN]:
        yield _line(visit)
    if len(visits) > SHOWN:
        yield f"… and {len(visits) - SHOWN:,} more: --report FILE has them all"
    if traversal.unlisted:
        yield f"{traversal.unlisted:,} links came after the list of addresses was full, and are not followed"
    size = f"{traversal.bytes:,} bytes in {traversal.requests:,} requests and {seconds:.1f} s"
    yield f"{progress_line(traversal)}; {size}"


def json_visit(visit: Visit) -> dict[str, object]:
    """Write what became of an address as one object; what does not apply is left out."""
    content: dict[str, object] = {
        "url": visit.url,
        "state": visit.state.value,
        "iris": [iri.value for iri in visit.iris],
        "depth": visit.depth,
        "why": Rank(visit.rank).name.lower(),
        "found_in": visit.found_in,
    }
    if visit.document is not None:
        content |= {
            "document": visit.document,
            "via": list(visit.via),
            "media_type": visit.media_type,
            "triples": visit.triples,
            "bytes": visit.size,
            "cached": visit.cached,
        }
    optional = {
        "dropped_f": visit.forged,
        "other_graphs": visit.elsewhere,
        "problem": visit.problem,
        "reason": visit.reason,
    }
    content |= {name: value for name, value in optional.items() if value}
    return content | {"seconds": round(visit.seconds, 3)}


_ORDER = (State.FAILED, State.SKIPPED, State.QUEUED, State.UNDER_WAY, State.FETCHED)


def _line(visit: Visit) -> str:
    parts = [f"{visit.state.value:<7} {visit.url}"]
    if visit.document is not None and visit.document != visit.url:
        parts.append(f"→ {visit.document}")
    facts = [visit.reason] if visit.reason else []
    if visit.state is State.FETCHED:
        place = "not sent again" if visit.cached else f"in {visit.seconds:.2f} s"
        facts.append(f"{visit.media_type.split(';')[0]}, {visit.triples:,} triples, {place}")
        if visit.forged:
            facts.append(f"{visit.forged:,} triples about the reserved relation dropped")
        if visit.elsewhere:
            facts.append(f"{visit.elsewhere:,} quads of its named graphs left out")
    facts.append(f"found in {visit.found_in}" if visit.found_in else _WHY[Rank(visit.rank)])
    return f"{' '.join(parts)}: {'; '.join(facts)}"


_WHY = {
    Rank.SEED: "to start from",
    Rank.SOLUTION: "in a solution",
    Rank.PATTERN: "matches a pattern",
    Rank.MENTION: "mentioned",
}
