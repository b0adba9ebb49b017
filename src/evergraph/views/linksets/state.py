"""What a linkset remembers between runs: the quads of both sides that its views can use, and all pairs with scores.

A run writes files with its number, and then ``linkset.json``, which makes it count: a crash leaves the run before. From
time to time the files of all runs become one base. What runs publish is noted apart, so that a crash between the
two is made good by the next run.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evergraph.delta import Delta
from evergraph.errors import DataError, EvergraphError
from evergraph.files import open_input, open_output
from evergraph.gate.journal import FolderLock
from evergraph.linking.definition import Definition
from evergraph.patch import read_patches, write_transaction
from evergraph.terms import Quad
from evergraph.views.linksets.linkset import Run
from evergraph.views.linksets.selection import Pair

FORMAT = 1
SIDES = ("source", "target")
RUNS_KEPT = 50
"""After so many runs at the latest, their files become one base."""


_OWN = re.compile(r"(?:base-)?\d{6,}\.(?:source\.rdfp|target\.rdfp|links\.json)\.gz|linkset\.json|published|\..*")
"""The names of files in the folder of a state."""


class LinksetStateMismatch(EvergraphError):
    """The state of a linkset was made for something else than its definition says now."""

    condition = "LINKSET_STATE"


@dataclass(slots=True)
class Contents:
    """What is remembered."""

    quads: tuple[set[Quad], set[Quad]] = field(default_factory=lambda: (set(), set()))
    scores: dict[Pair, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Published:
    """The links that a run added and removed."""

    sequence: int
    added: frozenset[Pair]
    removed: frozenset[Pair]


class LinksetState:
    """The folder of a linkset's state; only one process at a time has it."""

    def __init__(self, definition: Definition) -> None:
        self.folder = definition.state
        self._definition = definition
        self._lock = FolderLock(self.folder)
        try:
            self._record = self._load()
        except BaseException:
            self._lock.release()
            raise

    @property
    def sequence(self) -> int:
        """The number of the last run that counts; 0 before the first one."""
        return int(self._record["sequence"])

    @property
    def positions(self) -> tuple[int, int]:
        """How far the change sources were read."""
        source, target = self._record["positions"]
        return int(source), int(target)

    @property
    def places(self) -> tuple[str | None, str | None]:
        """The last changes that were read, as their sources name them."""
        source, target = self._record.get("places", (None, None))
        return source, target

    @property
    def now(self) -> str | None:
        """What NOW() is in the views, in all runs."""
        return self._record.get("now")

    @property
    def rule_changed(self) -> bool:
        """Whether pairs were matched by another rule."""
        return bool(self.sequence) and self._record["rule"] != _hash(self._definition.rule_text)

    @property
    def selection(self) -> tuple[float, float | None, bool]:
        """How links were chosen among the pairs: accept, review, one to one."""
        accept, review, one_to_one = self._record.get("selection") or _selection(self._definition)
        return accept, review, one_to_one

    def read(self) -> Contents:
        """Read what the last run left."""
        contents = Contents()
        for name in self._files():
            for number, side in enumerate(SIDES):
                path = self.folder / f"{name}.{side}.rdfp.gz"
                with open_input(path) as stream:
                    for patch in read_patches(stream, str(path)):
                        contents.quads[number].difference_update(patch.request.removed)
                        contents.quads[number].update(patch.request.added)
            for source, target, score in self._links(name)["scores"]:
                if score is None:
                    contents.scores.pop((source, target), None)
                else:
                    contents.scores[source, target] = score
        return contents

    def commit(
        self,
        run: Run,
        deltas: tuple[Delta, Delta],
        positions: Sequence[int],
        places: Sequence[str | None],
        now: str,
    ) -> None:
        """Write down a run; when this returns, it counts."""
        self._record["places"] = list(places)
        self._write(_run(run.sequence), deltas, run.scores.items(), run.added, run.removed)
        self._save(run.sequence, [*self._files(), _run(run.sequence)], positions, now)
        if len(self._files()) > RUNS_KEPT or self._is_grown():
            self._compact(run, now)

    def published(self) -> int:
        """Return the number of the last run whose links were published."""
        try:
            return int((self.folder / "published").read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def note_published(self, sequence: int) -> None:
        """Note that the links of a run were published."""
        with open_output(self.folder / "published") as out:
            out.write(str(sequence).encode())

    def last(self) -> Published:
        """Return what the last run did to the links."""
        found = self._links(_run(self.sequence))
        return Published(self.sequence, _pairs(found["added"]), _pairs(found["removed"]))

    def close(self) -> None:
        """Let others in."""
        self._lock.release()

    # --- files

    def _load(self) -> dict[str, Any]:
        path = self.folder / "linkset.json"
        views = [_hash(side.text) for side in (self._definition.source, self._definition.target)]
        if not path.exists():
            _refuse_others(self.folder)
            new = {"sequence": 0, "positions": [0, 0], "files": [], "views": views, "rule": ""}
            return {**new, "predicate": str(self._definition.predicate)}
        try:
            record: dict[str, Any] = json.loads(path.read_text())
        except ValueError as error:
            raise DataError(f"{path}: damaged: {error}", hint="start anew with --fresh") from error
        hint = "start anew with --fresh, or name another 'state' in the definition"
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise LinksetStateMismatch(f"{self.folder}: state of another version of Evergraph", hint=hint)
        for name, before, now in zip(SIDES, record["views"], views, strict=True):
            if before != now:
                raise LinksetStateMismatch(f"{self.folder}: the view of the {name} is not what it was", hint=hint)
        before = record.get("predicate", str(self._definition.predicate))
        if before != str(self._definition.predicate):
            raise LinksetStateMismatch(f"{self.folder}: the property of the links was {before}", hint=hint)
        return record

    def _files(self) -> list[str]:
        return list(self._record["files"])

    def _links(self, name: str) -> dict[str, Any]:
        path = self.folder / f"{name}.links.json.gz"
        with open_input(path) as stream:
            found: dict[str, Any] = json.loads(stream.read())
            return found

    def _write(
        self,
        name: str,
        deltas: tuple[Delta, Delta],
        scores: Iterable[tuple[Pair, float | None]],
        added: Iterable[Pair],
        removed: Iterable[Pair],
    ) -> None:
        for side, delta in zip(SIDES, deltas, strict=True):
            with open_output(self.folder / f"{name}.{side}.rdfp.gz") as out:
                write_transaction(out, delta)
        document: Mapping[str, object] = {
            "scores": [[*pair, score] for pair, score in scores],
            "added": sorted(added),
            "removed": sorted(removed),
        }
        with open_output(self.folder / f"{name}.links.json.gz") as out:
            out.write(json.dumps(document).encode())

    def _save(self, sequence: int, files: list[str], positions: Sequence[int], now: str) -> None:
        self._record |= {
            "format": FORMAT,
            "sequence": sequence,
            "positions": list(positions),
            "files": files,
            "rule": _hash(self._definition.rule_text),
            "selection": _selection(self._definition),
            "now": now,
        }
        with open_output(self.folder / "linkset.json") as out:
            out.write(json.dumps(self._record, indent=1).encode())

    def _is_grown(self) -> bool:
        sizes = [sum(path.stat().st_size for path in self.folder.glob(f"{name}.*")) for name in self._files()]
        return len(sizes) > 2 and sum(sizes[1:]) > max(sizes[0], 2**16)

    def _compact(self, run: Run, now: str) -> None:
        """Put all files together. The links of the last run stay, as long as they may have to be published."""
        contents = self.read()
        old = self._files()
        name = f"base-{run.sequence:06}"
        deltas = Delta(inserted=frozenset(contents.quads[0])), Delta(inserted=frozenset(contents.quads[1]))
        self._write(name, deltas, contents.scores.items(), (), ())
        self._save(run.sequence, [name], self.positions, now)
        for one in old:
            for path in self.folder.glob(f"{one}.*"):
                if one != _run(run.sequence) or ".links." not in path.name:
                    path.unlink()


def forget(folder: Path) -> None:
    """Remove what a linkset remembers, and nothing else; nobody may be using it."""
    if not folder.exists():
        return
    lock = FolderLock(folder)
    try:
        _refuse_others(folder)
        (folder / "linkset.json").unlink(missing_ok=True)  # first, so that a crash leaves nothing that counts
        for path in folder.iterdir():
            if not path.name.startswith("."):
                path.unlink()
    finally:
        lock.release()


def _refuse_others(folder: Path) -> None:
    others = sorted(path.name for path in folder.iterdir() if not _OWN.fullmatch(path.name))
    if others:
        raise LinksetStateMismatch(
            f"{folder} is not the state of a linkset: it holds {', '.join(others[:3])}",
            hint="name an empty or new folder as 'state' in [linkset]",
        )


def _selection(definition: Definition) -> list[Any]:
    return [definition.accept, definition.review, definition.one_to_one]


def _run(sequence: int) -> str:
    return f"{sequence:06}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _pairs(found: Iterable[Iterable[str]]) -> frozenset[Pair]:
    return frozenset((source, target) for source, target in found)
