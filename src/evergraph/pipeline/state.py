"""What a pipeline remembers between runs, besides its table of quads and the checkpoint of its stream.

``pipeline.json`` says what the state was made for: source, views with their queries, and sinks that are ready. A sink
is noted before it is begun, so that what a crash leaves of it is known to be ours.
"""

import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from evergraph.engines.spark.engine import SparkEngine
from evergraph.errors import EvergraphError
from evergraph.gate.journal import FolderLock
from evergraph.pipeline.definition import KINDS, EndpointSink, Pipeline, Sink, StoreSink, ViewDefinition
from evergraph.pipeline.sinks.base import save_json
from evergraph.sparql.expressions import Environment
from evergraph.terms import XSD, Literal, NamedNode

FORMAT = 1


class StateMismatch(EvergraphError):
    """The state of a pipeline was made for something else than its definition says now."""

    condition = "PIPELINE_STATE"


class State:
    """The folder of a pipeline's state; only one process at a time has it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.folder = pipeline.state
        self._pipeline = pipeline
        self._lock = FolderLock(self.folder)
        try:
            self._record: dict[str, Any] = self._load()
            self._refuse_changes()
            for view in pipeline.views:
                self._record["views"].setdefault(view.name, {"query": _identity(view), "now": Environment().now.value})
            (self.folder / "sinks").mkdir(exist_ok=True)
            shutil.rmtree(self.staging, ignore_errors=True)
            self.staging.mkdir()
        except BaseException:
            self._lock.release()
            raise

    @property
    def quads(self) -> Path:
        """The table of quads."""
        return self.folder / "quads"

    @property
    def checkpoint(self) -> Path:
        """Where Spark notes which changes are in which batch."""
        return self.folder / "checkpoint"

    @property
    def staging(self) -> Path:
        """Files that are of no use after a crash."""
        return self.folder / "staging"

    def close(self) -> None:
        """Let others in."""
        shutil.rmtree(self.staging, ignore_errors=True)
        self._lock.release()

    def remember(self, engine: SparkEngine) -> None:
        """Let views see the world as they did in other runs: NOW() stays the same moment."""
        for name, view in list(engine.views.items()):
            known = self._record["views"][name.partition(" ")[0]]  # both queries of a linkset have its name
            moment = Literal(known["now"], datatype=NamedNode(XSD + "dateTime"))
            engine.views[name] = replace(view, environment=Environment(now=moment))

    # --- sinks

    def key(self, view: ViewDefinition | None, sink: Sink) -> str:
        """Name a sink: what flows into it, its kind and its place, as seen from the state."""
        place = sink.query_url if isinstance(sink, EndpointSink) else self._seen(sink.path)
        if isinstance(sink, EndpointSink | StoreSink):
            place += f" {sink.graph or ''}"
        return f"{view.name if view else ''} {KINDS[type(sink)]} {place}"

    def ledger(self, key: str) -> Path:
        """Return the file for the notes of a sink."""
        return self.folder / "sinks" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"

    def sink_state(self, key: str) -> str:
        """Tell whether a sink is ``"ready"``, only ``"begun"``, or new (empty)."""
        return str(self._record["sinks"].get(key, ""))

    def note_sink(self, key: str, state: str) -> None:
        """Note how far a sink is."""
        self._record["sinks"][key] = state
        self._save()

    def accept(self, keys: set[str]) -> None:
        """The definition can be run: keep it, and forget all views and sinks that it does not have."""
        names = {view.name for view in self._pipeline.views}
        self._record["views"] = {name: known for name, known in self._record["views"].items() if name in names}
        for key in set(self._record["sinks"]) - keys:
            del self._record["sinks"][key]
            self.ledger(key).unlink(missing_ok=True)
        self._save()

    # --- batches

    def note_begun(self, batch: int, sequence: int) -> None:
        """Note that the sinks are about to get a batch: from here on it must be read as it was."""
        (self.folder / "begun.json.new").write_text(json.dumps({"batch": batch, "sequence": sequence}))
        (self.folder / "begun.json.new").replace(self.folder / "begun.json")

    def begun(self, committed: int) -> int:
        """Return the sequence at the end of a batch that sinks may have got and that does not count yet; or -1."""
        try:
            found = json.loads((self.folder / "begun.json").read_text())
        except (FileNotFoundError, ValueError):  # a power failure may leave an empty one: then nothing was written
            return -1
        return int(found["sequence"]) if found["batch"] > committed else -1

    # --- the record

    def _load(self) -> dict[str, Any]:
        path = self.folder / "pipeline.json"
        new = {"format": FORMAT, "name": self._pipeline.name, "source": self._source(), "views": {}, "sinks": {}}
        if not path.exists():
            others = [entry.name for entry in self.folder.iterdir() if not entry.name.startswith(".")]
            if others:
                raise StateMismatch(
                    f"{self.folder} is not the state of a pipeline: it holds {', '.join(sorted(others)[:3])}",
                    hint="name an empty or new folder as pipeline.state",
                )
            save_json(path, new)
            return new
        record: dict[str, Any] = json.loads(path.read_text())
        if record.get("format") != FORMAT:
            raise StateMismatch(f"{self.folder} is of another version of Evergraph", hint="begin with a new folder")
        return record

    def _save(self) -> None:
        save_json(self.folder / "pipeline.json", self._record)

    def _refuse_changes(self) -> None:
        for key, now, what in (
            ("name", self._pipeline.name, "the name of the pipeline"),
            ("source", self._source(), "the change source"),
        ):
            if self._record[key] != now:
                raise StateMismatch(
                    f"{self.folder} was made with another value of {what}: {self._record[key]}, and now it is {now}",
                    hint="put it back, or begin anew with a new folder as pipeline.state and new targets",
                )
        for view in self._pipeline.views:
            known = self._record["views"].get(view.name)
            if known and known["query"] != _identity(view):
                what = "query" if view.linkset is None else "linkset"
                raise StateMismatch(
                    f"the {what} of view '{view.name}' is not the one that {self.folder} was made with",
                    hint="give the changed view a new name and new targets: it then begins with its whole result; "
                    f"or put the old {what} back",
                )

    def _source(self) -> str:
        changes = self._pipeline.changes
        return changes.rstrip("/") if isinstance(changes, str) else self._seen(changes)

    def _seen(self, path: Path) -> str:
        return os.path.relpath(path, self.folder)


def _identity(view: ViewDefinition) -> str:
    """Sum up the meaning of a query or of a linkset; layout and comments do not count."""
    meaning: object = view.query
    if (of := view.linkset) is not None:
        meaning = (view.query, *view.queries().values(), of.rule_text, of.accept, of.one_to_one)
    return hashlib.sha256(repr(meaning).encode()).hexdigest()
