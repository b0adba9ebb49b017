"""Frames: what Spark believes about their sizes."""

from typing import TYPE_CHECKING

from evergraph.engines.spark.frames import with_sane_size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_sizes_do_not_double_their_digits_for_ever(spark: "SparkSession") -> None:
    """Thirty steps of a path would give a number of a billion digits."""
    kept = spark.range(3).toDF("a")
    for _ in range(8):
        kept = with_sane_size(kept.join(kept.withColumnRenamed("a", "b"), kept.a == 0).select("a").localCheckpoint())
        kept = kept.distinct().localCheckpoint()
    assert "E+" not in kept._jdf.queryExecution().analyzed().stats().simpleString()
    assert [row[0] for row in kept.collect()] == [0]
