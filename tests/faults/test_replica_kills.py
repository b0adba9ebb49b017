"""kill -9 between any two steps of a replication: target, what is set aside, and position agree after the restart."""

import subprocess
import sys
from pathlib import Path

import pytest


def kill_at_every(stride: int, folder: Path, kind: str, *urls: str) -> int:
    command = [sys.executable, "-m", "tests.support.replica_kills", str(folder), kind, str(stride), *urls]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stderr
    return int(result.stdout)


@pytest.mark.parametrize(("kind", "stride"), [("folder", 11), ("store", 45), ("delta", 40)])
def test_some_steps(tmp_path: Path, kind: str, stride: int) -> None:
    assert kill_at_every(stride, tmp_path, kind) > 2


@pytest.mark.long
@pytest.mark.parametrize("kind", ["folder", "store", "delta"])
def test_every_step(tmp_path: Path, kind: str) -> None:
    assert kill_at_every(1, tmp_path, kind) > 50
