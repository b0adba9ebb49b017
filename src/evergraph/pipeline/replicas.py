"""Replicas on Spark: every interest is two views, its target and its candidates, of a pipeline with a change a batch.

What is potentially interesting is what the candidates have more than the target: a difference of numbers while changes
come, and of two sorted files in the end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evergraph.errors import UsageError
from evergraph.files import open_output
from evergraph.pipeline.definition import EndpointSink, Pipeline, Sink, SnapshotSink, ViewDefinition
from evergraph.pipeline.running import spark_for, stopped_by_signals
from evergraph.replication import ReplicaStep, Replicated, read_interests
from evergraph.replication.targets import graph_of, is_address
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
    interests: Sequence[str | Path],
    *,
    changes: str | Path,
    target: str | Path,
    init: Sequence[str | Path] = (),
    potential: str | Path | None = None,
    state: str | Path | None = None,
    update_endpoint: str | None = None,
    graph: str | None = None,
    spark_master: str | None = None,
    on_change: Callable[[ReplicaStep], None] = lambda step: None,
) -> Replicated:
    """Keep replicas as `evergraph.replicate` does, on Spark; the target is a folder or an endpoint."""
    found = {name: interest for name, (interest, _) in read_interests(interests).items()}
    place = _place(str(target), potential, state)
    sinks = _sinks(str(target), list(found), update_endpoint, graph)
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


def _place(target: str, potential: str | Path | None, state: str | Path | None) -> Path:
    if state is not None:
        return Path(state).absolute()
    if not is_address(target):
        return Path(target).absolute() / STATE
    if potential is not None:
        return Path(potential).absolute() / STATE
    raise UsageError("a replica at an endpoint needs a place for its state", hint="give it by --state DIR")


def _sinks(target: str, names: list[str], update_url: str | None, graph: str | None) -> Mapping[str, Sink]:
    if is_address(target):
        graphs = {name: graph_of(graph, name, single=len(names) == 1) for name in names}
        return {name: EndpointSink(target, update_url or target, graphs[name]) for name in names}
    if target.startswith("store:"):
        raise UsageError("Spark does not write embedded databases", hint="name a folder or an endpoint")
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
