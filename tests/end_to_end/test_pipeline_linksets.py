"""Linksets as views of pipelines: links = from scratch after every batch, whatever a crash interrupts."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from tests.support.link_histories import links_from_scratch, selected
from tests.support.pipelines import Case, replayed, table_rows

import evergraph as eg
from evergraph.delta import Request
from evergraph.engines.spark.tables import QuadTable
from evergraph.linking import spark as on_spark
from evergraph.linking.catalogue import RDF_TYPE
from evergraph.pipeline import check, outcomes
from evergraph.pipeline.runner import Runner
from evergraph.pipeline.sinks import base, graphs, rows
from evergraph.pipeline.state import State, StateMismatch
from evergraph.rdfio import write_quads
from evergraph.sources import write_changeset
from evergraph.terms import Literal, NamedNode, Quad

SAME = "http://www.w3.org/2002/07/owl#sameAs"
LINKSET = """
[linkset]
predicate = "owl:sameAs"
one-to-one = true

[source]
text = '''CONSTRUCT { ?x a <urn:A> ; <urn:name> ?n } WHERE { ?x a <urn:A> ; <urn:name> ?n }'''

[target]
text = '''CONSTRUCT { ?x a <urn:B> ; <urn:name> ?n }
WHERE { ?x a <urn:B> ; <urn:label> ?n FILTER NOT EXISTS { ?x <urn:gone> true } }'''

[[match.compare]]
source = "<urn:name>"
measure = "levenshtein"
max = 1
"""
PIPELINE = """
[source]
changes = "in"
init = "init.nq"

[batch]
changes = 1

[[view]]
name = "same"
linkset = "same.toml"
"""
SINKS = {
    "jsonl": "same.jsonl",
    "table": "same.table",
    "snapshot": "same.nt",
    "patch": "same.rdfp",
    "changesets": "same",
}


def random_quad(random: Random) -> Quad:
    """Make a quad about one of few resources, that some view may use; names are within few edits of each other."""
    side = random.choice("AB")
    one = NamedNode(f"urn:{side.lower()}{random.randrange(5)}")
    kind = random.random()
    if kind < 0.35:
        return Quad(one, RDF_TYPE, NamedNode(f"urn:{side}"))
    if kind < 0.4:
        return Quad(one, NamedNode("urn:gone"), Literal(True))
    name = NamedNode("urn:name" if side == "A" else "urn:label")
    return Quad(one, name, Literal("".join(random.choice("xyé") for _ in range(random.randint(1, 3)))))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    random = Random(11)
    write_quads(tmp_path / "init.nq", {random_quad(random) for _ in range(25)})
    for number in range(1, 5):
        parts = [frozenset(random_quad(random) for _ in range(random.randint(1, 8))) for _ in range(2)]
        write_changeset(tmp_path / "in", number, Request(parts[0], parts[1]))
    (tmp_path / "same.toml").write_text(LINKSET)
    sinks = (f'[[view.sink]]\nkind = "{kind}"\npath = "out/{path}"\n' for kind, path in SINKS.items())
    (tmp_path / "pipeline.toml").write_text(PIPELINE + "".join(sinks))
    return Case(tmp_path)


def expected(case: Case) -> list[set[str]]:
    """Return the links from scratch, before the first change, after it, and so on."""
    definition = case.pipeline.views[0].linkset
    assert definition is not None
    views = definition.source.catalogue, definition.target.catalogue
    found = []
    for state in case.states():
        scores = links_from_scratch(definition.rule, views, (set(state), set(state)))
        found.append({f"{one} <{SAME}> {other} ." for one, other in selected(scores, 0.0, one_to_one=True)})
    return found


def check_sinks(case: Case) -> None:
    """Compare every sink with the links from scratch."""
    links = expected(case)
    steps = [{"sequence": 0, "added": sorted(links[0]), "removed": []}]
    for number, (before, now) in enumerate(pairwise(links), 1):
        if before != now:
            steps.append({"sequence": number, "added": sorted(now - before), "removed": sorted(before - now)})
    assert [json.loads(line) for line in case.out("same.jsonl").read_text().splitlines()] == steps
    assert case.out("same.nt").read_text().splitlines() == sorted(links[-1])
    assert {" ".join(row) + " ." for row in table_rows(case.out("same.table"))} == links[-1]
    for source in ("same.rdfp", "same"):
        assert {f"{quad} ." for quad in replayed(case.out(source))} == links[-1]


def test_links_are_those_from_scratch(case: Case, spark: SparkSession) -> None:
    """In a first run and in a later one; and what the state was not made for is refused."""
    held = [(path, path.read_bytes()) for path in sorted((case.folder / "in").glob("00000[34].*"))]
    for path, _ in held:
        path.unlink()
    reports = eg.run(case.toml)
    assert [report["sequence"] for report in reports] == [0, 1, 2]
    assert all(set(report["views"]) <= {"same"} for report in reports)  # type: ignore[call-overload]
    check_sinks(case)
    for path, content in held:
        path.write_bytes(content)
    (case.folder / "same.toml").write_text(LINKSET + "# a comment does not count\n")
    assert [report["sequence"] for report in eg.run(case.toml)] == [3, 4]
    check_sinks(case)
    assert check(case.toml) == {"ok": True, "batch": 4, "views": {"same": {"added": 0, "removed": 0}}}
    for old, new in (("max = 1", "max = 2"), ("one-to-one = true", "one-to-one = false"), ("true }", "false }")):
        (case.folder / "same.toml").write_text(LINKSET.replace(old, new))
        with pytest.raises(StateMismatch, match="the linkset of view 'same' is not the one"):
            eg.run(case.toml)


def test_large_changes_are_matched_by_spark(case: Case, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "SMALL", 0)
    monkeypatch.setattr(on_spark, "SMALL", 0)
    eg.run(case.toml)
    check_sinks(case)


def test_a_batch_that_is_repeated_counts_once(case: Case, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor is lost after the links of a batch were found and before they are in all sinks."""
    write, lost = rows.TableWriter.write, []

    def losing(self: rows.TableWriter, outcome: outcomes.Outcome, batch: int, sequence: int) -> None:
        if batch in (1, 3) and batch not in lost:
            lost.append(batch)
            raise Py4JError("ExecutorLostFailure (executor 1 exited)")
        write(self, outcome, batch, sequence)

    monkeypatch.setattr(rows.TableWriter, "write", losing)
    assert [report["sequence"] for report in eg.run(case.toml)] == [0, 1, 2, 3, 4]
    assert lost == [1, 3]
    check_sinks(case)


class Interrupted(Exception):
    """What stands for a crash: nothing is caught, nothing tidied up."""


@pytest.mark.long
def test_a_crash_at_any_step_loses_nothing_and_doubles_nothing(
    case: Case, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0
    points = [2, 14, 19, 23, 9, 12, 6]
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

    for owner, name in ((State, "note_sink"), (State, "note_begun"), (QuadTable, "append"), (Runner, "_tell")):
        monkeypatch.setattr(owner, name, crashing(getattr(owner, name)))
    for writer in (graphs.ChangesetsWriter, rows.TableWriter):
        monkeypatch.setattr(writer, "write", crashing(writer.write))
    monkeypatch.setattr(base.AppendedFile, "append", crashing(base.AppendedFile.append))
    crashes: list[str] = []
    for _ in range(30):
        steps = 0
        try:
            Runner(case.pipeline, spark, lambda report: None).run()
        except Interrupted as crash:
            crashes.append(str(crash))
            crash_at = points.pop() if points else 0
            continue
        break
    assert len(crashes) == 7, crashes
    check_sinks(case)
