"""The same pipeline on a standalone cluster on this machine: a master and two workers, each a JVM of its own."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from tests.support.pipelines import Case

from evergraph.java import find_java, shim_home

CONF = """
[spark]
memory = "512m"
[spark.conf]
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
"spark.executor.memory" = "512m"
"spark.executor.cores" = 1
"spark.sql.shuffle.partitions" = 2
"""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "JAVA_HOME": str(shim_home(find_java().executable)),
        "PYSPARK_PYTHON": sys.executable,
    }
    host = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> Path:
            log = tmp_path / f"{name}.log"
            part = "master.Master" if name == "master" else "worker.Worker"
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{part}", *host, *arguments],
                env=environment,
                cwd=tmp_path,
                stdout=stack.enter_context(log.open("w")),
                stderr=subprocess.STDOUT,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return log

        def wait_for(log: Path, text: str, times: int = 1) -> None:
            for _ in range(600):
                if len(re.findall(text, log.read_text())) >= times:
                    return
                time.sleep(0.1)
            pytest.fail(f"the cluster does not start:\n{log.read_text()}")

        log = start("master", "--port", str(port))
        wait_for(log, "I have been elected leader")
        for name in ("worker1", "worker2"):
            start(name, "--cores", "1", "--memory", "600m", "--work-dir", str(tmp_path / name), url)
        wait_for(log, "Registering worker", times=2)
        yield url


def test_a_cluster_does_what_one_machine_does(tmp_path: Path, master: str) -> None:
    case = Case.make(tmp_path / "case", seed=5, changes=3)
    case.define(("counts", "turned"), CONF)
    done = subprocess.run(
        [sys.executable, "-m", "evergraph", "run", "pipeline.toml", "--spark-master", master],
        cwd=case.folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4
    case.check()
    used = [worker.name for worker in (tmp_path / "worker1", tmp_path / "worker2") if any(worker.glob("app-*/*"))]
    assert used == ["worker1", "worker2"], "both workers had an executor"


@pytest.mark.long
def test_a_lost_executor_costs_nothing(tmp_path: Path, master: str) -> None:
    """Views are computed as DataFrames here, however small the change, so that executors hold parts of them."""
    case = Case.make(tmp_path / "case", seed=6, changes=4, views=("counts",))
    case.define(("counts",), CONF)
    program = (
        "from evergraph.engines.spark import engine; engine.FEW = 0; from evergraph.cli.app import main; "
        f"main(['run', 'pipeline.toml', '--spark-master', {master!r}])"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, cwd=case.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lost = 0
        for _ in process.stdout:
            time.sleep(0.5)  # into the next batch
            victims = executors(tmp_path / "worker1") if lost < 2 else []
            for victim in victims:
                os.kill(victim, signal.SIGKILL)
            lost += len(victims)
        assert process.wait(300) == 0, process.stderr.read()
    assert lost == 2
    case.check()


def executors(worker: Path) -> list[int]:
    """Find the processes that a worker started, by the folder that they work in."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            folder, command = (process / "cwd").resolve(strict=True), (process / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if worker in folder.parents and b"CoarseGrainedExecutorBackend" in command:
            found.append(int(process.name))
    return found
