"""What planning wants to know about a table, kept in a small file in its folder so that knowing it is free.

The numbers are those of some version, told by the file; they are rewritten at loads and compactions and may lag
behind in between, which makes plans worse and never wrong.
"""

import json
import math
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
    return by_predicate(frame, version, frame, 1.0)


def by_predicate(frame: DataFrame, version: int, sample: DataFrame, share: float) -> Statistics:
    """Count the quads of each predicate; how many subjects and objects these have follows from a sample.

    :param sample: the quads of some of the subjects.
    :param share: how many of the subjects these are, up to 1.
    """
    counted = frame.groupBy("predicate").agg(sf.count("*").alias("rows"))
    found = counted.orderBy(sf.desc("rows")).limit(_MOST_PREDICATES).collect()
    rows = sum(row["rows"] for row in found) if len(found) < _MOST_PREDICATES else frame.count()
    seen = sample.groupBy("predicate").agg(
        sf.count("*").alias("rows"),
        sf.approx_count_distinct("subject").alias("subjects"),
        sf.approx_count_distinct("object").alias("objects"),
    )
    samples = {row["predicate"]: row for row in seen.orderBy(sf.desc("rows")).limit(_MOST_PREDICATES).collect()}
    predicates = {}
    for row in found:
        name, count = row["predicate"], row["rows"]
        part = samples.get(name)
        subjects = count if part is None else min(count, round(part["subjects"] / share))
        objects = count if part is None else different(part["objects"], part["rows"], count)
        predicates[name] = PredicateStatistics(count, subjects, objects)
    return Statistics(version, rows, predicates)


def different(found: int, sample: int, rows: int) -> int:
    """Estimate how many different values there are in so many rows, from those found in a sample.

    Of n equally frequent values, s rows show about n · (1 - e^(-s/n)).
    """
    if sample >= rows:
        return min(found, rows)
    if found >= sample:
        return rows
    low, high = float(found), float(rows)
    while high - low > 1 + low / 100:
        middle = (low + high) / 2
        if middle * -math.expm1(-sample / middle) < found:
            low = middle
        else:
            high = middle
    return round(low)


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
