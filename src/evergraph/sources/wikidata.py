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
from dataclasses import dataclass, field
from itertools import count, islice
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

_ENTITY = "http://www.wikidata.org/entity/"
_DOCUMENT = "wikidata.org/wiki/Special:EntityData/"
_ABOUT = NamedNode("http://schema.org/about")
_OPERATIONS = ("import", "diff", "delete", "reconcile")


def is_events(path: AnyPath) -> bool:
    """Tell by its name whether a file holds events."""
    return str(path).removesuffix(".gz").endswith(ENDINGS)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """An entity of which everything goes."""

    entity: str

    def among(self, known: Mapping[Subject, Iterable[Quad]]) -> Iterator[Quad]:
        """Find what goes, among all triples that are known, by their subjects."""
        entity = NamedNode(_ENTITY + self.entity)
        for subject, quads in known.items():
            if self._owns(subject) or any(quad.predicate == _ABOUT and quad.object == entity for quad in quads):
                yield from quads

    def _owns(self, subject: Subject) -> bool:
        if not isinstance(subject, NamedNode):
            return False
        text = subject.value
        if not text.startswith(_ENTITY):
            return text.partition("://")[2].removeprefix("www.") == _DOCUMENT + self.entity
        name = text[len(_ENTITY) :].removeprefix("statement/").upper()
        return name == self.entity or name.startswith(f"{self.entity}-")


@dataclass(slots=True)
class _Event:
    """The pieces of one event."""

    first: dict[str, Any]
    line: int
    removed: set[Quad] = field(default_factory=set)
    added: set[Quad] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class WikidataSource:
    """The changes of a file of events."""

    path: AnyPath

    def changes(self, after: int = 0) -> Iterator[SourceChange]:
        """Iterate over the changes; those up to ``after`` are read too, because only reading counts them."""
        sequence = count(1)
        for event in self._events():
            number = next(sequence)
            if number > after:
                operation, entity = event.first["operation"], event.first["entity_id"]
                forgotten = Forgotten(entity) if operation in ("delete", "reconcile") else None
                request = Request(frozenset(event.removed), frozenset(event.added))
                yield SourceChange(number, request, f"{self.path}:{event.line}", forgotten=forgotten)

    def place(self, sequence: int) -> str | None:
        """Name the line of an event."""
        event = next(islice(self._events(), sequence - 1, None), None)
        return None if event is None else f"{self.path}:{event.line}"

    def _events(self) -> Iterator[_Event]:
        current: _Event | None = None
        for line, content in self._objects():
            piece, pieces = content.get("sequence", 0), content.get("sequence_length", 1)
            if piece == 0:
                if current is not None:
                    raise self._problem(current.line, "an event of several pieces is not complete")
                current = _Event(content, line)
            elif current is None or content["entity_id"] != current.first["entity_id"]:
                raise self._problem(line, f"piece {piece} of an event that did not begin")
            for key, quads in (
                ("rdf_deleted_data", current.removed),
                ("rdf_added_data", current.added),
                ("rdf_linked_shared_data", current.added),
            ):
                quads.update(self._quads(content.get(key), line))
            if piece + 1 >= pieces:
                yield current
                current = None
        if current is not None:
            raise self._problem(current.line, "an event of several pieces is not complete")

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        with open_input(self.path) as stream:
            for line, text in enumerate(stream, 1):
                if not text.strip():
                    continue
                try:
                    content = json.loads(text)
                except ValueError as error:
                    raise self._problem(line, f"not JSON: {error}") from error
                if not isinstance(content, dict) or not isinstance(content.get("entity_id"), str):
                    raise self._problem(line, "an event without entity_id")
                if content.get("operation") not in _OPERATIONS:
                    raise self._problem(line, f"the operation {content.get('operation')!r} is not known")
                yield line, content

    def _quads(self, chunk: Any, line: int) -> Iterator[Quad]:
        if not chunk:
            return
        format = RdfFormat.from_media_type(str(chunk.get("mime_type", ""))) if isinstance(chunk, dict) else None
        if format is None:
            raise self._problem(line, "RDF data without a known mime_type")
        yield from parse_quads(
            str(chunk.get("data", "")), format, where=f"{self.path}:{line}", rename_blank_nodes=False
        )

    def _problem(self, line: int, reason: str) -> DataError:
        return DataError(
            f"{self.path}:{line}: {reason}",
            hint="a line is one event of the schema mediawiki/wikibase/entity/rdf_change",
        )
