"""The process that starts Spark's Python workers: Spark's own, but silent about workers that are no longer needed.

A task that has what it needs closes the connection to its worker, which then fails to write the rest. Spark's daemon
prints a traceback for that. Setting: ``spark.python.daemon.module``.
"""

import sys
import traceback
from types import SimpleNamespace

from pyspark import daemon

MODULE = "evergraph.engines.spark.daemon"


def print_exc() -> None:
    """Print the exception at hand, unless it only says that nobody listens any more."""
    if not isinstance(sys.exception(), BrokenPipeError | ConnectionResetError):
        traceback.print_exc()


def silence() -> None:
    """Do the same under Spark's own daemon, which always starts the processes that plan how a source is read."""
    main = sys.modules["__main__"]
    if getattr(getattr(main, "__spec__", None), "name", "") == "pyspark.daemon":
        vars(main)["traceback"] = SimpleNamespace(print_exc=print_exc, format_exc=traceback.format_exc)


if __name__ == "__main__":
    daemon.traceback = SimpleNamespace(print_exc=print_exc, format_exc=traceback.format_exc)  # type: ignore[attr-defined, assignment]
    daemon.manager()
