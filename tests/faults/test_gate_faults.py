"""What the embedded database does when things go wrong: crashes, full disks, documents that cannot be loaded."""

import gzip
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from pyoxigraph import Store
from tests.support.datasets import replay

import evergraph as eg
from evergraph.delta import Change, Delta
from evergraph.errors import StoreError, UpdateFailed
from evergraph.gate.embedded import EmbeddedDataset
from evergraph.log import ChangeLog
from evergraph.terms import Literal, NamedNode, Quad

A, P = NamedNode("urn:a"), NamedNode("urn:p")


def quads(*values: str) -> frozenset[Quad]:
    return frozenset(Quad(A, P, Literal(value)) for value in values)


def check_history(db: eg.Database) -> None:
    """See that the log has no gaps, adds up to the dataset, and ends with the last change."""
    changes = list(db.changes())
    assert replay(changes) == frozenset(db.quads())
    assert len(changes) == db.sequence


# --- a process that dies

WRITERS = """
import os, sys, evergraph as eg

def write():
    print(os.getpid(), flush=True)
    db = eg.open(sys.argv[1], sync=False)
    while True:
        n = db.sequence + 1
        change = db.update(f'''
            DELETE WHERE {{ ?s <urn:of> ?o }};
            INSERT DATA {{ {" ".join(f"<urn:s{i}> <urn:of> {n} ." for i in range(20))} _:new <urn:of> {n} }};
            INSERT {{ GRAPH <urn:copy> {{ ?s <urn:copy> ?o }} }} WHERE {{ ?s <urn:of> ?o FILTER(isIRI(?s)) }}''')
        print(change.sequence, flush=True)

for _ in sys.stdin:
    writer = os.fork()
    if not writer:
        write()
    os.waitpid(writer, 0)
    print("dead", flush=True)
"""


def killed_writers(folder: Path, moments: list[float]) -> Iterator[list[int]]:
    """Let a process write until it is killed after some time, and again; tell what each acknowledged."""
    command = [sys.executable, "-c", WRITERS, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as parent:
        assert parent.stdin
        assert parent.stdout
        for moment in moments:
            parent.stdin.write("go\n")
            writer = int(parent.stdout.readline())
            time.sleep(moment)
            os.kill(writer, signal.SIGKILL)
            yield [int(line) for line in iter(parent.stdout.readline, "dead\n")]


def test_kill_at_any_moment(tmp_path: Path) -> None:
    """After each of many kills: what was acknowledged is there, what was under way is there wholly or not at all."""
    chance, reached = random.Random(1), 0
    for acknowledged in killed_writers(tmp_path / "db", [chance.uniform(0, 0.2) for _ in range(25)]):
        with eg.open(tmp_path / "db", sync=False) as db:
            last = acknowledged[-1] if acknowledged else reached
            assert last <= db.sequence <= last + 1
            reached = db.sequence
            batches = [quad.object for quad in db.quads() if quad.predicate.value == "urn:of"]
            assert batches == [Literal(reached)] * 21 if reached else not batches
            assert len(list(db.quads())) == (21 + 20 * reached if reached else 0)
            check_history(db)
    assert reached > 25


def test_a_log_that_is_cut_anywhere_in_its_last_record(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "log")
    log.append(Change(1, Delta(inserted=quads("first"))))
    [segment] = (tmp_path / "log").iterdir()
    first = segment.stat().st_size
    log.append(Change(2, Delta(inserted=quads("seco\nnd TC .\n", "é"), deleted=quads("first"))))
    log.close()
    whole = segment.read_bytes()
    for size in range(first, len(whole)):
        segment.write_bytes(whole[:size])
        reader = ChangeLog(tmp_path / "log", read_only=True)
        assert [change.sequence for change in reader.read()] == [1]
        again = ChangeLog(tmp_path / "log")
        assert again.last == 1
        assert segment.stat().st_size == first
        again.append(Change(2, Delta(inserted=quads("other"))))
        again.close()
        assert replay(ChangeLog(tmp_path / "log").read()) == quads("first", "other")


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 1.0])
def test_a_crash_between_log_and_store(tmp_path: Path, part: float) -> None:
    """A change that is wholly in the log counts, and opening completes it; part of one never was."""
    with eg.open(tmp_path) as db:
        db.update("INSERT DATA { <urn:a> <urn:p> 'old' }")
    [segment] = (tmp_path / "log").iterdir()
    before = segment.stat().st_size
    log = ChangeLog(tmp_path / "log")
    log.append(Change(2, Delta(inserted=quads("new"), deleted=quads("old"))))
    log.close()
    os.truncate(segment, before + int((segment.stat().st_size - before) * part))
    with eg.open(tmp_path) as db:
        assert frozenset(db.quads()) == (quads("new") if part == 1 else quads("old"))
        check_history(db)
        assert db.update("CLEAR ALL").sequence == (3 if part == 1 else 2)


