import gzip
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from pyoxigraph import Quad
from tests.support.rdf_strategies import quad_sets

from evergraph.engines.spark.difference import write_difference
from evergraph.errors import DataError, SyntaxProblem
from evergraph.rdfio import write_quads
from evergraph.sources import open_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(old=quad_sets, new=quad_sets)
def test_the_difference_leads_from_one_version_to_the_other(
    spark: "SparkSession", tmp_path: Path, old: frozenset[Quad], new: frozenset[Quad]
) -> None:
    for name, quads in (("old.nq", old), ("new.nq.gz", new)):
        write_quads(tmp_path / name, quads)
    out = Path(tempfile.mkdtemp(dir=tmp_path))
    found = write_difference(spark, [tmp_path / "old.nq"], [tmp_path / "new.nq.gz"], out)
    (change,) = open_source(out).changes()
    assert (change.request.removed, change.request.added) == (old - new, new - old)
    assert (found.removed, found.added) == (len(old - new), len(new - old))


def test_spelling_files_and_repetition_make_no_difference(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/1.nt").write_text('<urn:a> <urn:p> "é"@EN .\n<urn:b> <urn:p> _:n .\n')
    (tmp_path / "old/2.ttl").write_text('<urn:c> <urn:p> "x" .')
    (tmp_path / "new.nt").write_text(
        '<urn:a> <urn:p> "\\u00e9"@en .\n' * 2 + '<urn:b> <urn:p> _:n .\n<urn:c> <urn:p> "y" .'
    )
    found = write_difference(spark, [tmp_path / "old"], [tmp_path / "new.nt"], tmp_path / "out")
    texts = {path.name: gzip.decompress(path.read_bytes()).decode() for path in (tmp_path / "out").iterdir()}
    assert texts == {
        "000001.removed.nt.gz": '<urn:c> <urn:p> "x" .\n',
        "000001.added.nt.gz": '<urn:c> <urn:p> "y" .\n',
    }
    assert set(found.files) == {tmp_path / "out" / name for name in texts}


def test_damaged_input_leaves_nothing(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    (tmp_path / "b.nt").write_text("<urn:a> <urn:p> <urn:b> .\n<urn:a> oops .\n")
    with pytest.raises(SyntaxProblem, match=r"b\.nt:2"):
        write_difference(spark, [tmp_path / "a.nt"], [tmp_path / "b.nt"], tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_a_changeset_is_not_replaced(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/000001.removed.nq").write_text("<urn:x> <urn:p> <urn:b> .\n")
    with pytest.raises(DataError, match="holds a changeset 000001 already"):
        write_difference(spark, [tmp_path / "a.nt"], [tmp_path / "a.nt"], tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["000001.removed.nq"]
    assert write_difference(spark, [tmp_path / "a.nt"], [tmp_path / "a.nt"], tmp_path / "out", number=2).added == 0
