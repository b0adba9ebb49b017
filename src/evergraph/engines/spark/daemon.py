"""The process that starts Spark's Python workers: Spark's own, but silent about workers that are no longer needed.

A task that has what it needs closes the connection to its worker, which then fails to write the rest. Spark's daemon
prints a traceback for that. Setting: ``spark.python.daemon.module``.
"""

from pyspark import daemon

from pyspark_evergraph import QUIET

MODULE = "evergraph.engines.spark.daemon"

if __name__ == "__main__":
    daemon.traceback = QUIET  # type: ignore[attr-defined, assignment]
    daemon.manager()
