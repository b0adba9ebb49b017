"""Servers for the tests in this folder: each is started when first needed, and runs until the last test is over."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tests.support import servers
from tests.support.remote import connect
from tests.support.servers import Server

import evergraph as eg


@pytest.fixture(scope="session")
def started() -> Iterator[Callable[[str], Server]]:
    """Start a server, or skip the test with the reason why that is not possible."""
    running: dict[str, Server] = {}
    with ExitStack() as stack:

        def start(name: str) -> Server:
            if reason := servers.missing(name):
                pytest.skip(reason)
            if name not in running:
                running[name] = stack.enter_context(servers.start(name))
            return running[name]

        yield start


@pytest.fixture(params=servers.NAMES, scope="module")
def server(request: pytest.FixtureRequest, started: Callable[[str], Server]) -> Server:
    return started(request.param)


@pytest.fixture(scope="module")
def connection(server: Server) -> Iterator[eg.Database]:
    with connect(server) as database:
        yield database


@pytest.fixture
def db(server: Server, connection: eg.Database) -> eg.Database:
    """An empty database on the server."""
    servers.reset(server)
    return connection
