"""HTTP/2 over TLS, against a server that speaks nothing else."""

import shlex
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived

from evergraph.errors import TraversalFailed
from evergraph.traversal import traverse

MAKE_CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem"
    " -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
)


class Http2Server:
    """Answers every request with a document that links to the next ones, one connection at a time."""

    def __init__(self, folder: Path) -> None:
        subprocess.run(
            shlex.split(MAKE_CERTIFICATE),
            cwd=folder,
            check=True,
            capture_output=True,
        )
        self.certificate = folder / "cert.pem"
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self._context.set_alpn_protocols(["h2"])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base = f"https://localhost:{self._listener.getsockname()[1]}/"
        self.connections = 0
        self.paths: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            with plain, self._context.wrap_socket(plain, server_side=True) as wire:
                self.connections += 1
                connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
                connection.initiate_connection()
                wire.sendall(connection.data_to_send())
                while data := wire.recv(65_536):
                    for event in connection.receive_data(data):
                        if isinstance(event, RequestReceived):
                            self._answer(connection, event)
                        elif isinstance(event, DataReceived):
                            raise AssertionError("GET has no body")
                    wire.sendall(connection.data_to_send())
        except OSError:
            pass

    def _answer(self, connection: H2Connection, event: RequestReceived) -> None:
        assert event.headers is not None
        assert event.stream_id is not None
        path = str(dict(event.headers)[":path"])  # type: ignore[index] # texts, as the configuration says
        self.paths.append(path)
        if path == "/robots.txt":
            connection.send_headers(event.stream_id, [(":status", "404")], end_stream=True)
            return
        name = path.removeprefix("/")
        links = "".join(f"<{self.base}{name}> <urn:next> <{self.base}{name}{one}> . " for one in "ab" if len(name) < 3)
        connection.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/turtle")])
        connection.send_data(event.stream_id, links.encode(), end_stream=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Http2Server]:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, to make a certificate")
    served = Http2Server(tmp_path)
    yield served
    served.close()


def test_requests_share_a_connection(server: Http2Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    query = f"SELECT * {{ <{server.base}a> <urn:next>+ ?x }}"
    with traverse(query, allow=["localhost"]) as traversal:
        list(traversal)
        assert len(traversal.result()) == 6
    assert len(server.paths) == 8
    assert server.connections <= 2


def test_a_certificate_that_nobody_vouches_for(server: Http2Server) -> None:
    with pytest.raises(TraversalFailed, match="certificate"):
        list(traverse(f"SELECT * {{ <{server.base}a> <urn:next>+ ?x }}", allow=["localhost"]))
    assert server.paths == []
