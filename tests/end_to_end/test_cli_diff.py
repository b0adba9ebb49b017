import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evergraph as eg
from evergraph.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture
def versions(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old.nt", tmp_path / "new.nt"
    old.write_text('<urn:a> <urn:p> "1", "2" .\n'.replace(", ", " .\n<urn:a> <urn:p> "))
    new.write_text('<urn:a> <urn:p> "2" .\n<urn:b> <urn:p> "3" .\n')
    return old, new


def test_diff_prints_counts_and_writes_a_changeset(
    spark: "SparkSession", tmp_path: Path, versions: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("diff", *versions, "--out", tmp_path / "out") == 0
    printed = capfd.readouterr()
    assert json.loads(printed.out) == {"added": 1, "removed": 1}
    assert printed.err == ""
    added = gzip.decompress((tmp_path / "out/000001.added.nt.gz").read_bytes())
    assert added == b'<urn:b> <urn:p> "3" .\n'
    found = eg.diff(*versions, tmp_path / "again")
    assert (found.added, found.removed) == (1, 1)
    assert spark.range(1).count() == 1  # the session of others goes on


def test_diff_tells_what_is_wrong(
    tmp_path: Path, versions: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("diff", versions[0], tmp_path / "none.nt", "--out", tmp_path / "out") == 1
    assert "none.nt: no such file" in capfd.readouterr().err
    assert run("diff", versions[0]) == 2
    assert not (tmp_path / "out").exists()
