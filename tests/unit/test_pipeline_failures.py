"""Errors of other processes: what is behind them is told, with its kind, its message and its hint."""

from pyspark.errors import PySparkException

from evergraph.errors import DataError, EvergraphError
from evergraph.pipeline.failures import SparkFailed, told

TRACEBACK = """[STREAM_FAILED] Query terminated with exception: Traceback (most recent call last):
  File "worker.py", line 1, in main
    raise DataError(
{reason}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:5)
"""


def failure(reason: str) -> PySparkException:
    return PySparkException(message=TRACEBACK.format(reason=reason))


def test_an_error_of_evergraph_is_told_as_what_it_is() -> None:
    error = told(failure("evergraph.errors.DataError: a.gz: damaged gzip file: end\n  hint: fetch it again"))
    assert type(error) is DataError
    assert (error.message, error.hint) == ("a.gz: damaged gzip file: end", "fetch it again")
    error = told(failure("evergraph.errors.SyntaxProblem: a.nt:2:1: no triple"))
    assert isinstance(error, EvergraphError)
    assert (error.message, error.hint) == ("a.nt:2:1: no triple", "")


def test_other_errors_are_told_by_their_reason() -> None:
    error = told(failure("NameError: name 'x' is not defined"))
    assert isinstance(error, SparkFailed)
    assert error.message == "Spark failed: NameError: name 'x' is not defined"
    error = told(PySparkException(message="[DIVIDE_BY_ZERO] no"))
    assert isinstance(error, SparkFailed)
    assert error.message == "Spark failed: [DIVIDE_BY_ZERO] no"


def test_what_is_no_error_of_spark_stays() -> None:
    error = ValueError("no")
    assert told(error) is error
