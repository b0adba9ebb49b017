"""Damaged changes on Spark: set aside as on the local engine, line by line, and for good, however a run ends.

And what a replica begins with if it begins as the paper does. Most of this takes Spark half a minute: see ``--long``.
"""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.end_to_end.test_replicate_spark_sources import INTEREST, clearing_history, triple
from tests.support.published import publish
from tests.support.replica_files import Outcome, changeset, lines, rq, run, write

import evergraph as eg
from evergraph.engines.spark.tables import QuadTable
from evergraph.pipeline.definition import load_pipeline
from evergraph.pipeline.runner import Runner
from evergraph.pipeline.state import State

ENGINES = ("local", "spark")


class Interrupted(Exception):
    """What stands for a crash: nothing is caught, nothing tidied up."""


def damage(folder: Path) -> None:
    """Damage changes of a history: a file that is cut off, a line, a file that clears, and one that is empty."""
    (folder / "000001.reinserted.nt").write_text("<urn:a> <urn:p> .\n")
    (folder / "000002.clear.nt").write_text("oh\n")
    added = folder / "000003.added.nt"
    packed = gzip.compress(added.read_bytes())
    added.unlink()
    (folder / "000003.added.nt.gz").write_bytes(packed[:-9])
    (folder / "000005.added.nt").unlink()
    (folder / "000005.added.nt.gz").write_bytes(b"")


def replicate(folder: Path, engine: str, changes: Path | str, *options: str | Path, code: int = 0) -> Outcome:
    out = ("--target", folder / engine, "--potential", folder / f"{engine}-aside", "--engine", engine)
    return run("replicate", folder / "i.rq", "--changes", str(changes), *out, *options, code=code)


def compare(folder: Path, changes: Path | str, *options: str | Path) -> Outcome:
    """Replicate on both engines, which must print the same and write the same."""
    rq(folder / "i.rq", "", INTEREST)
    local, spark = (replicate(folder, engine, changes, *options) for engine in ENGINES)
    assert (lines(spark), spark.stderr) == (lines(local), local.stderr)
    for kind in ("", "-aside"):
        assert (folder / f"spark{kind}/data.nt").read_bytes() == (folder / f"local{kind}/data.nt").read_bytes()
    return local


@pytest.mark.usefixtures("spark")
def test_damaged_changes_are_set_aside(tmp_path: Path) -> None:
    clearing_history(tmp_path, 1, 5)
    damage(tmp_path / "changes")
    options = ("--init", tmp_path / "init.nt", "--skip-damaged")
    found = compare(tmp_path, tmp_path / "changes", *options)
    assert [line["sequence"] for line in lines(found)] == [1, 2, 3, 4, 5]
    assert [line.split(": ")[1] for line in found.stderr.splitlines()] == [
        f"change {number} is set aside" for number in (1, 2, 3, 5)
    ]
    (tmp_path / "changes/000005.added.nt.gz").write_bytes(gzip.compress(b"<urn:a> <urn:p> <urn:late> .\n"))
    changeset(tmp_path / "changes", 6, [triple("a", "p", "x")], [triple("a", "q", "y")])
    again = compare(tmp_path, tmp_path / "changes", *options)
    assert [line["sequence"] for line in lines(again)] == [6], "what was set aside stays so"
    assert again.stderr == ""


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_a_run_that_damage_stopped_goes_on_without_the_change(tmp_path: Path) -> None:
    clearing_history(tmp_path, 5, 4)
    with (tmp_path / "changes/000003.added.nt").open("a") as out:
        out.write("oh\n")
    rq(tmp_path / "i.rq", "", INTEREST)
    for engine in ENGINES:
        for _ in range(2):
            stopped = replicate(tmp_path, engine, tmp_path / "changes", "--init", tmp_path / "init.nt", code=1)
            assert "000003.added.nt:4" in stopped.stderr
    found = compare(tmp_path, tmp_path / "changes", "--skip-damaged")
    assert [line["sequence"] for line in lines(found)] == [3, 4]
    assert "change 3 is set aside: " in found.stderr


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_damaged_changes_on_a_server(tmp_path: Path) -> None:
    clearing_history(tmp_path, 6, 5)
    damage(tmp_path / "changes")
    with publish(tmp_path / "www") as published:
        shutil.copytree(tmp_path / "changes", tmp_path / "www/2015/06")
        found = compare(tmp_path, published.url, "--init", tmp_path / "init.nt", "--skip-damaged")
        assert [line["sequence"] for line in lines(found)] == [1, 2, 3, 4, 5]
        assert len(found.stderr.splitlines()) == 4
        assert lines(compare(tmp_path, published.url)) == []


