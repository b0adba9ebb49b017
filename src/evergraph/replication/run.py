"""A replication: interests, a source of changes, targets, and a state that lets it go on after any end."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import filterfalse
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from evergraph.delta import Delta, Request
from evergraph.errors import DataError, StoreError, SyntaxProblem, UnsupportedQuery, UsageError
from evergraph.files import AnyPath, is_address, open_input
from evergraph.ports import SourceChange
from evergraph.rdfio import write_statements
from evergraph.replication.filling import PAGE, fill
from evergraph.replication.reading import Reading
from evergraph.replication.state import ReplicaState, digest
from evergraph.replication.targets import Target, is_folder, open_targets
from evergraph.sources.folders import make_folder, visible_files
from evergraph.sparql.expressions import Environment
from evergraph.terms import XSD, Literal, NamedNode, Quad
from evergraph.views.replicas import Interest, Replicas, parse_interest

_MOST = 20_000
"""How many changed triples and changes are made safe together at the most."""
_LONGEST = 1.0
"""For how many seconds changes may wait for others."""

Places: TypeAlias = AnyPath | Iterable[AnyPath]
"""One path or address, or several."""

PAPER = "paper"
"""As ``potential``: begin with no potentially interesting triples, as the paper does, to compare."""


@dataclass(frozen=True, slots=True)
class ReplicaStep:
    """What one change of the source did to the replica of one interest."""

    sequence: int
    interest: str
    added: int
    removed: int
    potential: int
    """How many triples are potentially interesting after the change."""


@dataclass(frozen=True, slots=True)
class Replicated:
    """How far a replication has come: changes of the source, and the sizes of (target, potentially interesting)."""

    position: int
    sizes: Mapping[str, tuple[int, int]]


def read_interests(places: Iterable[AnyPath]) -> dict[str, tuple[Interest, str]]:
    """Read interests from files, or folders of ``*.rq`` files; each is called as its file, without the ending."""
    files: list[Path] = []
    for place in map(Path, places):
        files += sorted(one for one in visible_files(place) if one.suffix == ".rq") if place.is_dir() else [place]
    found: dict[str, tuple[Interest, str]] = {}
    for file in files:
        text = _text(file)
        if file.stem in found:
            raise UsageError(f"two interests are called {file.stem!r}", hint="give the files different names")
        try:
            found[file.stem] = (parse_interest(text, file.stem, file.resolve().as_uri()), text)
        except SyntaxProblem as error:
            raise error.at(str(file), text) from None
        except UnsupportedQuery as error:
            raise type(error)(f"{file}: {error.message}", hint=error.hint) from None
    if not found:
        raise UsageError("there is no interest", hint="name files with SPARQL queries (.rq)")
    return found


def _text(file: Path) -> str:
    with open_input(file) as stream:
        content = stream.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: byte {error.start} is not UTF-8", hint="SPARQL is written in UTF-8") from error


@dataclass(frozen=True, slots=True)
class _Taken:
    """A change that the targets have been told, and the state not yet."""

    kept: Delta
    where: str
    steps: list[ReplicaStep]


class Replication:
    """Brings replicas, what is potentially interesting, and the position forward together.

    Changes that are there already are made safe together, which costs one wait for the disk and not one each. ``tell``
    is told what each of them did, when it is safe.
    """

    def __init__(
        self,
        interests: Mapping[str, tuple[Interest, str]],
        targets: Mapping[str, Target],
        state: ReplicaState,
        tell: Callable[[ReplicaStep], None] | None = None,
        *,
        single: bool = False,
    ):
        self.replicas = Replicas(environment=Environment(now=Literal(state.now, datatype=NamedNode(XSD + "dateTime"))))
        self._targets = targets
        self._state = state
        self._tell = tell
        self._single = single or any(target.each for target in targets.values())
        self._taken: list[_Taken] = []
        self._weight = 0
        self._since = 0.0
        for interest, _ in interests.values():
            self.replicas.add(interest)

    @property
    def position(self) -> int:
        """How many changes of the source are in the targets."""
        return self._state.position

    def start(self, init: Sequence[str], *, page: int = PAGE, paper: bool = False) -> None:
        """Go on where the state is; if there is none, begin with the first dataset."""
        state = self._state
        if state.is_new:
            self._refuse_full_targets()
            fill(self.replicas, init, page=page)
            if paper:
                known = frozenset(quad for name in self._targets for quad in self.replicas.target(name))
                self.replicas.apply(Request(removed=self.replicas.candidates() - known))
            state.begin(self.replicas.statements())
        else:
            self.replicas.apply(Request(added=frozenset(state.base())))
            for delta in state.changes():
                self.replicas.apply(Request(removed=delta.deleted, added=delta.inserted))
        for name, target in self._targets.items():
            if not state.is_filled or target.is_empty():  # filled and empty: somebody emptied it
                target.write(Delta(inserted=self.replicas.target(name)), state.position)
                target.flush()
        if not state.is_filled:
            state.filled()

    def _refuse_full_targets(self) -> None:
        for name, target in self._targets.items():
            if not target.is_empty():
                raise StoreError(
                    f"the target of {name!r} holds something already, and there is no state to go on from",
                    hint="empty the target or name another; if it was filled with --state, name the same folder again",
                )

    def take(self, change: SourceChange) -> None:
        """Take in one change of the source, and make it safe with those before it when there are enough."""
        step = self.replicas.apply(change.request, change.cleared, change.forgotten)
        steps = []
        for one in step.changes:
            if one.delta:
                self._targets[one.interest].write(one.delta, change.sequence)
            counts = len(one.delta.inserted), len(one.delta.deleted)
            steps.append(ReplicaStep(change.sequence, one.interest, *counts, one.potential))
        kept = Delta(inserted=self._wanted(step.candidates.inserted), deleted=self._wanted(step.candidates.deleted))
        if not self._taken:
            self._since = time.monotonic()
        self._taken.append(_Taken(kept, change.where, steps))
        self._weight += len(kept) + 1
        if self._single or self._weight >= _MOST or time.monotonic() - self._since >= _LONGEST:
            self.commit()

    def _wanted(self, quads: frozenset[Quad]) -> frozenset[Quad]:
        """Leave out what matches no pattern, which is rarely anything."""
        others = list(filterfalse(self.replicas.wants, quads))
        return quads.difference(others) if others else quads

    def commit(self) -> None:
        """Make safe what has been taken in: first in the targets, then in the state."""
        taken, self._taken, self._weight = self._taken, [], 0
        if not taken:
            return
        for target in self._targets.values():
            target.flush()
        self._state.advance([(one.kept, one.where) for one in taken])
        if self._tell is not None:
            for one in taken:
                for step in one.steps:
                    self._tell(step)
        self._compact()

    def _compact(self, *, idle: bool = False) -> None:
        if self._state.is_long(self.replicas.size(), idle=idle):
            self._state.compact(self.replicas.statements())

    def settle(self, potential: Path | None) -> None:
        """Make everything visible that has been taken in."""
        self.commit()
        for name, target in self._targets.items():
            target.finish(partial(self.replicas.target_statements, name))
        if potential is not None:
            for name in self._targets:
                folder = potential / name if len(self._targets) > 1 else potential
                make_folder(folder)
                write_statements(folder / "data.nt", sorted(self.replicas.potential_statements(name)))
        self._compact(idle=True)


def replicate(
    interests: Places,
    *,
    changes: AnyPath,
    target: AnyPath,
    init: Places = (),
    potential: AnyPath | None = None,
    state: AnyPath | None = None,
    update_endpoint: str | None = None,
    graph: str | None = None,
    follow: bool = False,
    poll: float = 5.0,
    skip_damaged: bool = False,
    page: int = PAGE,
    pause: float = 0.5,
    on_change: Callable[[ReplicaStep], None] | None = None,
    report: Callable[[str], None] = lambda message: None,
) -> Replicated:
    """Keep replicas on the local engine; `evergraph.replicate` says what the parameters are."""
    found = read_interests(listed_places(interests))
    place = fspath(target)
    paper = potential is not None and fspath(potential) == PAPER
    aside = None if potential is None or paper else Path(potential)
    reading = Reading(fspath(changes), follow, poll, skip_damaged=skip_damaged, report=report, pause=pause)
    reading.check()
    refuse_target_in_source(place, fspath(changes))
    with ExitStack() as resources:
        folder = _state_folder(place, aside, state)
        if folder is None:
            report("there is no --state: nobody can go on from here later, and the target must be empty")
        targets = open_targets(place, list(found), update_url=update_endpoint, graph=graph)
        for opened in targets.values():
            resources.callback(opened.close)
        known = ReplicaState(folder, {name: digest(text) for name, (_, text) in found.items()})
        resources.callback(known.close)
        replication = Replication(found, targets, known, on_change, single=not reading.is_listed)
        replication.start(listed_places(init), page=page, paper=paper)
        reading = replace(reading, predicates=replication.replicas.predicates())
        try:
            for change in reading.changes(known.position, known.place, partial(replication.settle, aside)):
                replication.take(change)
        finally:
            replication.commit()  # what ends the work, such as a damaged file, concerns no change before it
        return Replicated(replication.position, {name: replication.replicas.sizes(name) for name in found})


def refuse_target_in_source(target: str, changes: str) -> None:
    """Refuse a target whose files would be taken for changes."""
    folder = Path(target).resolve()
    if is_folder(target) and not is_address(changes) and Path(changes).resolve() in (folder, *folder.parents):
        raise UsageError(
            f"the target {target} is in the folder of the changes", hint="name a folder of its own for the target"
        )


def listed_places(places: Places) -> list[str]:
    """Return one place, or several, as a list of texts."""
    if isinstance(places, str | PathLike):
        return [fspath(places)]
    return [fspath(place) for place in places]


def _state_folder(target: str, aside: Path | None, state: AnyPath | None) -> Path | None:
    """Find the place of the state: as given, or hidden in the folder of the target or of what is set aside."""
    if state is not None:
        return Path(state)
    if is_folder(target):
        if Path(target).exists() and not Path(target).is_dir():
            raise StoreError(f"{target} is a file, not a folder", hint="name a folder, or the address of an endpoint")
        return Path(target) / ".evergraph"
    return None if aside is None else aside / ".evergraph"
