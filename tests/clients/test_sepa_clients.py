"""SEPA's own clients, unmodified: sepy from PyPI and sepa-js from npm, over a restart of the broker."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.brokers import broker_process

HERE = Path(__file__).parent
INSTALLED = HERE.parents[1] / ".servers"
SEPY = INSTALLED / "sepy" / "bin" / "python"
SEPA_JS = INSTALLED / "sepa-js" / "node_modules"
HINT = "run tests/support/install_servers.sh"

needs_sepy = pytest.mark.skipif(not SEPY.exists(), reason=f"sepy is not installed; {HINT}")
needs_sepa_js = pytest.mark.skipif(
    not SEPA_JS.is_dir() or shutil.which("node") is None, reason=f"sepa-js is not installed; {HINT}"
)


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return "--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")


class Client:
    """A program that says what happens to it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def hear_any(self) -> list[Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found: list[Any] = json.loads(line or '["ended without a word", null]')
        return found

    def hear(self, what: str) -> Any:
        found = self.hear_any()
        assert found[0] == what, found
        return found[1]

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()


@contextmanager
def client(*command: str, **environment: str) -> Iterator[Client]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    ) as process:
        try:
            yield Client(process)
        finally:
            process.kill()


def value(text: str) -> dict[str, str]:
    return {"type": "literal", "value": text}


@needs_sepy
@pytest.mark.parametrize("secure", ["no", "yes"])
def test_sepy(secure: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    port, ws_port = free_ports(2)
    options = ["--port", str(port), "--ws-port", str(ws_port)]
    s = ""
    if secure == "yes":
        options += [*request.getfixturevalue("certificate"), "--require-tokens"]
        s = "s"
    addresses = f"http{s}://localhost:{port}", f"ws{s}://localhost:{ws_port}"
    command = (str(SEPY), str(HERE / "sepy_client.py"), *addresses, secure)
    with ExitStack() as stack:
        served = stack.enter_context(broker_process(tmp_path / "db", *options))
        sepy = stack.enter_context(client(*command, PYTHONWARNINGS="ignore"))
        updated = sepy.hear("updated")
        assert (updated["sequence"], updated["inserted"], updated["deleted"]) == (1, 1, 0)
        assert "body" in updated["response"]
        assert sepy.hear("queried") == [{"o": value("first")}]
        heard = sorted([sepy.hear_any(), sepy.hear_any()])
        assert heard[0] == ["notified", [[{"o": value("first")}], []]]
        assert heard[1][0] == "subscribed"
        assert heard[1][1].startswith("sepa://subscription/")
        heard = sorted([sepy.hear_any(), sepy.hear_any()])
        assert heard[0] == ["notified", [[{"o": value("second")}], [{"o": value("first")}]]]
        assert heard[1][0] == "updated"
        sepy.hear("updated")  # and nothing is heard of it
        sepy.hear("ready")
        served.kill()
        stack.enter_context(broker_process(tmp_path / "db", *options))
        sepy.go_on()
        assert sorted(one["o"]["value"] for one in sepy.hear("queried")) == ["second", "unheard"]
        [notified] = [one for one in (sepy.hear_any(), sepy.hear_any()) if one[0] == "notified"]
        assert sorted(one["o"]["value"] for one in notified[1][0]) == ["second", "unheard"]
        heard = sorted([sepy.hear_any(), sepy.hear_any()])
        assert heard[0] == ["notified", [[{"o": value("third")}], []]]
        while (last := sepy.hear_any()[0]) != "done":
            assert last == "notified"


@needs_sepa_js
@pytest.mark.parametrize("secure", ["no", "yes"])
def test_sepa_js(secure: str, tmp_path: Path) -> None:
    port, ws_port = free_ports(2)
    options = ["--port", str(port), "--ws-port", str(ws_port)]
    if secure == "yes":
        options.append("--require-tokens")
    addresses = f"http://localhost:{port}", f"ws://localhost:{ws_port}"
    command = ("node", str(HERE / "sepa_js_client.js"), *addresses, secure)
    with ExitStack() as stack:
        served = stack.enter_context(broker_process(tmp_path / "db", *options))
        sepa = stack.enter_context(client(*command, "many", NODE_PATH=str(SEPA_JS)))
        assert sepa.hear("updated") == 200
        assert sepa.hear("queried") == [{"o": value("first")}]
        assert sepa.hear("subscribed") == [[0, 1], [0, 1]]
        assert sepa.hear("updated") == 200
        assert sepa.hear("notified") == [1, [{"o": value("second")}], [{"o": value("first")}]]
        sequence, added, removed = sepa.hear("notified")
        assert (sequence, added[0]["boolean"]["value"], removed[0]["boolean"]["value"]) == (1, "true", "false")
        sepa.hear("unsubscribed")
        if secure == "no":
            assert sepa.hear("refused") == 400
            assert sepa.hear("profile") == [{"o": value("from a profile")}]
        sepa.hear("done")
        lasting = stack.enter_context(client(*command, "restart", NODE_PATH=str(SEPA_JS)))
        lasting.hear("ready")
        served.kill()
        stack.enter_context(broker_process(tmp_path / "db", *options))
        lasting.go_on()
        assert lasting.hear("subscribed again") == [{"o": value("second")}]
        assert lasting.hear("updated") == 200
        assert lasting.hear("notified") == [{"o": value("third")}]
        lasting.hear("done")
