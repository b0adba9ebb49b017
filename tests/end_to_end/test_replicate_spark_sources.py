"""Replicas on Spark from every kind of source, and into every kind of target: as on the local engine, line by line.

Spark takes half a minute for most of this, so that it is for ``--long``; what is not shows that the parts fit together.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from tests.support.events import WD, WDS, event, write_events
from tests.support.published import publish
from tests.support.replica_files import changeset, lines, rq, run, write

import evergraph as eg
from evergraph.engines.spark.clearing import owned_by
from evergraph.rdfio import FORMATS, parse_quads
from evergraph.sources.wikidata import DOCUMENT, ENTITY, Forgotten
from evergraph.terms import NamedNode, Quad

INTEREST = "SELECT * { ?a <urn:p> ?b . ?a <urn:q> ?c OPTIONAL { ?b <urn:r> ?d } }"


def triples(text: str) -> frozenset[Quad]:
    return frozenset(parse_quads(text, FORMATS[".nt"]))


def triple(subject: str, predicate: str, object_: str) -> Quad:
    return Quad(*(NamedNode(f"urn:{name}") for name in (subject, predicate, object_)))


def clearing_history(folder: Path, seed: int, steps: int) -> None:
    """Write changes that add and remove at random, and clear subjects in every second one."""
    random = Random(seed)
    pool = [triple(s, p, o) for s in "abcd" for p in "pqr" for o in "abxy"]
    write(folder / "init.nt", random.sample(pool, 24))
    for number in range(1, steps + 1):
        some = random.sample(pool, 10)
        changeset(folder / "changes", number, some[:3], some[3:6])
        if number % 2 == 0:
            write(folder / "changes" / f"{number:06}.clear.nt", some[6:8])
            write(folder / "changes" / f"{number:06}.reinserted.nt", some[8:])


def compare(
    folder: Path, changes: Path | str, *options: str | Path, interest: str = INTEREST
) -> list[dict[str, object]]:
    """Replicate on both engines; return the lines."""
    printed = {}
    rq(folder / "i.rq", "", interest)
    for engine in ("local", "spark"):
        out = ("--target", folder / engine, "--potential", folder / f"{engine}-aside", "--engine", engine)
        printed[engine] = lines(run("replicate", folder / "i.rq", "--changes", str(changes), *out, *options))
    assert printed["spark"] == printed["local"]
    for kind in ("", "-aside"):
        local, spark = ((folder / f"{engine}{kind}/data.nt").read_bytes() for engine in ("local", "spark"))
        assert local == spark
    return printed["local"]


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_clear_and_last_published(tmp_path: Path) -> None:
    clearing_history(tmp_path, 1, 3)
    (tmp_path / "changes/lastPublishedFile.txt").write_text("000002\n")
    printed = compare(tmp_path, tmp_path / "changes", "--init", tmp_path / "init.nt")
    assert [line["sequence"] for line in printed] == [1, 2]
    assert any(line["removed"] for line in printed)
    (tmp_path / "changes/lastPublishedFile.txt").write_text("000099\n")
    assert [line["sequence"] for line in compare(tmp_path, tmp_path / "changes")] == [3]


@pytest.mark.usefixtures("spark")
def test_several_changes_in_a_batch(tmp_path: Path) -> None:
    """In a pipeline, what is cleared is what the changes before it left, whether they are in the same batch or not."""
    clearing_history(tmp_path, 2, 5)
    (tmp_path / "all.rq").write_text("CONSTRUCT WHERE { ?s ?p ?o }")
    (tmp_path / "pipeline.toml").write_text(
        '[source]\nchanges = "changes"\ninit = "init.nt"\n'
        '[[view]]\nname = "all"\nquery = "all.rq"\n'
        '[[view.sink]]\nkind = "snapshot"\npath = "all.nt"\n'
        '[[view.sink]]\nkind = "store"\npath = "db"\ngraph = "urn:g"\n'
        '[[sink]]\nkind = "store"\npath = "whole"\n'
    )
    reports = eg.run(tmp_path / "pipeline.toml")
    assert [report["sequence"] for report in reports] == [0, 1, 3, 5]
    options = ("--init", tmp_path / "init.nt", "--changes", tmp_path / "changes", "--target", tmp_path / "local")
    run("replicate", tmp_path / "all.rq", *options)
    expected = (tmp_path / "local/data.nt").read_text()
    assert (tmp_path / "all.nt").read_text() == expected
    for place, graph in (("db", NamedNode("urn:g")), ("whole", None)):
        with eg.open(tmp_path / place) as database:
            found = {Quad(one.subject, one.predicate, one.object) for one in database.quads()}
            assert found == triples(expected)
            assert graph is None or {one.graph_name for one in database.quads()} == {graph}


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_events(tmp_path: Path) -> None:
    statement, article = f"<{WDS}Q1-abc>", "<http://en.example/One>"
    about = f"{article} <http://schema.org/about> <{WD}Q1> ."
    path = write_events(
        tmp_path / "events.jsonl",
        event("import", "Q1", added=f"<{WD}Q1> <urn:p> {statement} ; <urn:q> 1 . {statement} <urn:r> 1 ."),
        event("import", "Q11", added=f"<{WD}Q11> <urn:p> <urn:x> ; <urn:q> 3 . {article} <urn:p> 1 ; <urn:q> 2 ."),
        event("diff", "Q1", added=f"{statement} <urn:r> 4 . {about}", deleted=f"{statement} <urn:r> 1 ."),
        event("reconcile", "Q1", added=f"<{WD}Q1> <urn:q> 6 . <{WD}Q1> <urn:p> <urn:y> . {about}"),
        event("delete", "Q1"),
    )
    # An article is known to be about an entity if that matters to the interest; on Spark it always is.
    interest = INTEREST.replace("OPTIONAL", "OPTIONAL { ?a <http://schema.org/about> ?e } OPTIONAL")
    printed = compare(tmp_path, path, interest=interest)
    assert [(line["added"], line["removed"]) for line in printed] == [(3, 0), (4, 0), (2, 1), (2, 6), (0, 2)]


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_over_http(tmp_path: Path) -> None:
    clearing_history(tmp_path, 3, 2)
    with publish(tmp_path / "www") as published:
        shutil.copytree(tmp_path / "changes", tmp_path / "www/2015/06")
        compare(tmp_path, published.url, "--init", tmp_path / "init.nt")
        (tmp_path / "www/2015/07").mkdir()
        changeset(tmp_path / "www/2015/07", 1, [triple("a", "p", "x")], [triple("a", "q", "y")])
        assert [line["sequence"] for line in compare(tmp_path, published.url)] == [3]
        published.fault = lambda path: 503
        options = ("--changes", published.url, "--target", tmp_path / "spark", "--engine", "spark")
        failed = run("replicate", tmp_path / "i.rq", *options, code=1)
    assert "cannot be fetched: 503" in failed.stderr
    assert "run again" in failed.stderr


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_something_is_wrong(tmp_path: Path) -> None:
    """What is before a damaged change is there; sizes are right when it is mended; an emptied target is filled."""
    changeset(tmp_path / "changes", 1, (), [triple("a", "p", "b"), triple("x", "p", "y")])
    (tmp_path / "changes/000001.removed.nt").write_text("damaged\n")
    write(tmp_path / "init.nt", [triple("c", "q", "d"), triple("a", "q", "e")])
    rq(tmp_path / "i.rq", "", INTEREST)
    outcomes = []
    for engine in ("local", "spark"):
        folder = tmp_path / engine
        options: list[str | Path] = [
            "--changes",
            tmp_path / "changes",
            "--init",
            tmp_path / "init.nt",
            "--state",
            folder / "st",
        ]
        options += ["--engine", engine, "--potential", folder / "aside"]
        store = f"store:{folder}/db"
        run("replicate", tmp_path / "i.rq", "--target", store, *options, code=1)
        aside = (folder / "aside/data.nt").read_text()
        (tmp_path / "changes/000001.removed.nt").rename(tmp_path / "kept")
        mended = lines(run("replicate", tmp_path / "i.rq", "--target", store, *options))
        shutil.rmtree(folder / "db")
        assert lines(run("replicate", tmp_path / "i.rq", "--target", store, *options)) == []
        with eg.open(folder / "db") as database:
            outcomes.append((aside, mended, set(database.quads())))
        (tmp_path / "kept").rename(tmp_path / "changes/000001.removed.nt")
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0][2]) == 2
    inside = ("--changes", tmp_path / "changes", "--target", tmp_path / "changes/out", "--engine", "spark")
    assert "is in the folder of the changes" in run("replicate", tmp_path / "i.rq", *inside, code=2).stderr
    elsewhere = (
        "--changes",
        tmp_path / "changes",
        "--target",
        tmp_path / "out",
        "--graph",
        "urn:g",
        "--engine",
        "spark",
    )
    assert "--graph belong to" in run("replicate", tmp_path / "i.rq", *elsewhere, code=2).stderr


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_into_a_database(tmp_path: Path) -> None:
    clearing_history(tmp_path, 4, 4)
    for name, text in {"one": INTEREST, "two": "SELECT * { ?a <urn:r> ?b }"}.items():
        rq(tmp_path / f"{name}.rq", "", text)
    contents = []
    for engine in ("local", "spark"):
        eg.replicate(
            [tmp_path / "two.rq", tmp_path / "one.rq"],
            init=tmp_path / "init.nt",
            changes=tmp_path / "changes",
            target=f"store:{tmp_path}/db-{engine}",
            state=tmp_path / f"state-{engine}",
            engine=engine,
        )
        with eg.open(tmp_path / f"db-{engine}") as database:
            contents.append(set(database.quads()))
    assert contents[0] == contents[1]
    assert len({quad.graph_name for quad in contents[0]}) == 2


@pytest.mark.long
def test_follow(tmp_path: Path) -> None:
    rq(tmp_path / "i.rq", "", INTEREST)
    (tmp_path / "changes").mkdir()
    command = [sys.executable, "-m", "evergraph", "replicate", "i.rq", "--changes", "changes", "--target", "out"]
    process = subprocess.Popen(
        [*command, "--engine", "spark", "--follow"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    seen = []
    for number in range(1, 4):
        # Both halves are there, so that nothing more is to be expected.
        changeset(
            tmp_path / "changes",
            number,
            [triple("z", "p", "z")],
            [triple("a", "p", f"{number}"), triple("a", "q", "x")],
        )
        seen.append(json.loads(process.stdout.readline()))
        if number == 2:
            time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert [(line["sequence"], line["added"]) for line in seen] == [(1, 2), (2, 1), (3, 1)]
    assert len((tmp_path / "out/data.nt").read_text().splitlines()) == 4


def test_who_owns_a_subject(spark: "object") -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as sf

    assert isinstance(spark, SparkSession)
    names = [
        *(
            f"{ENTITY}{rest}"
            for rest in ("Q1", "Q11", "q1", "Q1-F1", "statement/Q1-a", "statement/q1-a", "statement/Q1")
        ),
        *(f"{ENTITY}{rest}" for rest in ("statement/Q11-a", "statement/statement/Q1-a", "P1", "L1-F1-x", "Q1/x", "")),
        *(
            f"{scheme}{DOCUMENT}{rest}"
            for scheme in ("https://www.", "http://", "https://xwww.", "urn:")
            for rest in ("Q1", "Q11")
        ),
        f"https://www.www.{DOCUMENT}Q1",
        f"http://a://{DOCUMENT}Q1",
        "urn:Q1",
    ]
    rows = spark.createDataFrame([(f"<{name}>",) for name in names] + [("_:Q1",)], "subject string")
    for entity in ("Q1", "L1-F1", "P1"):
        forgotten = Forgotten(entity)
        found = {row[0] for row in rows.where(owned_by(sf.col("subject"), str(forgotten.name))).collect()}
        assert found == {f"<{name}>" for name in names if forgotten.owns(NamedNode(name))}
