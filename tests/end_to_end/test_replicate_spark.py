"""Replicas on Spark: the same lines and the same files as on the local engine, and over the real streams the oracle.

Batches of single changes take Spark a second or more each, and there are many views: this is for ``--long``. The
streams are cut into eleven batches; at the ten points between and at the end, targets and candidates are what loops
over all triples give.
"""

from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import pytest
from tests.end_to_end.test_replica_streams import CONNECTIONS, MINTS, NAMES, PERSONS, PREFIXES, Written
from tests.support.random_interests import RandomInterests
from tests.support.replica_files import changeset, lines, rq, run, table_content, write
from tests.support.stream_oracles import Followed, Mirror

import evergraph as eg
from evergraph.delta import Delta
from evergraph.pipeline.definition import Pipeline, TableSink, ViewDefinition
from evergraph.sources import ChangesetSource
from evergraph.sources.feeds import Limit
from evergraph.terms import Quad
from evergraph.views.replicas import candidates, parse_interest, parts

POINTS = 11
INTERESTS = {
    "optional": "SELECT * { ?a <http://example.org/p> ?b OPTIONAL { ?b <http://example.org/q> ?c } }",
    "both": "SELECT * { ?a <http://example.org/r> ?b . ?b <http://example.org/p> ?c FILTER (isIRI(?c)) }",
}


def history(folder: Path, steps: int) -> None:
    random = Random(5)
    named = (quad for quad in RandomInterests(random).pool(60) if "graph" not in str(quad) and "_:" not in str(quad))
    pool = sorted(named, key=str)
    states: list[frozenset[Quad]] = [frozenset(random.sample(pool, 15)) for _ in range(steps + 1)]
    write(folder / "init.nt", states[0])
    for number, (before, after) in enumerate(pairwise(states), 1):
        changeset(folder / "changes", number, before - after, after - before)


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_the_engines_agree(tmp_path: Path) -> None:
    history(tmp_path, 2)
    for name, text in INTERESTS.items():
        rq(tmp_path / f"{name}.rq", "", text)
    options = ("--init", tmp_path / "init.nt", "--changes", tmp_path / "changes")
    printed = {}
    for engine in ("local", "spark"):
        out = ("--target", tmp_path / engine, "--potential", tmp_path / f"{engine}-aside", "--engine", engine)
        printed[engine] = lines(run("replicate", tmp_path, *options, *out))
    assert printed["spark"] == printed["local"]
    for name in INTERESTS:
        for kind in ("", "-aside"):
            local, spark = (tmp_path / f"{engine}{kind}/{name}/data.nt" for engine in ("local", "spark"))
            assert local.read_bytes() == spark.read_bytes()
    changeset(tmp_path / "changes", 9, (), ())
    again = lines(run("replicate", tmp_path, *options, *out))
    assert [line["sequence"] for line in again] == [3] * len(INTERESTS)
    assert [line["potential"] for line in again] == [line["potential"] for line in printed["spark"][-len(INTERESTS) :]]


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_delta_tables(tmp_path: Path) -> None:
    history(tmp_path, 2)
    for name, text in INTERESTS.items():
        rq(tmp_path / f"{name}.rq", "", text)
    for engine in ("local", "spark"):
        eg.replicate(
            tmp_path,
            init=tmp_path / "init.nt",
            changes=tmp_path / "changes",
            target=f"delta:{tmp_path}/{engine}",
            state=tmp_path / f"state-{engine}",
            potential=tmp_path / f"aside-{engine}",
            engine=engine,
        )
    for name in INTERESTS:
        local, spark = (table_content(tmp_path / engine / name) for engine in ("local", "spark"))
        assert local
        assert local == spark
        aside = [(tmp_path / f"aside-{engine}" / name / "data.nt").read_bytes() for engine in ("local", "spark")]
        assert aside[0] == aside[1]


def views(folder: Path, interests: list[Written]) -> Iterator[ViewDefinition]:
    for number, one in enumerate(interests):
        interest = parse_interest(f"{PREFIXES}SELECT * {{ {one.where} }}", one.name)
        for kind, query in (("target", parts.whole_query(interest)), ("kept", candidates.whole_query(interest))):
            name = f"{kind}{number}"
            yield ViewDefinition(name, repr(query), query, (TableSink(folder / name),))


class Beside:
    """Follows a stream beside Spark, and compares after each batch."""

    def __init__(self, source: ChangesetSource, tables: Path, interests: list[Written]) -> None:
        self.points: list[int] = []
        self._mirror = Mirror()
        self._changes = source.changes()
        self._tables = tables
        self._interests = interests

    def compare(self, report: dict[str, object]) -> None:
        sequence = report["sequence"]
        assert isinstance(sequence, int)
        if not sequence:
            return
        for change in islice(self._changes, sequence - sum(self.points[-1:])):
            self._mirror.take(change.request)
        for number, one in enumerate(self._interests):
            target, kept = (table_content(self._tables / f"{kind}{number}") for kind in ("target", "kept"))
            assert target is not None
            assert kept is not None
            followed = Followed(one.plain)
            followed.take(self._mirror, Delta(inserted=target), Delta(inserted=kept))
            followed.check(self._mirror)
            assert target <= kept
        self.points.append(sequence)


def follow(folder: Path, interests: list[Written], place: Path) -> None:
    source = ChangesetSource.find(folder)
    assert source is not None
    count = len(source.changesets)
    beside = Beside(source, place / "tables", interests)
    limit = Limit(changes=-(-count // POINTS), bytes=1 << 40)
    pipeline = Pipeline("streams", place / "state", folder, (), tuple(views(place / "tables", interests)), limit=limit)
    eg.run(pipeline, report=beside.compare)
    assert len(beside.points) == POINTS
    assert beside.points[-1] == count


@pytest.mark.long
def test_all_of_nomisma(shared: Path, tmp_path: Path) -> None:
    follow(shared / "data/nomisma", [MINTS, PERSONS], tmp_path)


@pytest.mark.long
def test_all_of_pleiades(shared: Path, tmp_path: Path) -> None:
    follow(shared / "data/pleiades", [NAMES, CONNECTIONS], tmp_path)