@pytest.mark.long
def test_a_run_that_is_killed(tmp_path: Path) -> None:
    """Killed after a change was set aside, with Java and all workers; it is mended, and stays aside."""
    clearing_history(tmp_path, 8, 5)
    damage(tmp_path / "changes")
    rq(tmp_path / "i.rq", "", INTEREST)
    options = ("--init", tmp_path / "init.nt", "--skip-damaged")
    local = replicate(tmp_path, "local", tmp_path / "changes", *options)
    command = [sys.executable, "-m", "evergraph", "replicate", "i.rq", "--changes", "changes", "--init", "init.nt"]
    command += ["--target", "spark", "--potential", "spark-aside", "--engine", "spark", "--skip-damaged"]
    printed: list[dict[str, object]] = []
    mended = {"000001.reinserted.nt": 1, "000002.clear.nt": 2}
    for name, after in mended.items():
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert process.stdout is not None
        try:
            printed += [json.loads(process.stdout.readline()) for _ in range(after)]
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            printed += [json.loads(line) for line in process.communicate()[0].splitlines()]
        (tmp_path / "changes" / name).write_text("<urn:a> <urn:p> <urn:b> .\n")
    last = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True)
    printed += [json.loads(line) for line in last.stdout.splitlines()]
    expected = lines(local)
    assert [line for line in expected if line in printed] == printed, "no line twice, and each as on the local engine"
    assert printed[-1] == expected[-1]
    for kind in ("", "-aside"):
        assert (tmp_path / f"spark{kind}/data.nt").read_bytes() == (tmp_path / f"local{kind}/data.nt").read_bytes()


def crash_once(method: Callable[..., object], moment: str, batch: int) -> Callable[..., object]:
    """Make a method crash before or after its work on a batch, the first time."""
    crashed = False

    def call(self: object, *arguments: object, **options: object) -> object:
        nonlocal crashed
        wanted = not crashed and batch in (*arguments, options.get("batch"))
        crashed = crashed or wanted
        if wanted and moment == "before":
            raise Interrupted
        result = method(self, *arguments, **options)
        if wanted:
            raise Interrupted
        return result

    return call


POINTS = [(State, "note_begun", "before"), (State, "note_begun", "after"), (QuadTable, "append", "before")]


