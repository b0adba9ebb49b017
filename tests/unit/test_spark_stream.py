"""Change sources as streams of Spark: what a task reads, how work is shared out, what a checkpoint tells."""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from evergraph.engines.spark.rows import QUAD
from evergraph.engines.spark.stream import ChangeReader, Portion, forget_plan, planned_end, read_files, share_out
from evergraph.errors import DataError, SyntaxProblem
from evergraph.sources.feeds.files import FilePiece
from evergraph.terms import Quad


@dataclass(frozen=True)
class Fake:
    """A piece of a certain size."""

    size: int

    def rows(self) -> Iterator[tuple[int, int, Quad]]:
        return iter(())


def options(path: Path, **others: object) -> dict[str, str]:
    settings = {"path": path, "follow": False, "settle": 1.0, "poll": 1.0, "pause": 0.1, "begun": -1}
    settings |= {"skip_damaged": False, "changes": 2, "bytes": 10**6, "tasks": 2}
    return {key: str(value) for key, value in (settings | others).items()}


def test_little_work_is_for_one_task() -> None:
    assert share_out([], 4) == []
    assert [len(portion.pieces) for portion in share_out([Fake(10)] * 9, 4)] == [9]


def test_much_work_is_shared_out_by_size() -> None:
    pieces = [Fake(size * 10**6) for size in (1, 1, 1, 1, 4)]
    portions = share_out(pieces, 2)
    assert sorted(sum(piece.size for piece in portion.pieces) for portion in portions) == [4 * 10**6] * 2
    assert len(share_out(pieces, 16)) == 5


def test_a_file_is_read_by_columns(tmp_path: Path) -> None:
    file = tmp_path / "1.removed.nq.gz"
    file.write_bytes(gzip.compress(b'<urn:a> <urn:b> "\\u00e9"@EN <urn:g> .\n# nothing\n_:x <urn:b> <urn:c> .\n'))
    rows = [row for batch in read_files([FilePiece(7, -1, file)]) for row in batch.to_pylist()]
    assert sorted(tuple(row[name] for name in QUAD) for row in rows) == [
        ("<urn:a>", "<urn:b>", '"é"@en', "<urn:g>"),
        ("_:x", "<urn:b>", "<urn:c>", ""),
    ]
    assert {(row["sequence"], row["weight"]) for row in rows} == {(7, -1)}


def test_files_are_parsed_together_and_told_apart(tmp_path: Path) -> None:
    """Each row has the number and the weight of its own file, whatever else the files hold."""
    chance = Random(5)
    lines = ['<urn:a> <urn:b> "%s" .', '<urn:a>  <urn:b> "\\u00e9 %s" .', '<urn:a> <urn:b> "%s"@EN .', "# %s", " "]
    pieces, expected = [], []
    for number in range(40):
        kind = chance.choice(("nt", "nq", "nt.gz"))
        file = tmp_path / f"{number}.{kind}"
        texts = [chance.choice(lines) for _ in range(chance.randrange(6))]
        text = "\n".join(text % f"{number} {place}" if "%" in text else text for place, text in enumerate(texts))
        text += chance.choice(("", "\n")) if text else ""
        file.write_bytes(gzip.compress(text.encode()) if kind.endswith("gz") else text.encode())
        pieces.append(FilePiece(number, chance.choice((-1, 1)), file))
        expected += [
            (number, pieces[-1].weight, f"{number} {place}") for place, one in enumerate(texts) if one.startswith("<")
        ]
    rows = [row for batch in read_files(pieces) for row in batch.to_pylist()]
    found = [(row["sequence"], row["weight"], row["object"].split('"')[1].removeprefix("é ")) for row in rows]
    assert sorted(found) == sorted(expected)


def test_damage_among_many_files(tmp_path: Path) -> None:
    pieces = []
    for number in range(9):
        file = tmp_path / f"{number}.nt"
        file.write_text("# first\n<urn:a> <urn:b> <urn:c> .\n" * number + ("\n<urn:a> oh .\n" if number == 6 else ""))
        pieces.append(FilePiece(number, 1, file))
    with pytest.raises(SyntaxProblem, match=r"6\.nt:14"):
        list(read_files(pieces))


def test_damage_is_told_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "1.added.nt"
    file.write_text("<urn:a> <urn:b> <urn:c> .\n<urn:a> oh .\n")
    with pytest.raises(SyntaxProblem, match=r"1\.added\.nt:2"):
        list(read_files([FilePiece(1, 1, file)]))
    packed = tmp_path / "2.added.nt.gz"
    packed.write_bytes(gzip.compress(b"<urn:a> <urn:b> <urn:c> .\n" * 99)[:-3])
    with pytest.raises(DataError, match=r"2\.added\.nt\.gz: damaged gzip file"):
        list(read_files([FilePiece(1, 1, packed)]))


def test_a_reader_goes_from_offset_to_offset(tmp_path: Path) -> None:
    path = tmp_path / "in.rdfp"
    path.write_text("".join(f"TX .\nA <urn:{number}> <urn:p> <urn:o> .\nTC .\n" for number in range(5)))
    reader = ChangeReader(options(path))
    at, seen = reader.initialOffset(), []
    while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
        (portion,) = reader.partitions(at, end)
        assert isinstance(portion, Portion)
        seen.append([row["sequence"] for batch in reader.read(portion) for row in batch.to_pylist()])
        at = end
    assert seen == [[1, 2], [3, 4], [5]]
    assert reader.partitions(at, at) == []


def test_a_checkpoint_tells_where_a_batch_ends(tmp_path: Path) -> None:
    assert planned_end(tmp_path, 0) is None
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0}\n{"sequence":3,"place":"a"}')
    (tmp_path / "offsets" / ".0.crc").write_bytes(b"crc")
    assert planned_end(tmp_path, 0) == {"sequence": 3, "place": "a"}
    forget_plan(tmp_path, 0)
    assert planned_end(tmp_path, 0) is None
    assert list((tmp_path / "offsets").iterdir()) == []
    forget_plan(tmp_path, 0)
