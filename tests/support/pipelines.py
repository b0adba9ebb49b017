"""A pipeline with every kind of sink over a random history, and the check that all of them are exactly right.

Batches hold one change, so that the file of JSON lines of every view has to be, byte for byte, what the local engine
prints: a batch that is lost, done twice or done in part shows there.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
from deltalake import DeltaTable

from evergraph.delta import Bag, Delta, Request
from evergraph.engines.spark.net import net_rows
from evergraph.engines.spark.rows import QUAD, WEIGHT, row_of, term_of
from evergraph.pipeline.definition import Pipeline, load_pipeline
from evergraph.rdfio import read_quads, write_quads
from evergraph.sources import open_source, write_changeset
from evergraph.sparql.algebra import Query
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.expressions import Row
from evergraph.terms import XSD, Literal, NamedNode, Quad, Term, term_text
from evergraph.views.queries import Step, json_step, result_rows
from evergraph.views.streams import follow

P, Q = NamedNode("urn:p"), NamedNode("urn:q")
QUERIES = {
    "pairs": "SELECT ?s ?o { ?s <urn:p> ?m . ?m <urn:q> ?o }",
    "counts": "SELECT ?s (COUNT(?o) AS ?n) { ?s <urn:q> ?o } GROUP BY ?s",
    "turned": "CONSTRUCT { ?o <urn:r> ?s } WHERE { ?s <urn:p> ?o FILTER isIRI(?o) }",
}
SINKS = {
    "pairs": ("jsonl", "table"),
    "counts": ("jsonl", "table", "snapshot"),
    "turned": ("jsonl", "table", "snapshot", "changesets", "patch", "patch folder"),
}


def random_requests(seed: int, changes: int) -> Iterator[Request]:
    """Make requests that are not exact: some of what they ask for is so already."""
    random = Random(seed)
    nodes = [NamedNode(f"urn:n{number}") for number in range(6)]
    values: list[Term] = [*nodes, *(Literal(str(number), datatype=NamedNode(XSD + "integer")) for number in range(3))]

    def quad() -> Quad:
        graph = {"graph_name": NamedNode("urn:g")} if random.random() < 0.1 else {}
        return Quad(random.choice(nodes), random.choice((P, Q)), random.choice(values), **graph)

    for _ in range(changes):
        yield Request(
            frozenset(quad() for _ in range(random.randint(0, 8))),
            frozenset(quad() for _ in range(random.randint(1, 8))),
        )


@dataclass(frozen=True)
class Case:
    """A pipeline in a folder: ``pipeline.toml``, ``in`` with its changes, ``init.nt``, and ``out`` for its sinks."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, *, seed: int, changes: int, views: tuple[str, ...] = tuple(QUERIES)) -> "Case":
        folder.mkdir(exist_ok=True)
        first, *later = random_requests(seed, changes + 1)
        write_quads(folder / "init.nq", first.added)
        for number, request in enumerate(later, 1):
            write_changeset(folder / "in", number, request)
        case = cls(folder)
        case.define(views)
        return case

    def define(self, views: tuple[str, ...], extra: str = "", changes: int = 1) -> None:
        parts = [f'[source]\nchanges = "in"\ninit = "init.nq"\n[batch]\nchanges = {changes}\n{extra}\n']
        for kind, path in (("changesets", "out/quads"), ("snapshot", "out/quads.nq")):
            parts.append(f'[[sink]]\nkind = "{kind}"\npath = "{path}"\n')
        for name in views:
            parts.append(f'[[view]]\nname = "{name}"\ntext = "{QUERIES[name]}"\n')
            for kind in SINKS[name]:
                ending = {"jsonl": ".jsonl", "patch": ".rdfp", "snapshot": ".txt"}.get(kind, f".{kind[:5]}")
                parts.append(f'[[view.sink]]\nkind = "{kind.split()[0]}"\npath = "out/{name}{ending}"\n')
        (self.folder / "pipeline.toml").write_text("".join(parts))

    @property
    def toml(self) -> Path:
        return self.folder / "pipeline.toml"

    @property
    def pipeline(self) -> Pipeline:
        return load_pipeline(self.toml)

    def out(self, name: str) -> Path:
        return self.folder / "out" / name

    # --- what has to be

    def requests(self) -> list[Request]:
        init = Request(added=frozenset(read_quads(self.folder / "init.nq")))
        return [init, *(change.request for change in open_source(self.folder / "in").changes())]

    def states(self) -> list[frozenset[Quad]]:
        """All quads before the first change, after it, and so on."""
        states: list[frozenset[Quad]] = []
        now: frozenset[Quad] = frozenset()
        for request in self.requests():
            now = (now - request.removed) | request.added
            states.append(now)
        return states

    def watched(self, view: str, until: int = 2**31) -> str:
        """What ``evergraph watch`` prints, up to a sequence."""
        return self.watched_query(next(one.query for one in self.pipeline.views if one.name == view), until)

    def watched_query(self, query: Query, until: int = 2**31) -> str:
        first, *later = self.requests()
        local = follow(query)
        local.take(first)
        steps = [Step(0, local.result(), Bag())]
        for sequence, request in enumerate(later, 1):
            if effect := local.take(request):
                steps.append(Step(sequence, effect.positive(), effect.negative()))
        texts = [
            json.dumps(json_step(query, one, local.variables), ensure_ascii=False, separators=(",", ":"))
            for one in steps
        ]
        return "".join(f"{text}\n" for text, one in zip(texts, steps, strict=True) if one.sequence <= until)

    def result(self, view: str) -> Bag[Row]:
        query = next(one.query for one in self.pipeline.views if one.name == view)
        return result_rows(query, Dataset(self.states()[-1]))

    # --- what is

    def check(self, *, steps: bool = True, quads_from_start: bool = True) -> None:
        """Compare every sink with what it has to be."""
        states = self.states()
        self._check_quads(states, steps=steps and quads_from_start)
        for view in self.pipeline.views:
            expected = self.result(view.name)
            if steps:
                assert self.out(f"{view.name}.jsonl").read_text() == self.watched(view.name)
            assert table_rows(self.out(f"{view.name}.table")) == texts(expected), view.name
            if "snapshot" in SINKS[view.name]:
                lines = self.out(f"{view.name}.txt").read_text().splitlines()
                assert len(lines) == sum(weight for _, weight in expected.items())
                assert view.name != "turned" or lines == sorted(" ".join(row) + " ." for row in texts(expected))
            if view.name == "turned":
                triples = {Quad(*row) for row in expected}  # type: ignore[arg-type]
                for source in ("turned.chang", "turned.rdfp", "turned.patch"):
                    assert replayed(self.out(source)) == triples, source
        quads = {row_of(quad): 1 for quad in states[-1]}
        assert table_rows(self.folder / "pipeline.state" / "quads", QUAD) == quads

    def _check_quads(self, states: list[frozenset[Quad]], *, steps: bool) -> None:
        assert replayed(self.out("quads")) == states[-1]
        lines = self.out("quads.nq").read_text().splitlines()
        assert lines == sorted(f"{quad} ." for quad in states[-1])
        if not steps:
            return
        deltas = [
            Delta(now - before, before - now) for before, now in zip([frozenset[Quad](), *states], states, strict=False)
        ]
        effective = [Request(delta.deleted, delta.inserted) for delta in deltas if delta]
        assert [change.request for change in open_source(self.out("quads")).changes()] == effective


def replayed(path: Path) -> frozenset[Quad]:
    """Apply a change source, every change of which must be exact."""
    now: frozenset[Quad] = frozenset()
    for change in open_source(path).changes():
        assert change.request.removed <= now, change.where
        assert not change.request.added & now, change.where
        now = (now - change.request.removed) | change.request.added
    return now


def texts(rows: Bag[Row]) -> dict[tuple[str, ...], int]:
    return {tuple("" if term is None else term_text(term) for term in row): weight for row, weight in rows.items()}


def table_rows(path: Path, columns: tuple[str, ...] | None = None) -> dict[tuple[str, ...], int]:
    """Read a table without Spark."""
    content = pa.table(DeltaTable(path).to_pyarrow_table())
    names = columns or tuple(name for name in content.column_names if name != WEIGHT and not name.startswith("_"))
    net = net_rows(content, names)
    return {tuple(row[name] or "" for name in names): row[WEIGHT] for row in net.to_pylist()}


__all__ = ["QUERIES", "Case", "random_requests", "replayed", "table_rows", "term_of", "texts"]
