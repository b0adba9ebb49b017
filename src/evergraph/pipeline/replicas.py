"""Replicas on either engine.

On Spark, every interest is two views, its target and its candidates, of a pipeline with one change in a batch.
What is potentially interesting is what the candidates have more than the target: a difference of numbers while changes
come, and of two sorted files in the end. To begin as the paper does, without any, the same difference is taken from the
first dataset.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import fspath
from pathlib import Path

from evergraph.errors import EmptySource, EvergraphError, StoreError, UsageError
from evergraph.files import AnyPath, is_address, open_output
from evergraph.pipeline.definition import (
    EndpointSink,
    Pipeline,
    Sink,
    SnapshotSink,
    StoreSink,
    TableSink,
    ViewDefinition,
)
from evergraph.pipeline.running import spark_for, stopped_by_signals
from evergraph.replication import PAGE, PAPER, Places, ReplicaStep, Replicated, listed_places, read_interests
from evergraph.replication import replicate as replicate_here
from evergraph.replication.filling import pages
from evergraph.replication.run import refuse_target_in_source
from evergraph.replication.state import STATE as OF_LOCAL
from evergraph.replication.state import digest
from evergraph.replication.targets import graph_of, is_folder, is_store, is_table, store_folder, table_folders
from evergraph.sources.feeds import Limit, open_feed
from evergraph.sources.folders import make_folder
from evergraph.terms import term_text
from evergraph.views.replicas import Interest, candidates, parts

STATE = ".evergraph-spark"


@dataclass(slots=True)
class _Sizes:
    """How many triples the target of an interest has, and how many could matter to it."""

    target: int = 0
    candidates: int = 0

    @property
    def potential(self) -> int:
        return self.candidates - self.target


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
    engine: str = "local",
    spark_master: str | None = None,
    on_change: Callable[[ReplicaStep], None] | None = None,
    report: Callable[[str], None] = lambda message: None,
) -> Replicated:
    """Keep replicas of parts of a changing dataset: of everything that takes part in a match of an interest.

    :param interests: files with SPARQL queries, or folders of them.
    :param changes: a change source.
    :param target: a folder for ``data.nt``, ``store:FOLDER`` for an embedded database, ``delta:FOLDER`` for a Delta
        table, or the address of an endpoint.
    :param init: the first dataset: dumps, or the address of an endpoint.
    :param potential: a folder for what is potentially interesting; ``"paper"`` begins with none of that.
    :param state: a folder for what is needed to go on later; a folder target has it inside.
    :param follow: go on when all changes have been read, and look for more every ``poll`` seconds.
    :param skip_damaged: set changes aside that cannot be read, and tell ``report`` which.
    :param page: how many triples an endpoint is asked for at once, to begin with.
    :param pause: seconds before a request to a source is repeated that failed; twice as long each time.
    :param engine: ``"local"``, or ``"spark"`` for data that do not fit into one process.
    :param on_change: is told what each change did to each replica, when it is safe.
    """
    if engine == "local":
        return replicate_here(
            interests,
            changes=changes,
            target=target,
            init=init,
            potential=potential,
            state=state,
            update_endpoint=update_endpoint,
            graph=graph,
            follow=follow,
            poll=poll,
            skip_damaged=skip_damaged,
            page=page,
            pause=pause,
            on_change=on_change,
            report=report,
        )
    if engine != "spark":
        raise UsageError(f"no engine is called {engine!r}", hint="there are 'local' and 'spark'")
    paper = potential is not None and fspath(potential) == PAPER
    return replicate_on_spark(
        listed_places(interests),
        changes=fspath(changes),
        target=fspath(target),
        init=listed_places(init),
        potential=None if potential is None or paper else Path(potential),
        paper=paper,
        state=None if state is None else Path(state),
        update_endpoint=update_endpoint,
        graph=graph,
        follow=follow,
        poll=poll,
        skip_damaged=skip_damaged,
        page=page,
        pause=pause,
        spark_master=spark_master,
        on_change=on_change or (lambda step: None),
        report=report,
    )


def replicate_on_spark(
    interests: Sequence[str],
    *,
    changes: str,
    target: str,
    init: Sequence[str] = (),
    potential: Path | None = None,
    paper: bool = False,
    state: Path | None = None,
    update_endpoint: str | None = None,
    graph: str | None = None,
    follow: bool = False,
    poll: float = 5.0,
    skip_damaged: bool = False,
    page: int = PAGE,
    pause: float = 0.5,
    spark_master: str | None = None,
    on_change: Callable[[ReplicaStep], None] = lambda step: None,
    report: Callable[[str], None] = lambda message: None,
) -> Replicated:
    """Keep replicas as `replicate` does, on Spark; ``paper`` begins with nothing that is potentially interesting."""
    found = {name: interest for name, (interest, _) in read_interests(interests).items()}
    numbers = {name: number for number, name in enumerate(sorted(found))}
    refuse_target_in_source(target, changes)
    place = _place(target, potential, state)
    if (place / OF_LOCAL).exists():
        raise StoreError(
            f"{place} is the state of a replication on the local engine",
            hint="go on with --engine local, or begin anew with another target and state",
        )
    sinks = _sinks(target, list(found), update_endpoint, graph)
    views: list[ViewDefinition] = []
    for name, interest in found.items():
        views += _views(numbers[name], interest, sinks[name], place)
    pipeline = Pipeline(
        "replicate",
        place,
        changes if is_address(changes) else Path(changes).absolute(),
        tuple(_first(init, found, place, page, lambda: _check_source(changes, follow=follow))),
        tuple(views),
        limit=Limit(changes=1),
        poll=poll,
        pause=pause,
        skip_damaged=skip_damaged,
        left_out=tuple(f"candidates{number}" for number in numbers.values()) if paper else (),
        kept=tuple(f"target{number}" for number in numbers.values()) if paper else (),
    )

    def write_potential() -> None:
        if potential is None:
            return
        for name in found:
            folder = potential / name if len(found) > 1 else potential
            make_folder(folder)
            sink = sinks[name]
            held = sink.path if isinstance(sink, SnapshotSink) else _aside(place, numbers[name], "target")
            _write_difference(_aside(place, numbers[name], "candidates"), held, folder / "data.nt")

    try:
        position, sizes = _run(pipeline, numbers, list(found), spark_master, on_change, report, follow=follow)
    except EvergraphError:
        with suppress(EvergraphError):
            write_potential()  # what ends the work concerns no change before it
        raise
    write_potential()
    return Replicated(position, {name: (one.target, one.potential) for name, one in sizes.items()})


def _check_source(changes: str, *, follow: bool) -> None:
    """Refuse what is no source, before anything is begun."""
    try:
        open_feed(changes)
    except EmptySource:
        if not follow:
            raise


def _first(
    init: Sequence[str], interests: Mapping[str, Interest], place: Path, page: int, check: Callable[[], None]
) -> Iterator[Path]:
    """Return the files of the first dataset, unless it has been taken in; what an endpoint gives becomes one."""
    if (place / "checkpoint").exists():
        return
    for one in init:
        if not is_address(one):
            yield Path(one).absolute()
            continue
        file = _aside(place, digest(repr((one, sorted(interests.items())))), "init")
        if not file.exists():
            check()
            make_folder(file.parent)
            with open_output(file) as out:
                for quad in pages(one, interests.values(), page):
                    out.write(f"{quad.subject} {quad.predicate} {term_text(quad.object)} .\n".encode())
        yield file


def _place(target: str, potential: Path | None, state: Path | None) -> Path:
    if state is not None:
        return Path(state).absolute()
    if is_folder(target):
        return Path(target).absolute() / STATE
    if potential is not None:
        return Path(potential).absolute() / STATE
    raise UsageError("a replica that is not a folder needs a place for its state", hint="give it by --state DIR")


def _sinks(target: str, names: list[str], update_url: str | None, graph: str | None) -> Mapping[str, Sink]:
    if is_address(target):
        graphs = {name: graph_of(graph, name, single=len(names) == 1) for name in names}
        return {name: EndpointSink(target, update_url or target, graphs[name]) for name in names}
    if is_store(target):
        place = store_folder(target)
        return {name: StoreSink(place, graph_of(graph, name, single=len(names) == 1)) for name in names}
    if update_url or graph:
        raise UsageError("--update-endpoint and --graph belong to endpoints and stores, not to files and tables")
    if is_table(target):
        return {name: TableSink(folder) for name, folder in table_folders(target, names).items()}
    folder = Path(target).absolute()
    return {name: SnapshotSink((folder / name if len(names) > 1 else folder) / "data.nt") for name in names}


def _views(number: int, interest: Interest, sink: Sink, place: Path) -> list[ViewDefinition]:
    """Make the two views of an interest; they are called by its number, as a name may hold anything."""
    target, held = parts.whole_query(interest), candidates.whole_query(interest)
    own = (sink,) if isinstance(sink, SnapshotSink) else (sink, SnapshotSink(_aside(place, number, "target")))
    return [
        ViewDefinition(f"target{number}", repr(target), target, own),
        ViewDefinition(f"candidates{number}", repr(held), held, (SnapshotSink(_aside(place, number, "candidates")),)),
    ]


def _aside(place: Path, name: int | str, kind: str) -> Path:
    """Return where a file is kept in the state that is no part of a pipeline."""
    return place / f".{kind}" / f"{name}.nt"


def _run(
    pipeline: Pipeline,
    numbers: Mapping[str, int],
    names: list[str],
    master: str | None,
    on_change: Callable[[ReplicaStep], None],
    warn: Callable[[str], None],
    *,
    follow: bool,
) -> tuple[int, dict[str, _Sizes]]:
    from evergraph.pipeline.runner import Runner

    sizes = {name: _Sizes() for name in names}
    position = 0

    def told(report: dict[str, object]) -> None:
        nonlocal position
        views, sequence, changed = report["views"], report["sequence"], report["changes"]
        assert isinstance(views, dict)
        assert isinstance(sequence, int)
        assert isinstance(changed, int)
        for name in names:
            one, keys = sizes[name], [f"{kind}{numbers[name]}" for kind in ("target", "candidates")]
            target, held = (_counts(views, key) for key in keys)
            if not changed:  # what there is at the beginning, of views with sinks that are new
                one.target = target[0] if keys[0] in views else one.target
                one.candidates = held[0] if keys[1] in views else one.candidates
                continue
            for silent in range(sequence - changed + 1, sequence):
                on_change(ReplicaStep(silent, name, 0, 0, one.potential))
            one.target += target[0] - target[1]
            one.candidates += held[0] - held[1]
            on_change(ReplicaStep(sequence, name, *target, one.potential))
        position = sequence

    with spark_for(pipeline, master) as spark:
        runner = Runner(pipeline, spark, told, follow=follow, warn=warn)
        position = runner.sequence()
        for name in names if runner.is_begun() else ():
            sizes[name] = _Sizes(*(runner.rows(f"{kind}{numbers[name]}") for kind in ("target", "candidates")))
        with stopped_by_signals(runner.stop):
            runner.run()
    return position, sizes


def _counts(views: dict[str, dict[str, int]], name: str) -> tuple[int, int]:
    found = views.get(name, {})
    return found.get("added", 0), found.get("removed", 0)


def _lines(path: Path) -> Iterator[bytes]:
    with suppress(FileNotFoundError), path.open("rb") as stream:
        yield from stream


def _write_difference(all_lines: Path, without: Path, out_path: Path) -> None:
    """Write the lines of one sorted file that another has not."""
    others = _lines(without)
    other = next(others, None)
    with open_output(out_path) as out:
        for line in _lines(all_lines):
            while other is not None and other < line:
                other = next(others, None)
            if line != other:
                out.write(line)
