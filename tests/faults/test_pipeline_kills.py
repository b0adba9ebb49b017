"""Pipelines that are killed with SIGKILL, Python, JVM and workers at once, at random points, and run again."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.noise import without_noise
from tests.support.pipelines import Case

COMMAND = [sys.executable, "-m", "evergraph", "run", "pipeline.toml", "--spark-master", "local[1]"]


def start(case: Case) -> subprocess.Popen[str]:
    return subprocess.Popen(
        COMMAND, cwd=case.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def traces(case: Case) -> int:
    """Count what the pipeline has written so far, so that kills fall into its work and not into the start of Java."""
    walks = (os.walk(case.folder / place) for place in ("pipeline.state", "out"))
    return sum(len(files) for walk in walks for _, _, files in walk)


def kill_at_random(case: Case, choice: random.Random) -> bool:
    """Start a run and kill it; False if it was over before."""
    before = traces(case)
    wanted, delay = choice.randint(0, 14), choice.random() * 0.08
    process = start(case)
    try:
        while traces(case) <= before + wanted:
            if process.poll() is not None:
                return False
            time.sleep(0.002)
        time.sleep(delay)
        return process.poll() is None
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_kills_lose_nothing_and_double_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Twenty kills with ``--long``, four otherwise: each costs a start of Java. (test_pipeline crashes every step.)"""
    kills = 20 if request.config.getoption("--long") else 4
    case = Case.make(tmp_path / "case", seed=7, changes=2 * kills, views=("turned",))
    choice = random.Random(11)
    killed = sum(kill_at_random(case, choice) for _ in range(kills))
    assert killed >= kills // 2, "most runs must have been at work when they were killed"
    last = start(case)
    out, err = last.communicate(timeout=300)
    assert (last.returncode, without_noise(err)) == (0, "")
    assert all(json.loads(line)["seconds"] > 0 for line in out.splitlines())
    case.check()


def test_signals_end_a_run_after_the_batch_at_hand(tmp_path: Path) -> None:
    """A folder that is followed, empty at first: what comes is taken, SIGTERM ends the run well, the next goes on.

    All processes of the job get the signal, as from `timeout` and from shells.
    """
    case = Case.make(tmp_path / "case", seed=3, changes=4, views=("turned",))
    held = {
        after: [(path, path.read_bytes()) for path in sorted((case.folder / "in").glob(names))]
        for after, names in ((0, "00000[12].*"), (2, "00000[34].*"))
    }
    for path, _ in [*held[0], *held[2]]:
        path.unlink()
    case.define(("turned",), "[spark]\n")
    (case.folder / "pipeline.toml").write_text(
        (case.folder / "pipeline.toml").read_text().replace("[source]\n", "[source]\nsettle = 0.5\n")
    )
    process = subprocess.Popen(
        [*COMMAND, "--follow"],
        cwd=case.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        seen: list[int] = []
        for line in process.stdout:
            seen.append(json.loads(line)["sequence"])
            for path, content in held.get(seen[-1], ()):
                path.write_bytes(content)
            if seen[-1] == 4:
                os.killpg(process.pid, signal.SIGTERM)
        assert seen == [0, 1, 2, 3, 4]
        assert process.stderr is not None
        assert (process.wait(120), without_noise(process.stderr.read())) == (0, "")
    finally:
        process.kill()
        process.communicate()
    case.check()
