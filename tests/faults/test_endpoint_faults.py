"""What a database on an endpoint does when the endpoint, the network or the process itself fails.

An update that fails leaves no trace: not in the dataset, once it could be taken back, and not in the log.
"""

import dataclasses
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.support import proxy as proxies
from tests.support import servers
from tests.support.datasets import difference
from tests.support.proxy import Answer, Asked, Fault, Proxy
from tests.support.remote import run, stored
from tests.support.servers import Server

import evergraph as eg
from evergraph.cli.app import main
from evergraph.errors import EndpointError, StoreError, UncertainOutcome
from evergraph.gate import dialects

pytestmark = pytest.mark.server

OLD = "INSERT DATA { <urn:a> <urn:p> 1, 2, 3, 4, 5 . GRAPH <urn:g> { <urn:a> <urn:p> 1, 2, 3, 4, 5 } }"
UPDATE = """
DELETE DATA { <urn:a> <urn:p> 1, 2, 3 . GRAPH <urn:g> { <urn:a> <urn:p> 2 } } ;
INSERT DATA { <urn:a> <urn:p> 5, 6, 7, 8, 9, 10 . GRAPH <urn:g> { <urn:a> <urn:p> 6, 7 } } ;
INSERT { GRAPH <urn:h> { ?s <urn:copy> ?o } } WHERE { ?s <urn:p> ?o } ;
DELETE WHERE { GRAPH <urn:g> { ?s ?p 3 } }
"""
SMALL = dataclasses.replace(dialects.OXIGRAPH, read_rows=9, write_quads=3, write_operations=2, connections=1)
FALSE = Answer(200, b'{"head":{},"boolean":false}', {"content-type": "application/sparql-results+json"})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if reason := servers.missing("oxigraph"):
        pytest.skip(reason)
    with servers.start("oxigraph") as running:
        yield running


