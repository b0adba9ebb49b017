"""Reading dumps of any size with Spark: files in, frames of quads out, damaged lines set aside.

Every task leaves a note next to the rejected lines: how many lines its pieces had and which of them were damaged.
From the notes, the driver knows the number of each line in its file without reading anything twice.
"""

import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from evergraph.engines.spark.dumps import LINE_FORMATS, Piece, cut, find_files
from evergraph.engines.spark.lines import Damaged, batch_of, parse_lines
from evergraph.engines.spark.rows import QUAD
from evergraph.errors import DataError, EvergraphError, SyntaxProblem
from evergraph.files import AnyPath, is_gzip
from evergraph.rdfio import read_quads

OnError: TypeAlias = Literal["reject", "fail"]
_QUADS_PER_BATCH = 20_000
_SAMPLED_FILES = 8
_SAMPLED_BYTES = 1 << 20
_MESSAGE = "EVERGRAPH-DATA:"
_SCHEMA = StructType([StructField(name, StringType()) for name in QUAD])


@dataclass(frozen=True, slots=True)
class Dump:
    """Quads of some files, as a frame that reads them each time it is used; duplicates are still there."""

    frame: DataFrame
    files: tuple[str, ...]
    notes: Path


def read_dump(
    spark: SparkSession,
    paths: Iterable[AnyPath],
    *,
    notes: Path,
    on_error: OnError = "reject",
    keep_labels: bool = False,
) -> Dump:
    """Read RDF files of any syntax, folders and patterns; the tasks write their notes to a folder that all can reach.

    Blank nodes are those of their file, unless ``keep_labels`` says that labels mean the same everywhere.
    """
    files = find_files(paths)
    tasks = cut(files, cores=spark.sparkContext.defaultParallelism)
    reader = partial(_read_tasks, tasks, str(notes), on_error, keep_labels)
    count = max(1, len(tasks))
    frame = spark.range(0, len(tasks), 1, count).mapInArrow(reader, _SCHEMA)
    return Dump(frame, tuple(files), notes)


def some_predicates(files: Sequence[str], most: int) -> list[str]:
    """Find predicates at the beginning of some files, at most so many, evenly chosen, in the order of their texts."""
    found: set[str] = set()
    for file in files[:: max(1, len(files) // _SAMPLED_FILES)]:
        piece = Piece(file, end=_SAMPLED_BYTES) if not is_gzip(file) else Piece(file)
        if piece.format in LINE_FORMATS:
            with contextlib.suppress(EvergraphError, OSError):  # what is damaged is told by the task that reads it
                for rows in parse_lines(next(piece.blocks(), b""), piece.format).rows:
                    found.update(rows.column("predicate").unique().to_pylist())
    ordered = sorted(found)
    return ordered[:: -(-len(ordered) // most)] if len(ordered) > most else ordered


def collect_rejected(notes: Path, target: Path) -> int:
    """Gather the damaged lines of all tasks into a file of JSON Lines, in the order of files and lines; count them."""
    counted = sorted(_headers(notes))
    rejected = 0
    with target.open("w", encoding="utf-8") as out:
        file, before = "", 0
        for name, _, lines, note in counted:
            before = before if name == file else 0
            file = name
            with note.open(encoding="utf-8") as stream:
                for text in islice(stream, 1, None):
                    place, line, reason = json.loads(text)
                    record = {"file": name, "line": before + place + 1, "text": line, "reason": reason}
                    out.write(json.dumps(record, ensure_ascii=False) + "\n")
                    rejected += 1
            before += lines
    return rejected


def data_problem(error: BaseException) -> EvergraphError | None:
    """Find the problem with the data behind an error of Spark, if that is what it was."""
    found = re.search(_MESSAGE + r"(\{.*\})", str(error))
    if not found:
        return None
    told = json.loads(found[1])
    kind = SyntaxProblem if told["line"] else DataError
    if kind is SyntaxProblem:
        return SyntaxProblem(told["message"], where=told["where"], line=told["line"], hint=told["hint"])
    return DataError(told["message"], hint=told["hint"])


class _Told(Exception):
    """Carries a problem from a task to the driver, through the text of the exception."""

    def __init__(self, message: str, *, hint: str = "", where: str = "", line: int = 0) -> None:
        super().__init__(_MESSAGE + json.dumps({"message": message, "hint": hint, "where": where, "line": line}))


def _read_tasks(
    tasks: list[list[Piece]],
    notes: str,
    on_error: OnError,
    keep_labels: bool,
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for piece in tasks[number]:
                yield from _told(_read_piece(piece, Path(notes), on_error, "" if keep_labels else piece.scope))


def _told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except SyntaxProblem as error:
        raise _Told(error.problem, where=error.where, line=error.line or 1, hint=error.hint) from None
    except EvergraphError as error:
        raise _Told(error.message, hint=error.hint) from None


def _read_piece(piece: Piece, notes: Path, on_error: OnError, scope: str) -> Iterator[pa.RecordBatch]:
    if piece.format not in LINE_FORMATS:
        yield from _read_document(piece, scope)
        return
    draft, name = notes / f".{piece.scope}{piece.number}", notes / f"{piece.scope}{piece.number}"
    lines = 0
    with tempfile.TemporaryFile("w+", encoding="utf-8") as damaged:
        for block in piece.blocks():
            parsed = parse_lines(block, piece.format, scope)
            if parsed.damaged and on_error == "fail":
                raise _first_problem(piece, lines, parsed.damaged)
            for one in parsed.damaged:
                text = one.text.decode("utf-8", "backslashreplace")
                damaged.write(json.dumps([lines + one.place, text, one.reason]) + "\n")
            lines += parsed.lines
            yield from parsed.rows
        damaged.seek(0)
        with draft.open("w", encoding="utf-8") as out:
            out.write(json.dumps([piece.file, piece.number, lines]) + "\n")
            shutil.copyfileobj(damaged, out)
        draft.replace(name)


def _read_document(piece: Piece, scope: str) -> Iterator[pa.RecordBatch]:
    quads = read_quads(piece.file, base_iri=Path(piece.file).as_uri(), rename_blank_nodes=False)
    while some := list(islice(quads, _QUADS_PER_BATCH)):
        yield batch_of(some, scope)


def _first_problem(piece: Piece, lines: int, damaged: list[Damaged]) -> SyntaxProblem:
    first = min(damaged, key=lambda one: one.place)
    before = lines
    if piece.begin:
        whole = Piece(piece.file, 0, 0, piece.begin)
        before += sum(block.count(b"\n") for block in whole.blocks())
    return SyntaxProblem(
        first.reason, where=piece.file, line=before + first.place + 1, hint="mend the line, then repeat"
    )


def _headers(notes: Path) -> Iterator[tuple[str, int, int, Path]]:
    for note in notes.iterdir():
        if not note.name.startswith("."):
            with note.open(encoding="utf-8") as stream:
                file, number, lines = json.loads(stream.readline())
            yield file, number, lines, note
