"""What planning wants to know about a table, kept in a small file in its folder so that knowing it is free.

The numbers are those of some version, told by the file; they are rewritten at loads and compactions and may lag
behind in between, which makes plans worse and never wrong.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

FILE = "_statistics.json"
_MOST_PREDICATES = 10_000


@dataclass(frozen=True, slots=True)
class PredicateStatistics:
    """The quads of a predicate: how many, and with about how many different subjects and objects."""

    rows: int
    subjects: int
    objects: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """The size of a table; of quads also that of its most frequent predicates."""

    version: int
    rows: int
    predicates: Mapping[str, PredicateStatistics] = field(default_factory=dict)


def measure(frame: DataFrame, version: int) -> Statistics:
    """Count the rows of a consolidated frame; of one with predicates, by predicate."""
    if "predicate" not in frame.columns:
        return Statistics(version, frame.count())
    counted = frame.groupBy("predicate").agg(
        sf.count("*").alias("rows"),
        sf.approx_count_distinct("subject").alias("subjects"),
        sf.approx_count_distinct("object").alias("objects"),
    )
    found = counted.orderBy(sf.desc("rows")).limit(_MOST_PREDICATES).collect()
    predicates = {row["predicate"]: PredicateStatistics(row["rows"], row["subjects"], row["objects"]) for row in found}
    rows = sum(one.rows for one in predicates.values()) if len(found) < _MOST_PREDICATES else frame.count()
    return Statistics(version, rows, predicates)


def load(root: Path) -> Statistics | None:
    """Read the file; None where there is none that can be read."""
    try:
        found = json.loads((root / FILE).read_text(encoding="utf-8"))
        predicates = {name: PredicateStatistics(**one) for name, one in found["predicates"].items()}
        return Statistics(found["version"], found["rows"], predicates)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save(root: Path, statistics: Statistics) -> None:
    """Write the file; readers see the old or the new one."""
    draft = root / f"_{secrets.token_hex(4)}.tmp"
    try:
        draft.write_text(json.dumps(asdict(statistics), ensure_ascii=False), encoding="utf-8")
        draft.replace(root / FILE)
    finally:
        draft.unlink(missing_ok=True)
