"""``evergraph replicate``: the worked example, formats, what is refused, and each fault of iRap as a case."""

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import pairwise
from pathlib import Path
from shutil import copytree, rmtree

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from rich.console import Console
from tests.support.replica_files import changeset, lines, rq, run, table_content, write

import evergraph as eg
from evergraph.demo import replica
from evergraph.errors import StoreError, UsageError
from evergraph.rdfio import parse_quads, read_quads
from evergraph.terms import Quad, sorted_quads
from evergraph.views.replicas import parse_interest
from evergraph.views.replicas.oracle import interesting, potentially_interesting

PREFIXES = """@prefix : <http://dbpedia.org/resource/> .
@prefix dbo: <http://dbpedia.org/ontology/> .
@prefix dbp: <http://dbpedia.org/property/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
ATHLETES = "SELECT * { ?a a dbo:Athlete ; dbp:goals ?goals . OPTIONAL { ?a foaf:homepage ?page } }"


def triples(text: str) -> frozenset[Quad]:
    from pyoxigraph import RdfFormat

    return frozenset(parse_quads(PREFIXES + text, RdfFormat.TURTLE))


def content(path: Path) -> frozenset[Quad]:
    return frozenset(read_quads(path, rename_blank_nodes=False))


class Replica:
    """An interest in a folder of its own, changed step by step, each step by a new run."""

    def __init__(self, folder: Path, interest: str, init: str = "") -> None:
        self.folder = folder
        self.interest = rq(folder / "interest.rq", PREFIXES, interest)
        self.state = triples(init)
        write(folder / "init.nt", self.state)
        (folder / "changes").mkdir()
        write(folder / "changes/000000.added.nt", ())
        self.number = 0
        self.lines: list[dict[str, object]] = []
        self.run()

    def run(self) -> None:
        steps: list[eg.ReplicaStep] = []
        eg.replicate(
            self.interest,
            init=self.folder / "init.nt",
            changes=self.folder / "changes",
            target=self.folder / "target",
            potential=self.folder / "potential",
            on_change=steps.append,
        )
        self.steps = steps
        parsed = parse_interest(self.interest.read_text())
        assert self.target == interesting(parsed, self.state)
        assert self.potential == potentially_interesting(parsed, self.state)

    def change(self, removed: str = "", added: str = "") -> tuple[int, int, int]:
        self.number += 1
        gone, come = triples(removed), triples(added)
        changeset(self.folder / "changes", self.number, gone, come)
        self.state = (self.state - gone) | come
        self.run()
        [step] = self.steps
        assert step.sequence == self.number + 1
        return step.removed, step.added, step.potential

    @property
    def target(self) -> frozenset[Quad]:
        return content(self.folder / "target/data.nt")

    @property
    def potential(self) -> frozenset[Quad]:
        return content(self.folder / "potential/data.nt")


def test_the_worked_example(tmp_path: Path) -> None:
    before = triples("""
        :Marcel a dbo:Athlete ; dbp:goals 1 .
        :Cristiano_Ronaldo a dbo:Athlete ; dbp:goals 96 ; foaf:homepage "http://cristianoronaldo.com" .""")
    removed = triples("""
        :Marcel dbp:goals 1 ; dbo:team :FNFT . :Tim foaf:name "Tim Berners-Lee" . :Cristiano_Ronaldo dbp:goals 96 .""")
    added = triples("""
        :Cristiano_Ronaldo dbp:goals 216 .
        :Barack_Obama foaf:name "Barack Obama" ; foaf:homepage "http://www.barackobama.com/" .
        :Rio_Ferdinand a foaf:Person, dbo:Athlete ; dbp:goals 10 .
        :Arvid_Smit a dbo:Athlete .""")
    interest = rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)
    write(tmp_path / "before.nt", before)
    changeset(tmp_path / "changes", 1, removed, added)
    result = run(
        *("replicate", interest, "--init", tmp_path / "before.nt", "--changes", tmp_path / "changes"),
        *("--target", tmp_path / "target", "--potential", tmp_path / "potential"),
    )
    assert lines(result) == [{"sequence": 1, "interest": "athletes", "added": 3, "removed": 3, "potential": 3}]
    assert content(tmp_path / "target/data.nt") == triples("""
        :Cristiano_Ronaldo a dbo:Athlete ; dbp:goals 216 ; foaf:homepage "http://cristianoronaldo.com" .
        :Rio_Ferdinand a dbo:Athlete ; dbp:goals 10 .""")
    assert content(tmp_path / "potential/data.nt") == triples("""
        :Arvid_Smit a dbo:Athlete . :Marcel a dbo:Athlete .
        :Barack_Obama foaf:homepage "http://www.barackobama.com/" .""")


def test_the_change_of_the_worked_example(tmp_path: Path) -> None:
    """What reaches the target is exactly the change, in one request: nothing goes and comes back."""
    interest = parse_interest(rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES).read_text())
    from evergraph.delta import Delta, Request
    from evergraph.views.replicas import Replicas

    replicas = Replicas()
    replicas.add(interest)
    replicas.apply(
        Request(
            added=triples("""
        :Marcel a dbo:Athlete ; dbp:goals 1 .
        :Cristiano_Ronaldo a dbo:Athlete ; dbp:goals 96 ; foaf:homepage "http://cristianoronaldo.com" .""")
        )
    )
    step = replicas.apply(
        Request(
            removed=triples(
                ":Marcel dbp:goals 1 ; dbo:team :FNFT . :Tim foaf:name 'Tim' . :Cristiano_Ronaldo dbp:goals 96 ."
            ),
            added=triples("""
            :Cristiano_Ronaldo dbp:goals 216 . :Barack_Obama foaf:homepage "http://www.barackobama.com/" .
            :Rio_Ferdinand a foaf:Person, dbo:Athlete ; dbp:goals 10 . :Arvid_Smit a dbo:Athlete ."""),
        )
    )
    assert step.changes[0].delta == Delta(
        deleted=triples(":Marcel a dbo:Athlete ; dbp:goals 1 . :Cristiano_Ronaldo dbp:goals 96 ."),
        inserted=triples(":Cristiano_Ronaldo dbp:goals 216 . :Rio_Ferdinand a dbo:Athlete ; dbp:goals 10 ."),
    )


# --- what iRap gets wrong


def test_a_change_that_only_completes_a_known_entity(tmp_path: Path) -> None:
    replica = Replica(tmp_path, ATHLETES, ":Arvid_Smit a dbo:Athlete .")
    assert replica.change(added=":Arvid_Smit dbp:goals 3 .") == (0, 2, 0)


def test_a_triple_of_the_first_dataset_completes_a_match_later(tmp_path: Path) -> None:
    replica = Replica(tmp_path, ATHLETES, ':Rio dbp:goals 10 ; foaf:homepage "http://rio" .')
    assert replica.change(added=":Rio a dbo:Athlete .") == (0, 3, 0)


def test_removed_optional_triples(tmp_path: Path) -> None:
    replica = Replica(tmp_path, ATHLETES, ':Rio a dbo:Athlete ; dbp:goals 10 ; foaf:homepage "http://rio" .')
    assert replica.change(removed=':Rio foaf:homepage "http://rio" .') == (1, 0, 0)
    assert replica.target == triples(":Rio a dbo:Athlete ; dbp:goals 10 .")


def test_triples_that_other_matches_still_hold(tmp_path: Path) -> None:
    interest = "SELECT * { ?player dbo:team ?team . ?team rdfs:label ?name }"
    replica = Replica(tmp_path, interest, ':a dbo:team :t . :b dbo:team :t . :t rdfs:label "T" .')
    assert replica.change(removed=":a dbo:team :t .") == (1, 0, 0)
    assert replica.target == triples(':b dbo:team :t . :t rdfs:label "T" .')
    assert replica.change(removed=":b dbo:team :t .") == (2, 0, 1)


def test_language_tags(tmp_path: Path) -> None:
    replica = Replica(
        tmp_path, "SELECT * { ?a a dbo:Athlete ; rdfs:label ?l }", ':a a dbo:Athlete ; rdfs:label "x"@en .'
    )
    assert replica.change(added=':a rdfs:label "x"@fr, "x" .') == (0, 2, 0)
    assert replica.change(removed=':a rdfs:label "x"@en .') == (1, 0, 0)
    assert replica.target == triples(':a a dbo:Athlete ; rdfs:label "x"@fr, "x" .')


def test_filters(tmp_path: Path) -> None:
    interest = 'SELECT * { ?a dbp:goals ?n ; rdfs:label ?l FILTER (?n > 5) FILTER (lang(?l) = "en") }'
    replica = Replica(tmp_path, interest, ':a dbp:goals 3 ; rdfs:label "A"@en, "A"@de .')
    assert replica.target == frozenset()
    assert replica.change(removed=":a dbp:goals 3 .", added=":a dbp:goals 7 .") == (0, 2, 1)
    assert replica.target == triples(':a dbp:goals 7 ; rdfs:label "A"@en .')


def test_interests_without_an_optional_part(tmp_path: Path) -> None:
    replica = Replica(tmp_path, "SELECT * { ?a a dbo:Athlete }")
    assert replica.change(added=":a a dbo:Athlete . :b a foaf:Person .") == (0, 1, 0)
    assert replica.change(removed=":a a dbo:Athlete .") == (1, 0, 0)


def test_changes_that_are_not_exact(tmp_path: Path) -> None:
    replica = Replica(tmp_path, ATHLETES, ":a a dbo:Athlete ; dbp:goals 1 .")
    assert replica.change(added=":a a dbo:Athlete .", removed=":a dbp:goals 2 .") == (0, 0, 0)
    assert replica.change(added=":a dbp:goals 1 .", removed=":a dbp:goals 1 .") == (0, 0, 0)


# --- the outside


def test_several_interests_have_folders_of_their_own(tmp_path: Path) -> None:
    rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)
    rq(tmp_path / "people.rq", PREFIXES, "CONSTRUCT WHERE { ?p a foaf:Person }")
    changeset(tmp_path / "changes", 1, (), triples(":a a dbo:Athlete, foaf:Person ; dbp:goals 1 ."))
    changeset(tmp_path / "changes", 7, (), triples(":b a dbo:Athlete ."))
    options = (
        "--changes",
        tmp_path / "changes",
        "--target",
        tmp_path / "target",
        "--potential",
        tmp_path / "potential",
    )
    result = run("replicate", tmp_path / "athletes.rq", tmp_path / "people.rq", *options)
    assert lines(result) == [
        {"sequence": 1, "interest": "athletes", "added": 2, "removed": 0, "potential": 0},
        {"sequence": 1, "interest": "people", "added": 1, "removed": 0, "potential": 0},
        {"sequence": 2, "interest": "athletes", "added": 0, "removed": 0, "potential": 1},
        {"sequence": 2, "interest": "people", "added": 0, "removed": 0, "potential": 0},
    ]
    assert content(tmp_path / "target/people/data.nt") == triples(":a a foaf:Person .")
    assert content(tmp_path / "potential/athletes/data.nt") == triples(":b a dbo:Athlete .")
    again = run("replicate", tmp_path, *options)  # a folder of interests, and nothing left to do
    assert lines(again) == []


def test_files_are_sorted(tmp_path: Path) -> None:
    rq(tmp_path / "i.rq", "", "SELECT * { ?s ?p ?o }")
    quads = triples(" ".join(f':n{number} rdfs:label "{number}", "{number}"@en .' for number in range(50)))
    changeset(tmp_path / "changes", 1, (), quads)
    run("replicate", tmp_path / "i.rq", "--changes", tmp_path / "changes", "--target", tmp_path / "t")
    text = (tmp_path / "t/data.nt").read_text()
    assert text.splitlines() == sorted(text.splitlines()) == [f"{quad} ." for quad in sorted_quads(quads)]


def test_clear_and_reinserted(tmp_path: Path) -> None:
    rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)
    changeset(
        tmp_path / "changes", 1, (), triples(":a a dbo:Athlete ; dbp:goals 1, 2 . :b a dbo:Athlete ; dbp:goals 1 .")
    )
    write(tmp_path / "changes/000002.clear.nt", triples(":a rdfs:label 'whatever' ."))
    write(tmp_path / "changes/000002.removed.nt", triples(":b dbp:goals 1 ."))
    write(tmp_path / "changes/000002.added.nt", triples(":a dbp:goals 3 ."))
    write(tmp_path / "changes/000002.reinserted.nt", triples(":a a dbo:Athlete . :b dbp:goals 1 ."))
    result = run("replicate", tmp_path / "athletes.rq", "--changes", tmp_path / "changes", "--target", tmp_path / "t")
    assert lines(result)[1] == {"sequence": 2, "interest": "athletes", "added": 1, "removed": 2, "potential": 0}
    assert content(tmp_path / "t/data.nt") == triples(
        ":a a dbo:Athlete ; dbp:goals 3 . :b a dbo:Athlete ; dbp:goals 1 ."
    )


def test_what_came_before_a_damaged_change_is_in_the_file(tmp_path: Path) -> None:
    changeset(tmp_path / "changes", 1, (), triples(":Rio a dbo:Athlete ; dbp:goals 1 . :Ann a dbo:Athlete ."))
    (tmp_path / "changes/000002.added.nt").write_text("<urn:a> <urn:b")
    interest = rq(tmp_path / "interest.rq", PREFIXES, ATHLETES)
    options = ("--changes", tmp_path / "changes", "--target", tmp_path / "target", "--potential", tmp_path / "aside")
    assert "1 changes are in the target" in run("replicate", interest, *options, code=1).stderr
    assert len(content(tmp_path / "target/data.nt")) == 2
    assert len(content(tmp_path / "aside/data.nt")) == 1


def test_a_damaged_change_stops_the_stream_until_it_is_mended(tmp_path: Path) -> None:
    rq(tmp_path / "i.rq", "", "SELECT * { ?s ?p ?o }")
    for number in (1, 3):
        changeset(tmp_path / "changes", number, (), triples(f":n{number} rdfs:label 'x' ."))
    damaged = tmp_path / "changes/000002.added.nt.gz"
    write(damaged, triples(":n2 rdfs:label 'x' ."))
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-12])
    options = ("replicate", tmp_path / "i.rq", "--changes", tmp_path / "changes", "--target", tmp_path / "t")
    result = run(*options, code=1)
    assert [line["sequence"] for line in lines(result)] == [1]
    assert "000002.added.nt.gz" in result.stderr
    assert "--skip-damaged" in result.stderr
    skipped = run(*options[:-1], tmp_path / "other", "--skip-damaged")
    assert [line["sequence"] for line in lines(skipped)] == [1, 2, 3]
    assert "change 2 is set aside: " in skipped.stderr
    damaged.write_bytes(whole)
    assert [line["sequence"] for line in lines(run(*options))] == [2, 3]
    assert len(content(tmp_path / "t/data.nt")) == 3


def test_a_file_that_comes_late_is_an_error(tmp_path: Path) -> None:
    rq(tmp_path / "i.rq", "", "SELECT * { ?s ?p ?o }")
    changeset(tmp_path / "changes", 2, (), triples(":a rdfs:label 'x' ."))
    options = ("replicate", tmp_path / "i.rq", "--changes", tmp_path / "changes", "--target", tmp_path / "t")
    run(*options)
    changeset(tmp_path / "changes", 1, (), triples(":b rdfs:label 'x' ."))
    assert "came late" in run(*options, code=1).stderr


def test_a_change_that_comes_late_is_an_error_in_patches_and_versions(tmp_path: Path) -> None:
    interest = rq(tmp_path / "i.rq", "", "SELECT * { ?s <urn:p> ?o }")
    for kind, content in (
        ("rdfp", "TX .\nA <urn:{}> <urn:p> <urn:o> .\nTC .\n"),
        ("nt", "<urn:{}> <urn:p> <urn:o> .\n"),
    ):
        changes = tmp_path / kind
        changes.mkdir()
        (changes / f"1.{kind}").write_text(content.format(1))
        (changes / f"3.{kind}").write_text(content.format(3))
        options = ("replicate", interest, "--changes", changes, "--target", tmp_path / f"of-{kind}")
        run(*options)
        (changes / f"4.{kind}").write_text(content.format(4))
        assert [line["sequence"] for line in lines(run(*options))] == [3]
        (changes / f"2.{kind}").write_text(content.format(2))
        assert "came late" in run(*options, code=1).stderr
        for number in (2, 3, 4):
            (changes / f"{number}.{kind}").unlink()
        assert "fewer changes" in run(*options, code=1).stderr


def test_now_is_one_moment_in_all_runs(tmp_path: Path) -> None:
    interest = rq(tmp_path / "i.rq", "", "SELECT * { ?s <urn:until> ?d FILTER(?d > NOW()) }")
    soon = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
    typed = f'"{soon}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    changeset(tmp_path / "changes", 1, (), triples(f":a <urn:until> {typed} ."))
    places = ("--target", f"store:{tmp_path / 't'}", "--state", tmp_path / "state")
    options = ("replicate", interest, "--changes", tmp_path / "changes", *places)
    assert [line["added"] for line in lines(run(*options))] == [1]
    time.sleep(3.1)
    changeset(tmp_path / "changes", 2, triples(f":a <urn:until> {typed} ."), ())
    assert [(line["removed"], line["potential"]) for line in lines(run(*options))] == [(1, 0)]


def test_alternatives_need_no_connection(tmp_path: Path) -> None:
    replica = Replica(tmp_path, "SELECT * { { ?a dbp:goals ?g } UNION { ?t rdfs:label ?l ; foaf:homepage ?h } }")
    replica.change(added=":a dbp:goals 1 . :t rdfs:label 't' .")
    replica.change(added=":t foaf:homepage <urn:h> .", removed=":a dbp:goals 1 .")
    assert content(tmp_path / "target/data.nt") == triples(":t rdfs:label 't' ; foaf:homepage <urn:h> .")


def test_another_interest_needs_another_state(tmp_path: Path) -> None:
    interest = rq(tmp_path / "i.rq", "", "SELECT * { ?s ?p ?o }")
    changeset(tmp_path / "changes", 1, (), triples(":a rdfs:label 'x' ."))
    options = ("replicate", interest, "--changes", tmp_path / "changes", "--target", tmp_path / "t")
    run(*options)
    rq(interest, "", "SELECT * { ?s a ?o }")
    assert "state of i as it was before" in run(*options, code=1).stderr
    other = rq(tmp_path / "other.rq", "", "SELECT * { ?s a ?o }")
    assert "state of other interests: i" in run(options[0], other, *options[2:], code=1).stderr


def test_the_paper_begins_with_nothing_aside(tmp_path: Path) -> None:
    interest = rq(tmp_path / "i.rq", PREFIXES, ATHLETES)
    write(tmp_path / "init.nt", triples(":a a dbo:Athlete ; dbp:goals 1 . :b a dbo:Athlete ."))
    changeset(tmp_path / "changes", 1, (), triples(":b dbp:goals 2 ."))
    options = ("replicate", interest, "--init", tmp_path / "init.nt", "--changes", tmp_path / "changes")
    [line] = lines(run(*options, "--target", tmp_path / "t", "--potential", "paper"))
    assert (line["added"], line["potential"]) == (0, 1)
    [line] = lines(run(*options, "--target", tmp_path / "u"))
    assert (line["added"], line["potential"]) == (2, 0)


REFUSED: Iterable[tuple[str, str]] = (
    ("ASK { ?s ?p ?o }", "cannot have ASK"),
    ("DESCRIBE ?s { ?s ?p ?o }", "cannot have DESCRIBE"),
    ("SELECT * FROM <urn:g> { ?s ?p ?o }", "cannot have FROM"),
    ("SELECT * { GRAPH ?g { ?s ?p ?o } }", "cannot have GRAPH"),
    ("SELECT * { GRAPH <urn:g> { ?s ?p ?o } }", "cannot have GRAPH"),
    ("SELECT * { ?s ?p ?o } LIMIT 3", "LIMIT"),
    ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", "aggregates"),
    ("SELECT * { ?s ?p ?o { SELECT ?s { ?s ?q ?x } } }", "sub-selects"),
    ("SELECT * { SERVICE <urn:x> { ?s ?p ?o } }", "SERVICE"),
    ("SELECT * { ?s <urn:p> ?o . ?x <urn:q> ?y }", "nothing connects ?o and ?x"),
    ("SELECT * { VALUES ?s { 1 } }", "at least one triple pattern"),
    ("SELECT * { ?s ?p ?o FILTER (RAND() < 0.5) }", "RAND"),
    (
        "CONSTRUCT { ?s <urn:made> ?o } WHERE { ?s <urn:p> ?o }",
        "the template has a triple that the WHERE clause has not",
    ),
    ("SELECT * { ?s ?p ", "i.rq:1:"),
)


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_no_interest_is_refused(tmp_path: Path, text: str, message: str) -> None:
    rq(tmp_path / "i.rq", "", text)
    (tmp_path / "changes").mkdir()
    result = run("replicate", tmp_path / "i.rq", "--changes", tmp_path, "--target", tmp_path / "t", code=1)
    assert message in result.stderr
    assert "i.rq" in result.stderr
    assert not (tmp_path / "t").exists()


def test_wrong_usage_leaves_nothing_behind(tmp_path: Path) -> None:
    interest = rq(tmp_path / "i.rq", "", "SELECT * { ?s ?p ?o }")
    changeset(tmp_path / "changes", 1, (), ())
    options = ("--changes", tmp_path / "changes", "--target", tmp_path / "t")
    run("replicate", interest, *options[:2], code=2)
    (tmp_path / "empty").mkdir()
    assert "no interest" in run("replicate", tmp_path / "empty", *options, code=2).stderr
    (tmp_path / "two").mkdir()
    other = rq(tmp_path / "two/i.rq", "", "SELECT * { ?s ?p ?o }")
    assert "two interests" in run("replicate", interest, other, *options, code=2).stderr
    assert "--graph belong" in run("replicate", interest, *options, "--graph", "urn:g", code=2).stderr
    failed = run("replicate", interest, "--changes", tmp_path / "nowhere", *options[2:], code=1)
    assert "no such file" in failed.stderr
    inside = run("replicate", interest, *options[:2], "--target", tmp_path / "changes/t", code=2)
    assert "in the folder of the changes" in inside.stderr
    assert "is empty" in run("replicate", interest, "--changes", tmp_path / "empty", *options[2:], code=1).stderr
    assert not (tmp_path / "t").exists()
    assert "no such file" in run("replicate", interest, *options, "--init", tmp_path / "no.nt", code=1).stderr
    assert not any((tmp_path / "t").iterdir())
    assert len(lines(run("replicate", interest, *options))) == 1


def test_the_demonstration(tmp_path: Path) -> None:
    """It raises if the replica is not what the definition says."""
    out = StringIO()
    replica.show(Console(file=out), tmp_path / "demo")
    assert "4 of 7 triples, as the definition says" in out.getvalue()


TABLE_HISTORY = (
    ":Rio a dbo:Athlete .",
    ":Rio a dbo:Athlete ; dbp:goals 1, 2 .",
    ':Rio a dbo:Athlete ; dbp:goals 2 ; foaf:homepage <urn:rio> . :Ann a dbo:Athlete ; dbp:goals "ä\\n\\"b\\""@en .',
    ":Ann a dbo:Athlete .",
)


def write_table_history(folder: Path, steps: int) -> None:
    states = [frozenset[Quad](), *map(triples, TABLE_HISTORY)][: steps + 1]
    for number, (before, after) in enumerate(pairwise(states), 1):
        changeset(folder / "changes", number, before - after, after - before)


def test_delta_tables(tmp_path: Path) -> None:
    athletes = rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)
    pages = rq(tmp_path / "pages.rq", PREFIXES, "SELECT * { ?a foaf:homepage ?page }")
    for steps in range(1, len(TABLE_HISTORY) + 1):  # each by a new run
        write_table_history(tmp_path, steps)
        target = f"delta:{tmp_path}/tables"
        done = eg.replicate([athletes, pages], changes=tmp_path / "changes", target=target, state=tmp_path / "state")
        assert done.position == steps
        state = triples(TABLE_HISTORY[steps - 1])
        for file in (athletes, pages):
            interest = parse_interest(file.read_text(), file.stem)
            assert table_content(tmp_path / "tables" / file.stem) == interesting(interest, state)


def test_a_delta_table_knows_what_it_has_when_the_state_does_not(tmp_path: Path) -> None:
    interest = rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)

    def replicate(state: Path) -> None:
        eg.replicate(interest, changes=tmp_path / "changes", target=f"delta:{tmp_path}/table", state=state)

    write_table_history(tmp_path, 1)
    replicate(tmp_path / "state")
    copytree(tmp_path / "state", tmp_path / "old")
    write_table_history(tmp_path, 3)
    replicate(tmp_path / "state")
    replicate(tmp_path / "old")  # as after a crash between target and state: changes 2 and 3 are told again
    expected = interesting(parse_interest(interest.read_text()), triples(TABLE_HISTORY[2]))
    assert table_content(tmp_path / "table") == expected
    write_table_history(tmp_path, 4)
    replicate(tmp_path / "old")
    assert table_content(tmp_path / "table") == frozenset()


def test_a_delta_table_is_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergraph.engines.spark.tables._MOST_TAIL_FILES", 1)
    test_delta_tables(tmp_path)
    assert len(DeltaTable(tmp_path / "tables/athletes").file_uris()) <= 1


def test_a_table_without_its_first_commit_is_made_anew(tmp_path: Path) -> None:
    write_table_history(tmp_path, 2)
    interest = rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)
    (tmp_path / "table/_delta_log").mkdir(parents=True)
    eg.replicate(interest, changes=tmp_path / "changes", target=f"delta:{tmp_path}/table", state=tmp_path / "state")
    assert len(table_content(tmp_path / "table") or ()) == 3


def test_tables_of_others_are_refused(tmp_path: Path) -> None:
    write_table_history(tmp_path, 2)
    rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)
    options = ("--changes", tmp_path / "changes", "--target", f"delta:{tmp_path}/table", "--state", tmp_path / "state")
    write_deltalake(tmp_path / "table", pa.table({"name": ["x"]}))
    assert "not one of Evergraph" in run("replicate", tmp_path / "athletes.rq", *options, code=1).stderr
    rmtree(tmp_path / "table")
    (tmp_path / "table").mkdir()
    (tmp_path / "table/mine.txt").write_text("x")
    assert "is there already" in run("replicate", tmp_path / "athletes.rq", *options, code=1).stderr
    assert [path.name for path in (tmp_path / "table").iterdir()] == ["mine.txt"]
    rmtree(tmp_path / "table")
    (tmp_path / "table").write_text("x")
    assert "cannot create the folder" in run("replicate", tmp_path / "athletes.rq", *options, code=1).stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("prefix", ["", "store:", "delta:"])
def test_a_target_that_somebody_emptied_is_filled_again(tmp_path: Path, prefix: str) -> None:
    write_table_history(tmp_path, 3)
    rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)
    target = f"{prefix}{tmp_path}/target"
    for _ in range(2):
        eg.replicate(tmp_path / "athletes.rq", changes=tmp_path / "changes", target=target, state=tmp_path / "state")
        if prefix == "store:":
            with eg.open(tmp_path / "target") as database:
                found = frozenset(database.quads())
        else:
            found = table_content(tmp_path / "target") or content(tmp_path / "target/data.nt")
        assert len(found) == 5
        rmtree(tmp_path / "target")


def test_a_file_is_right_after_a_run_that_broke_off(tmp_path: Path) -> None:
    interest = rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)

    def replicate(on_change: Callable[[eg.ReplicaStep], None] | None = None) -> None:
        eg.replicate(interest, changes=tmp_path / "changes", target=tmp_path / "target", on_change=on_change)

    def fail(step: eg.ReplicaStep) -> None:
        raise KeyboardInterrupt

    write_table_history(tmp_path, 2)
    replicate()
    write_table_history(tmp_path, 3)
    with pytest.raises(KeyboardInterrupt):
        replicate(fail)  # the change is in the state, and not in the file
    replicate()
    expected = interesting(parse_interest(interest.read_text()), triples(TABLE_HISTORY[2]))
    assert content(tmp_path / "target/data.nt") == expected
    before = (tmp_path / "target/data.nt").stat().st_mtime_ns
    replicate()
    assert (tmp_path / "target/data.nt").stat().st_mtime_ns == before


def test_engines_have_names(tmp_path: Path) -> None:
    write_table_history(tmp_path, 1)
    interest = rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)
    with pytest.raises(UsageError, match="no engine is called 'flink'"):
        eg.replicate(interest, changes=tmp_path / "changes", target=tmp_path / "target", engine="flink")
    assert not (tmp_path / "target").exists()


def test_a_state_belongs_to_an_engine(tmp_path: Path) -> None:
    write_table_history(tmp_path, 1)
    interest = rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)
    options = {"changes": tmp_path / "changes", "target": f"store:{tmp_path / 'db'}", "state": tmp_path / "state"}
    eg.replicate(interest, **options)  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="is the state of a replication on the local engine"):
        eg.replicate(interest, engine="spark", **options)  # type: ignore[arg-type]
    (tmp_path / "state/state.json").rename(tmp_path / "state/pipeline.json")
    with pytest.raises(StoreError, match="is the state of a replication on Spark"):
        eg.replicate(interest, **options)  # type: ignore[arg-type]


def test_who_gives_no_place_for_the_state_is_warned(tmp_path: Path) -> None:
    write_table_history(tmp_path, 1)
    interest = rq(tmp_path / "athletes.rq", PREFIXES, ATHLETES)
    told: list[str] = []
    for target in (tmp_path / "folder", f"store:{tmp_path / 'db'}"):
        eg.replicate(interest, changes=tmp_path / "changes", target=target, report=told.append)
    assert len(told) == 1
    assert told[0].startswith("there is no --state")
