"""Pipelines from end to end, in one Spark: first runs, later runs, changed definitions, failures."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support.pipelines import Case, replayed

import evergraph as eg
from evergraph.engines.spark.tables import QuadTable, WeightedTable
from evergraph.errors import DataError, EvergraphError, SyntaxProblem
from evergraph.pipeline import check, outcomes, watch
from evergraph.pipeline.runner import Runner
from evergraph.pipeline.sinks import base, graphs, rows
from evergraph.pipeline.state import State, StateMismatch
from evergraph.sources import write_changeset
from evergraph.sparql.parser import parse_query

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case.make(tmp_path / "case", seed=1, changes=5)


def test_a_pipeline_says_what_the_local_engine_says(case: Case) -> None:
    reports = eg.run(case.toml)
    assert [(report["batch"], report["sequence"], report["changes"]) for report in reports] == [
        (0, 0, 0),
        *((number, number, 1) for number in range(1, 6)),
    ]
    states = case.states()
    for before, now, report in zip(states[:-1], states[1:], reports[1:], strict=True):
        assert (report["inserted"], report["deleted"]) == (len(now - before), len(before - now))
    case.check()
    assert eg.run(case.toml) == [], "there is nothing more to do"
    case.check()
    right = {"added": 0, "removed": 0}
    assert check(case.toml) == {"ok": True, "batch": 5, "views": dict.fromkeys(("pairs", "counts", "turned"), right)}
    more = Case.make(case.folder.parent / "more", seed=2, changes=2)
    for number, request in enumerate(more.requests(), 6):
        write_changeset(case.folder / "in", number, request)
    assert [report["sequence"] for report in eg.run(case.toml)] == [6, 7, 8]
    case.check()
    table = WeightedTable(case.out("turned.table"))
    row = {"subject": ["<urn:too>"], "predicate": ["<urn:much>"], "object": ["<urn:here>"], "weight": [1]}
    table.append(pa.table(row), app="somebody else", batch=1)
    report = check(case.toml)
    assert (report["ok"], report["views"]["turned"]) == (False, {"added": 1, "removed": 0})  # type: ignore[index]


def test_large_changes_stay_in_spark(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows of a batch, and all of a result, are written by the workers; and several changes are one batch."""
    monkeypatch.setattr(outcomes, "SMALL", 0)
    case.define(("counts", "turned"), changes=3)
    reports = eg.run(case.toml)
    assert [report["sequence"] for report in reports] == [0, 3, 5]
    case.check(steps=False)
    steps = [json.loads(line) for line in case.out("turned.jsonl").read_text().splitlines()]
    assert [step["sequence"] for step in steps] == [0, 3, 5]
    total: set[str] = set()
    for step in steps:
        assert step["added"] == sorted(step["added"])
        total = (total - set(step["removed"])) | set(step["added"])
    assert sorted(total) == case.out("turned.txt").read_text().splitlines()


def test_a_new_view_and_a_new_sink_begin_with_all_that_there_is(case: Case) -> None:
    case.define(("pairs",))
    (case.folder / "later").mkdir()
    for path in (case.folder / "in").glob("00000[45].*"):
        path.rename(case.folder / "later" / path.name)
    eg.run(case.toml)
    case.check()
    case.define(("pairs", "turned"))
    for path in (case.folder / "later").iterdir():
        path.rename(case.folder / "in" / path.name)
    reports = eg.run(case.toml)
    assert [report["batch"] for report in reports] == [3, 4, 5]
    assert list(reports[0]["views"]) == ["turned"]  # type: ignore[call-overload]
    case.check(steps=False)
    assert case.out("pairs.jsonl").read_text() == case.watched("pairs")
    assert json.loads(case.out("turned.jsonl").read_text().splitlines()[0])["sequence"] == 3


def test_what_the_state_was_not_made_for_is_refused(case: Case) -> None:
    case.define(("pairs",))
    eg.run(case.toml)
    text = case.toml.read_text()

    def refuses(old: str, new: str, message: str, kind: type[EvergraphError] = StateMismatch) -> None:
        assert old in text
        case.toml.write_text(text.replace(old, new))
        with pytest.raises(kind, match=message):
            eg.run(case.toml)

    refuses("?m <urn:q> ?o", "?m <urn:z> ?o", r"(?s)query of view 'pairs' is not the one.*new name and new targets")
    refuses('changes = "in"', 'changes = "init.nq"', "is not a change source", DataError)
    (case.folder / "other").mkdir()
    write_changeset(case.folder / "other", 1, case.requests()[1])
    refuses('changes = "in"', 'changes = "other"', r"another value of the change source: \.\./in, and now it is")
    case.out("taken").mkdir()
    case.out("taken").joinpath("file").write_text("")
    refuses('path = "out/quads"', 'path = "out/taken"', "taken is there already, and not from this pipeline", DataError)
    case.toml.write_text(text.replace("SELECT ?s ?o {", "# the same\\nSELECT  ?s ?o {"))
    assert eg.run(case.toml) == []


