"""Linksets in a running broker: links between resources of its data, kept right at their own pace.

A linkset is defined as for `evergraph link`, without files: both catalogue views are over the data of the broker, two
named graphs of it for example. Matching has a thread of its own, so that no writer waits for it; changes that come
while it is busy are taken in together. Definitions are kept over a restart; links are found anew, and their changes are
kept in memory.
"""

import json
import logging
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from evergraph.database import Database
from evergraph.delta import Bag, Change, Delta, Request
from evergraph.errors import EvergraphError, StoreError
from evergraph.files import open_output
from evergraph.linking.definition import Definition, load_linkset
from evergraph.server import problems
from evergraph.server.history import History
from evergraph.server.logs import NAME
from evergraph.server.patterns import check_pattern, check_patterns
from evergraph.server.problems import Problem, problem_of
from evergraph.server.replicas import Held
from evergraph.terms import NamedNode, Quad
from evergraph.views.linksets.linkset import Linkset
from evergraph.views.linksets.selection import Pair
from evergraph.views.linksets.view import CatalogueView

T = TypeVar("T")


class Linked:
    """A linkset, and what has happened to it lately."""

    def __init__(self, definition: Definition, text: str, user: str, sequence: int) -> None:
        self.definition = definition
        self.held = Held(text, user, History(sequence))
        self.views = CatalogueView(definition.source.catalogue), CatalogueView(definition.target.catalogue)
        self.linkset = Linkset(definition.rule, *self.views, accept=definition.accept, one_to_one=definition.one_to_one)
        self.failure: EvergraphError | None = None

    def take(self, request: Request) -> bool:
        """Bring both views up to date; tell whether a resource of them changed."""
        touched = [bool(view.take(view.exact(request)).all()) for view in self.views]
        return any(touched)

    def maintain(self) -> Delta:
        """Bring the links up to date; return what changed."""
        run = self.linkset.maintain()
        for view in self.views:
            view.forget(view.time)
        return Delta(inserted=self.quads(run.added), deleted=self.quads(run.removed))

    def quads(self, pairs: Iterable[Pair]) -> frozenset[Quad]:
        """Write links as triples."""
        predicate = self.definition.predicate
        return frozenset(Quad(NamedNode(one[1:-1]), predicate, NamedNode(other[1:-1])) for one, other in pairs)


