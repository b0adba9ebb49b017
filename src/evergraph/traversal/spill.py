"""Documents on disk: what a large crawl knows, in a temporary file that SQLite makes and removes by itself."""

import sqlite3
import zlib
from collections.abc import Iterator, MutableMapping
from typing import Any

from pyoxigraph import RdfFormat

from evergraph.errors import StoreError
from evergraph.rdfio import parse_quads
from evergraph.terms import NamedNode, Triple, term_text

_SCHEMA = (
    "CREATE TABLE documents (place INTEGER PRIMARY KEY, url TEXT UNIQUE, body BLOB)",
    "CREATE TABLE said (triple TEXT PRIMARY KEY, documents INTEGER) WITHOUT ROWID",
)


class Spill:
    """A database of documents, and of how many of them say a triple. A few megabytes of it are in memory."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        for statement in ("PRAGMA journal_mode=OFF", "PRAGMA cache_size=-16000", "BEGIN", *_SCHEMA):
            self._database.execute(statement)
        self.documents: MutableMapping[NamedNode, frozenset[Triple]] = _Documents(self)
        self.said: MutableMapping[Triple, int] = _Said(self)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Run a statement."""
        try:
            return self._database.execute(statement, values)
        except sqlite3.OperationalError as error:
            hint = "free space, or let TMPDIR name another folder"
            raise StoreError(f"documents cannot be kept on disk: {error}", hint=hint) from error

    def close(self) -> None:
        """Remove everything."""
        self._database.close()


class _Documents(MutableMapping[NamedNode, frozenset[Triple]]):
    """The triples of each document, in the order in which the documents came."""

    def __init__(self, spill: Spill) -> None:
        self._spill = spill

    def __getitem__(self, document: NamedNode) -> frozenset[Triple]:
        row = self._spill.execute("SELECT body FROM documents WHERE url = ?", document.value).fetchone()
        if row is None:
            raise KeyError(document)
        return _triples(zlib.decompress(row[0]))

    def __setitem__(self, document: NamedNode, triples: frozenset[Triple]) -> None:
        body = zlib.compress("".join(f"{_text(triple)} .\n" for triple in triples).encode(), 1)
        statement = (
            "INSERT INTO documents (url, body) VALUES (?, ?) ON CONFLICT (url) DO UPDATE SET body = excluded.body"
        )
        self._spill.execute(statement, document.value, body)

    def __delitem__(self, document: NamedNode) -> None:
        if not self._spill.execute("DELETE FROM documents WHERE url = ?", document.value).rowcount:
            raise KeyError(document)

    def __contains__(self, document: object) -> bool:
        url = document.value if isinstance(document, NamedNode) else None
        return self._spill.execute("SELECT 1 FROM documents WHERE url = ?", url).fetchone() is not None

    def __iter__(self) -> Iterator[NamedNode]:
        return (NamedNode(url) for (url,) in self._spill.execute("SELECT url FROM documents ORDER BY place"))

    def __len__(self) -> int:
        return int(self._spill.execute("SELECT COUNT(*) FROM documents").fetchone()[0])


class _Said(MutableMapping[Triple, int]):
    """How many documents say a triple."""

    def __init__(self, spill: Spill) -> None:
        self._spill = spill

    def __getitem__(self, triple: Triple) -> int:
        row = self._spill.execute("SELECT documents FROM said WHERE triple = ?", _text(triple)).fetchone()
        if row is None:
            raise KeyError(triple)
        return int(row[0])

    def __setitem__(self, triple: Triple, documents: int) -> None:
        self._spill.execute("INSERT OR REPLACE INTO said VALUES (?, ?)", _text(triple), documents)

    def __delitem__(self, triple: Triple) -> None:
        if not self._spill.execute("DELETE FROM said WHERE triple = ?", _text(triple)).rowcount:
            raise KeyError(triple)

    def __iter__(self) -> Iterator[Triple]:
        for (text,) in self._spill.execute("SELECT triple FROM said"):
            yield from _triples(f"{text} .\n".encode())

    def __len__(self) -> int:
        return int(self._spill.execute("SELECT COUNT(*) FROM said").fetchone()[0])


def _text(triple: Triple) -> str:
    """Write a triple as N-Triples does."""
    return f"{triple.subject} {triple.predicate} {term_text(triple.object)}"


def _triples(body: bytes) -> frozenset[Triple]:
    quads = parse_quads(body, RdfFormat.N_TRIPLES, rename_blank_nodes=False)
    return frozenset(quad.triple for quad in quads)
