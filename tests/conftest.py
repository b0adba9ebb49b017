"""What every test may use: the option ``--long``, the profiles of Hypothesis, one Spark, the folder of shared data."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests run Spark for seconds: what the second compiler of the JVM would gain, it would take many times over.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")

REPOSITORY = Path(__file__).resolve().parents[1]

# A bare `pytest` looks for new failures and prints how to repeat them; `make test` (ci) gives the same verdict twice;
# `--long` looks for a long time. A slow machine is not a bug.
settings.register_profile(
    "default",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, database=None)
settings.register_profile("long", parent=settings.get_profile("default"), max_examples=2_000)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked long, with many random cases")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--long") and not config.getoption("--hypothesis-profile"):
        settings.load_profile("long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    skip = pytest.mark.skip(reason="long: run with --long or `make long`")
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder ``shared`` next to the repository, with test data that is too large for it."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the test data in the folder `shared` next to the repository")
    return folder


@pytest.fixture(scope="session")
def _ending_spark() -> Iterator[None]:
    """Stop the Spark of the test run at its end."""
    yield
    from evergraph.engines.spark.session import current_session, stop_session

    session = current_session()
    if session is not None:
        stop_session(session)


@pytest.fixture
def spark(_ending_spark: None) -> "SparkSession":
    """The one Spark session of the test run; a new one if a test has stopped it."""
    from evergraph.engines.spark.session import open_session

    # Hundreds of tiny jobs: compiling and adapting their plans would take most of the time. What runs through the
    # command line has the settings that users have.
    lean = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    return open_session("local[2]", memory="1g", conf=lean)
