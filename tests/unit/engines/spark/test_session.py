import socket
import subprocess
import sys

import pytest

from evergraph.engines.spark.session import SparkUnavailable, _refuse_unreachable


def test_a_master_that_does_not_answer_is_told_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(SparkUnavailable) as caught:
            _refuse_unreachable(f"spark://127.0.0.1:{port}")
    assert caught.value.condition == "SPARK_UNAVAILABLE"
    assert caught.value.hint


def test_the_command_line_does_not_import_spark() -> None:
    code = "import sys, evergraph.cli; print(sorted({'pyspark', 'pyarrow', 'deltalake'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
