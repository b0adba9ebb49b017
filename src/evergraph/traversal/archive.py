"""What outlives a run: answers of servers, and how far each traversal has come. One SQLite file, perhaps temporary."""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from evergraph.errors import StoreError
from evergraph.traversal.freshness import fresh_until, may_store

FILE = "traversal.sqlite"
_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers
  (url TEXT PRIMARY KEY, status INTEGER, headers TEXT, body BLOB, received REAL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, started REAL, sequence INTEGER);
CREATE TABLE IF NOT EXISTS visits
  (run TEXT, iri TEXT, depth INTEGER, rank INTEGER, found_in TEXT, document TEXT, problem TEXT, number INTEGER,
   PRIMARY KEY (run, iri)) WITHOUT ROWID;
"""
_VOLATILE = 64_000_000
"""Bytes of answers that must not be stored, which are kept nevertheless while they may be needed again."""
_KEPT = frozenset(
    ("age", "cache-control", "content-type", "date", "etag", "expires", "last-modified", "link", "location", "vary")
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered for one address: the document, or where to go on. Header names are in small letters."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    received: float

    def is_good(self, now: float, since: float) -> bool:
        """Tell whether it can be used without asking again: it is fresh, or was received since."""
        until = fresh_until(self.headers, self.received)
        return self.received >= since or (until is not None and now < until)


@dataclass(frozen=True, slots=True)
class Visited:
    """How far one IRI has come in a traversal: queued, or with a document, or with a problem."""

    iri: str
    depth: int
    rank: int
    found_in: str | None
    document: str | None = None
    problem: str | None = None


class Archive:
    """Keeps answers and visits, in a folder or, without one, for as long as it is open.

    Threads may share it; processes may not.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._lock = RLock()
        self._volatile: dict[str, Answer] = {}
        """What servers forbid to store: kept for this run only, never on disk, and no more of it than there is room."""
        self._room = _VOLATILE
        place = ""  # a temporary file of SQLite's own, of which little is in memory
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"{folder}: {error.strerror}", hint="name a folder that can be written") from error
            place = str(folder / FILE)
        self._where = place
        with self._guarded():
            self._database = sqlite3.connect(place, timeout=1, check_same_thread=False, isolation_level=None)
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._begin()
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise StoreError(f"{place} was written by another version", hint="use another folder")
            for statement in _SCHEMA.split(";"):
                self._database.execute(statement)
            self._database.execute(f"PRAGMA user_version={_VERSION}")
            self.commit()

    def answer(self, url: str) -> Answer | None:
        """Return what is kept for an address."""
        with self._guarded():
            if url in self._volatile:
                return self._volatile[url]
            row = self._database.execute(
                "SELECT status, headers, body, received FROM answers WHERE url = ?", (url,)
            ).fetchone()
        if row is None:
            return None
        try:
            return Answer(url, row[0], json.loads(row[1]), zlib.decompress(row[2]), row[3])
        except (ValueError, zlib.error):
            return None  # damaged: as good as not there

    def keep(self, answer: Answer) -> None:
        """Keep an answer in place of an older one."""
        if not may_store(answer.headers):
            with self._guarded():
                self._forget(answer.url)
                self._volatile[answer.url] = answer
                self._room -= len(answer.body)
                while self._room < 0:
                    self._forget(next(iter(self._volatile)))
                self._database.execute("DELETE FROM answers WHERE url = ?", (answer.url,))
            return
        headers = {name: value for name, value in answer.headers.items() if name in _KEPT}
        row = (answer.url, answer.status, json.dumps(headers), zlib.compress(answer.body, 1), answer.received)
        with self._guarded():
            self._forget(answer.url)
            self._database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", row)

    def drop(self, url: str) -> None:
        """Forget what is kept for an address, because nothing is there any more."""
        with self._guarded():
            self._forget(url)
            self._database.execute("DELETE FROM answers WHERE url = ?", (url,))

    def begin(self, run: str, now: float) -> tuple[float, int, list[Visited]]:
        """Start a run, or go on with one that did not end: when it started, its sequence, and its visits in order."""
        with self._guarded():
            row = self._database.execute("SELECT started, sequence FROM runs WHERE run = ?", (run,)).fetchone()
            if row is None:
                self._database.execute("INSERT INTO runs VALUES (?, ?, 0)", (run, now))
                self.commit()
                return now, 0, []
            found = self._database.execute(
                "SELECT iri, depth, rank, found_in, document, problem FROM visits WHERE run = ? ORDER BY number", (run,)
            ).fetchall()
            return row[0], row[1], [Visited(*one) for one in found]

    def note(self, run: str, sequence: int, visits: Mapping[str, Visited], number: int) -> None:
        """Note how far a run is; all or nothing of it lasts."""
        rows = [
            (run, one.iri, one.depth, one.rank, one.found_in, one.document, one.problem, number + place)
            for place, one in enumerate(visits.values())
        ]
        with self._guarded():
            self._database.executemany("INSERT OR REPLACE INTO visits VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            self._database.execute("UPDATE runs SET sequence = ? WHERE run = ?", (sequence, run))
            self.commit()

    def end(self, run: str) -> None:
        """Forget how far a run was, because it is over; the answers stay."""
        with self._guarded():
            self._database.execute("DELETE FROM runs WHERE run = ?", (run,))
            self._database.execute("DELETE FROM visits WHERE run = ?", (run,))
            self.commit()

    def commit(self) -> None:
        """Let what was kept last."""
        with self._guarded():
            self._database.execute("COMMIT")
            self._begin()

    def close(self) -> None:
        """Write everything, and let go of the file."""
        with self._guarded():
            self._database.execute("COMMIT")
            self._database.close()

    def _forget(self, url: str) -> None:
        if (answer := self._volatile.pop(url, None)) is not None:
            self._room += len(answer.body)

    def _begin(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.OperationalError as error:
                if "locked" in str(error):
                    raise StoreError(
                        f"{self._where} is in use", hint="another traversal has it: use another folder"
                    ) from error
                raise StoreError(f"{self._where}: {error}", hint="free space, or use another folder") from error
            except sqlite3.DatabaseError as error:
                raise StoreError(
                    f"{self._where} is damaged: {error}", hint="remove it, or use another folder"
                ) from error
