"""A SPARQL endpoint as a sink: it is told what goes and what comes, in requests of bounded size.

The changes are exact, so that telling them again ends in the same state: a batch that was cut off is told again as a
whole. Nobody else may write the same triples.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from pyoxigraph import RdfFormat

from evergraph.delta import Delta
from evergraph.gate.endpoint import Endpoint
from evergraph.gate.extract import Effect
from evergraph.gate.journal import Journal
from evergraph.gate.remote import RemoteDataset
from evergraph.pipeline.outcomes import Outcome, lines, statement
from evergraph.rdfio import parse_quads
from evergraph.terms import NamedNode, Quad

_AT_ONCE = 20_000


class EndpointWriter:
    """Keeps an endpoint in step, or a graph of it that is not the ``whole``.

    Blank nodes become IRIs (``urn:skolem:``), which is the only way to name them.
    """

    def __init__(
        self, query_url: str, update_url: str, graph: NamedNode | None, staging: Path, *, whole: bool = False
    ) -> None:
        self._endpoint = Endpoint(query_url, update_url)
        self._dataset = RemoteDataset(self._endpoint, Journal(), graph)
        self._graph = graph
        self._whole = whole
        self._staging = staging

    def check(self) -> None:
        """Do nothing: what is there stays, and is somebody else's."""

    def is_empty(self) -> bool:
        """Tell whether nothing is there."""
        pattern = "{ ?s ?p ?o }" if self._graph is None else f"{{ GRAPH {self._graph} {{ ?s ?p ?o }} }}"
        if self._whole:
            pattern = f"{{ {pattern} UNION {{ GRAPH ?g {{ ?s ?p ?o }} }} }}"
        return not self._endpoint.select(f"SELECT ?s WHERE {pattern} LIMIT 1")

    def begin(self) -> None:
        """Do nothing."""

    def write(self, outcome: Outcome, batch: int, sequence: int) -> None:
        """Tell what goes, and then what comes."""
        if outcome.removed:
            for quads in self._quads(outcome, -1):
                self._send(Delta(deleted=quads))
        if outcome.added:
            for quads in self._quads(outcome, 1):
                self._send(Delta(inserted=quads))

    def finish(self, batch: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _send(self, delta: Delta) -> None:
        self._dataset.write(Effect(delta))
        self._dataset.settle(0)

    def _quads(self, outcome: Outcome, sign: int) -> Iterator[frozenset[Quad]]:
        texts = lines(outcome, sign, statement, self._staging)
        while chunk := list(islice(texts, _AT_ONCE)):
            yield frozenset(self._dataset.stored_form(set(_parsed(chunk))))


def _parsed(chunk: Iterable[bytes]) -> Iterator[Quad]:
    return parse_quads(b"\n".join(chunk), RdfFormat.N_QUADS, rename_blank_nodes=False)