def test_failures_are_told_and_leave_nothing_half_done(case: Case) -> None:
    case.define(("pairs",))
    broken = case.folder / "in" / "000003.added.nt.gz"
    files = list((case.folder / "in").glob("000003.added.*"))
    watched = case.watched("pairs", until=2)
    kept = {path: path.read_bytes() for path in files}
    for path in files:
        path.unlink()
    broken.write_bytes(gzip.compress(b"<urn:a> <urn:b> <urn:c> .\n" * 9)[:-4])
    with pytest.raises(DataError, match=r"000003\.added\.nt\.gz: damaged gzip file"):
        eg.run(case.toml)
    assert case.out("pairs.jsonl").read_text() == watched
    broken.write_bytes(gzip.compress(b"<urn:a> <urn:b> <urn:c> .\noh\n"))
    with pytest.raises((SyntaxProblem, EvergraphError), match=r"000003\.added\.nt\.gz:2"):
        eg.run(case.toml)
    broken.unlink()
    for path, content in kept.items():
        path.write_bytes(content)
    assert [report["sequence"] for report in eg.run(case.toml)] == [3, 4, 5]
    case.check()
    old = case.folder / "in" / "000000.added.nt"
    old.write_text("<urn:a> <urn:b> <urn:c> .\n")
    with pytest.raises(DataError, match=r"000000\.added\.nt came late"):
        eg.run(case.toml)


def test_a_state_is_used_by_one_at_a_time(case: Case, spark: SparkSession) -> None:
    case.define(("pairs",))
    first = Runner(case.pipeline, spark, lambda report: None)
    with pytest.raises(EvergraphError, match="in use by another process"):
        eg.run(case.toml)
    first.run()
    case.check()


class Interrupted(Exception):
    """What stands for a crash: nothing is caught, nothing tidied up."""


def test_a_crash_at_any_step_loses_nothing_and_doubles_nothing(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop at the first step, begin again, stop at the second, and so on: before and after every write there is."""
    case = Case.make(tmp_path / "case", seed=1, changes=3, views=("turned",))
    steps = 0
    points = Random(5).sample(range(1, 21), 20) * 10
    crash_at = points.pop()

    def crashing(method: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            nonlocal steps
            for moment in ("before", "after"):
                steps += 1
                if steps == crash_at:
                    raise Interrupted(f"{moment} {method.__qualname__}")
                if moment == "before":
                    result = method(*arguments, **options)
            return result

        return call

    for owner, name in (
        (State, "note_sink"),
        (State, "note_begun"),
        (QuadTable, "append"),
        (Runner, "_begin_sink"),
        (Runner, "_tell"),
    ):
        monkeypatch.setattr(owner, name, crashing(getattr(owner, name)))
    for writer in (graphs.ChangesetsWriter, graphs.PatchFolderWriter, rows.TableWriter):
        monkeypatch.setattr(writer, "write", crashing(writer.write))
        monkeypatch.setattr(writer, "begin", crashing(writer.begin))
    monkeypatch.setattr(base.AppendedFile, "append", crashing(base.AppendedFile.append))
    reports: list[dict[str, object]] = []
    crashes: list[str] = []
    for _ in range(200):
        steps = 0
        try:
            Runner(case.pipeline, spark, reports.append).run()
        except Interrupted as crash:
            crashes.append(str(crash))
            crash_at = points.pop()
            continue
        break
    assert len(crashes) >= 15, crashes
    case.check()
    committed = [int(str(report["batch"])) for report in reports if report["changes"]]
    assert sorted(set(committed)) == committed, "no batch is told twice"


def test_replay_of_exact_changes(case: Case, tmp_path: Path) -> None:
    """The changes that a pipeline writes are the source of another one."""
    case.define(())
    eg.run(case.toml)
    second = tmp_path / "second.toml"
    second.write_text(
        f'[source]\nchanges = "{case.out("quads")}"\n[[sink]]\nkind = "patch"\npath = "again.rdfp"\n[spark]\n'
    )
    reports = eg.run(second)
    assert sum(int(str(report["inserted"])) for report in reports) > 0
    assert replayed(tmp_path / "again.rdfp") == case.states()[-1]


@pytest.mark.parametrize("text", ["SELECT ?o { <urn:n1> <urn:p> ?o }", "ASK { ?s <urn:p> ?s }"])
def test_watch_prints_what_the_local_engine_prints(
    case: Case, text: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    query = parse_query(text)
    watch(query, case.folder / "in", [case.folder / "init.nq"])
    assert capsysbinary.readouterr().out.decode() == case.watched_query(query)