@pytest.fixture
def proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before a server with some data, which gets its writes in many small requests."""
    monkeypatch.setattr(dialects, "OXIGRAPH", SMALL)
    servers.reset(server)
    run(server, OLD)
    with proxies.running(server) as running:
        yield running


def connect(proxy: Proxy, log: Path | None = None, timeout: float = 60) -> eg.Database:
    return eg.connect(proxy.query_url, proxy.update_url, log=log, timeout=timeout)


def files(log: Path) -> set[str]:
    return {path.name for path in log.iterdir()} - {".lock"}


# --- a connection that breaks, at every request of an update


@pytest.mark.parametrize("fault", [Fault.CUT_BEFORE, Fault.CUT_AFTER, Fault.LATE])
def test_one_request_breaks(server: Server, proxy: Proxy, tmp_path: Path, fault: Fault) -> None:
    """Everything is taken back at once, or before the next update if the server was late."""
    number = 0
    while True:
        number += 1
        log = tmp_path / str(number)
        servers.reset(server)
        run(server, OLD)
        before = stored(server)
        with connect(proxy, log) as db:
            proxy.begin(lambda asked, number=number: fault if asked.number == number else None)  # type: ignore[misc]
            try:
                change = db.update(UPDATE)
            except EndpointError as error:
                broken = proxy.asked[number - 1]
                assert isinstance(error, UncertainOutcome) == broken.is_update, error
                assert (proxy.update_url if broken.is_update else proxy.query_url) in error.message
                assert error.hint
            else:
                assert len(proxy.asked) < number
                assert change.delta == difference(before, stored(server))
                assert files(log) == {"000000000001.rdfp"}
                break
            proxy.settle()
            assert fault is Fault.LATE or stored(server) == before
            assert (db.sequence, list(db.changes())) == (0, [])
            proxy.begin()
            change = db.update("INSERT DATA { <urn:a> <urn:p> 11 }")
            assert change.delta == difference(before, stored(server))
            assert len(change.inserted) == change.sequence == 1
            assert files(log) == {"000000000001.rdfp"}
    assert number > 12  # several reads and writes


@pytest.mark.parametrize("fault", [Fault.CUT_BEFORE, Fault.CUT_AFTER])
@pytest.mark.parametrize("again", ["next update", "next process"])
def test_the_endpoint_is_gone_from_some_request_on(
    server: Server, proxy: Proxy, tmp_path: Path, fault: Fault, again: str
) -> None:
    """What was written by then is in the journal, and taken back as soon as the endpoint is there again."""
    number, partly = 0, 0
    while True:
        number += 1
        log = tmp_path / str(number)
        servers.reset(server)
        run(server, OLD)
        before = stored(server)
        db = connect(proxy, log)

        def behaviour(asked: Asked, number: int = number) -> Fault | None:
            if asked.number < number:
                return None
            return fault if asked.number == number else Fault.CUT_BEFORE

        proxy.begin(behaviour)
        try:
            db.update(UPDATE)
        except EndpointError as error:
            if left := difference(before, stored(server)):
                partly += 1
                assert isinstance(error, UncertainOutcome)
                assert "could not be taken back" in error.message
                assert str(log / ".unsettled") in error.hint
                kept = (log / ".unsettled").read_text()
                assert all(f"{quad}" in kept for quad in left.inserted | left.deleted)
        else:
            db.close()
            break
        assert (db.sequence, list(db.changes())) == (0, [])
        with pytest.raises(EndpointError):
            db.update("INSERT DATA { <urn:a> <urn:p> 11 }")
        proxy.begin()
        if again == "next process":
            db.close()
            db = connect(proxy, log)
            assert stored(server) == before
            assert files(log) == set()
        with db:
            change = db.update("INSERT DATA { <urn:a> <urn:p> 11 }")
            assert change.delta == difference(before, stored(server))
            assert files(log) == {"000000000001.rdfp"}
    assert number > 12
    assert partly > 4


def test_without_a_log_the_error_says_what_that_means(server: Server, proxy: Proxy) -> None:
    with connect(proxy) as db:
        proxy.begin(lambda asked: Fault.CUT_AFTER if asked.is_update else None)
        with pytest.raises(UncertainOutcome, match="could not be taken back") as caught:
            db.update(UPDATE)
        assert "--log DIR" in caught.value.hint
        proxy.begin()
        before = stored(server)
        db.update("INSERT DATA { <urn:new> <urn:p> 1 }")
        assert difference(before, stored(server))


def test_a_refusal_in_the_middle(server: Server, proxy: Proxy, tmp_path: Path) -> None:
    before = stored(server)
    with connect(proxy, tmp_path) as db:
        updates: list[int] = []

        def refuse_third(asked: Asked) -> Answer | None:
            updates.extend([asked.number] if asked.is_update else [])
            return Answer(500, b"out of memory") if asked.is_update and len(updates) == 3 else None

        proxy.begin(refuse_third)
        with pytest.raises(EndpointError, match="answered 500 Internal Server Error: out of memory"):
            db.update(UPDATE)
        assert stored(server) == before
        assert files(tmp_path) == set()


def test_a_gateway_that_gives_up(server: Server, proxy: Proxy, tmp_path: Path) -> None:
    """Nobody knows what the server behind it does."""
    before = stored(server)
    with connect(proxy, tmp_path) as db:
        late: list[int] = []

        def give_up_once(asked: Asked) -> Answer | None:
            if asked.is_update and not late:
                late.append(asked.number)
                run(server, asked.body.decode())
                return Answer(504, b"timed out")
            return None

        proxy.begin(give_up_once)
        with pytest.raises(UncertainOutcome, match="504 Gateway"):
            db.update(UPDATE)
        assert stored(server) == before
        db.update("CLEAR SILENT GRAPH <urn:none>")
        assert stored(server) == before
        assert files(tmp_path) == {"000000000001.rdfp"}


# --- a process that dies

CLIENT = """
import dataclasses, os, sys
import evergraph as eg
from evergraph.gate import dialects
from evergraph.gate.journal import Journal
dialects.OXIGRAPH = dataclasses.replace(dialects.OXIGRAPH, write_quads=5, write_operations=1)
query_url, update_url, log, die = sys.argv[1:]
db = eg.connect(query_url, update_url, log=log)
if die == "before settling":
    Journal.settle = lambda journal, sequence: os._exit(9)
