"""Replicas on Spark: the same lines and the same files as on the local engine.

Batches of single changes take Spark a second or more each, and there are many views: this is for ``--long``.
"""

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.support.random_interests import RandomInterests
from tests.support.replica_files import changeset, lines, rq, run, write

from evergraph.terms import Quad

if TYPE_CHECKING:
    pass

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
