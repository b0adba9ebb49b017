"""A real browser without a window, for tests of pages: Chromium, over its DevTools protocol, on loopback only."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_HINT = "run tests/support/install_servers.sh"
_START_SECONDS = 60.0
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-port=0",
)


def missing() -> str:
    """Say why no browser can run here; nothing if one can."""
    return "" if _program() else f"no Chromium on PATH; {_HINT}"


def _program() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """A page that is open, and what went wrong on it."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self._session: str | None = None
        self.problems: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Go to an address, and wait until the page is there."""
        self._call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """Evaluate JavaScript on the page; return its value."""
        found = self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def text(self, place: str) -> str:
        """Return the text of what a CSS selector finds first, as people see it."""
        return str(self.run(f"(document.querySelector({json.dumps(place)}) || {{}}).innerText || ''"))

    def write(self, place: str, text: str) -> None:
        """Type a text into a field, in place of what is there."""
        self.run(f"(one => {{ one.focus(); one.select() }})(document.querySelector({json.dumps(place)}))")
        self._call("Input.insertText", text=text)

    def click(self, place: str) -> None:
        """Click with the mouse into the middle of what a CSS selector finds first."""
        found = f"document.querySelector({json.dumps(place)})"
        self.run(f"{found}.scrollIntoView()")
        x, y = self.run(f"(box => [box.x + box.width / 2, box.y + box.height / 2])({found}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press_enter(self) -> None:
        """Press Ctrl and Enter."""
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "modifiers": 2}
        for kind in ("rawKeyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, **key)

    def wait(self, condition: str, seconds: float = 20.0) -> None:
        """Wait until JavaScript is true."""
        end = time.monotonic() + seconds
        while not self.run(f"!!({condition})"):
            assert time.monotonic() < end, f"{condition}; the page says: {self.text('body')}"
            time.sleep(0.05)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        self._socket.send(json.dumps(message | ({"sessionId": self._session} if self._session else {})))
        while True:
            answer = json.loads(self._socket.recv(timeout=30))
            if answer.get("method") == "Runtime.exceptionThrown":
                self.problems.append(str(answer["params"]["exceptionDetails"]))
            elif answer.get("method") == "Log.entryAdded" and answer["params"]["entry"]["level"] == "error":
                self.problems.append(answer["params"]["entry"]["text"])
            elif answer.get("id") == self._number:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """Run a browser with an empty profile in a folder; gives a page of it."""
    program = _program()
    assert program is not None, missing()
    command = [program, *_OPTIONS, f"--user-data-dir={folder}", "about:blank"]
    environment = {**os.environ, "HOME": str(folder)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        with connect(_address(process, folder / "DevToolsActivePort"), max_size=None, proxy=None) as socket:
            yield Page(socket)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: "subprocess.Popen[bytes]", told: Path) -> str:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, f"the browser ended with {process.returncode}"
        if told.exists() and len(lines := told.read_text().split()) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(0.05)
    raise AssertionError("the browser did not start")
