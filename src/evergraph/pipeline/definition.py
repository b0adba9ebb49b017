"""What a pipeline is: a source, views, and where their changes go. Read from TOML, and checked before it starts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from evergraph.errors import DataError, SyntaxProblem, UnsupportedInterest, UnsupportedQuery
from evergraph.files import is_address
from evergraph.linking.definition import Definition, load_linkset
from evergraph.pipeline.document import Document, PipelineInvalid, Table
from evergraph.plan.lower import Lowering, refuse_unmaintainable
from evergraph.plan.queries import lower_query
from evergraph.sources.feeds import Limit
from evergraph.sparql.algebra import Construct, Describe, Query
from evergraph.sparql.parser import parse_query
from evergraph.terms import NamedNode
from evergraph.views.replicas import interest_of
from evergraph.views.replicas.parts import whole_query

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ALL = "all graphs"
_GRAPHS_ONLY = "rows of a SELECT or ASK query are no triples; write them to a table or as jsonl, or use CONSTRUCT"


@dataclass(frozen=True, slots=True)
class TableSink:
    """A Delta table of rows with weights."""

    path: Path


@dataclass(frozen=True, slots=True)
class ChangesetsSink:
    """A folder of changesets, one for each batch, named by its sequence; it is a change source itself."""

    path: Path
    compress: bool = True


@dataclass(frozen=True, slots=True)
class PatchSink:
    """RDF Patch, one transaction for each batch: a file if the name ends like one, else a folder of files."""

    path: Path


@dataclass(frozen=True, slots=True)
class JsonLinesSink:
    """One line for each batch that has an effect, as ``evergraph watch`` prints them."""

    path: Path


@dataclass(frozen=True, slots=True)
class SnapshotSink:
    """The whole result, sorted, written when the run ends: N-Triples or N-Quads, or a row of JSON a line."""

    path: Path


@dataclass(frozen=True, slots=True)
class StoreSink:
    """An embedded database that is kept in step. ``graph`` takes the triples of a view."""

    path: Path
    graph: NamedNode | None = None


@dataclass(frozen=True, slots=True)
class EndpointSink:
    """A SPARQL endpoint that is kept in step. ``graph`` takes the triples of a view, or what is in no named graph."""

    query_url: str
    update_url: str
    graph: NamedNode | None = None


Sink: TypeAlias = TableSink | ChangesetsSink | PatchSink | JsonLinesSink | SnapshotSink | StoreSink | EndpointSink

KINDS: Mapping[type, str] = MappingProxyType(
    {
        TableSink: "table",
        ChangesetsSink: "changesets",
        PatchSink: "patch",
        JsonLinesSink: "jsonl",
        SnapshotSink: "snapshot",
        StoreSink: "store",
        EndpointSink: "endpoint",
    }
)
"""What sinks are called in TOML."""


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A query to maintain. ``text`` is the query as it was written.

    The query of a linkset only says what its rows are: triples with its property.
    """

    name: str
    text: str
    query: Query
    sinks: tuple[Sink, ...]
    linkset: Definition | None = None

    def queries(self) -> dict[str, Query]:
        """Return what an engine has to maintain, under names that no two views share."""
        if self.linkset is None:
            return {self.name: self.query}
        sides = {"source": self.linkset.source, "target": self.linkset.target}
        return {f"{self.name} {side}": dataset.catalogue.query for side, dataset in sides.items()}


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A checked definition; all paths are absolute. ``changes`` is a text if it is an address.

    ``skip_damaged`` sets changesets aside that cannot be read. From the first dataset, the triples of the views
    ``left_out`` are taken away before anything begins, unless one of the views ``kept`` has them.
    """

    name: str
    state: Path
    changes: Path | str
    init: tuple[Path, ...] = ()
    views: tuple[ViewDefinition, ...] = ()
    sinks: tuple[Sink, ...] = ()
    limit: Limit = field(default_factory=Limit)
    settle: float = 10.0
    poll: float = 5.0
    pause: float = 0.5
    skip_damaged: bool = False
    left_out: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    master: str | None = None
    memory: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


def load_pipeline(path: str | Path) -> Pipeline:
    """Read and check a definition.

    :raises PipelineInvalid: with file, line, key and what was expected.
    """
    document = Document(Path(path))
    root = document.root
    pipeline, source, batch, spark = (root.table(key) for key in ("pipeline", "source", "batch", "spark"))
    found = Pipeline(
        name=(name := _name(pipeline, "name", Path(path).stem)),
        state=_path(pipeline, "state", f"{name}.state"),
        changes=_changes(source),
        init=tuple(_existing(source, "init", text, pattern=True) for text in source.texts("init")),
        settle=_positive(source, "settle", 10.0, zero=True),
        poll=_positive(source, "poll", 5.0),
        skip_damaged=bool(source.get("skip_damaged", bool, False)),
        limit=Limit(int(_count(batch, "changes", 1_000)), int(_count(batch, "bytes", 64 * 2**20))),
        master=spark.get("master", str),
        memory=spark.get("memory", str),
        conf={key: str(value) for key, value in (spark.get("conf", dict) or {}).items()},
        views=tuple(_view(table) for table in root.tables("view")),
        sinks=tuple(_sink(table, None) for table in root.tables("sink")),
    )
    for table in (root, pipeline, source, batch, spark):
        table.refuse_others()
    _refuse_doubles(found, document)
    return found


def targets(pipeline: Pipeline) -> Iterator[tuple[ViewDefinition | None, Sink]]:
    """Iterate over all sinks with their views; None stands for the quads themselves."""
    for sink in pipeline.sinks:
        yield None, sink
    for view in pipeline.views:
        for sink in view.sinks:
            yield view, sink


def _view(table: Table) -> ViewDefinition:
    name = _name(table, "name", None)
    if (linkset := table.get("linkset", str)) is not None:
        return _linkset(table, name, linkset)
    interest = table.get("interest", str)
    file, inline = table.get("query", str) or interest, table.get("text", str)
    if (file is None) == (inline is None):
        table.fail(
            "expected one of 'query', 'text', 'interest' and 'linkset'",
            hint="query names a file; text is the query itself, in '''quotes'''",
        )
    where, base = str(table.document.path), table.document.path
    text = inline or ""
    if file is not None:
        base = _resolved(table, file)
        where = str(base)
        try:
            text = base.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            key = "interest" if file == interest else "query"
            table.fail(f"cannot read {base}: {reason}", key, hint="paths are relative to the definition")
    try:
        query = parse_query(text, base.resolve().as_uri())
        if interest is not None:
            query = whole_query(interest_of(query, name))
        refuse_unmaintainable(query.pattern)
        lower_query(query, Lowering(query.dataset))
    except UnsupportedInterest as error:
        table.fail(f"{base}: {error.message}", "interest", hint=error.hint)
    except UnsupportedQuery as error:
        key = "text" if file is None else "query" if interest is None else "interest"
        table.fail(f"the query of view '{name}' cannot be maintained: {error.message}", key, hint=error.hint)
    except SyntaxProblem as error:
        if file is None:
            table.fail(f"the query of view '{name}' cannot be parsed: {error.at('text', text).message}", "text")
        raise error.at(where, text) from None
    view = ViewDefinition(name, text, query, tuple(_sink(inner, query) for inner in table.tables("sink")))
    table.refuse_others()
    return view


def _linkset(table: Table, name: str, file: str) -> ViewDefinition:
    for key in ("query", "text", "interest"):
        if table.raw(key) is not None:
            table.fail(f"a view is either a linkset or a query: there are 'linkset' and '{key}'", key)
    path = _existing(table, "linkset", file)
    definition = load_linkset(path, alone=False)
    query = parse_query(f"CONSTRUCT {{ ?source {definition.predicate} ?target }} WHERE {{ }}")
    sinks = tuple(_sink(inner, query) for inner in table.tables("sink"))
    table.refuse_others()
    return ViewDefinition(name, path.read_text("utf-8-sig"), query, sinks, definition)


def _sink(table: Table, query: Query | None) -> Sink:
    kind = table.require("kind", str, f"one of {', '.join(KINDS.values())}")
    graphs = query is None or isinstance(query, Construct | Describe)
    sink: Sink
    match kind:
        case "table":
            sink = TableSink(_path(table, "path"))
        case "changesets":
            sink = ChangesetsSink(_path(table, "path"), bool(table.get("compress", bool, True)))
        case "patch":
            sink = PatchSink(_path(table, "path"))
        case "jsonl":
            if query is None:
                table.fail("quads have no results as 'watch' prints them", "kind", hint="use 'patch' or 'changesets'")
            sink = JsonLinesSink(_path(table, "path"))
        case "snapshot":
            sink = SnapshotSink(_path(table, "path"))
        case "store":
            sink = StoreSink(_path(table, "path"), _graph(table))
        case "endpoint":
            sink = _endpoint(table)
        case _:
            table.unknown(kind, KINDS.values(), f"unknown kind of sink '{kind}'", "kind")
    if not graphs and kind in ("changesets", "patch", "store", "endpoint"):
        table.fail(f"'{kind}' takes triples only", "kind", hint=_GRAPHS_ONLY)
    table.refuse_others()
    return sink


def _endpoint(table: Table) -> EndpointSink:
    query_url = table.require("query", str, "the address of the query service")
    update_url = table.get("update", str) or query_url
    for key, url in (("query", query_url), ("update", update_url)):
        if not url.startswith(("http://", "https://")):
            table.fail(f"expected an address that begins with http:// or https://, not '{url}'", key)
    return EndpointSink(query_url, update_url, _graph(table))


def _graph(table: Table) -> NamedNode | None:
    graph = table.get("graph", str)
    try:
        return NamedNode(graph) if graph else None
    except ValueError as error:
        table.fail(f"expected an IRI, not '{graph}': {error}", "graph")


def _changes(table: Table) -> Path | str:
    text = table.require("changes", str, "the path or the address of a change source")
    if is_address(text):
        return text
    if text == "-":
        table.fail("a pipeline cannot read standard input", "changes", hint="it must be able to read the changes again")
    return _existing(table, "changes", text)


def _existing(table: Table, key: str, text: str, *, pattern: bool = False) -> Path:
    path = _resolved(table, text)
    if not text:
        table.fail("expected a path, not an empty text", key)
    if not path.exists() and not (pattern and glob(str(path), recursive=True)):  # noqa: PTH207 - it is absolute
        table.fail(f"no such file or folder: {path}", key, hint="paths are relative to the definition")
    return path


def _path(table: Table, key: str, default: str | None = None) -> Path:
    text = table.get(key, str, default)
    if text is None:
        table.fail(f"the key '{key}' is missing: where to write")
    if not text:
        table.fail("expected a path, not an empty text", key)
    return _resolved(table, text)


def _resolved(table: Table, text: str) -> Path:
    return (table.document.path.resolve().parent / Path(text).expanduser()).absolute()


def _name(table: Table, key: str, default: str | None) -> str:
    name = table.get(key, str, default)
    if name is None:
        table.fail(f"the key '{key}' is missing: what to call it")
    if not _NAME.fullmatch(name):
        table.fail(f"'{name}' cannot be a name", key, hint="use letters, digits, '_', '-' and '.'")
    return name


def _count(table: Table, key: str, default: int) -> int:
    value = table.get(key, int, default)
    assert value is not None
    if value < 1:
        table.fail(f"expected a whole number from 1 on, not {value}", key)
    return value


def _positive(table: Table, key: str, default: float, *, zero: bool = False) -> float:
    value = table.get(key, float, default)
    assert value is not None
    if value < 0 or (not value and not zero):
        table.fail(f"expected a number of seconds, not {value}", key)
    return value


def _refuse_doubles(pipeline: Pipeline, document: Document) -> None:
    names: set[str] = set()
    for place, view in enumerate(pipeline.views):
        if view.name in names:
            Table({}, ("view", place), document).fail(f"there are two views '{view.name}'", "name")
        names.add(view.name)
    used: dict[Path, str] = {pipeline.state: "pipeline.state"}
    if isinstance(pipeline.changes, Path):
        used[pipeline.changes] = "source.changes"
    graphs: dict[Path, set[str]] = {}
    for owner, sink in targets(pipeline):
        if isinstance(sink, EndpointSink):
            continue
        beside = False
        if isinstance(sink, StoreSink):
            graph = str(sink.graph or ("the default graph" if owner else _ALL))
            others = graphs.setdefault(sink.path, set())
            beside = bool(others) and others.isdisjoint({graph, _ALL}) and graph != _ALL
            others.add(graph)
        for path in used:
            if beside and sink.path == path:
                continue  # another graph of the same database
            if sink.path == path or path in sink.path.parents or sink.path in path.parents:
                raise PipelineInvalid(
                    f"{document.path}: a sink at {sink.path} collides with {used[path]} at {path}",
                    hint="give every sink a place of its own",
                )
        used[sink.path] = f"the sink of kind {KINDS[type(sink)]}"
    if not pipeline.views and not pipeline.sinks:
        raise DataError(
            f"{document.path}: neither views nor sinks: there is nothing to do",
            hint="add a [[view]] with a [[view.sink]], or a [[sink]] for the changes themselves",
        )
