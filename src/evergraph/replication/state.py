"""What a replication needs to go on after any end, a crash included: the candidates, and how far it has come.

A folder with

* ``state.json``: for which interests it is, at which position its base is, and whether the targets have been filled;
* ``base-N.nt``: all triples that could matter, at position N: those of the targets, and the potentially interesting;
* ``log-N/``: their exact changes since then, one for each change of the source (`evergraph.log`);
* ``places``: the names of the changes, to notice when the source is not what it was.

The position advances when a change is in the log; the change is in all targets by then. What a crash cut off is done
again, which does no harm, because everything derived from it is exact.
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from evergraph.delta import Change, Delta
from evergraph.errors import StoreError
from evergraph.files import open_output
from evergraph.gate.journal import FolderLock
from evergraph.log import ChangeLog
from evergraph.rdfio import read_quads, write_statements
from evergraph.sparql.expressions import Environment
from evergraph.terms import Quad

STATE = "state.json"
"""The file by which a folder is known to be a state."""
OF_SPARK = "pipeline.json"
"""The file by which it is known to be one of a replication on Spark."""
_VERSION = 1
_AS_NAMES = ("utf-8", "surrogateescape")
"""How the names of files are written, which may be any bytes."""
_MANY = 10_000
"""After so many changes the base is written anew."""
_FEW = 1_000
"""It is also written anew when the log is as long as the base, or nearly, and longer than this."""


def digest(text: str) -> str:
    """Return a short name for a text."""
    return sha256(text.encode()).hexdigest()[:16]


class ReplicaState:
    """The state of one replication, in a folder; without one it lasts as long as the process."""

    def __init__(self, folder: Path | None, interests: Mapping[str, str]) -> None:
        self._folder = folder
        self._interests = dict(interests)
        self._lock = FolderLock(folder) if folder is not None else None
        self._log: ChangeLog | None = None
        self._places: list[str] = []
        self._base = 0
        self._logged = 0
        """How many triples the log has."""
        self.position = 0
        """How many changes of the source are in the targets."""
        self.now = Environment().now.value
        """What NOW() is in the interests: the moment at which the replication began, in all runs."""
        self.is_new = True
        self.is_filled = False
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def _read(self) -> None:
        if self._folder is None:
            return
        path = self._folder / STATE
        try:
            content = json.loads(path.read_text())
        except FileNotFoundError:
            if (self._folder / OF_SPARK).exists():
                raise StoreError(
                    f"{self._folder} is the state of a replication on Spark",
                    hint="go on with --engine spark, or begin anew with another target and state",
                ) from None
            return
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be read: {error}", hint="begin anew in another folder") from error
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            raise StoreError(f"{path} was written by another version", hint="begin anew in another folder")
        if not content.keys() >= {"interests", "filled", "base"}:
            raise StoreError(f"{path} is damaged: it lacks some keys", hint="begin anew in another folder")
        if content["interests"] != self._interests:
            known = content["interests"]
            changed = [name for name, text in self._interests.items() if known.get(name, text) != text]
            what = f"{', '.join(changed)} as it was before" if changed else f"other interests: {', '.join(known)}"
            raise StoreError(
                f"{self._folder} is the state of {what}",
                hint="interests that differ, or have changed, need a target and a state of their own",
            )
        self.is_new, self.is_filled, self._base = False, content["filled"], content["base"]
        self.now = content.get("now", self.now)
        self._log = ChangeLog(self._folder / f"log-{self._base}")
        self.position = self._base + self._log.last
        self._read_places()
        self._forget_others()

    def _read_places(self) -> None:
        assert self._folder is not None
        with suppress(OSError):
            for line in (self._folder / "places").read_bytes().decode(*_AS_NAMES).split("\n"):
                number, _, place = line.partition("\t")
                if place and number == str(self.position):
                    self._places = [place]

    @property
    def place(self) -> str | None:
        """The name of the last change, where it is known."""
        return self._places[-1] if self._places else None

    # --- reading

    def base(self) -> Iterator[Quad]:
        """Read the candidates at the base."""
        assert self._folder is not None
        return read_quads(self._folder / f"base-{self._base}.nt", rename_blank_nodes=False)

    def changes(self) -> Iterator[Delta]:
        """Read the changes of the candidates since the base."""
        assert self._log is not None
        for change in self._log.read():
            self._logged += len(change.delta)
            yield change.delta

    # --- writing

    def begin(self, candidates: Iterable[str]) -> None:
        """Set down what there is before the first change, as text; the targets are not filled yet."""
        self._write_base(candidates)
        self.is_new = False

    def filled(self) -> None:
        """Note that the targets have been filled."""
        self.is_filled = True
        self._write_state()

    def advance(self, changes: Sequence[tuple[Delta, str]]) -> None:
        """Note that more changes of the source, each with its name, are in all targets."""
        if self._log is not None and self._folder is not None:
            # First: a position without its place would be of no use.
            self._note([place for _, place in changes])
            begin = self._log.last + 1
            self._log.append(*(Change(number, delta) for number, (delta, _) in enumerate(changes, begin)))
        self._logged += sum(len(delta) for delta, _ in changes)
        self.position += len(changes)
        self._places = [changes[-1][1]]

    def _note(self, places: list[str]) -> None:
        assert self._folder is not None
        lines = "".join(f"{number}\t{place}\n" for number, place in enumerate(places, self.position + 1))
        try:
            with (self._folder / "places").open("ab") as out:
                out.write(lines.encode(*_AS_NAMES))
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise StoreError(
                f"cannot write the state {self._folder}: {error.strerror}",
                hint="free space or mend the permissions, then run again: the position has not advanced",
            ) from error

    def is_long(self, size: int, *, idle: bool = False) -> bool:
        """Tell whether it is time to write the base anew, when there are so many candidates."""
        times = 0.5 if idle else 2.0
        return self._log is not None and (self._log.last >= _MANY or self._logged > times * size + _FEW)

    def compact(self, candidates: Iterable[str]) -> None:
        """Write the candidates as they are now, and forget the changes that led there."""
        if self._log is not None and self._log.last:
            self._write_base(candidates)

    def _write_base(self, candidates: Iterable[str]) -> None:
        if self._folder is None:
            return
        write_statements(self._folder / f"base-{self.position}.nt", candidates)
        if self._log is not None:
            self._log.close()
        self._base, self._logged = self.position, 0
        shutil.rmtree(self._folder / f"log-{self._base}", ignore_errors=True)
        self._log = ChangeLog(self._folder / f"log-{self._base}")
        self._write_state()
        self._forget_others()

    def _write_state(self) -> None:
        if self._folder is None:
            return
        content = {
            "version": _VERSION,
            "base": self._base,
            "filled": self.is_filled,
            "now": self.now,
            "interests": self._interests,
        }
        with open_output(self._folder / STATE) as out:
            out.write((json.dumps(content, indent=1) + "\n").encode())
        if self._places and self._base == self.position:
            with open_output(self._folder / "places") as out:
                out.write(f"{self.position}\t{self._places[-1]}\n".encode(*_AS_NAMES))

    def _forget_others(self) -> None:
        assert self._folder is not None
        for path in self._folder.glob("base-*.nt"):
            if path.name != f"base-{self._base}.nt":
                path.unlink()
        for path in self._folder.glob("log-*"):
            if path.name != f"log-{self._base}":
                shutil.rmtree(path)

    def close(self) -> None:
        """Let go of the folder."""
        if self._log is not None:
            self._log.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
            if self.is_new and self._folder is not None:  # nothing came of it
                with suppress(OSError):
                    (self._folder / ".lock").unlink()
                    self._folder.rmdir()
