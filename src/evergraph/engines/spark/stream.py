"""Change sources as streams of Spark: requested quads with the number of their change, read by the workers.

Each micro-batch holds whole changes, in order. How many follows from what is there: one at a time as they come in,
many at a time when there is a backlog, never more than the limits, and a change that is larger than them alone.
"""

import json
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from types import TracebackType
from typing import cast

import numpy as np
import pyarrow as pa
from pyoxigraph import RdfFormat
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StringType, StructField, StructType

import pyspark_evergraph
from evergraph.engines.spark import dumps
from evergraph.engines.spark.lines import parse_lines
from evergraph.engines.spark.rows import QUAD, WEIGHT, row_of
from evergraph.errors import SyntaxProblem
from evergraph.sources.feeds import ALL, Feed, Limit, Offset, Piece, Settings, open_feed
from evergraph.sources.feeds.files import FilePiece
from evergraph.terms import Quad

assert pyspark_evergraph  # for what importing it does: some processes of Spark import this module and nothing else

FORMAT = "evergraph"
SEQUENCE = "sequence"
REQUESTED = StructType(
    [
        *(StructField(name, StringType(), False) for name in QUAD),
        StructField(SEQUENCE, LongType(), False),
        StructField(WEIGHT, LongType(), False),
    ]
)
"""The columns of requested quads."""

_ARROW = pa.schema(
    [
        pa.field(field.name, _type, False)
        for field, _type in zip(REQUESTED, [pa.string()] * 4 + [pa.int64()] * 2, strict=True)
    ]
)
_ROWS = 10_000
_BLOCKS = 1 << 20
"""From so many bytes on, lines of several files are parsed."""
_SMALL = 256 * 1024
"""A batch below so many bytes is read by one task: a second one would cost more than it saves."""


def read_changes(
    spark: SparkSession, path: Path | str, settings: Settings | None = None, limit: Limit | None = None
) -> DataFrame:
    """Return a change source as a streaming DataFrame with the columns of `REQUESTED`."""
    settings, limit = settings or Settings(), limit or Limit()
    spark.dataSource.register(ChangeDataSource)
    return (
        spark.readStream.format(FORMAT)
        .option("path", path if isinstance(path, str) else str(path.resolve()))
        .option("follow", str(settings.follow))
        .option("settle", str(settings.settle))
        .option("poll", str(settings.poll))
        .option("pause", str(settings.pause))
        .option("begun", str(settings.begun))
        .option("skip_damaged", str(settings.skip_damaged))
        .option("changes", str(limit.changes))
        .option("bytes", str(limit.bytes))
        .option("tasks", str(spark.sparkContext.defaultParallelism))
        .load()
    )


class ChangeDataSource(DataSource):
    """Any change source of Evergraph."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns."""
        return REQUESTED

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a reader."""
        return ChangeReader(self.options)


class Portion(InputPartition):
    """What one task reads."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__(None)
        self.pieces = tuple(pieces)


class ChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a feed as Spark asks for it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._settings = Settings(
            follow=options["follow"] == "True",
            settle=float(options["settle"]),
            poll=float(options["poll"]),
            pause=float(options["pause"]),
            begun=int(options["begun"]),
            skip_damaged=options["skip_damaged"] == "True",
        )
        self._path = options["path"]
        self._limit = Limit(int(options["changes"]), int(options["bytes"]))
        self._tasks = int(options["tasks"])
        self._opened: Feed | None = None

    @property
    def _feed(self) -> Feed:
        if self._opened is None:
            self._opened = open_feed(self._path, self._settings)
        return self._opened

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the offset before the first change."""
        return self._feed.start()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of a batch; that on changes has no word in Spark, and holds besides."""
        return ReadMaxBytes(self._limit.bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """End with what is there now."""
        self._feed.freeze()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return the end of the next batch."""
        return self._feed.latest(start, ALL if isinstance(limit, ReadAllAvailable) else self._limit)

    def partitions(self, start: Offset, end: Offset) -> Sequence[Portion]:
        """Share out a batch among tasks."""
        return [] if start == end else share_out(self._feed.pieces(start, end), self._tasks)

    def stop(self) -> None:
        """End silently. Spark ends the process by closing its connection, and then nobody hears about that."""
        sys.excepthook = _tell_unless_nobody_listens

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what one task has to read."""
        assert isinstance(partition, Portion)
        for kind, pieces in groupby(partition.pieces, type):
            if kind is FilePiece:
                yield from read_files(cast(Iterator[FilePiece], pieces))
                continue
            for piece in pieces:
                rows = piece.rows()
                while chunk := list(islice(rows, _ROWS)):
                    yield record_batch(chunk)


def _tell_unless_nobody_listens(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, BrokenPipeError | ConnectionResetError):
        sys.__excepthook__(kind, error, trace)


@dataclass(slots=True)
class _Blocks:
    """Blocks of lines from files of one syntax, to be parsed at once: small ones would cost more than their lines."""

    format: RdfFormat
    texts: list[bytes] = field(default_factory=list)
    origins: list[tuple[FilePiece, int]] = field(default_factory=list)
    """The file of each block, and how many lines of it are before the block."""
    starts: list[int] = field(default_factory=list)
    lines: int = 0
    size: int = 0

    def add(self, piece: FilePiece, before: int, text: bytes) -> int:
        """Add a block; return how many lines it has."""
        count = text.count(b"\n")
        self.texts.append(text)
        self.origins.append((piece, before))
        self.starts.append(self.lines)
        self.lines += count
        self.size += len(text)
        return count

    def parsed(self) -> Iterator[pa.RecordBatch]:
        """Parse all of them."""
        parsed = parse_lines(b"".join(self.texts), self.format)
        for damaged in sorted(parsed.damaged, key=lambda one: one.place):
            number = bisect_right(self.starts, damaged.place) - 1
            piece, before = self.origins[number]
            line = before + damaged.place - self.starts[number] + 1
            raise SyntaxProblem(damaged.reason, where=str(piece.file), line=line)
        starts = np.array(self.starts)
        numbers = [
            np.array(values, np.int64)
            for values in zip(*((piece.sequence, piece.weight) for piece, _ in self.origins), strict=True)
        ]
        for rows, places in zip(parsed.rows, parsed.places, strict=True):
            origin = np.searchsorted(starts, places.to_numpy(), side="right") - 1
            columns = [pa.array(values[origin], pa.int64()) for values in numbers]
            yield pa.RecordBatch.from_arrays([*rows.columns, *columns], schema=_ARROW)


def read_files(pieces: Iterable[FilePiece]) -> Iterator[pa.RecordBatch]:
    """Read files line by line, without making terms of what is canonical already."""
    blocks: _Blocks | None = None
    for piece in pieces:
        file = dumps.Piece(str(piece.file))
        before = 0
        for text in file.blocks():
            if blocks is not None and (blocks.format != file.format or blocks.size >= _BLOCKS):
                yield from blocks.parsed()
                blocks = None
            blocks = blocks or _Blocks(file.format)
            before += blocks.add(piece, before, text if text.endswith(b"\n") else text + b"\n")
    if blocks is not None:
        yield from blocks.parsed()


def record_batch(rows: Sequence[tuple[int, int, Quad]]) -> pa.RecordBatch:
    """Write requested rows in Arrow."""
    texts = [(*row_of(quad), sequence, weight) for sequence, weight, quad in rows]
    columns = zip(*texts, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)], schema=_ARROW
    )


def share_out(pieces: Sequence[Piece], tasks: int) -> list[Portion]:
    """Divide pieces among tasks, by size; little work is not divided."""
    sizes = [piece.size for piece in pieces]
    if sum(sizes) < _SMALL or tasks < 2:
        return [Portion(pieces)] if pieces else []
    portions: list[list[Piece]] = [[] for _ in range(min(tasks, len(pieces)))]
    loads = [0] * len(portions)
    for size, piece in sorted(zip(sizes, pieces, strict=True), key=lambda pair: -pair[0]):
        lightest = loads.index(min(loads))
        portions[lightest].append(piece)
        loads[lightest] += size
    return [Portion(portion) for portion in portions]


def planned_end(checkpoint: Path, batch: int) -> Offset | None:
    """Read from a checkpoint where a batch ends; None if the batch was not planned yet."""
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    except FileNotFoundError:
        return None
    found: Offset = json.loads(lines[-1])
    return found


def forget_plan(checkpoint: Path, batch: int) -> None:
    """Take from a checkpoint where a batch ends, so that it is planned anew; nothing may have been made of it yet."""
    for name in (f".{batch}.crc", str(batch)):  # a file without its checksum can be read, should this be cut off
        (checkpoint / "offsets" / name).unlink(missing_ok=True)
