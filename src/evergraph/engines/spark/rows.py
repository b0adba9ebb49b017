"""Quads as rows: every term is its canonical N-Triples text, the default graph is the empty string.

Two terms are equal exactly if their texts are, as long as every text comes from `term_text`: escapes, ``xsd:string``
and the case of language tags have many spellings in files and only one here.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import RdfFormat, parse
from pyspark.sql.types import LongType, StringType, StructField, StructType

from evergraph.terms import DEFAULT_GRAPH, BlankNode, GraphName, NamedNode, Quad, Term, term_text

QUAD = ("subject", "predicate", "object", "graph")
"""The columns of a quad."""

WEIGHT = "weight"
"""The column that says how often a row counts; negative in changes."""

_CACHED_TERMS = 1 << 16


def arrow_schema(columns: Sequence[str] = QUAD) -> pa.Schema:
    """Return the Arrow schema of weighted rows with these columns."""
    return pa.schema([*((name, pa.string()) for name in columns), pa.field(WEIGHT, pa.int64(), nullable=False)])


def spark_schema(columns: Sequence[str] = QUAD) -> StructType:
    """Return the Spark schema of weighted rows with these columns."""
    return StructType([*(StructField(name, StringType()) for name in columns), StructField(WEIGHT, LongType(), False)])


def row_of(quad: Quad) -> tuple[str, str, str, str]:
    """Write a quad as a row."""
    graph = quad.graph_name
    return (
        str(quad.subject),
        str(quad.predicate),
        term_text(quad.object),
        "" if graph == DEFAULT_GRAPH else str(graph),
    )


def table_of(quads: Iterable[tuple[Quad, int]]) -> pa.Table:
    """Write weighted quads as an Arrow table; rows are not added up."""
    rows = [(*row_of(quad), weight) for quad, weight in quads]
    schema = arrow_schema()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def quad_of(row: Sequence[str]) -> Quad:
    """Read a quad from the first four fields of a row."""
    subject, predicate, object_, graph = (row[place] for place in range(len(QUAD)))
    return Quad(
        term_of(subject),  # type: ignore[arg-type]
        term_of(predicate),  # type: ignore[arg-type]
        term_of(object_),
        graph_of(graph),
    )


def batch_of_quads(rows: Iterable[tuple[str, str, str, str]]) -> pa.RecordBatch:
    """Write quads, as rows have them, as a batch without weights."""
    columns = list(zip(*rows, strict=True)) or [()] * len(QUAD)
    return pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], names=list(QUAD))


def quads_of(rows: pa.RecordBatch) -> list[Quad]:
    """Read the quads of many rows at once."""
    if not rows.num_rows:
        return []
    columns = [rows.column(name).cast(pa.large_string()) for name in QUAD]
    lines = pc.binary_join_element_wise(
        *columns, pa.scalar(".\n", pa.large_string()), pa.scalar(" ", pa.large_string())
    )
    document = lines.buffers()[2].to_pybytes()
    quads: list[Quad] = list(parse(document, RdfFormat.N_QUADS, lenient=True, rename_blank_nodes=False))
    assert len(quads) == rows.num_rows
    return quads


def graph_of(text: str) -> GraphName:
    """Read the name of a graph."""
    return term_of(text) if text else DEFAULT_GRAPH  # type: ignore[return-value]


@lru_cache(maxsize=_CACHED_TERMS)
def term_of(text: str) -> Term:
    """Read a term from its canonical text; equal texts give equal terms, and mostly the same object."""
    if text.startswith("<") and not text.startswith("<<") and "\\" not in text:
        return NamedNode(text[1:-1])
    if text.startswith("_:"):
        return BlankNode(text[2:])
    document = f"<x:> <x:> {text} .".encode()
    quad: Quad = next(iter(parse(document, RdfFormat.N_TRIPLES, rename_blank_nodes=False)))
    return quad.object