print("ready", flush=True)
db.update("INSERT DATA { GRAPH <urn:new> { " + " ".join(f"<urn:s> <urn:p> {n} ." for n in range(200)) + " } } ;"
          "DELETE WHERE { <urn:a> <urn:p> ?o }")
print("done", flush=True)
"""


def start_client(proxy: Proxy, log: Path, die: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CLIENT, proxy.query_url, proxy.update_url, str(log), die]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    return client


def test_kill_in_the_middle_of_a_write(server: Server, proxy: Proxy, tmp_path: Path) -> None:
    moments, cut_short = Random(3), 0
    before = stored(server)
    for number in range(3):
        log = tmp_path / str(number)
        writes = moments.randrange(2, 40)

        def pass_slowly(asked: Asked) -> None:
            time.sleep(0.005)

        proxy.begin(pass_slowly)
        with start_client(proxy, log) as client:
            while sum(asked.is_update for asked in list(proxy.asked)) < writes:
                time.sleep(0.002)
            client.kill()
        time.sleep(0.1)  # the last request is still on its way
        cut_short += stored(server) != before
        assert ".unsettled" in files(log)
        with connect(proxy, log) as db:
            assert stored(server) == before
            assert db.sequence == 0
            assert files(log) == set()
            assert len(db.update("INSERT DATA { <urn:a> <urn:p> 11 }").inserted) == 1
            assert len(db.update("DELETE DATA { <urn:a> <urn:p> 11 }").deleted) == 1
            assert files(log) == {"000000000001.rdfp"}
    assert cut_short == 3


def test_death_after_the_change_was_logged(server: Server, proxy: Proxy, tmp_path: Path) -> None:
    """The change counts: the journal that still names it must not undo it."""
    before = stored(server)
    with start_client(proxy, tmp_path, "before settling") as client:
        assert client.wait(30) == 9
    assert files(tmp_path) == {".unsettled", "000000000001.rdfp"}
    after = stored(server)
    with connect(proxy, tmp_path) as db:
        assert db.sequence == 1
        assert stored(server) == after
        [change] = db.changes()
        assert change.delta == difference(before, after)
        assert files(tmp_path) == {"000000000001.rdfp"}


def test_a_journal_that_cannot_be_written(server: Server, proxy: Proxy, tmp_path: Path) -> None:
    before = stored(server)
    with connect(proxy, tmp_path) as db:
        (tmp_path / ".unsettled").mkdir()
        with pytest.raises(StoreError, match="cannot write the journal"):
            db.update(UPDATE)
        (tmp_path / ".unsettled").rmdir()
        assert stored(server) == before
        assert db.update(UPDATE).delta == difference(before, stored(server))


def test_a_log_that_cannot_be_written(
    server: Server, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint has the change by then; it is taken back."""
    before = stored(server)
    with connect(proxy, tmp_path) as db:

        def full(*arguments: object) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr("evergraph.log.os.write", full)
            with pytest.raises(StoreError, match="No space left"):
                db.update(UPDATE)
        assert stored(server) == before
        assert (db.sequence, list(db.changes())) == (0, [])
        assert db.update(UPDATE).delta == difference(before, stored(server))


