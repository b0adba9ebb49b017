"""Replicas in a running broker: parts of the data that others keep a copy of, with the changes that concern them.

An interest is a query, as `evergraph replicate` takes them. Interests are kept over a restart; the changes of a replica
are kept in memory, so that who has missed some, or a restart, reads the whole again.
"""

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergraph.database import Database
from evergraph.delta import Change, Request
from evergraph.errors import EvergraphError, StoreError
from evergraph.files import open_output
from evergraph.server import problems
from evergraph.server.history import History
from evergraph.server.logs import NAME
from evergraph.server.patterns import check_patterns
from evergraph.server.problems import Problem, problem_of
from evergraph.terms import Quad
from evergraph.views.replicas.interest import parse_interest
from evergraph.views.replicas.local import Replicas


@dataclass(slots=True)
class Held:
    """A replica, and what has happened to it lately."""

    text: str
    user: str
    history: History

    def after(self, name: str, after: int, limit: int, now: int) -> tuple[int, list[Change]]:
        """Return the changes after one of the data, and the change that one is at with them, ``now`` with all."""
        if (found := self.history.after(after)) is None:
            since = self.history.since
            text = f"changes of {name!r} are known after change {since}, not {after}; read the whole again"
            raise Problem(problems.PROTOCOL, text, 410)
        found = found[:limit]
        return (found[-1].sequence if len(found) == limit else now), found


class Shelf:
    """The replicas of a broker. All methods but `__init__` are for the thread that writes."""

    def __init__(self, database: Database, folder: Path | None, most: int) -> None:
        self._database = database
        self._path = folder / "replicas.json" if folder else None
        self._most = most
        self._held: dict[str, Held] = {}
        self._replicas: Replicas | None = None
        self._failure: EvergraphError | None = None

    def restore(self) -> None:
        """Begin to maintain what was registered before a restart."""
        if self._path is None or not self._path.exists():
            return
        try:
            found: dict[str, dict[str, str]] = json.loads(self._path.read_bytes())
        except (OSError, ValueError) as error:
            raise StoreError(f"{self._path} cannot be read: {error}", hint="restore it from a backup") from error
        for name, members in found.items():
            self._begin(name, members["interest"], members["user"])

    def add(self, name: str, text: str, user: str) -> dict[str, Any]:
        """Register an interest; the same one again is no error."""
        known = self._held.get(name)
        if known is None:
            if len(self._held) >= self._most:
                raise Problem(problems.TOO_MANY, f"there are {self._most} replicas, and may be no more", 429)
            self._begin(name, text, user)
            self._save()
        elif known.text != text:
            raise Problem(problems.PROTOCOL, f"another interest is called {name!r}", 409)
        return self.about(name)

    def _begin(self, name: str, text: str, user: str) -> None:
        if self._replicas is None:
            self._replicas = Replicas(self._database.quads)
        try:
            interest = parse_interest(text, name)
            check_patterns(interest.pattern)
            self._replicas.add(interest)
        except EvergraphError as error:
            raise problem_of(error) from error
        self._held[name] = Held(text, user, History(self._database.sequence))

    def remove(self, name: str, user: str) -> None:
        """Stop to maintain an interest; only who registered it may."""
        if self._known(name).user != user:
            raise Problem(problems.FORBIDDEN, f"{name!r} was registered by somebody else", 403)
        del self._held[name]
        assert self._replicas is not None
        self._replicas.remove(name)
        self._save()

    def about(self, name: str) -> dict[str, Any]:
        """Describe a replica."""
        held = self._known(name)
        assert self._replicas is not None
        triples, potential = self._replicas.sizes(name)
        sequence = self._database.sequence
        return {"name": name, "interest": held.text, "triples": triples, "potential": potential, "sequence": sequence}

    def everything(self) -> list[dict[str, Any]]:
        """Describe all replicas."""
        return [self.about(name) for name in self._held]

    def triples(self, name: str) -> tuple[int, frozenset[Quad]]:
        """Return what a replica holds, and the change of the data that it is at."""
        self._known(name)
        assert self._replicas is not None
        return self._database.sequence, self._replicas.target(name)

    def changes(self, name: str, after: int, limit: int) -> tuple[int, list[Change]]:
        """Return the changes of a replica after one of the data, and the change that one is at with them."""
        return self._known(name).after(name, after, limit, self._database.sequence)

    def take(self, changes: list[Change]) -> None:
        """Bring all replicas up to date."""
        if self._replicas is None or not self._held or self._failure is not None:
            return
        try:
            for change in changes:
                request = Request(removed=change.deleted, added=change.inserted)
                for one in self._replicas.apply(request).changes if change else ():
                    if one.delta:
                        self._held[one.interest].history.add(Change(change.sequence, one.delta))
        except EvergraphError as error:
            self._failure = error
            logging.getLogger(NAME).error("replicas are given up: %s", error)

    def _known(self, name: str) -> Held:
        if self._failure is not None:
            raise problem_of(self._failure)
        held = self._held.get(name)
        if held is None:
            raise Problem(problems.WRONG_PATH, f"there is no replica {name!r}", 404)
        return held

    def _save(self) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            content = {name: {"interest": held.text, "user": held.user} for name, held in self._held.items()}
            with open_output(self._path) as out:
                out.write(json.dumps(content, indent=1).encode())
