"""A server on loopback that publishes changesets as DBpedia Live does, with the faults that a test asks for."""

import functools
import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from evergraph.sources.http import HttpChangesets

Fault = Callable[[str], int | None]
"""Says with which status a request for a path fails; 0 cuts the answer short, None lets it pass."""


class Published:
    """A folder of changesets on a server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.fault: Fault = lambda path: None
        self.url = ""

    def add(self, path: str, *values: str) -> Path:
        """Publish a file with a triple for each value."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"<urn:s> <urn:p> <urn:{value}> .\n" for value in values).encode()
        file.write_bytes(gzip.compress(text) if path.endswith(".gz") else text)
        return file

    def pending(self, after: str = "") -> list[str]:
        """List the changes after a place."""
        with HttpChangesets(self.url, pause=0) as source:
            return [one.name for one in source.pending(after)]


@contextmanager
def publish(folder: Path) -> Iterator[Published]:
    """Serve a folder."""
    folder.mkdir(exist_ok=True)
    made = Published(folder)

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            status = made.fault(self.path)
            if status == 0:
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b"<")
                self.close_connection = True
            elif status is not None:
                self.send_error(status)
            else:
                super().do_GET()

        def log_message(self, *arguments: object) -> None:
            """Keep quiet."""

    handler = functools.partial(Handler, directory=str(made.folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        made.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield made
        server.shutdown()
        thread.join()
