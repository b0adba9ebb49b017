"""A pipeline whose disk is full: it says so, and goes on where it was when there is space again."""

import subprocess
import sys
from pathlib import Path

from tests.support.pipelines import Case

COMMAND = [sys.executable, "-m", "evergraph", "run", "pipeline.toml", "--spark-master", "local[1]"]


def run(case: Case) -> subprocess.CompletedProcess[str]:
    return subprocess.run(COMMAND, cwd=case.folder, capture_output=True, text=True, timeout=300, check=False)


def test_a_full_disk(small_disk: Path) -> None:
    case = Case.make(small_disk / "case", seed=9, changes=6, views=("turned",))
    ballast = small_disk / "ballast"
    with ballast.open("wb") as out:
        out.write(bytes(2_950_000))  # the rest is not enough for all batches
    failed = run(case)
    assert failed.returncode == 1
    assert "No space left on device" in failed.stderr
    assert "hint:" in failed.stderr
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    done = run(case)
    assert done.returncode == 0, done.stderr
    case.check()
