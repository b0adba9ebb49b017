from collections.abc import Iterator

import httpx
import pytest
from tests.support import servers
from tests.support.servers import Server

pytestmark = pytest.mark.server


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=30) as client:
        yield client


def subjects(client: httpx.Client, server: Server) -> list[str]:
    query = "SELECT ?s { GRAPH <http://example.org/g> { ?s <http://example.org/p> 'o'@en } }"
    answer = client.post(
        server.query_url, data={"query": query}, headers={"Accept": "application/sparql-results+json"}
    ).raise_for_status()
    return [row["s"]["value"] for row in answer.json()["results"]["bindings"]]


def test_reads_back_what_it_was_given_and_forgets_it(server: Server, client: httpx.Client) -> None:
    insert = "INSERT DATA { GRAPH <http://example.org/g> { <http://example.org/s> <http://example.org/p> 'o'@en } }"
    client.post(
        server.update_url, content=insert, headers={"Content-Type": "application/sparql-update"}
    ).raise_for_status()
    assert subjects(client, server) == ["http://example.org/s"]

    servers.reset(server)
    assert subjects(client, server) == []
