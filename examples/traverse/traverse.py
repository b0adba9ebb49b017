"""Follow links on a small web on this machine: solutions come, and go, with the documents."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import evergraph as eg
from evergraph.sparql.parser import parse_query
from evergraph.traversal import Manners

TERMS = "@prefix : <http://people.example/terms#> . "
DOCUMENTS = {
    "/alice": '<#me> :knows </bob#me>, </charlie#me>, </dora#me> . </bob#me> :name "Bobby" .',
    "/bob": '<#me> :name "Bob" .',
    "/data/charlie": '</charlie#me> :name "Charlie" .',
}


class Web(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/charlie":
            self.send_response(303)
            self.send_header("Location", "/data/charlie")
            self.end_headers()
        elif self.path in DOCUMENTS:
            self.send_response(200)
            self.send_header("Content-Type", "text/turtle")
            self.end_headers()
            self.wfile.write((TERMS + DOCUMENTS[self.path]).encode())
        else:
            self.send_error(404)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_address[1]}"
query = parse_query((Path(__file__).parent / "friends.rq").read_text(), base)

with eg.traverse(query, allow=["127.0.0.1"], manners=Manners(per_host=1)) as traversal:
    for step in traversal:
        print(step.sequence, *(document.removeprefix(base) for document in step.documents))
        for sign, rows in (("-", step.removed), ("+", step.added)):
            for person, name in sorted(rows.rows(), key=str):
                print(" ", sign, person.value.removeprefix(base), "has no name" if name is None else name.value)
    for visit in traversal.report():
        print(visit.url.removeprefix(base), visit.state, visit.reason or visit.document.removeprefix(base))

server.shutdown()
