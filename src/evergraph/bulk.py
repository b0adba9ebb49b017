"""Work on whole datasets, on Spark, for people who do not want to deal with Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evergraph.files import AnyPath

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evergraph.engines.spark.difference import Difference


@contextmanager
def spark_session(master: str | None = None) -> Iterator["SparkSession"]:
    """Use the Spark session of this process, or start one that ends with the block."""
    # Spark takes a second to import, which is nothing for its work and much for everything else.
    from evergraph.engines.spark.session import current_session, open_session, stop_session

    running = current_session() is not None
    spark = open_session(master)
    try:
        yield spark
    finally:
        if not running:
            stop_session(spark)


def diff(old: AnyPath, new: AnyPath, out: AnyPath, *, spark_master: str | None = None) -> "Difference":
    """Write the change between two versions of a dataset, files or folders of RDF, to a folder as changeset 000001.

    Gives the number of quads that were added and removed. Blank nodes are compared by their labels.
    A changeset that is there already is not replaced.
    """
    from evergraph.engines.spark.difference import write_difference

    with spark_session(spark_master) as spark:
        return write_difference(spark, [old], [new], out)
