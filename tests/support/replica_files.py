"""Files for tests of replicas, and runs of the command line."""

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from evergraph.cli import main
from evergraph.delta import Request
from evergraph.rdfio import FORMATS, parse_quads, write_quads
from evergraph.sources import write_changeset
from evergraph.terms import Quad


def rq(path: Path, prefixes: str, text: str) -> Path:
    """Write a query, with prefixes as Turtle has them."""
    head = prefixes.replace("@prefix", "PREFIX").replace(" .\n", "\n")
    path.write_text(head + text)
    return path


def write(path: Path, quads: Iterable[Quad]) -> Path:
    """Write quads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_quads(path, quads)
    return path


def table_content(folder: Path) -> frozenset[Quad] | None:
    """Read a Delta table of triples as other tools do, and add up the weights; None if there is no table."""
    if not DeltaTable.is_deltatable(str(folder)):
        return None
    weights: Counter[tuple[str, ...]] = Counter()
    for row in DeltaTable(folder).to_pyarrow_table().to_pylist():
        weights[row["subject"], row["predicate"], row["object"]] += row["weight"]
    assert set(weights.values()) <= {0, 1}
    text = "".join(f"{' '.join(row)} .\n" for row, weight in weights.items() if weight)
    return frozenset(parse_quads(text, FORMATS[".nt"], rename_blank_nodes=False))


def changeset(folder: Path, number: int, removed: Iterable[Quad], added: Iterable[Quad]) -> None:
    """Write a changeset; one without triples has an empty file."""
    request = Request(frozenset(removed), frozenset(added))
    if not write_changeset(folder, number, request, compress=False):
        write(folder / f"{number:06}.added.nt", ())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command printed."""

    stdout: str
    stderr: str


def run(*arguments: str | Path, code: int = 0) -> Outcome:
    """Run the command line, in this process."""
    out, err, ended = StringIO(), StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(one) for one in arguments])
        except SystemExit as end:
            ended = int(end.code or 0)
    assert ended == code, err.getvalue()
    return Outcome(out.getvalue(), err.getvalue())


def lines(result: Outcome) -> list[dict[str, Any]]:
    """Read what was printed."""
    return [json.loads(line) for line in result.stdout.splitlines()]