class Linksets:
    """The linksets of a broker. `begin` and `take` are for the thread that writes, `do` for any."""

    def __init__(self, database: Database, folder: Path | None, most: int) -> None:
        self._database = database
        self._path = folder / "linksets.json" if folder else None
        self._most = most
        self._linked: dict[str, Linked] = {}
        self._sequence = database.sequence
        self._thread = ThreadPoolExecutor(1, "evergraph-links")
        self._lock = Lock()
        self._waiting: list[Change] | None = None
        """Changes that will be taken in together, as soon as the thread comes to it."""
        self._any = False

    def restore(self) -> None:
        """Begin to find the links of what was registered before a restart."""
        if self._path is None or not self._path.exists():
            return
        try:
            found: dict[str, dict[str, str]] = json.loads(self._path.read_bytes())
        except (OSError, ValueError) as error:
            raise StoreError(f"{self._path} cannot be read: {error}", hint="restore it from a backup") from error
        for name, members in found.items():
            text = members["linkset"]
            try:
                self.begin(name, text, members["user"], read_definition(name, text))
            except Problem as problem:
                hint = f"remove it from {self._path}, and register it again"
                raise StoreError(f"the linkset {name!r} is no longer valid: {problem.description}", hint=hint) from None

    def do(self, work: Callable[[], T]) -> "Future[T]":
        """Do something after all that was asked for before."""
        return self._thread.submit(work)

    def close(self) -> None:
        """End, without waiting for what is under way."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    # --- in the thread that writes

    def begin(self, name: str, text: str, user: str, definition: Definition) -> "Future[dict[str, Any]]":
        """Read the data of a linkset, and let its links be found; the future has its description."""
        fresh = Linked(definition, text, user, self._database.sequence)
        try:
            fresh.take(Request(added=frozenset(self._database.quads())))
        except EvergraphError as error:
            raise problem_of(error) from error
        with self._lock:
            self._waiting = None  # what comes from now on is taken in after this
            self._any = True
            return self.do(lambda: self._add(name, fresh))

    def take(self, changes: list[Change]) -> None:
        """Let changes of the data be taken in."""
        if not self._any or not changes:
            return
        with self._lock:
            if self._waiting is None:
                waiting: list[Change] = []
                self._waiting = waiting
                self.do(lambda: self._follow(waiting))
            self._waiting += changes

    # --- in the thread that matches

    def find(self, name: str, text: str) -> dict[str, Any] | None:
        """Describe a linkset, if there is just this one; None if there is none, and room for it."""
        known = self._linked.get(name)
        if known is None:
            if len(self._linked) >= self._most:
                raise Problem(problems.TOO_MANY, f"there are {self._most} linksets, and may be no more", 429)
            return None
        if known.held.text != text:
            raise Problem(problems.PROTOCOL, f"another linkset is called {name!r}", 409)
        return self.about(name)

    def _add(self, name: str, fresh: Linked) -> dict[str, Any]:
        if (known := self.find(name, fresh.held.text)) is not None:
            return known
        fresh.maintain()
        self._linked[name] = fresh
        self._sequence = max(self._sequence, fresh.held.history.since)
        self._save()
        return self.about(name)

    def _follow(self, changes: list[Change]) -> None:
        with self._lock:
            if self._waiting is changes:
                self._waiting = None
        total: Bag[Quad] = Bag()
        for change in changes:
            total.update(change.delta.bag())
        self._sequence = changes[-1].sequence
        request = Request(removed=frozenset(total.negative()), added=frozenset(total.positive()))
        for name, one in self._linked.items():
            if one.failure is not None:
                continue
            try:
                if one.take(request) and (delta := one.maintain()):
                    one.held.history.add(Change(self._sequence, delta))
            except EvergraphError as error:
                one.failure = error
                logging.getLogger(NAME).error("the linkset %s is given up: %s", name, error)

    def remove(self, name: str, user: str) -> None:
        """Stop to maintain a linkset; only who registered it may."""
        if self._known(name).held.user != user:
            raise Problem(problems.FORBIDDEN, f"{name!r} was registered by somebody else", 403)
        del self._linked[name]
        self._any = bool(self._linked)
        self._save()

    def about(self, name: str) -> dict[str, Any]:
        """Describe a linkset."""
        one = self._known(name)
        source, target = one.linkset.matcher.sizes()
        return {
            "name": name,
            "predicate": one.definition.predicate.value,
            "links": len(one.linkset.selection.links),
            "source": source,
            "target": target,
            "sequence": self._sequence,
        }

    def everything(self) -> list[dict[str, Any]]:
        """Describe all linksets."""
        return [self.about(name) for name, one in self._linked.items() if one.failure is None]

    def triples(self, name: str) -> tuple[int, frozenset[Quad]]:
        """Return the links, and the change of the data that they are at."""
        one = self._known(name)
        return self._sequence, one.quads(one.linkset.selection.links)

    def changes(self, name: str, after: int, limit: int) -> tuple[int, list[Change]]:
        """Return the changes of the links after one of the data, and the change that one is at with them."""
        return self._known(name).held.after(name, after, limit, self._sequence)

    def _known(self, name: str) -> Linked:
        one = self._linked.get(name)
        if one is None:
            raise Problem(problems.WRONG_PATH, f"there is no linkset {name!r}", 404)
        if one.failure is not None:
            raise problem_of(one.failure)
        return one

    def _save(self) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            content = {name: {"linkset": one.held.text, "user": one.held.user} for name, one in self._linked.items()}
            with open_output(self._path) as out:
                out.write(json.dumps(content, indent=1).encode())


def read_definition(name: str, text: str) -> Definition:
    """Read a definition that somebody has sent: it may name no files."""
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Problem(problems.PARSING, f"the definition is not TOML: {error}", 400) from error
    for side in ("source", "target"):
        table = values.get(side)
        if isinstance(table, dict) and "view" in table:
            raise Problem(problems.PROTOCOL, f"[{side}] cannot name a file here: write the query as 'text'", 400)
    with tempfile.TemporaryDirectory(prefix="evergraph-linkset-") as folder:
        path = Path(folder).resolve() / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        try:
            definition = load_linkset(path, alone=False)
            check_patterns((definition.source.catalogue.query, definition.target.catalogue.query))
            for pattern in _patterns(values.get("match")):
                check_pattern(pattern)
            return definition
        except EvergraphError as error:
            raise Problem(problems.PROTOCOL, str(error).replace(f"{path.parent}/", ""), 400) from error


def _patterns(part: object) -> Iterator[str]:
    """Iterate over the regular expressions of transformations, in any part of a rule."""
    if isinstance(part, dict):
        yield from (part[key] for key in ("replace", "extract", "split") if isinstance(part.get(key), str))
    for one in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _patterns(one)
