"""Every script in ``examples/`` runs, from any place, and prints what the file beside it says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.noise import without_noise

FOLDER = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted([*FOLDER.glob("*/*.sh"), *FOLDER.glob("*/*.py")])


def expected(script: Path) -> Path:
    return script.with_name(f"{script.name}.out")


@pytest.mark.parametrize("script", SCRIPTS, ids=[str(script.relative_to(FOLDER)) for script in SCRIPTS])
def test_script(script: Path, tmp_path: Path) -> None:
    """The output beside the script is what it prints; remove it to have it written anew, and read it."""
    copy = tmp_path / "copy"
    shutil.copytree(script.parent, copy)
    before = sorted(copy.rglob("*"))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    interpreter = "sh" if script.suffix == ".sh" else sys.executable
    done = subprocess.run(
        [interpreter, str(copy / script.name)],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, without_noise(done.stderr)) == (0, "")
    assert sorted(copy.rglob("*")) == before, "an example leaves nothing behind"
    if not expected(script).exists():
        expected(script).write_text(done.stdout)
        pytest.fail(f"{expected(script).name} was missing; it has been written, and wants to be read")
    assert done.stdout == expected(script).read_text()


def test_every_folder_is_listed() -> None:
    listed = (FOLDER / "README.md").read_text()
    for script in SCRIPTS:
        assert f"[{script.parent.name}]({script.parent.name})" in listed
        assert script.name in listed
