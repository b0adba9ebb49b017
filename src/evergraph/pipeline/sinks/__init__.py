"""Where the changes of a pipeline go."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from pyspark.sql import SparkSession

from evergraph.pipeline.definition import (
    ChangesetsSink,
    EndpointSink,
    JsonLinesSink,
    PatchSink,
    Sink,
    SnapshotSink,
    StoreSink,
    TableSink,
)
from evergraph.pipeline.outcomes import Outcome
from evergraph.pipeline.sinks.base import SinkWriter
from evergraph.pipeline.sinks.endpoints import EndpointWriter
from evergraph.pipeline.sinks.graphs import ChangesetsWriter, patch_writer
from evergraph.pipeline.sinks.rows import JsonLinesWriter, SnapshotWriter, TableWriter
from evergraph.pipeline.sinks.stores import Databases, StoreWriter
from evergraph.sparql.algebra import Query, Select
from evergraph.terms import DEFAULT_GRAPH, Variable


@dataclass(frozen=True, slots=True)
class Flow:
    """What flows into a sink: the rows of a view, or the quads (no ``query``). ``result`` gives all there is now."""

    query: Query | None
    columns: tuple[str, ...]
    variables: tuple[Variable, ...]
    result: Callable[[], Outcome]


@dataclass(frozen=True, slots=True)
class Places:
    """Where a sink keeps its own notes, and where it may put files for a while; ``app`` is its name in tables."""

    ledger: Path
    staging: Path
    app: str
    databases: Databases


def open_sink(sink: Sink, flow: Flow, places: Places, spark: SparkSession) -> SinkWriter:
    """Make the writer of a sink."""
    match sink:
        case TableSink(path=path):
            distinct = not isinstance(flow.query, Select)
            return TableWriter(path, flow.columns, places.app, spark, distinct=distinct)
        case ChangesetsSink(path=path, compress=compress):
            return ChangesetsWriter(path, places.staging, compress=compress)
        case PatchSink(path=path):
            return patch_writer(path, places.ledger, places.staging)
        case JsonLinesSink(path=path):
            assert flow.query is not None
            return JsonLinesWriter(path, places.ledger, places.staging, flow.query, flow.variables)
        case SnapshotSink(path=path):
            names = tuple(variable.value for variable in flow.variables)
            return SnapshotWriter(path, places.ledger, places.staging, flow.query, names, flow.result)
        case StoreSink(path=path, graph=graph):
            graph_or_all = graph or (DEFAULT_GRAPH if flow.query else None)
            return StoreWriter(places.databases.open(path), path, graph_or_all, places.staging)
        case EndpointSink(query_url=query_url, update_url=update_url, graph=graph):
            return EndpointWriter(query_url, update_url, graph, places.staging, whole=flow.query is None)
        case _:
            assert_never(sink)


KeptInStep = StoreWriter | EndpointWriter
"""Sinks that hold what the result is now, and can tell whether somebody emptied them."""

__all__ = ["Databases", "Flow", "KeptInStep", "Places", "SinkWriter", "open_sink"]
