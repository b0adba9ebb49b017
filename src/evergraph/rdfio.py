"""RDF documents: all syntaxes, read and written by file ending.

Terms keep their exact lexical form. Reading streams; writing is sorted, so that equal data gives equal bytes.
"""

import io
import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, BinaryIO, cast
from xml.parsers import expat

from pyoxigraph import RdfFormat, parse, serialize

from evergraph.errors import DataError, SyntaxProblem, UsageError
from evergraph.files import STANDARD_STREAM, AnyPath, open_input, open_output
from evergraph.terms import Quad, sorted_quads

FORMATS: Mapping[str, RdfFormat] = MappingProxyType(
    {
        ".nt": RdfFormat.N_TRIPLES,
        ".nq": RdfFormat.N_QUADS,
        ".ttl": RdfFormat.TURTLE,
        ".trig": RdfFormat.TRIG,
        ".rdf": RdfFormat.RDF_XML,
        ".xml": RdfFormat.RDF_XML,
        ".owl": RdfFormat.RDF_XML,
        ".jsonld": RdfFormat.JSON_LD,
        ".n3": RdfFormat.N3,
    }
)
"""The file endings that name an RDF syntax; each may be followed by ``.gz``."""

_NOT_ALL_OF_RDF = (RdfFormat.RDF_XML, RdfFormat.JSON_LD)
"""Syntaxes without words for some RDF: control characters, some predicates, some literals."""

_POSITION = re.compile(r"^Parser error at line \d+ .*?: ")
_HINTS = {
    "No scheme found": "the document has relative IRIs: write them in full, or give it a base",
    "LoadDocumentCallback": "remote JSON-LD contexts are not fetched: put the @context into the document",
}


def rdf_ending(path: AnyPath) -> str:
    """Return the ending that names the syntax, without ``.gz``; empty where there is none that we know."""
    ending = Path(os.fspath(path).removesuffix(".gz")).suffix.lower()
    return ending if ending in FORMATS else ""


def format_for_path(path: AnyPath) -> RdfFormat:
    """Tell the syntax of a file by its ending; the standard streams are N-Quads."""
    if os.fspath(path) == STANDARD_STREAM:
        return RdfFormat.N_QUADS
    if ending := rdf_ending(path):
        return FORMATS[ending]
    raise DataError(
        f"{os.fspath(path)}: the file ending names no RDF syntax",
        hint=f"use one of {', '.join(FORMATS)}, each with or without .gz",
    )


def format_for_media_type(media_type: str) -> RdfFormat:
    """Tell the syntax of an HTTP response by its ``Content-Type``; parameters are ignored."""
    found = RdfFormat.from_media_type(media_type)
    if found is None:
        known = ", ".join(sorted({known.media_type for known in FORMATS.values()}))
        raise DataError(f"{media_type!r} is not the media type of an RDF syntax", hint=f"use one of {known}")
    return found


def read_quads(
    path: AnyPath,
    *,
    format: RdfFormat | None = None,
    base_iri: str | None = None,
    rename_blank_nodes: bool = True,
) -> Iterator[Quad]:
    """Read a file quad by quad; ``-`` is standard input. The first step opens the file.

    Labels of blank nodes are local to a document, so they are replaced by fresh ones: two files never share a node.
    Keep them (``rename_blank_nodes=False``) only where the labels are stable identifiers across documents.
    """
    chosen = format or format_for_path(path)
    where = "standard input" if os.fspath(path) == STANDARD_STREAM else os.fspath(path)
    with open_input(path) as stream:
        yield from parse_quads(stream, chosen, where=where, base_iri=base_iri, rename_blank_nodes=rename_blank_nodes)


def parse_quads(
    source: str | bytes | io.BufferedReader,
    format: RdfFormat,
    *,
    where: str = "",
    base_iri: str | None = None,
    rename_blank_nodes: bool = True,
) -> Iterator[Quad]:
    """Parse a document quad by quad. An empty one holds nothing in every syntax; ``where`` names it in errors."""
    stream = _buffered(source)
    head = stream.peek(len(BOM_UTF8))
    if not head:
        return
    if head.startswith(BOM_UTF8):
        stream.read(len(BOM_UTF8))
    whole = cast(IO[bytes], _WholeXml(stream, where)) if format == RdfFormat.RDF_XML else stream
    try:
        yield from parse(whole, format, base_iri=base_iri, rename_blank_nodes=rename_blank_nodes)
    except SyntaxError as error:
        raise syntax_problem(error, where) from None


def write_quads(path: AnyPath, quads: Iterable[Quad], *, format: RdfFormat | None = None) -> None:
    """Write quads, sorted, to a file that appears wholly or not at all; ``-`` is standard output."""
    chosen = format or format_for_path(path)
    ordered = sorted_quads(quads)
    with open_output(path) as out:
        try:
            _serialize(ordered, out, chosen)
        except ValueError as error:
            raise UsageError(
                f"cannot write {os.fspath(path)}: {error}", hint="write N-Quads (.nq), which can say everything"
            ) from None


def write_statements(path: AnyPath, statements: Iterable[str], *, keep_equal: bool = False) -> None:
    """Write triples to a file of N-Triples, in the order in which they come; each is the text of its three terms.

    ``keep_equal`` leaves a file alone that has the same content already.
    """
    content = "".join([f"{statement} .\n" for statement in statements]).encode()
    if keep_equal and Path(path).is_file() and Path(path).read_bytes() == content:
        return
    with open_output(path) as out:
        out.write(content)


def syntax_problem(error: SyntaxError, where: str, *, line: int = 1, column: int = 1) -> SyntaxProblem:
    """Translate an error of the parser, whose text began at the given line and column of ``where``."""
    reason = _POSITION.sub("", error.msg)
    hint = next((hint for sign, hint in _HINTS.items() if sign in reason), "")
    if not error.lineno:
        return SyntaxProblem(reason, where=where, hint=hint)
    shift = column - 1 if error.lineno == 1 else 0
    return SyntaxProblem(
        reason, where=where, line=error.lineno + line - 1, column=(error.offset or 1) + shift, hint=hint
    )


def _serialize(quads: list[Quad], out: BinaryIO, format: RdfFormat) -> None:
    """Serialize, and read back before anything is kept where the syntax cannot say everything and would not tell."""
    if format not in _NOT_ALL_OF_RDF:
        serialize(quads, out, format)
        return
    text = serialize(quads, format=format) or b""
    try:
        same = set(parse_quads(text, format, rename_blank_nodes=False)) == set(quads)
    except SyntaxProblem:
        same = False
    if not same:
        raise ValueError(f"{format.name} has no way to say some of the quads")
    out.write(text)


def _buffered(source: str | bytes | io.BufferedReader) -> io.BufferedReader:
    if isinstance(source, str):
        source = source.encode()
    if isinstance(source, bytes):
        return io.BufferedReader(io.BytesIO(source))
    return source


class _WholeXml:
    """An XML stream that fails where the document is cut off: pyoxigraph takes such a document for a complete one."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._stream = stream
        self._where = where
        self._checker = expat.ParserCreate(namespace_separator=" ")

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(size)
        try:
            self._checker.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            reason = expat.errors.messages[error.code]
            raise SyntaxProblem(reason, where=self._where, line=error.lineno, column=error.offset + 1) from None
        return chunk
