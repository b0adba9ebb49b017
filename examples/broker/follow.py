"""Starts a broker over a new database, follows two queries over one WebSocket, and changes the data.

The second part loses the connection on purpose, and goes on where it was.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

WARM = "SELECT ?room ?t { ?room <urn:temperature> ?t FILTER (?t > 25) }"
EMPTY = "ASK { FILTER NOT EXISTS { ?someone <urn:in> ?room } }"


@contextmanager
def broker() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "evergraph", "serve", "--store", folder + "/db", "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            yield process.stderr.readline().split("listening at http://")[1].strip()
            process.terminate()


def main(address: str) -> None:
    def update(text: str) -> None:
        answer = httpx.post(f"http://{address}/update", data={"update": text}).raise_for_status().json()
        print(f"change {answer['sequence']}: +{answer['inserted']} -{answer['deleted']}")

    with connect(f"ws://{address}/subscribe") as socket:
        for alias, query in (("warm", WARM), ("empty", EMPTY)):
            socket.send(json.dumps({"subscribe": {"sparql": query, "alias": alias}}))
            hear(socket)
        update("INSERT DATA { <urn:kitchen> <urn:temperature> 27 . <urn:attic> <urn:temperature> 19 }")
        spuid = hear(socket)["spuid"]
        update("INSERT DATA { <urn:ada> <urn:in> <urn:kitchen> }")
        hear(socket)

    update("DELETE DATA { <urn:kitchen> <urn:temperature> 27 } ; INSERT DATA { <urn:attic> <urn:temperature> 31 }")

    with connect(f"ws://{address}/subscribe") as socket:
        socket.send(json.dumps({"subscribe": {"spuid": spuid, "sequence": 1}}))
        print("goes on:", json.loads(socket.recv())["resumption"]["resumed"])
        hear(socket)


def hear(socket: ClientConnection) -> dict[str, Any]:
    step: dict[str, Any] = json.loads(socket.recv())["notification"]
    for sign, rows in (("-", step["removedResults"]), ("+", step["addedResults"])):
        for row in rows["results"]["bindings"]:
            print(f"  {step['alias']} {step['sequence']}: {sign}", *(term["value"] for term in row.values()))
    return step


with broker() as where:
    main(where)
