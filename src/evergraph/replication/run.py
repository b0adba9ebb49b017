"""A replication: interests, a source of changes, targets, and a state that lets it go on after any end."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from pathlib import Path

from evergraph.delta import Delta, Request
from evergraph.errors import DataError, StoreError, SyntaxProblem, UnsupportedQuery, UsageError
from evergraph.files import open_input
from evergraph.ports import SourceChange
from evergraph.rdfio import write_quads
from evergraph.replication.filling import PAGE, fill
from evergraph.replication.reading import Reading
from evergraph.replication.state import ReplicaState, digest
from evergraph.replication.targets import Target, is_address, open_targets
from evergraph.sources.folders import make_folder, visible_files
from evergraph.views.replicas import Interest, ReplicaChange, Replicas, parse_interest

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


def read_interests(places: Iterable[str | PathLike[str]]) -> dict[str, tuple[Interest, str]]:
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


class Replication:
    """Brings replicas, what is potentially interesting, and the position forward together."""

    def __init__(
        self, interests: Mapping[str, tuple[Interest, str]], targets: Mapping[str, Target], state: ReplicaState
    ):
        self.replicas = Replicas()
        self._targets = targets
        self._state = state
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
            state.begin(self.replicas.candidates())
        else:
            self.replicas.apply(Request(added=frozenset(state.base())))
            for delta in state.changes():
                self.replicas.apply(Request(removed=delta.deleted, added=delta.inserted))
        if not state.is_filled:
            for name, target in self._targets.items():
                target.write(Delta(inserted=self.replicas.target(name)))
            state.filled()

    def _refuse_full_targets(self) -> None:
        for name, target in self._targets.items():
            if not target.is_empty():
                raise StoreError(
                    f"the target of {name!r} holds something already, and there is no state to go on from",
                    hint="empty the target, name another, or give the folder of the state (--state)",
                )

    def take(self, change: SourceChange) -> list[ReplicaChange]:
        """Take in one change of the source: first into the targets, then into the state."""
        step = self.replicas.apply(change.request, change.cleared, change.forgotten)
        for one in step.changes:
            if one.delta:
                self._targets[one.interest].write(one.delta)
        wants = self.replicas.wants
        kept = Delta(
            inserted=frozenset(filter(wants, step.candidates.inserted)),
            deleted=frozenset(filter(wants, step.candidates.deleted)),
        )
        self._state.advance(kept, change.where)
        if self._state.is_long():
            self._state.compact(self.replicas.candidates())
        return step.changes

    def settle(self, potential: Path | None) -> None:
        """Make everything visible that has been taken in."""
        for name, target in self._targets.items():
            target.finish(partial(self.replicas.target, name))
        if potential is not None:
            for name in self._targets:
                folder = potential / name if len(self._targets) > 1 else potential
                make_folder(folder)
                write_quads(folder / "data.nt", self.replicas.potential(name))
        self._state.compact(self.replicas.candidates())


def replicate(
    interests: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    changes: str | PathLike[str],
    target: str | PathLike[str],
    init: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
    potential: str | PathLike[str] | None = None,
    state: str | PathLike[str] | None = None,
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
    """Keep replicas of parts of a changing dataset: of everything that takes part in a match of an interest.

    :param interests: files with SPARQL queries, or folders of them.
    :param changes: a change source.
    :param target: a folder for ``data.nt``, ``store:FOLDER`` for an embedded database, or the address of an endpoint.
    :param init: the first dataset: dumps, or the address of an endpoint.
    :param potential: a folder for what is potentially interesting; ``"paper"`` begins with none of that.
    :param state: a folder for what is needed to go on later; a folder target has it inside.
    :param pause: seconds before a request to a source is repeated that failed; twice as long each time.
    :param on_change: is told what each change did to each replica.
    """
    found = read_interests(_listed(interests))
    place = fspath(target)
    paper = potential is not None and fspath(potential) == PAPER
    aside = None if potential is None or paper else Path(potential)
    reading = Reading(fspath(changes), follow, poll, skip_damaged=skip_damaged, report=report, pause=pause)
    reading.check()
    with ExitStack() as resources:
        folder = _state_folder(place, aside, state)
        targets = open_targets(place, list(found), update_url=update_endpoint, graph=graph)
        for opened in targets.values():
            resources.callback(opened.close)
        known = ReplicaState(folder, {name: digest(text) for name, (_, text) in found.items()})
        resources.callback(known.close)
        replication = Replication(found, targets, known)
        replication.start(_listed(init), page=page, paper=paper)
        for change in reading.changes(known.position, known.place, partial(replication.settle, aside)):
            for one in replication.take(change):
                if on_change is not None:
                    counts = len(one.delta.inserted), len(one.delta.deleted)
                    on_change(ReplicaStep(change.sequence, one.interest, *counts, one.potential))
        return Replicated(replication.position, {name: replication.replicas.sizes(name) for name in found})


def _listed(places: str | PathLike[str] | Iterable[str | PathLike[str]]) -> list[str]:
    if isinstance(places, str | PathLike):
        return [fspath(places)]
    return [fspath(place) for place in places]


def _state_folder(target: str, aside: Path | None, state: str | PathLike[str] | None) -> Path | None:
    """Find the place of the state: as given, or hidden in the folder of the target or of what is set aside."""
    if state is not None:
        return Path(state)
    if not is_address(target) and not target.startswith("store:") and not (Path(target) / "store").is_dir():
        if Path(target).exists() and not Path(target).is_dir():
            raise StoreError(f"{target} is a file, not a folder", hint="name a folder, or the address of an endpoint")
        return Path(target) / ".evergraph"
    return None if aside is None else aside / ".evergraph"
