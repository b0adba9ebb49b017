"""What a batch does to one view, or to the quads: rows with weights, few of them here or many of them in Spark.

Few rows are an Arrow table in this process. Many stay in Spark; whoever needs their text gets it line by line from
files that the workers have written, so that this process never holds them.
"""

import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from evergraph.engines.spark.rows import WEIGHT, term_of
from evergraph.sparql.results import json_term

SMALL = 50_000
"""Up to so many rows come into this process."""

Texts: TypeAlias = Sequence[str | None]
"""The terms of a row, in N-Triples; None is unbound, and the empty text the default graph."""

Format: TypeAlias = Callable[[Texts], str]
"""Writes one row as one line. It is sent to the workers, so it must be a function of a module, or a partial of one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Rows that came (weights above 0) and went (below). ``rows`` is all of them, if they are few."""

    columns: tuple[str, ...]
    frame: DataFrame | None
    rows: pa.Table | None
    added: int
    removed: int

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    @property
    def is_large(self) -> bool:
        """Whether the rows are too many for this process."""
        return self.rows is None

    @property
    def data(self) -> DataFrame | pa.Table:
        """The rows, wherever they are."""
        if self.rows is not None:
            return self.rows
        assert self.frame is not None
        return self.frame

    def close(self) -> None:
        """Let Spark forget the rows."""
        if self.rows is None and self.frame is not None:
            self.frame.unpersist()


def outcome_of(
    frame: DataFrame | pa.Table,
    columns: Sequence[str],
    *,
    kept: bool = False,
    counts: tuple[int, int] | None = None,
) -> Outcome:
    """Find out what a frame holds; it is computed once, if it is not ``kept`` already.

    ``counts`` is how many rows came and went, if that is known.
    """
    names = [*columns, WEIGHT]
    if isinstance(frame, pa.Table):
        return small_outcome(frame.select(names), columns)
    frame = frame.select(*names)
    if counts is not None and sum(counts) > SMALL:
        return Outcome(tuple(columns), frame, None, *counts)
    first = frame.limit(SMALL + 1).toArrow()
    if first.num_rows <= SMALL:
        return small_outcome(first, columns)
    if not kept:
        frame = frame.persist()
    sums = frame.agg(sf.sum(sf.greatest(WEIGHT, sf.lit(0))), sf.sum(-sf.least(WEIGHT, sf.lit(0)))).collect()[0]
    return Outcome(tuple(columns), frame, None, int(sums[0]), int(sums[1]))


def small_outcome(rows: pa.Table, columns: Sequence[str]) -> Outcome:
    """Describe rows that are in this process."""
    weights = rows[WEIGHT].cast(pa.int64())
    added = pc.sum(weights.filter(pc.greater(weights, 0))).as_py() or 0
    removed = -(pc.sum(weights.filter(pc.less(weights, 0))).as_py() or 0)
    return Outcome(tuple(columns), None, rows, added, removed)


def lines(outcome: Outcome, sign: int, write: Format, staging: Path, *, by_column: bool = False) -> Iterator[bytes]:
    """Write what came (``sign`` 1) or went (-1) as lines, sorted, without line breaks; rows as often as they count.

    The order is that of the lines, or of the columns, with what is unbound first.
    """
    if outcome.rows is None:
        assert outcome.frame is not None
        yield from _staged_lines(outcome.frame, outcome.columns, sign, write, staging, by_column=by_column)
        return
    weights = outcome.rows[WEIGHT].cast(pa.int64())
    chosen = outcome.rows.filter(pc.greater(weights, 0) if sign > 0 else pc.less(weights, 0))
    rows = list(_weighted(chosen, outcome.columns))
    if by_column:
        rows.sort(key=lambda pair: [text or "" for text in pair[0]])
    texts = [write(texts) for texts, weight in rows for _ in range(abs(weight))]
    yield from (text.encode() for text in (texts if by_column else sorted(texts)))


def _weighted(rows: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[Texts, int]]:
    texts = [rows.column(name).to_pylist() for name in columns]
    weights = rows.column(WEIGHT).to_pylist()
    for place, weight in enumerate(weights):
        yield [column[place] for column in texts], weight


def _staged_lines(
    frame: DataFrame, columns: Sequence[str], sign: int, write: Format, staging: Path, *, by_column: bool
) -> Iterator[bytes]:
    chosen = frame.where(sf.col(WEIGHT) * sign > 0)
    if by_column:
        chosen = chosen.sort(*columns)
    texts = chosen.mapInArrow(partial(_format_batches, tuple(columns), write), "value string")
    if not by_column:
        texts = texts.sort("value")
    folder = staging / uuid.uuid4().hex
    try:
        texts.write.option("lineSep", "\n").text(folder.as_uri())
        for part in sorted(folder.glob("part-*")):
            with part.open("rb") as stream:
                for line in stream:
                    yield line.removesuffix(b"\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _format_batches(
    columns: Sequence[str], write: Format, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        texts = [write(texts) for texts, weight in _weighted(batch, columns) for _ in range(abs(weight))]
        yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=["value"])


def statement(texts: Texts) -> str:
    """Write a triple or a quad as a line of N-Quads."""
    return " ".join(text for text in texts if text) + " ."


def patch_row(operation: str, texts: Texts) -> str:
    """Write a triple or a quad as a row of RDF Patch."""
    return f"{operation} {statement(texts)}"


def binding(names: Sequence[str], texts: Texts) -> str:
    """Write a row as a binding of SPARQL results JSON."""
    found = {name: json_term(term_of(text)) for name, text in zip(names, texts, strict=True) if text is not None}
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def quoted_statement(texts: Texts) -> str:
    """Write a triple as a JSON string."""
    return json.dumps(statement(texts), ensure_ascii=False)
