"""``evergraph traverse``: answer a query by following links."""

import json
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status

from evergraph.cli.run import SparkMaster
from evergraph.cli.watch import Engine, EngineOption, Limit, QueryFile, load_query
from evergraph.errors import UsageError
from evergraph.files import open_output
from evergraph.traversal import Limits, Manners, Strategy, Traversal, TraversalStep
from evergraph.traversal import traverse as start
from evergraph.traversal.reports import json_visit, progress_line, summary
from evergraph.views.queries import json_step

_EVERY = 10.0
"""Seconds between lines of progress where no person looks."""

Seeds = Annotated[
    list[str] | None,
    typer.Option("--seed", metavar="IRI", help="An IRI to start from, besides those of the query; may be repeated."),
]
StrategyOption = Annotated[
    Strategy,
    typer.Option(
        help="Which IRIs to follow: of the query, in solutions, where a triple pattern of the query matches, or all."
    ),
]
Allowed = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="HOST[:PORT]", help="A host that may be at a loopback or private address."),
]
Cache = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Keep answers of servers here; an interrupted run goes on from here."),
]
Report = Annotated[Path | None, typer.Option(metavar="FILE", help="Write what became of each address, as JSON lines.")]
DEFAULT, POLITE = Limits(), Manners()


def traverse(
    query: QueryFile,
    seed: Seeds = None,
    strategy: StrategyOption = Strategy.PATTERNS,
    vocabulary: Annotated[bool, typer.Option("--vocabulary", help="Follow predicates and classes, too.")] = False,
    allow: Allowed = None,
    cache: Cache = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep the result fresh, by HTTP caching rules, until interrupted.")
    ] = False,
    refresh: Annotated[
        float,
        typer.Option(
            metavar="S", min=0.001, help="With --follow: seconds until a document is asked for again, at least."
        ),
    ] = 60.0,
    batch: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Documents that are one change at most; default: 1, on Spark 1,000."),
    ] = None,
    engine: EngineOption = Engine.LOCAL,
    spark_master: SparkMaster = None,
    max_documents: Annotated[int, typer.Option(metavar="N", min=1, help="Addresses to ask.")] = DEFAULT.documents,
    max_depth: Annotated[int, typer.Option(metavar="N", min=0, help="Links from a seed.")] = DEFAULT.depth,
    max_bytes: Annotated[int, typer.Option(metavar="N", min=1, help="Bytes of all documents.")] = DEFAULT.bytes,
    max_document_bytes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Bytes of one document.")
    ] = DEFAULT.document_bytes,
    max_per_host: Annotated[
        int, typer.Option(metavar="N", min=1, help="Addresses to ask at one host.")
    ] = DEFAULT.per_host,
    max_seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0.001, help="Seconds; default: an hour, without end with --follow.")
    ] = None,
    concurrency: Annotated[int, typer.Option(metavar="N", min=1, help="Requests at a time.")] = POLITE.concurrency,
    per_host: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests at a time at one host.")
    ] = POLITE.per_host,
    delay: Annotated[
        float, typer.Option(metavar="S", min=0, help="Seconds between requests at one host.")
    ] = POLITE.delay,
    timeout: Annotated[
        float, typer.Option(metavar="S", min=0.01, help="Seconds until a request is given up.")
    ] = POLITE.timeout,
    robots: Annotated[
        bool, typer.Option("--robots/--no-robots", help="Keep to robots.txt, or not: on your own servers.")
    ] = True,
    limit: Limit = None,
    report: Report = None,
) -> None:
    """Answer a query over Linked Data by following links.

    Fetches the documents behind the IRIs of the query, follows the links in them, and prints one line of JSON for the
    result at the start and one for every document that has an effect on it, as `watch` does:
    `{"sequence":n,"added":RESULT,"removed":RESULT,"document":IRI}`. Progress, and at the end where each document came
    from, are on standard error. Each document is a named graph; `?x <urn:evergraph:f> ?d` says that the document of
    `?x` is `?d`.

    Ctrl-C ends a run; with `--cache` the same command goes on from there.

    **Examples**

    `evergraph traverse friends.rq --seed http://example.org/alice`

    `evergraph traverse friends.rq --strategy all --max-documents 200 --cache ~/.cache/evergraph --follow`

    `evergraph traverse friends.rq --allow localhost:8000 --report documents.jsonl`
    """
    parsed = load_query(query)
    if report is not None and not report.resolve().parent.is_dir():
        raise UsageError(f"{report} cannot be written: there is no such folder", hint="create the folder first")
    if report is not None and report.is_dir():
        raise UsageError(f"{report} cannot be written: it is a folder", hint="name a file")
    for host in allow or ():
        if not re.fullmatch(r"[^\s/@]+", host):
            raise UsageError(f"--allow {host!r} is no host", hint="write HOST or HOST:PORT, as in localhost:8000")
    seconds = max_seconds if max_seconds is not None or follow else DEFAULT.seconds
    begin = time.monotonic()
    traversal = start(
        parsed,
        seed or (),
        strategy=strategy,
        vocabulary=vocabulary,
        limits=Limits(max_documents, max_depth, max_document_bytes, max_bytes, seconds, max_per_host, entries=limit),
        manners=Manners(concurrency, per_host, delay, timeout, robots=robots, allowed=frozenset(allow or ())),
        cache=cache,
        follow=follow,
        refresh=refresh,
        batch=batch,
        engine=engine.value,
        spark_master=spark_master,
    )
    with traversal, _stoppable(traversal) as interrupted:
        try:
            with _progress(traversal):
                for step in traversal:
                    _tell(traversal, step)
        finally:
            for line in summary(traversal, time.monotonic() - begin):
                sys.stderr.write(line + "\n")
            if report is not None:
                _write_report(traversal, report)
    if interrupted and not follow:
        hint = "the same command goes on from here" if cache else "with --cache DIR, it could go on from here"
        sys.stderr.write(f"interrupted; {hint}\n")
        raise typer.Exit(130)


def _tell(traversal: Traversal, step: TraversalStep) -> None:
    documents = list(step.documents)
    line = json_step(traversal.query, step, traversal.variables)
    line["document"] = documents[0] if len(documents) == 1 else documents or None
    sys.stdout.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def _write_report(traversal: Traversal, path: Path) -> None:
    with open_output(path) as out:
        for visit in traversal.report():
            out.write(json.dumps(json_visit(visit), ensure_ascii=False).encode() + b"\n")


@contextmanager
def _progress(traversal: Traversal) -> Iterator[None]:
    """Show the progress: always, where a person looks; now and then, where it goes into a file."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Status(progress_line(traversal), console=console) as status:
            traversal.on_progress = lambda one: status.update(progress_line(one))
            yield
        return
    last = time.monotonic()

    def tell(one: Traversal) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY:
            last = time.monotonic()
            sys.stderr.write(progress_line(one) + "\n")

    traversal.on_progress = tell
    yield


@contextmanager
def _stoppable(traversal: Traversal) -> Iterator[list[int]]:
    """Let Ctrl-C and SIGTERM end the traversal after the document at hand; a second one ends it at once."""
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        traversal.stop()

    before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