# --- an endpoint that is not there, or not what it should be


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def apply(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> tuple[int, str]:
    """Run the command line; return its exit code and what it says."""
    (folder / "update.ru").write_text("INSERT DATA { <urn:new> <urn:p> 1 }")
    with pytest.raises(SystemExit) as exited:
        main(["apply", *options, str(folder / "update.ru")])
    said = capsys.readouterr()
    assert not said.out
    code = exited.value.code
    assert isinstance(code, int)
    return code, said.err


@pytest.mark.parametrize(
    ("place", "behaviour", "expected"),
    [
        ("query", Answer(404, b"not found"), "answered 404 Not Found: not found"),
        ("query", Answer(401), "answered 401 Unauthorized"),
        ("query", Answer(403, b"no entry"), "answered 403 Forbidden: no entry"),
        ("query", Answer(503), "answered 503 Service Unavailable"),
        (
            "query",
            Answer(301, b"", {"Location": "http://127.0.0.1/new"}),
            "use the address that it names: http://127.0",
        ),
        ("query", Answer(200, b"<html>Welcome!", {"content-type": "text/html"}), "something unreadable (text/html)"),
        ("query", Answer(200, b"{}", {"content-type": "application/json"}), "something unreadable (application/json)"),
        ("query", Answer(200, b'{"head":', FALSE.headers), "something unreadable"),
        ("query", Answer(200, FALSE.body, FALSE.headers, length=100), "does not answer"),
        ("query", Fault.CUT_BEFORE, "does not answer"),
        ("update", Answer(404, b"not found"), "answered 404 Not Found: not found"),
        ("update", Answer(401), "answered 401 Unauthorized"),
        ("update", Answer(403), "answered 403 Forbidden"),
        ("update", Answer(405), "answered 405 Method Not Allowed"),
        (
            "update",
            Answer(302, b"", {"Location": "http://127.0.0.1/new"}),
            "use the address that it names: http://127.0",
        ),
        ("update", Answer(200, b"<html>Welcome!", {"content-type": "text/html"}), "took a change that"),
        ("update", Answer(204), "took a change that"),
        ("update", Answer(400, b"parse error"), "answered 400 Bad Request: parse error"),
    ],
)
def test_the_command_line_says_what_is_wrong(
    server: Server,
    proxy: Proxy,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    place: str,
    behaviour: Answer | Fault,
    expected: str,
) -> None:
    before = stored(server)
    proxy.begin(lambda asked: behaviour if asked.is_update == (place == "update") else None)
    addresses = ["--endpoint", proxy.query_url, "--update-endpoint", proxy.update_url]
    code, message = apply(capsys, tmp_path, *addresses, "--log", str(tmp_path / "log"))
    assert code == 1
    assert expected in message
    assert (proxy.update_url if place == "update" else proxy.query_url) in message
    assert "\n  hint: " in message
    assert "Traceback" not in message
    assert stored(server) == before
    log = tmp_path / "log"
    if expected.startswith("answered 400"):  # the server may have done part of it, and refuses to undo it
        assert "could not be taken back" in message
        assert files(log) == {".unsettled"}
        proxy.begin()
        connect(proxy, log).close()
        assert stored(server) == before
    assert not log.exists() or files(log) == set()


@pytest.mark.parametrize("address", ["nonsense", "ftp://127.0.0.1/"])
def test_an_address_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str) -> None:
    code, message = apply(capsys, tmp_path, "--endpoint", address)
    assert code == 2
    assert "is not the address of an endpoint" in message
    with pytest.raises(EndpointError, match="does not answer"):
        eg.connect(address, address)


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}/query", "http://127.0.0.1:99999/", "http://["])
def test_nobody_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str) -> None:
    url = address.format(port=free_port())
    code, message = apply(capsys, tmp_path, "--endpoint", url)
    assert code == 1
    assert message.startswith(f"evergraph: {url} does not answer: ")
    assert "hint: check that the server runs and the address is right" in message


def test_the_update_service_is_not_there(server: Server, proxy: Proxy, tmp_path: Path) -> None:
    """Nothing was written, so nothing is to be taken back."""
    before = stored(server)
    with eg.connect(proxy.query_url, f"http://127.0.0.1:{free_port()}/update", log=tmp_path) as db:
        for _ in range(2):
            with pytest.raises(EndpointError, match="does not answer") as caught:
                db.update(UPDATE)
            assert not isinstance(caught.value, UncertainOutcome)
            assert files(tmp_path) == set()
    assert stored(server) == before


