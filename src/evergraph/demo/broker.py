"""The broker: a subscription over a WebSocket, an update over HTTP, and the notification."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text
from websockets.sync.client import ClientConnection, connect

_QUERY = "SELECT ?boat ?pier { ?boat <urn:at> ?pier }"
_UPDATES = (
    "INSERT DATA { <urn:swift> <urn:at> <urn:pier1> . <urn:heron> <urn:at> <urn:pier2> }",
    "DELETE { ?boat <urn:at> ?pier } INSERT { ?boat <urn:at> <urn:sea> } WHERE { ?boat <urn:at> ?pier } ;\n"
    "INSERT DATA { <urn:swift> <urn:flag> 'blue' }",
    "INSERT DATA { <urn:heron> <urn:flag> 'red' }",
)


def show(out: Console, folder: Path) -> None:
    """Start a broker, subscribe, update, and say what comes."""
    command = [sys.executable, "-m", "evergraph", "serve", "--store", str(folder), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = process.stderr.readline().split("http://")[1].split()[0].rstrip("/")
            _talk(out, address)
        finally:
            process.terminate()


def _talk(out: Console, address: str) -> None:
    out.print(Text(f"A broker at http://{address}/, where its page is. One subscription:", style="bold"))
    out.print(Syntax(_QUERY, "sparql", background_color="default"))
    with connect(f"ws://{address}/subscribe") as socket:
        socket.send(json.dumps({"subscribe": {"sparql": _QUERY, "alias": "boats"}}))
        _hear(out, socket)
        for update in _UPDATES:
            out.print(Syntax(update, "sparql", background_color="default", word_wrap=True))
            answer = httpx.post(f"http://{address}/update", data={"update": update}).raise_for_status().json()
            out.print(Text(f"   change {answer['sequence']}: +{answer['inserted']} -{answer['deleted']}"))
            if update is not _UPDATES[-1]:
                _hear(out, socket)
        out.print(Text("   the last one does not concern the subscription: nothing is sent", style="cyan"))


def _hear(out: Console, socket: ClientConnection) -> None:
    step: dict[str, Any] = json.loads(socket.recv(timeout=30))["notification"]
    for sign, rows in (("-", step["removedResults"]), ("+", step["addedResults"])):
        for row in rows["results"]["bindings"]:
            values = " ".join(term["value"] for term in row.values())
            out.print(Text(f"   notification {step['sequence']}: {sign} {values}", style="cyan"))
