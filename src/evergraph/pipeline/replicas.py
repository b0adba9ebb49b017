"""Replicas on either engine.

On Spark, every interest is two views, its target and its candidates, of a pipeline with one change in a batch.
What is potentially interesting is what the candidates have more than the target: a difference of numbers while changes
come, and of two sorted files in the end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import fspath
from pathlib import Path

from evergraph.errors import UsageError
from evergraph.files import AnyPath, open_output
from evergraph.pipeline.definition import EndpointSink, Pipeline, Sink, SnapshotSink, TableSink, ViewDefinition
from evergraph.pipeline.running import spark_for, stopped_by_signals
from evergraph.replication import PAGE, PAPER, Places, ReplicaStep, Replicated, listed_places, read_interests
from evergraph.replication import replicate as replicate_here
from evergraph.replication.targets import graph_of, is_address, is_folder, is_table, table_folders
from evergraph.sources.feeds import Limit
from evergraph.sources.folders import make_folder
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
    if follow or skip_damaged or (potential is not None and fspath(potential) == PAPER):
        raise UsageError("--follow, --skip-damaged and --potential paper need the local engine")
    for place in (fspath(changes), *listed_places(init)):
        if is_address(place):
            raise UsageError(f"Spark does not read {place}", hint="use the local engine, or files")
    return replicate_on_spark(
        listed_places(interests),
        changes=fspath(changes),
        target=fspath(target),
        init=listed_places(init),
        potential=None if potential is None else Path(potential),
        state=None if state is None else Path(state),
        update_endpoint=update_endpoint,
        graph=graph,
        spark_master=spark_master,
        on_change=on_change or (lambda step: None),
    )


def replicate_on_spark(
    interests: Sequence[str],
    *,
    changes: str,
    target: str,
    init: Sequence[str] = (),
    potential: Path | None = None,
    state: Path | None = None,
    update_endpoint: str | None = None,
    graph: str | None = None,
    spark_master: str | None = None,
    on_change: Callable[[ReplicaStep], None] = lambda step: None,
) -> Replicated:
    """Keep replicas as `replicate` does, on Spark; the target is a folder, a table or an endpoint."""
    found = {name: interest for name, (interest, _) in read_interests(interests).items()}
    place = _place(target, potential, state)
    sinks = _sinks(target, list(found), update_endpoint, graph)
    views: list[ViewDefinition] = []
    for number, (name, interest) in enumerate(found.items()):
        views += _views(number, interest, sinks[name], place)
    pipeline = Pipeline(
        "replicate",
        place,
        Path(changes).absolute(),
        tuple(Path(one).absolute() for one in init),
        tuple(views),
        limit=Limit(changes=1),
    )
    sizes = _run(pipeline, list(found), spark_master, on_change)
    if potential is not None:
        for number, name in enumerate(found):
            folder = Path(potential) / name if len(found) > 1 else Path(potential)
            make_folder(folder)
            sink = sinks[name]
            held = sink.path if isinstance(sink, SnapshotSink) else _aside(place, number, "target")
            _write_difference(_aside(place, number, "candidates"), held, folder / "data.nt")
    return Replicated(sizes[0], {name: (one.target, one.potential) for name, one in sizes[1].items()})


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
    if is_table(target):
        return {name: TableSink(folder) for name, folder in table_folders(target, names).items()}
    if not is_folder(target):
        raise UsageError("Spark does not write embedded databases", hint="name a folder, a table or an endpoint")
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


def _aside(place: Path, number: int, kind: str) -> Path:
    """Return where a snapshot is kept beside the state."""
    return place.with_name(f"{place.name}-{kind}") / f"{number}.nt"


def _run(
    pipeline: Pipeline, names: list[str], master: str | None, on_change: Callable[[ReplicaStep], None]
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
        for number, name in enumerate(names):
            target, held = (_counts(views, f"{kind}{number}") for kind in ("target", "candidates"))
            one = sizes[name]
            if not changed:  # what there is at the beginning
                one.target, one.candidates = target[0], held[0]
                continue
            for silent in range(sequence - changed + 1, sequence):
                on_change(ReplicaStep(silent, name, 0, 0, one.potential))
            one.target += target[0] - target[1]
            one.candidates += held[0] - held[1]
            on_change(ReplicaStep(sequence, name, *target, one.potential))
        position = sequence

    with spark_for(pipeline, master) as spark:
        runner = Runner(pipeline, spark, told)
        position = runner.sequence()
        for number, name in enumerate(names if position else ()):
            sizes[name] = _Sizes(runner.rows(f"target{number}"), runner.rows(f"candidates{number}"))
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
