"""The change between two versions of a dataset, on Spark: nothing but counts reaches the driver.

Quads are compared by their canonical text and blank nodes by their labels, in both versions and across the files of
each: let versions be skolemised or written by something that keeps labels.
"""

import gzip
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StringType, StructField, StructType

from evergraph.engines.spark.dumps import estimated_rows, find_files
from evergraph.engines.spark.loading import data_problem, read_dump
from evergraph.engines.spark.rows import QUAD
from evergraph.engines.spark.writing import reason_of
from evergraph.errors import DataError, EvergraphError
from evergraph.files import AnyPath, sync_folder
from evergraph.sources.folders import make_folder

_ROWS_PER_PARTITION = 1_000_000
_SIDE = "_side"
_PARTS = StructType(
    [
        StructField("kind", StringType()),
        StructField("part", StringType()),
        StructField("rows", LongType()),
        StructField("named", LongType()),
    ]
)


class DifferenceFailed(EvergraphError):
    """The difference of two versions could not be worked out; nothing was written."""

    condition = "DIFFERENCE_FAILED"


@dataclass(frozen=True, slots=True)
class Difference:
    """How many quads a new version adds and removes, and the files that say which."""

    added: int
    removed: int
    files: tuple[Path, ...]


def write_difference(
    spark: SparkSession, old: Iterable[AnyPath], new: Iterable[AnyPath], folder: AnyPath, *, number: int = 1
) -> Difference:
    """Write the change from the old to the new version as a changeset: ``NNNNNN.removed.nt.gz`` and ``.added.nt.gz``.

    Both files are there, if need be without content; N-Quads (``.nq.gz``) where quads of named graphs are in them.
    They appear when all is done. Damaged input is an error, and so is a changeset with this number that is there.
    """
    target = Path(folder)
    make_folder(target)
    _refuse_to_replace(target, number)
    with ExitStack() as stack:
        # Next to the target, so that the finished files only have to take their names.
        place = tempfile.TemporaryDirectory(dir=target, prefix=".difference-", ignore_cleanup_errors=True)
        work = Path(stack.enter_context(place)).absolute()
        try:
            parts = _compared(spark, list(old), list(new), work)
        except (PySparkException, Py4JError) as error:  # which of them depends on how Spark ran the plan
            raise data_problem(error) or DifferenceFailed(
                f"Spark could not compare the versions: {reason_of(error)}",
                hint="nothing was written; free space or memory, then repeat",
            ) from error
        return _published(parts, work, target, number)


def _refuse_to_replace(target: Path, number: int) -> None:
    kinds = re.compile(rf"{number:06}\.(?:removed|added)\.(?:nt|nq)(?:\.gz)?")
    if any(kinds.fullmatch(path.name) for path in target.iterdir()):
        raise DataError(f"{target} holds a changeset {number:06} already", hint="name another folder, or remove it")


def _compared(
    spark: SparkSession, old: list[AnyPath], new: list[AnyPath], work: Path
) -> list[tuple[str, str, int, int]]:
    sides = [_side(spark, paths, sign, work) for paths, sign in ((old, -1), (new, 1))]
    size = estimated_rows(find_files([*old, *new]))
    count = max(spark.sparkContext.defaultParallelism, -(-size // _ROWS_PER_PARTITION))
    rows = sides[0].unionByName(sides[1]).repartition(count, "subject")
    # 1: only the old version has it, 2: only the new one, 3: both. A quad may be in several files of a version.
    sums = rows.groupBy(*QUAD).agg(sf.bit_or(_SIDE).alias(_SIDE)).where(sf.col(_SIDE) != 3)
    ordered = sums.sortWithinPartitions(*QUAD)
    written = ordered.mapInArrow(partial(_write_parts, str(work)), _PARTS)
    return sorted((row["part"], row["kind"], row["rows"], row["named"]) for row in written.toLocalIterator())


def _side(spark: SparkSession, paths: list[AnyPath], sign: int, work: Path) -> DataFrame:
    notes = work / f"notes{sign}"
    notes.mkdir()
    dump = read_dump(spark, paths, notes=notes, on_error="fail", keep_labels=True)
    return dump.frame.withColumn(_SIDE, sf.lit(1 if sign < 0 else 2))


def _write_parts(work: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write what a task found to a gzip file of each kind; of an attempt that fails, nobody learns the names."""
    found: dict[str, list[int]] = {}
    with ExitStack() as stack:
        outs = {}
        for batch in batches:
            for side, kind in ((1, "removed"), (2, "added")):
                rows = batch.filter(pc.equal(batch.column(_SIDE), side))
                if not rows.num_rows:
                    continue
                if kind not in outs:
                    handle, name = tempfile.mkstemp(dir=work, prefix="part-", suffix=".gz")
                    raw = stack.enter_context(os.fdopen(handle, "wb"))
                    outs[kind] = (name, stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0)))
                    found[kind] = [0, 0]
                outs[kind][1].write(_text(rows))
                found[kind][0] += rows.num_rows
                found[kind][1] += pc.sum(pc.not_equal(rows.column("graph"), "")).as_py()
        names = {kind: out[0] for kind, out in outs.items()}
    kinds = list(found)
    yield pa.RecordBatch.from_arrays(
        [
            pa.array(kinds, pa.string()),
            pa.array([names[kind] for kind in kinds], pa.string()),
            pa.array([found[kind][0] for kind in kinds], pa.int64()),
            pa.array([found[kind][1] for kind in kinds], pa.int64()),
        ],
        names=_PARTS.names,
    )


def _text(rows: pa.RecordBatch) -> bytes:
    graph = pc.if_else(pc.equal(rows["graph"], ""), "", pc.binary_join_element_wise(" ", rows["graph"], ""))
    terms = [rows.column(name) for name in QUAD[:3]]
    lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*terms, " "), graph, "")
    text: str = "".join(f"{line} .\n" for line in lines.to_pylist())
    return text.encode()


def _published(parts: list[tuple[str, str, int, int]], work: Path, target: Path, number: int) -> Difference:
    """Join the parts: gzip files may follow one another. Then let the files take their names."""
    drafts = {}
    for kind in ("removed", "added"):
        own = [(name, named) for name, of, _, named in parts if of == kind]
        ending = "nq" if any(named for _, named in own) else "nt"
        drafts[target / f"{number:06}.{kind}.{ending}.gz"] = _joined([name for name, _ in own], work / kind)
    for path, draft in drafts.items():
        draft.replace(path)
    sync_folder(target)
    counts = {kind: sum(rows for _, of, rows, _ in parts if of == kind) for kind in ("added", "removed")}
    return Difference(counts["added"], counts["removed"], tuple(drafts))


def _joined(names: list[str], draft: Path) -> Path:
    try:
        with draft.open("wb") as out:
            if not names:
                with gzip.GzipFile("", "wb", 6, out, mtime=0):
                    pass
            for name in names:
                with Path(name).open("rb") as part:
                    shutil.copyfileobj(part, out, 1 << 20)
                Path(name).unlink()
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        raise DataError(
            f"cannot write the difference: {error.strerror or error}", hint="free space or choose another place"
        ) from error
    return draft


__all__ = ["Difference", "DifferenceFailed", "write_difference"]