@pytest.mark.parametrize(
    ("owner", "name", "moment"), [POINTS[2], *(pytest.param(*one, marks=pytest.mark.long) for one in POINTS[:2])]
)
def test_a_batch_that_was_planned_stays_as_it_is(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, moment: str
) -> None:
    """A file is mended between a crash and the next run: the batch was planned without it, and is the same again."""
    clearing_history(tmp_path, 7, 5)
    damage(tmp_path / "changes")
    for number in (2, 4):
        (tmp_path / f"changes/00000{number}.clear.nt").unlink()
    (tmp_path / "changes/000002.removed.nt").write_text("oh\n")
    (tmp_path / "all.rq").write_text("CONSTRUCT WHERE { ?s ?p ?o }")
    (tmp_path / "pipeline.toml").write_text(
        '[source]\nchanges = "changes"\ninit = "init.nt"\nskip_damaged = true\n'
        '[[view]]\nname = "all"\nquery = "all.rq"\n'
        '[[view.sink]]\nkind = "snapshot"\npath = "all.nt"\n'
    )
    options = ("--init", tmp_path / "init.nt", "--changes", tmp_path / "changes", "--target", tmp_path / "local")
    told = run("replicate", tmp_path / "all.rq", *options, "--skip-damaged").stderr.splitlines()
    assert len(told) == 4
    pipeline = load_pipeline(tmp_path / "pipeline.toml")
    warned: list[str] = []
    monkeypatch.setattr(owner, name, crash_once(getattr(owner, name), moment, 1))
    with pytest.raises(Interrupted):
        Runner(pipeline, spark, lambda report: None, warn=warned.append).run()
    (tmp_path / "changes/000002.removed.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    warned.clear()
    reports = eg.run(pipeline, warn=warned.append)
    assert [(report["sequence"], report["changes"]) for report in reports] == [(5, 5)]
    assert [f"evergraph: {one}" for one in warned] == told
    assert (tmp_path / "all.nt").read_bytes() == (tmp_path / "local/data.nt").read_bytes()


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_damage_in_a_pipeline(tmp_path: Path) -> None:
    """Without the option damage stops a pipeline; with it, the batch that was planned is planned anew."""
    clearing_history(tmp_path, 9, 4)
    (tmp_path / "changes/000004.clear.nt").unlink()
    (tmp_path / "changes/000004.added.nt").write_text("oh\n")
    text = '[source]\nchanges = "changes"\n[[sink]]\nkind = "snapshot"\npath = "all.nq"\n'
    (tmp_path / "pipeline.toml").write_text(text)
    stopped = run("run", tmp_path / "pipeline.toml", code=1)
    assert [line["sequence"] for line in lines(stopped)] == [0, 1]
    assert "000004.added.nt:1" in stopped.stderr
    (tmp_path / "pipeline.toml").write_text(text.replace("[source]\n", "[source]\nskip_damaged = true\n"))
    found = run("run", tmp_path / "pipeline.toml")
    assert [(line["sequence"], line["changes"]) for line in lines(found)] == [(4, 3)]
    assert found.stderr.startswith(f"evergraph: change 4 is set aside: {tmp_path}/changes/000004.added.nt:1:")
    assert len(found.stderr.splitlines()) == 1


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_the_paper_begins_with_nothing_aside(tmp_path: Path) -> None:
    """What is in the target of one interest may be set aside by another: that stays."""
    clearing_history(tmp_path, 10, 4)
    quads = [triple("n", "p", "a"), triple("n", "s", "a"), triple("m", "p", "a"), triple("m", "t", "z")]
    write(tmp_path / "more.nt", quads)
    rq(tmp_path / "interests.rq", "", INTEREST).rename(tmp_path / "one.rq")
    rq(tmp_path / "two.rq", "", "SELECT * { ?a <urn:p> ?b FILTER NOT EXISTS { ?b <urn:r> ?c } }")
    last = tmp_path / "changes/000004.added.nt"
    held = last.rename(tmp_path / "held")
    begin = ("--init", tmp_path / "init.nt", "--init", tmp_path / "more.nt")
    printed: dict[str, list[list[dict[str, object]]]] = {}
    for engine in ENGINES:
        options = ("--changes", tmp_path / "changes", "--engine", engine, "--potential", "paper")
        arguments = ("replicate", tmp_path / "one.rq", tmp_path / "two.rq", *options, "--target", tmp_path / engine)
        (tmp_path / "changes/lastPublishedFile.txt").write_text("000003\n")
        first = lines(run(*arguments, *begin))
        shutil.copy(held, last)
        (tmp_path / "changes/lastPublishedFile.txt").unlink()
        printed[engine] = [first, lines(run(*arguments, *begin))]
        last.unlink()
    assert printed["spark"] == printed["local"]
    for name in ("one", "two"):
        assert (tmp_path / f"spark/{name}/data.nt").read_bytes() == (tmp_path / f"local/{name}/data.nt").read_bytes()
    usual = run("replicate", tmp_path / "one.rq", *begin, "--changes", tmp_path / "changes", "--target", tmp_path / "u")
    assert lines(usual)[0] not in printed["local"][0], "it makes a difference"
