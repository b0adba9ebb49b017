"""Changes of Wikidata as its RDF change events: a file with one JSON object a line.

An event is about one entity (schema ``mediawiki/wikibase/entity/rdf_change``): **import** adds its triples, **diff**
adds some and deletes some, **delete** says that the entity is gone, and **reconcile** gives all its triples anew,
because something went wrong before. What is shared with other entities, such as references and values, is added too,
and stays when the event says that this entity no longer links to it: others may. A large event comes in pieces, which
are one change.

Of an entity that goes, all triples go of it, its statements, its document, and the articles that are about it, as far
as they are known: an article by its ``schema:about``.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pyoxigraph import RdfFormat

from evergraph.delta import Request
from evergraph.errors import DataError
from evergraph.files import AnyPath, open_input
from evergraph.ports import SourceChange, Subject
from evergraph.rdfio import parse_quads
from evergraph.terms import NamedNode, Quad

ENDINGS = (".jsonl", ".ndjson")
"""What files of events are called; each may be followed by ``.gz``."""

ENTITY = "http://www.wikidata.org/entity/"
DOCUMENT = "wikidata.org/wiki/Special:EntityData/"
ABOUT = NamedNode("http://schema.org/about")
_OPERATIONS = ("import", "diff", "delete", "reconcile")


def is_events(path: AnyPath) -> bool:
    """Tell by its name whether a file holds events."""
    return str(path).removesuffix(".gz").endswith(ENDINGS)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """An entity of which everything goes."""

    entity: str

    @property
    def name(self) -> NamedNode:
        """The entity itself."""
        return NamedNode(ENTITY + self.entity)

    def among(self, known: Mapping[Subject, Iterable[Quad]]) -> Iterator[Quad]:
        """Find what goes, among all triples that are known, by their subjects."""
        for subject, quads in known.items():
            if self.owns(subject) or any(quad.predicate == ABOUT and quad.object == self.name for quad in quads):
                yield from quads

    def owns(self, subject: Subject) -> bool:
        """Tell whether a subject is the entity, a part of it, one of its statements or its document."""
        if not isinstance(subject, NamedNode):
            return False
        text = subject.value
        if not text.startswith(ENTITY):
            return text.partition("://")[2].removeprefix("www.") == DOCUMENT + self.entity
        name = text[len(ENTITY) :].removeprefix("statement/").upper()
        return name == self.entity or name.startswith(f"{self.entity}-")


@dataclass(frozen=True, slots=True)
class Event:
    """An event: its lines in the file, numbered, and the place where the next one begins."""

    path: AnyPath
    pieces: tuple[tuple[int, dict[str, Any]], ...]
    end: int

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.pieces[0][0]

    @property
    def entity(self) -> str:
        """What it is about."""
        return str(self.pieces[0][1]["entity_id"])

    @property
    def forgets(self) -> bool:
        """Whether everything of the entity goes first."""
        return self.pieces[0][1]["operation"] in ("delete", "reconcile")

    def request(self) -> Request:
        """Parse what is deleted, and what is added or shared with others."""
        removed = self._quads("rdf_deleted_data")
        return Request(removed, self._quads("rdf_added_data") | self._quads("rdf_linked_shared_data"))

    def _quads(self, key: str) -> frozenset[Quad]:
        return frozenset(quad for line, content in self.pieces for quad in self._parsed(content.get(key), line))

    def _parsed(self, chunk: Any, line: int) -> Iterator[Quad]:
        if not chunk:
            return
        format = RdfFormat.from_media_type(str(chunk.get("mime_type", ""))) if isinstance(chunk, dict) else None
        if format is None:
            raise _problem(self.path, line, "RDF data without a known mime_type")
        yield from parse_quads(
            str(chunk.get("data", "")), format, where=f"{self.path}:{line}", rename_blank_nodes=False
        )


def scan_events(
    path: AnyPath, start: int = 0, line: int = 0, stop: int | None = None, *, grows: bool = False
) -> Iterator[Event]:
    """Iterate over the events of a file, from a place between two of them that is after so many lines.

    :param grows: what the end of the file cuts off is on its way, and no error.
    """
    pieces: list[tuple[int, dict[str, Any]]] = []
    for number, end, text in _lines(path, start, line, stop):
        if not text.strip():
            continue
        if grows and not text.endswith(b"\n"):
            return
        content = _content(path, number, text)
        piece = content.get("sequence", 0)
        if piece == 0 and pieces:
            raise _problem(path, pieces[0][0], "an event of several pieces is not complete")
        if piece and (not pieces or content["entity_id"] != pieces[0][1]["entity_id"]):
            raise _problem(path, number, f"piece {piece} of an event that did not begin")
        pieces.append((number, content))
        if piece + 1 >= content.get("sequence_length", 1):
            yield Event(path, tuple(pieces), end)
            pieces = []
    if pieces and not grows:
        raise _problem(path, pieces[0][0], "an event of several pieces is not complete")


def _lines(path: AnyPath, start: int, line: int, stop: int | None) -> Iterator[tuple[int, int, bytes]]:
    """Iterate over lines, each with its number and the place where it ends."""
    with open_input(path, start) as stream:
        for number, text in enumerate(stream, line + 1):
            if stop is not None and start >= stop:
                return
            start += len(text)
            yield number, start, text


def _content(path: AnyPath, line: int, text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise _problem(path, line, f"not JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("entity_id"), str):
        raise _problem(path, line, "an event without entity_id")
    if content.get("operation") not in _OPERATIONS:
        raise _problem(path, line, f"the operation {content.get('operation')!r} is not known")
    if any(not isinstance(content.get(key, 0), int) for key in ("sequence", "sequence_length")):
        raise _problem(path, line, "sequence and sequence_length must be whole numbers")
    try:
        NamedNode(ENTITY + content["entity_id"])
    except ValueError:
        raise _problem(path, line, f"{content['entity_id']!r} cannot be the name of an entity") from None
    return content


def _problem(path: AnyPath, line: int, reason: str) -> DataError:
    return DataError(
        f"{path}:{line}: {reason}", hint="a line is one event of the schema mediawiki/wikibase/entity/rdf_change"
    )


@dataclass(frozen=True, slots=True)
class WikidataSource:
    """The changes of a file of events; of one that ``grows``, what its end cuts off is left for later."""

    path: AnyPath
    grows: bool = False

    def changes(self, after: int = 0) -> Iterator[SourceChange]:
        """Iterate over the changes; those up to ``after`` are read too, because only reading counts them."""
        for number, event in islice(enumerate(scan_events(self.path, grows=self.grows), 1), after, None):
            forgotten = Forgotten(event.entity) if event.forgets else None
            yield SourceChange(number, event.request(), f"{self.path}:{event.line}", forgotten=forgotten)

    def place(self, sequence: int) -> str | None:
        """Name the line of an event."""
        event = next(islice(scan_events(self.path), sequence - 1, None), None)
        return None if event is None else f"{self.path}:{event.line}"
