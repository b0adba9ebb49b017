"""Starting Spark: quiet, lean, with a Java that is found by itself.

Every session of Evergraph comes from here, so that all of them have the same settings: column names are case-sensitive
(``?x`` and ``?X`` are two variables), Python workers run the interpreter of this process, and nothing is printed.
"""

import contextlib
import gc
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from types import MappingProxyType

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from evergraph.errors import EvergraphError
from evergraph.java import OF_DRIVER, find_java, shim_home

DEFAULT_MASTER = "local[*]"
DEFAULT_MEMORY = "2g"
_REACHABLE_WITHIN = 5.0
_NOTHING: Mapping[str, str] = MappingProxyType({})

_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "true",
        # What follows from filters is not worth finding out here, and Spark fails over it: what a checkpoint says about
        # its columns may name others, which a union of checkpoints then looks for in vain.
        "spark.sql.constraintPropagation.enabled": "false",
        # Spark writes every plan down, also the plans behind cached frames, for a page that nobody looks at.
        "spark.sql.maxPlanStringLength": "1000",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Every operator of a task takes a page at least, and so does every table that is broadcast. Spark would make
        # pages of 64 MB, with which a plan of many parts runs out of memory over a few rows.
        "spark.buffer.pageSize": "1m",
        # Whoever takes the first rows of a frame here takes nearly all of them: one job, not one for some parts first.
        "spark.sql.limit.initialNumPartitions": "10000",
        # A batch runs more plans than Spark would remember code for, and code that is made anew is slow again at first.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # Without native libraries, Hadoop's other manager starts a process for each file of a checkpoint.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.pollingDelay": "1ms",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "4096",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    }
)
"""What holds for every session. Version 2 of the committer is safe here: only files of a finished job are committed."""


class SparkUnavailable(EvergraphError):
    """Spark could not be started, or its master does not answer."""

    condition = "SPARK_UNAVAILABLE"


def open_session(
    master: str | None = None, *, memory: str | None = None, conf: Mapping[str, str] = _NOTHING
) -> SparkSession:
    """Start Spark, or return the session that this process has already.

    ``memory`` is that of the driver, which in local mode does all the work; ``conf`` overrides any setting.
    """
    running = current_session()
    if running is not None:
        return running
    chosen = master or DEFAULT_MASTER
    local = chosen.startswith("local")
    _refuse_unreachable(chosen)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**_SETTINGS, "spark.driver.memory": memory or DEFAULT_MEMORY, **_java_options()}
    if local:
        cores = _cores(chosen)
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(max(2, cores)),
            "spark.default.parallelism": str(max(2, cores)),
        }
    builder = SparkSession.builder.master(chosen).appName("evergraph")
    for key, value in {**settings, **conf}.items():
        builder = builder.config(key, value)
    with _java_home():
        try:
            return builder.getOrCreate()
        except (PySparkException, Py4JError, OSError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise SparkUnavailable(
                f"Spark does not start on {chosen}: {reason}",
                hint="check the master (local[*], spark://HOST:7077, yarn, k8s://…), the memory and the settings",
            ) from error


def current_session() -> SparkSession | None:
    """Return the session that this process has, whichever of its threads opened it."""
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession._instantiatedSession


def forget_broadcasts(spark: SparkSession) -> None:
    """Let Spark drop what was broadcast and is needed no more.

    It does so on its own only after the JVM has found out that nobody holds it, which may come too late: the next
    broadcast is refused for want of memory before the last ones are gone.
    """
    gc.collect()
    assert spark._jvm is not None
    spark._jvm.System.gc()


def stop_session(spark: SparkSession) -> None:
    """Stop Spark and its JVM; a later `open_session` starts a new one."""
    spark.stop()
    gateway = SparkContext._gateway
    if gateway is None:
        return
    process = getattr(gateway, "proc", None)
    with contextlib.suppress(Py4JError, OSError):
        gateway.shutdown()
    if process is not None:
        process.stdin.close()  # the JVM lives as long as this pipe
        process.wait(timeout=60)
    SparkContext._gateway = None
    SparkContext._jvm = None


def _java_options() -> dict[str, str]:
    # The file has to be a real one: the JVM reads it before there is any Python to unpack it.
    logging = f"-Dlog4j2.configurationFile={files('evergraph.engines.spark').joinpath('log4j2.properties')}"
    return {"spark.driver.extraJavaOptions": f"{logging} -XX:+UseParallelGC -XX:-UsePerfData"}


@contextmanager
def _java_home() -> Iterator[None]:
    """Let Spark's launcher see the Java that we found, through a wrapper that keeps it from warning on every start."""
    wanted = {"JAVA_HOME": str(shim_home(find_java().executable)), OF_DRIVER: "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _cores(master: str) -> int:
    if found := re.fullmatch(r"local\[(\d+)(?:,\d+)?\]", master):
        return int(found[1])
    return 1 if master == "local" else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


def _refuse_unreachable(master: str) -> None:
    """Spark would try for a minute before it gave up, and then fail far from here."""
    if not master.startswith("spark://"):
        return
    places = re.findall(r"([^,:/]+):(\d+)", master)
    for host, port in places:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), _REACHABLE_WITHIN):
            return
    raise SparkUnavailable(
        f"no Spark master answers at {master}", hint="check host and port, or leave the master out to use this machine"
    )
