"""Keeps Spark's processes that look for and plan data sources from printing tracebacks that mean nothing.

Spark imports every module whose name begins with ``pyspark_`` when it looks for data sources, in a process that
imports nothing else of ours. When such a process has told what it found, Spark may close the connection first, and
Spark's daemon prints a traceback for that.
"""

import sys
import traceback
from types import SimpleNamespace


def print_exc() -> None:
    """Print the exception at hand, unless it only says that nobody listens any more."""
    if not isinstance(sys.exception(), BrokenPipeError | ConnectionResetError):
        traceback.print_exc()


QUIET = SimpleNamespace(print_exc=print_exc, format_exc=traceback.format_exc)
"""Stands for the module ``traceback`` in Spark's daemon."""

main = sys.modules["__main__"]
if getattr(getattr(main, "__spec__", None), "name", "") == "pyspark.daemon":
    vars(main)["traceback"] = QUIET