class Watched:
    """A store that notes what is called to change it."""

    def __init__(self, store: Store, writes: list[str]) -> None:
        self._store = store
        self._writes = writes

    def __getattr__(self, name: str) -> Any:
        if name in ("add", "remove", "extend", "update", "add_graph", "remove_graph", "clear", "clear_graph"):
            self._writes.append(name)
        return getattr(self._store, name)

    def __contains__(self, quad: Quad) -> bool:
        return quad in self._store


@pytest.mark.parametrize(
    "request_",
    [
        "INSERT DATA { <urn:a> <urn:p> 1 , 2 . GRAPH <urn:g> { <urn:a> <urn:p> 1 } }",
        "DELETE DATA { <urn:a> <urn:p> 'x' }",
        "MOVE DEFAULT TO <urn:g>; CREATE GRAPH <urn:empty>; INSERT DATA { <urn:a> <urn:p> 1 }; DROP GRAPH <urn:old>",
    ],
)
def test_a_request_is_one_transaction_of_the_store(tmp_path: Path, request_: str) -> None:
    """Nothing can come between two writes, for there is one."""
    with eg.open(tmp_path) as db:
        db.update("INSERT DATA { <urn:a> <urn:p> 'x' . GRAPH <urn:old> { <urn:a> <urn:p> _:x } }")
        dataset, writes = db._dataset, list[str]()
        assert isinstance(dataset, EmbeddedDataset)
        dataset.store = cast(Store, Watched(dataset.store, writes))
        assert db.update(request_)
        assert len(writes) == 1
        check_history(db)


def test_a_store_that_is_behind_its_log_catches_up(tmp_path: Path) -> None:
    """Without a flush the store may lose any number of the last changes; the log has them all."""
    with eg.open(tmp_path / "db") as db:
        db.update("INSERT DATA { <urn:a> <urn:p> 'old' }")
    shutil.copytree(tmp_path / "db" / "store", tmp_path / "old store")
    db = eg.open(tmp_path / "db")
    for number in range(5):
        db.update(f"DELETE WHERE {{ ?s ?p ?o }}; INSERT DATA {{ _:x <urn:p> {number} }}")
    expected = frozenset(db.quads())
    del db  # as a crash leaves it: nothing is flushed
    shutil.rmtree(tmp_path / "db" / "store")
    shutil.move(tmp_path / "old store", tmp_path / "db" / "store")
    with eg.open(tmp_path / "db") as db:
        assert frozenset(db.quads()) == expected
        check_history(db)


def test_a_log_that_is_behind_its_store_is_refused(tmp_path: Path) -> None:
    with eg.open(tmp_path) as db:
        db.update("CLEAR ALL")
        db.update("CLEAR ALL")
    [segment] = (tmp_path / "log").iterdir()
    os.truncate(segment, segment.stat().st_size - 1)
    with pytest.raises(StoreError, match="ends with change 1, but the store holds change 2"):
        eg.open(tmp_path)


def test_a_store_in_use_by_another_process(tmp_path: Path) -> None:
    """The second writer is turned away before it touches the log, where the first may be in the middle of a record."""
    with eg.open(tmp_path) as db:
        db.update("INSERT DATA { <urn:a> <urn:p> 'x' }")
        [segment] = (tmp_path / "log").iterdir()
        with segment.open("ab") as half_written:
            half_written.write(b"H sequ")
        size = segment.stat().st_size
        opening = [sys.executable, "-c", "import sys, evergraph as eg; eg.open(sys.argv[1])", str(tmp_path)]
        outcome = subprocess.run(opening, capture_output=True, text=True, check=False)
        assert "StoreError" in outcome.stderr
        assert "is in use already" in outcome.stderr
        assert segment.stat().st_size == size


# --- a full disk

MUCH = "INSERT DATA {{ {} }}".format(" ".join(f"<urn:a> <urn:p> '{{n}} {i} {'x' * 200}' ." for i in range(50)))
NOTHING = "CLEAR ALL"


def repeat_until_refused(db: eg.Database, request: str) -> StoreError:
    for number in range(10_000):
        before, sequence = frozenset(db.quads()), db.sequence
        try:
            db.update(request.replace("{n}", str(number)))
        except StoreError as error:
            assert (frozenset(db.quads()), db.sequence) == (before, sequence)
            return error
    raise AssertionError("nothing was refused")


def test_a_full_disk(small_disk: Path) -> None:
    db = eg.open(small_disk / "db")
    assert "No space left on device" in repeat_until_refused(db, MUCH).message
    expected, sequence = frozenset(db.quads()), db.sequence
    with pytest.raises(StoreError):
        db.update(MUCH)
    db.close()
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    with eg.open(small_disk / "db") as db:
        assert (frozenset(db.quads()), db.sequence) == (expected, sequence)
        check_history(db)
        assert db.update(MUCH).sequence == sequence + 1


