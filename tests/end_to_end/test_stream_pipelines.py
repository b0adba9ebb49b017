"""Both real histories through pipelines on Spark, with the views of `test_streams`: the sum of deltas is the view."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.end_to_end.test_streams import NOMISMA, PLEIADES, PREFIXES

from evergraph.delta import Bag
from evergraph.engines.local.engine import LocalEngine
from evergraph.engines.spark.rows import WEIGHT, term_of
from evergraph.sources import open_source
from evergraph.sparql.expressions import Row
from evergraph.sparql.parser import parse_query
from evergraph.terms import Quad

STREAMS = {"nomisma": NOMISMA, "pleiades": PLEIADES}


def _definition(changes: Path, queries: dict[str, str]) -> str:
    text = f'[source]\nchanges = "{changes}"\n[spark]\nmemory = "2g"\n'
    for number, query in enumerate(queries.values()):
        text += f'[[view]]\nname = "view{number}"\ntext = """{PREFIXES}\n{query}"""\n'
        text += f'[[view.sink]]\nkind = "table"\npath = "out/view{number}"\n'
    return text


def _sum(path: Path, width: int) -> Bag[Row]:
    table = pa.table(DeltaTable(path).to_pyarrow_table())
    columns = [table.column(number).to_pylist() for number in range(width)]
    return Bag.weighted(
        (tuple(None if column[place] is None else term_of(column[place]) for column in columns), weight)
        for place, weight in enumerate(table[WEIGHT].to_pylist())
    )


@pytest.mark.long
@pytest.mark.parametrize("stream", STREAMS)
def test_stream(stream: str, shared: Path, tmp_path: Path) -> None:
    queries, changes = STREAMS[stream], shared / "data" / stream
    (tmp_path / "run.toml").write_text(_definition(changes, queries))
    command = [sys.executable, "-m", "evergraph", "run", "run.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines()]

    present: frozenset[Quad] = frozenset()
    count = 0
    for change in open_source(changes).changes():
        present = (present - change.request.removed) | change.request.added
        count += 1
    assert sum(report["changes"] for report in reports) == count
    assert sum(report["inserted"] - report["deleted"] for report in reports) == len(present)
    for number, (name, query) in enumerate(queries.items()):
        view = LocalEngine(lambda: present).register(parse_query(PREFIXES + query))
        assert _sum(tmp_path / "out" / f"view{number}", len(view.variables)) == view.result(), name
