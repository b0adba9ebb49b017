"""Errors that happened in other processes of Spark, told as what they are."""

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from evergraph import errors
from evergraph.engines.spark.loading import data_problem
from evergraph.errors import EvergraphError

_OWN = re.compile(
    r"^\s*(?:\S+: )?evergraph\.[\w.]+\.(?P<kind>\w+): (?P<text>.+?)(?P<hint>\n  hint: .+?)?$", re.MULTILINE
)


_REASON = re.compile(r"^\s*((?:Caused by: )?[\w.]+(?:Error|Exception): .+)$", re.MULTILINE)


_LOST = ("CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND", "ExecutorLostFailure", "Checkpoint block")


class SparkFailed(EvergraphError):
    """Spark could not do its work, for a reason of its own."""

    condition = "SPARK_FAILED"


def lost_executor(error: BaseException) -> bool:
    """Tell whether Spark failed because an executor ended that held what Spark itself cannot compute again."""
    return any(sign in str(error) for sign in _LOST)


def told(error: BaseException) -> BaseException:
    """Return the error of Evergraph that is behind an error of Spark; others by their last reason."""
    if not isinstance(error, PySparkException | Py4JError):
        return error
    if isinstance(error, PySparkException) and (problem := data_problem(error)):
        return problem
    text = str(error)
    if found := _OWN.search(text):
        kind = getattr(errors, found["kind"], EvergraphError)
        hint = (found["hint"] or "").removeprefix("\n  hint: ")
        plain = issubclass(kind, EvergraphError) and kind.__init__ is EvergraphError.__init__
        return kind(found["text"], hint=hint) if plain else EvergraphError(found["text"], hint=hint)
    reasons = _REASON.findall(text) or text.strip().splitlines()[:1] or [type(error).__name__]
    return SparkFailed(
        f"Spark failed: {reasons[-1][:500]}",
        hint="what was committed stays; run the pipeline again to go on",
    )