def test_the_server_itself_dies_and_comes_back(tmp_path: Path) -> None:
    with servers.start("oxigraph") as mortal:
        db = eg.connect(mortal.query_url, mortal.update_url, log=tmp_path)
        db.update(OLD)
    with pytest.raises(EndpointError, match="does not answer"):
        db.update(UPDATE)
    assert db.sequence == 1
    db.close()
    assert files(tmp_path) == {"000000000001.rdfp"}


def test_a_slow_query(server: Server, proxy: Proxy) -> None:
    before = stored(server)
    with connect(proxy, timeout=0.2) as db:
        proxy.begin(lambda asked: None if asked.is_update else Fault.SLOW)
        with pytest.raises(EndpointError, match="does not answer: timed out"):
            db.update(UPDATE)
    assert stored(server) == before


def test_a_slow_update(server: Server, proxy: Proxy, tmp_path: Path) -> None:
    before = stored(server)
    with connect(proxy, tmp_path, timeout=0.2) as db:
        seen: list[int] = []

        def slow_once(asked: Asked) -> Fault | None:
            seen.extend([asked.number] if asked.is_update else [])
            return Fault.SLOW if asked.is_update and len(seen) == 1 else None

        proxy.begin(slow_once)
        with pytest.raises(UncertainOutcome, match="timed out, in the middle of a write"):
            db.update(UPDATE)
        assert stored(server) == before
        assert db.update(UPDATE).delta == difference(before, stored(server))
        assert files(tmp_path) == {"000000000001.rdfp"}


ROWS = (
    b'{"head":{"vars":["g"]},"results":{"bindings":['
    b'{"g":{"type":"uri","value":"urn:g"}},{"g":{"type":"uri","value":"urn:h"}}]}}'
)


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, {"X-SPARQL-MaxRows": "2"}, "cut its answer short after 2 rows"),
        (200, {"X-SQL-State": "S1TAT"}, "answered in part"),
        (206, {}, "answered in part"),
    ],
)
def test_an_answer_that_is_cut_short(
    server: Server, proxy: Proxy, status: int, headers: dict[str, str], expected: str
) -> None:
    """Quads that are missing from an answer must not count as absent."""
    before = stored(server)
    with connect(proxy) as db:
        proxy.begin(lambda asked: None if asked.is_update else Answer(status, ROWS, {**FALSE.headers, **headers}))
        with pytest.raises(EndpointError, match=expected) as caught:
            db.update("CLEAR NAMED")
        assert "limits of the server" in caught.value.hint
        assert stored(server) == before


def test_as_many_rows_as_may_be(proxy: Proxy) -> None:
    with connect(proxy) as db:
        proxy.begin(lambda asked: Answer(200, ROWS, {**FALSE.headers, "X-SPARQL-MaxRows": "3"}))
        assert len(list(db.query("SELECT ?g { GRAPH ?g {} }"))) == 2  # type: ignore[arg-type]


def test_credentials_are_sent(proxy: Proxy) -> None:
    with eg.connect(proxy.query_url, proxy.update_url, headers={"Authorization": "Bearer secret"}) as db:
        db.update(UPDATE)
    assert {asked.headers["Authorization"] for asked in proxy.asked} == {"Bearer secret"}


def test_an_address_with_parameters_keeps_them(proxy: Proxy) -> None:
    with eg.connect(f"{proxy.query_url}?infer=false", proxy.update_url):
        assert all("infer=false" in asked.path for asked in proxy.asked)


def test_two_processes_with_one_log(proxy: Proxy, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLIENT, proxy.query_url, proxy.update_url, str(tmp_path), ""]
    with connect(proxy, tmp_path) as db:
        second = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        assert "is in use by another process" in second.stderr
        db.update(UPDATE)
        assert db.sequence == 1
