"""The W3C's tests of the SPARQL 1.1 Protocol, against a broker."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from pyoxigraph import Dataset, NamedNode
from tests.support.brokers import Served, broker, http
from tests.support.w3c import SUITES, iri

from evergraph.rdfio import read_quads
from evergraph.terms import BlankNode, Literal, Term

FOLDER = SUITES / "sparql11" / "protocol"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
HT = "http://www.w3.org/2011/http#"
CNT = "http://www.w3.org/2011/content#"
UT = "http://www.w3.org/2009/sparql/tests/test-update#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
FORMATS = {
    "boolean": ("application/sparql-results+json", "application/sparql-results+xml"),
    "tabular": (
        "application/sparql-results+json",
        "application/sparql-results+xml",
        "text/csv",
        "text/tab-separated-values",
    ),
    "RDF": ("text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json"),
}


@dataclass(frozen=True)
class Exchange:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    statuses: set[str]
    boolean: bool | None
    format: str | None


@dataclass(frozen=True)
class Case:
    graphs: list[tuple[str, str]]
    exchanges: list[Exchange]


class Manifest:
    def __init__(self) -> None:
        path = FOLDER / "manifest.ttl"
        self._graph = Dataset(read_quads(path, base_iri=iri(path)))

    def values(self, node: Term, predicate: str) -> list[Term]:
        assert isinstance(node, NamedNode | BlankNode)
        return [quad.object for quad in self._graph.quads_for_subject(node) if quad.predicate.value == predicate]

    def text(self, node: Term, predicate: str) -> str | None:
        found = self.values(node, predicate)
        return found[0].value if found and isinstance(found[0], Literal | NamedNode) else None

    def items(self, node: Term) -> Iterator[Term]:
        while isinstance(node, BlankNode):
            yield self.values(node, RDF + "first")[0]
            node = self.values(node, RDF + "rest")[0]

    def cases(self) -> Iterator[tuple[str, Case]]:
        for quad in self._graph.quads_for_object(NamedNode(MF + "ProtocolTest")):
            test = quad.subject
            [action] = self.values(test, MF + "action")
            [requests] = self.values(test, HT + "requests") or self.values(action, HT + "requests")
            graphs = [
                (self.text(one, LABEL) or "", (self.text(one, UT + "graph") or "").rpartition("/")[2])
                for one in self.values(test, UT + "graphData")
            ]
            yield str(test).rpartition("#")[2].strip(">"), Case(graphs, list(map(self.exchange, self.items(requests))))

    def exchange(self, node: Term) -> Exchange:
        body = b""
        for content in self.values(node, HT + "body"):
            encoding = self.text(content, CNT + "characterEncoding") or "UTF-8"
            body = (self.text(content, CNT + "chars") or "").encode(encoding)
        headers = {
            self.text(header, HT + "fieldName") or "": self.text(header, HT + "fieldValue") or ""
            for some in self.values(node, HT + "headers")
            for header in self.items(some)
        }
        [response] = self.values(node, HT + "resp")
        statuses = {one.value[-3] for one in self.values(response, MF + "expectedStatus") if isinstance(one, NamedNode)}
        boolean = self.text(response, MF + "expectedBoolean")
        return Exchange(
            self.text(node, HT + "methodName") or "",
            (self.text(node, HT + "absolutePath") or "").removeprefix("/sparql/"),
            headers,
            body,
            statuses,
            None if boolean is None else boolean == "true",
            self.text(response, MF + "expectedFormat"),
        )


def parameters() -> list[object]:
    if not FOLDER.is_dir():
        reason = "needs the W3C test suites in the folder `shared` next to the repository"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(case, id=name) for name, case in sorted(Manifest().cases(), key=lambda pair: pair[0])]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with broker() as one:
        yield one


@pytest.mark.parametrize("case", parameters())
def test_protocol(case: Case, served: Served) -> None:
    served.update("DROP ALL")
    for name, file in case.graphs:
        text = (FOLDER / file).read_text()
        served.update(f"INSERT DATA {{ GRAPH <{name}> {{ {text} }} }}")
    for exchange in case.exchanges:
        request = httpx.Request(
            exchange.method, f"{served.url}/sparql/{exchange.path}", headers=exchange.headers, content=exchange.body
        )
        response = http().send(request)
        assert str(response.status_code)[0] in exchange.statuses, response.text
        if exchange.format is not None:
            assert response.headers["content-type"].partition(";")[0] in FORMATS[exchange.format]
        if exchange.boolean is not None:
            assert response.json()["boolean"] is exchange.boolean
        if response.status_code >= 400:
            assert response.json()["error_description"]


@pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the W3C test suites in the folder `shared`")
def test_every_entry_of_the_manifest_is_run() -> None:
    manifest = Manifest()
    [start] = [quad.object for quad in manifest._graph if quad.predicate.value == MF + "entries"]
    assert len(list(manifest.items(start))) == len(list(manifest.cases())) == 34