LIMITED = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import evergraph as eg
from tests.faults import test_gate_faults as test
db = eg.open(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
print(test.repeat_until_refused(db, sys.argv[3]).message)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
try:
    print(db.update("INSERT DATA { <urn:a> <urn:p> 'after' }").sequence)
except eg.EvergraphError as error:
    print(error.hint)
"""


@pytest.mark.parametrize(
    ("request_", "refused", "afterwards"),
    [
        pytest.param(NOTHING, "cannot write the change log .*: File too large", "[0-9]+", id="log"),
        pytest.param(MUCH, "the store could not be written: .*: File too large", ".*open it again", id="store"),
    ],
)
def test_a_limit_on_the_size_of_files(
    tmp_path: Path, pytestconfig: pytest.Config, request_: str, refused: str, afterwards: str
) -> None:
    """What does not fit is cut off. With space again the log goes on at once, the store after it is opened again."""
    command = [sys.executable, "-c", LIMITED, str(pytestconfig.rootpath), str(tmp_path / "db"), request_]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert re.fullmatch(f"{refused}\n{afterwards}\n", outcome.stdout), outcome
    with eg.open(tmp_path / "db") as db:
        check_history(db)
        assert db.update(MUCH).sequence == db.sequence


# --- documents that cannot be loaded


class Documents(BaseHTTPRequestHandler):
    """Good and bad documents over HTTP."""

    def do_GET(self) -> None:
        documents = {
            "/good": ("text/turtle; charset=utf-8", b"<> <urn:p> 1 ."),
            "/good.nt": ("text/plain", b"<urn:a> <urn:p> <urn:b> ."),
            "/html": ("text/html", b"<!doctype html><p>Welcome!"),
            "/broken": ("text/turtle", b"<urn:a> <urn:p> 1 . <urn:a>"),
            "/graphs": ("application/n-quads", b"<urn:a> <urn:p> <urn:b> <urn:g> ."),
        }
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/good")
            self.end_headers()
            return
        kind, content = documents.get(self.path, ("text/plain", b"nothing here"))
        self.send_response(200 if self.path in documents else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Documents) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "a b.ttl").write_text("<> <urn:p> 1 .")
    (folder / "broken.ttl").write_text("<urn:a> <urn:p> 1 .\n<urn:a> <urn:p> .")
    (folder / "unknown.docx").write_text("")
    whole = gzip.compress(b"<urn:a> <urn:p> 1 .\n" * 1000)
    (folder / "whole.ttl.gz").write_bytes(whole)
    (folder / "torn.ttl.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "folder.ttl").mkdir()
    return folder.as_uri()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("{files}/missing.ttl", "no such file"),
        ("{files}/broken.ttl", "broken.ttl:2:"),
        ("{files}/torn.ttl.gz", "damaged gzip file"),
        ("{files}/unknown.docx", "the file ending names no RDF syntax"),
        ("{files}/folder.ttl", "a folder where a file is needed"),
        ("{files}/a%00b.ttl", "null byte"),
        ("{web}/missing", "404"),
        ("{web}/html", "'text/html' is not the media type of an RDF syntax"),
        ("{web}/broken", "/broken:1:"),
        ("{web}/graphs", "named graphs"),
        ("http://127.0.0.1:1/x", "refused"),
        ("http://127.0.0.1:99999/x", ""),
        ("ftp://example.org/x", "ftp: addresses cannot be read"),
        ("urn:x", "urn: addresses cannot be read"),
    ],
)
def test_load_fails(files: str, web: str, address: str, reason: str) -> None:
    document = address.format(files=files, web=web)
    db = eg.open()
    with pytest.raises(UpdateFailed) as caught:
        db.update(f"INSERT DATA {{ <urn:a> <urn:p> 1 }};\nLOAD <{document}>")
    assert caught.value.message.startswith(f"operation 2 (Load, line 2): <{document}> cannot be loaded: ")
    assert reason in caught.value.message
    assert (list(db.quads()), db.sequence) == ([], 0)
    change = db.update(f"INSERT DATA {{ <urn:a> <urn:p> 1 }};\nLOAD SILENT <{document}> INTO GRAPH <urn:g>")
    assert len(change.inserted) == 1


@pytest.mark.parametrize(
    "address", ["{files}/a%20b.ttl", "{files}/whole.ttl.gz", "{web}/good", "{web}/good.nt", "{web}/moved"]
)
def test_load_succeeds(files: str, web: str, address: str) -> None:
    document = address.format(files=files, web=web)
    [quad] = eg.open().update(f"LOAD <{document}> INTO GRAPH <urn:g>").inserted
    assert quad.graph_name == NamedNode("urn:g")
    assert quad.subject in (A, NamedNode(document), NamedNode(f"{web}/good"))
