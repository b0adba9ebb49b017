"""The SPARQL test suites of the W3C, read from their manifests.

They are too large for the repository and lie in ``shared`` next to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyoxigraph import Dataset, NamedNode

from evergraph.rdfio import read_quads
from evergraph.terms import BlankNode, Literal, Quad, Term

SUITES = Path(__file__).resolve().parents[3] / "shared" / "w3c" / "sparql"
_HOME = "https://w3c.github.io/rdf-tests/sparql/"
_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_VOCABULARIES = (
    "http://www.w3.org/2009/sparql/tests/test-update#",
    "http://www.w3.org/2001/sw/DataAccess/tests/test-query#",
)
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"


@dataclass(frozen=True, slots=True)
class Files:
    """What a test is given or must give: a text (a request, a query, a result) and the graphs of a dataset."""

    text: Path | None = None
    default: tuple[Path, ...] = ()
    named: tuple[tuple[str, Path], ...] = ()

    def quads(self) -> frozenset[Quad]:
        """Read the dataset."""
        default = frozenset(quad for path in self.default for quad in read_quads(path, base_iri=iri(path)))
        return default | {
            Quad(quad.subject, quad.predicate, quad.object, NamedNode(name))
            for name, path in self.named
            for quad in read_quads(path, base_iri=iri(path))
        }


@dataclass(frozen=True, slots=True)
class Entry:
    """One test: ``name`` is its folder and its name there, ``kind`` its class in the vocabulary of manifests."""

    name: str
    kind: str
    action: Files
    result: Files

    @property
    def text(self) -> str:
        """The query or request."""
        assert self.action.text is not None
        return self.action.text.read_text("utf-8")

    @property
    def base(self) -> str:
        """What relative IRIs of the query or request are relative to."""
        assert self.action.text is not None
        return iri(self.action.text)


def iri(path: Path) -> str:
    """Tell the published address of a file of the suites."""
    return _HOME + path.relative_to(SUITES).as_posix()


def parameters(*kinds: str) -> list[object]:
    """List the entries of some kinds for ``pytest.mark.parametrize``; without the suites, one that is skipped."""
    if not SUITES.is_dir():
        reason = "needs the W3C test suites in the folder `shared` next to the repository"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    manifests = sorted(SUITES.glob("sparql1*/*/manifest.ttl"))
    return [pytest.param(entry, id=entry.name) for path in manifests for entry in entries(path) if entry.kind in kinds]


def entries(manifest: Path) -> Iterator[Entry]:
    """Read the entries of one manifest, in its order of names."""
    graph = Dataset(read_quads(manifest, base_iri=iri(manifest)))
    for quad in sorted(graph.quads_for_predicate(NamedNode(_TYPE)), key=lambda quad: str(quad.subject)):
        test, kind = quad.subject, quad.object
        if isinstance(test, NamedNode) and isinstance(kind, NamedNode) and kind.value.startswith(_MF):
            if kind.value == _MF + "Manifest":
                continue
            name = f"{manifest.parent.parent.name}/{manifest.parent.name}/{test.value.rpartition('#')[2]}"
            action, result = (_files(graph, _values(graph, test, _MF + part)) for part in ("action", "result"))
            yield Entry(name, kind.value.removeprefix(_MF), action, result)


def _files(graph: Dataset, nodes: list[Term]) -> Files:
    if not nodes:
        return Files()
    [node] = nodes
    if isinstance(node, NamedNode):
        return Files(path_of(node))

    def values(*names: str) -> list[Term]:
        return [value for name in names for v in _VOCABULARIES for value in _values(graph, node, v + name)]

    texts = [path_of(value) for value in values("request", "query")]
    return Files(
        text=texts[0] if texts else None,
        default=tuple(map(path_of, values("data"))),
        named=tuple(_named(graph, value) for value in values("graphData")),
    )


def _named(graph: Dataset, node: Term) -> tuple[str, Path]:
    """A named graph is a file that is named like itself, or a file and a label."""
    if isinstance(node, NamedNode):
        return node.value, path_of(node)
    [label] = _values(graph, node, _LABEL)
    [file] = [value for vocabulary in _VOCABULARIES for value in _values(graph, node, vocabulary + "graph")]
    assert isinstance(label, Literal)
    return label.value, path_of(file)


def _values(graph: Dataset, node: Term, predicate: str) -> list[Term]:
    assert isinstance(node, NamedNode | BlankNode)
    return [quad.object for quad in graph.quads_for_subject(node) if quad.predicate.value == predicate]


def path_of(node: Term) -> Path:
    """Tell the file behind a published address."""
    assert isinstance(node, NamedNode)
    return SUITES / node.value.removeprefix(_HOME)
