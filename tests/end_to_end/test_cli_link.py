"""``evergraph link`` from the outside: the worked example, its files, its errors, and that it survives being killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import evergraph as eg
from evergraph.cli.app import app
from evergraph.errors import EvergraphError
from evergraph.linking.definition import LinksetInvalid, load_linkset
from evergraph.views.linksets import running, state

IMDB = """
@prefix imdb: <http://imdb.example/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
imdb:Tim_Burton a imdb:Director ; imdb:name "Tim Burton" ; imdb:born "1958-08-25"^^xsd:date .
imdb:Jane a imdb:Director ; imdb:name "Jane Campion" ; imdb:born "1954-04-30"^^xsd:date .
"""
DBPEDIA = """
@prefix dbo: <http://dbpedia.example/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
dbo:Tim_Button a dbo:Director ; dbo:label "Tim Button"@en ; dbo:birthDate "1958-08-25"^^xsd:date .
dbo:Jane a dbo:Director ; dbo:label "Jane Campion"@en ; dbo:birthDate "1954-05-30"^^xsd:date .
"""
DEFINITION = """
[linkset]
predicate = "owl:sameAs"

[prefixes]
imdb = "http://imdb.example/"
dbo = "http://dbpedia.example/"

[source]
init = "imdb.ttl"
changes = "imdb"
text = '''
PREFIX imdb: <http://imdb.example/>
CONSTRUCT { ?x a imdb:Director ; imdb:name ?n ; imdb:born ?b }
WHERE { ?x a imdb:Director ; imdb:name ?n ; imdb:born ?b }
'''

[target]
init = "dbpedia.ttl"
changes = "dbpedia"
text = '''
PREFIX dbo: <http://dbpedia.example/>
CONSTRUCT { ?x a dbo:Director ; dbo:label ?n ; dbo:birthDate ?b }
WHERE { ?x a dbo:Director ; dbo:label ?n ; dbo:birthDate ?b }
'''

[[match.compare]]
source = "imdb:name"
target = "dbo:label"
measure = "levenshtein"
max = 1

[[match.compare]]
source = "imdb:born"
measure = "exact"

[output]
links = "links.nt"
review = "review.tsv"
void = "void.nt"
changes = "changes"
"""
LINK = "<http://imdb.example/Tim_Burton> <http://www.w3.org/2002/07/owl#sameAs> <http://dbpedia.example/Tim_Button> ."
JANE = "<http://imdb.example/Jane> <http://www.w3.org/2002/07/owl#sameAs> <http://dbpedia.example/Jane> ."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "imdb.ttl").write_text(IMDB)
    (tmp_path / "dbpedia.ttl").write_text(DBPEDIA)
    (tmp_path / "directors.toml").write_text(DEFINITION)
    patch(tmp_path, "imdb", 1, "A <urn:x> <urn:y> <urn:z> .")
    patch(tmp_path, "dbpedia", 1, "A <urn:x> <urn:y> <urn:z> .")
    return tmp_path


def patch(folder: Path, side: str, number: int, *rows: str) -> None:
    (folder / side).mkdir(exist_ok=True)
    (folder / side / f"{number:03}.rdfp").write_text("".join(f"{row}\n" for row in ("TX .", *rows, "TC .")))


def link(folder: Path, *options: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(app, ["link", str(folder / "directors.toml"), *options], catch_exceptions=False)
    assert result.exit_code == 0
    return [json.loads(line) for line in result.stdout.splitlines()]


def line(sequence: int, added: int, removed: int, links: int, mode: str) -> dict[str, object]:
    return {"sequence": sequence, "added": added, "removed": removed, "links": links, "mode": mode}


def test_the_worked_example(folder: Path) -> None:
    assert link(folder) == [line(1, 1, 0, 1, "full")]
    assert (folder / "links.nt").read_text().splitlines() == [LINK]
    patch(folder, "imdb", 2, 'D <http://imdb.example/Tim_Burton> <http://imdb.example/name> "Tim Burton" .')
    assert link(folder) == [line(2, 0, 1, 0, "incremental")]
    assert (folder / "links.nt").read_text() == ""
    assert (folder / "changes" / "000001.rdfp").read_text().splitlines() == ["TX .", f"A {LINK}", "TC ."]
    assert (folder / "changes" / "000002.rdfp").read_text().splitlines() == ["TX .", f"D {LINK}", "TC ."]
    assert link(folder) == [line(3, 0, 0, 0, "incremental")]


def test_changes_on_both_sides_are_folded_into_one_run(folder: Path) -> None:
    link(folder)
    born = "<http://imdb.example/Jane> <http://imdb.example/born>"
    date = "^^<http://www.w3.org/2001/XMLSchema#date>"
    patch(folder, "imdb", 2, f'D {born} "1954-04-30"{date} .', f'A {born} "1954-01-01"{date} .')
    patch(folder, "imdb", 3, f'D {born} "1954-01-01"{date} .', f'A {born} "1954-05-30"{date} .')
    label = "<http://dbpedia.example/Tim_Button> <http://dbpedia.example/label>"
    patch(folder, "dbpedia", 2, f'D {label} "Tim Button"@en .', f'A {label} "Tim"@en .')
    (run,) = link(folder)
    assert run | {"mode": ""} == line(2, 1, 1, 1, "")
    assert (folder / "links.nt").read_text().splitlines() == [JANE]
    assert link(folder, "--fresh") == [line(1, 1, 0, 1, "full")]
    assert [path.name for path in (folder / "changes").iterdir()] == ["000001.rdfp"]


def test_a_change_that_comes_late_is_an_error(folder: Path) -> None:
    patch(folder, "imdb", 3, "A <urn:x> <urn:y> <urn:more> .")
    link(folder)
    patch(folder, "imdb", 4, "A <urn:x> <urn:y> <urn:last> .")
    assert link(folder) == [line(2, 0, 0, 1, "incremental")]
    patch(folder, "imdb", 2, "A <urn:x> <urn:y> <urn:late> .")
    with pytest.raises(EvergraphError, match=r"is .*003\.rdfp:1 now"):
        eg.link(folder / "directors.toml")


def test_runs_of_so_many_changes(folder: Path) -> None:
    (folder / "directors.toml").write_text(DEFINITION + "\n[run]\nchanges = 1\n")
    name = "<http://imdb.example/Tim_Burton> <http://imdb.example/name>"
    patch(folder, "imdb", 2, f'D {name} "Tim Burton" .')
    patch(folder, "imdb", 3, f'A {name} "Tim Bottom" .', f'A {name} "Tom Button" .')
    runs = link(folder)
    assert [(run["added"], run["removed"], run["links"]) for run in runs] == [(1, 0, 1), (0, 1, 0), (1, 0, 1)]
    assert [run["sequence"] for run in runs] == [1, 2, 3]


def test_another_rule_matches_everything_anew_and_tells_the_change(folder: Path) -> None:
    link(folder)
    (folder / "directors.toml").write_text(DEFINITION.replace("max = 1", "max = 0"))
    assert link(folder) == [line(2, 0, 1, 0, "full")]
    (folder / "directors.toml").write_text(DEFINITION.replace('measure = "exact"', 'measure = "year"\nmax = 0'))
    assert link(folder) == [line(3, 2, 0, 2, "full")]
    strict = DEFINITION.replace("[linkset]", "[linkset]\naccept = 0.9\nreview = 0.5").replace(
        'measure = "exact"', 'measure = "year"\nmax = 0'
    )
    (folder / "directors.toml").write_text(strict)
    assert link(folder) == [line(4, 0, 1, 1, "incremental")]
    assert (folder / "links.nt").read_text().splitlines() == [JANE]
    assert (folder / "review.tsv").read_text().splitlines()[1:] == [
        "<http://imdb.example/Tim_Burton>\t<http://dbpedia.example/Tim_Button>\t0.5"
    ]


def test_void_and_quality(folder: Path) -> None:
    (folder / "gold.nt").write_text(f"{LINK}\n{JANE}\n")
    (folder / "directors.toml").write_text(
        DEFINITION + '\n[evaluate]\nreference = "gold.nt"\nquality = "quality.json"\n'
    )
    link(folder)
    void = (folder / "void.nt").read_text()
    for word in ("subjectsTarget", "objectsTarget", "linkPredicate> <http://www.w3.org/2002/07/owl#sameAs>", '"1"'):
        assert word in void
    assert json.loads((folder / "quality.json").read_text()) == {
        "precision": 1.0, "recall": 0.5, "f1": 0.6667, "correct": 1, "links": 1, "reference": 2,
    }  # fmt: skip


def test_a_link_is_explained(folder: Path) -> None:
    link(folder)
    resources = ("http://imdb.example/Tim_Burton", "http://dbpedia.example/Tim_Button")
    command = ["explain", str(folder / "directors.toml")]
    told = CliRunner().invoke(app, [*command, "--link", *resources], catch_exceptions=False).stdout
    assert "linked (score 0.5)" in told
    assert "'Tim Burton' and 'Tim Button', measured 1" in told
    told = CliRunner().invoke(app, [*command, "--link", resources[0], "http://dbpedia.example/Jane"]).stdout
    assert "not linked: the rule does not match (no match)" in told
    found = json.loads(CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False).stdout)
    assert found["blocking"] == [["exact of imdb:born"]]
    assert found["resources"] == [2, 2]


def test_in_python(folder: Path) -> None:
    runs = eg.link(folder / "directors.toml")
    assert [(run.sequence, run.links, run.mode) for run in runs] == [(1, 1, "full")]
    assert runs[0].added == {("<http://imdb.example/Tim_Burton>", "<http://dbpedia.example/Tim_Button>")}


@pytest.mark.parametrize(
    ("before", "after", "message", "hint"),
    [
        (
            'measure = "levenshtein"',
            'measure = "levenstein"',
            ":30: match.compare.measure: unknown measure",
            "'levenshtein'",
        ),
        ("max = 1", "max = nan", ":31: match.compare.max: expected a finite number, not nan", ""),
        (
            "max = 1",
            'max = 1\ntransform = [{ replace = "a", with = "\\\\9" }]',
            ":32: match.compare.transform: 'a' with '\\9' is not a regular expression: invalid group reference 9",
            "",
        ),
        ('"links.nt"', '"imdb/links.nt"', ":38: output.links: ", "give every file a place of its own"),
        ('"owl:sameAs"', '"owl:sameAs"\nstate = "imdb"', ":4: linkset.state: ", "give every file a place of its own"),
        ('"owl:sameAs"', '"owl:sameAs"\nstate = "."', ":4: linkset.state: ", "name a folder of its own"),
        ("max = 1", "max = 1.5", ":31: match.compare.max: expected a whole number", "distances up to max"),
        ("max = 1", "max = -1", ":31: match.compare.max: expected a whole number from 0 on", ""),
        ("max = 1", "min = 0.8", ":31: match.compare.min: 'levenshtein' is a distance", "levenshtein-similarity"),
        ("max = 1", "", ":27: match.compare: the key 'max' is missing", "max = 1"),
        (
            'measure = "exact"',
            'measure = "jaro"\nmin = 90',
            ":36: match.compare.min: expected a similarity",
            "min = 0.9",
        ),
        ('measure = "exact"', 'measure = "exact"\nmax = 1', ":36: match.compare.max: 'exact' takes no threshold", ""),
        ('imdb:name"', 'imdb:nam"', ":28: match.compare.source: the view of the source has no property", "imdb:name"),
        ('"imdb:born"', '"imbd:born"', ":34: match.compare.source: the prefix 'imbd'", "'imdb'"),
        (
            "?x a imdb:Director ; imdb:name ?n ;",
            "?x imdb:name ?n ;",
            ":12: source.text: not a catalogue view: expected one",
            "CONSTRUCT",
        ),
        ("; imdb:born ?b }\nWHERE", "}\nWHERE", ":21: target.text: expected 1 property", "property k"),
        ('predicate = "owl:sameAs"', "", ":2: linkset: the key 'predicate' is missing", ""),
        ('links = "links.nt"', 'links = "links.xls"', ":38: output.links: expected a name that ends in", ""),
        ('links = "links.nt"', 'link = "links.nt"', ":38: output.link: unknown key", "'links'"),
        ('init = "imdb.ttl"', 'init = "imbd.ttl"', ":10: source.init: no such file", "relative"),
        (
            'source = "imdb:name"',
            'source = "imdb:name"\ntransform = ["lowr"]',
            ":29: match.compare.transform: unknown tr",
            "'lower'",
        ),
        (
            'source = "imdb:name"',
            'source = "imdb:name"\ntransform = [{ replace = "(" }]',
            ":29: match.compare.transform: '('",
            "",
        ),
        ("[linkset]", "[linkset]\naccept = 2", ":3: linkset.accept: expected a score between 0 and 1", ""),
        ("[linkset]", "[linkset]\nreview = 0.5", ":3: linkset.review: expected at most accept", "people"),
        (
            "CONSTRUCT { ?x a dbo",
            "CONSTRUCT { ?x a dbo ;;; } {{ dbo",
            ":21: target.text: the query cannot be parsed",
            "",
        ),
    ],
)
def test_mistakes_are_told_by_line(folder: Path, before: str, after: str, message: str, hint: str) -> None:
    assert before in DEFINITION
    (folder / "directors.toml").write_text(DEFINITION.replace(before, after, 1))
    with pytest.raises(LinksetInvalid) as error:
        load_linkset(folder / "directors.toml")
    assert f"directors.toml{message}" in error.value.message
    assert hint in error.value.hint
    assert not (folder / "directors.state").exists()


def test_a_place_that_cannot_be_written_is_told(folder: Path) -> None:
    """And the next run, which can write, publishes what this one found."""
    (folder / "taken").write_text("")
    (folder / "directors.toml").write_text(DEFINITION.replace('"links.nt"', '"taken/links.nt"'))
    with pytest.raises(EvergraphError, match=r"cannot create the folder .*taken"):
        eg.link(folder / "directors.toml")
    (folder / "taken").unlink()
    assert link(folder) == [line(2, 0, 0, 1, "incremental")]
    assert (folder / "taken" / "links.nt").read_text().splitlines() == [LINK]
    assert (folder / "changes" / "000001.rdfp").read_text().splitlines() == ["TX .", f"A {LINK}", "TC ."]


def test_two_runs_at_once_do_not_share_a_state(folder: Path) -> None:
    with running.opened(load_linkset(folder / "directors.toml")):
        for fresh in (False, True):
            with pytest.raises(EvergraphError, match="in use"):
                eg.link(folder / "directors.toml", fresh=fresh)
    assert link(folder) == [line(1, 1, 0, 1, "full")]


def test_a_folder_with_other_files_is_no_state(folder: Path) -> None:
    """Least of all one to be forgotten."""
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("years of work")
    (folder / "directors.toml").write_text(DEFINITION.replace('"owl:sameAs"', '"owl:sameAs"\nstate = "mine"', 1))
    for fresh in (False, True):
        with pytest.raises(EvergraphError, match=r"mine is not the state of a linkset: it holds thesis\.txt"):
            eg.link(folder / "directors.toml", fresh=fresh)
    assert (folder / "mine" / "thesis.txt").read_text() == "years of work"


def test_another_view_needs_a_fresh_state(folder: Path) -> None:
    link(folder)
    (folder / "directors.toml").write_text(DEFINITION.replace("imdb:born ?b }\n'''", "imdb:born ?b ; ?p ?o }\n'''"))
    with pytest.raises(EvergraphError, match="the view of the source is not what it was"):
        link(folder)
    assert link(folder, "--fresh") == [line(1, 1, 0, 1, "full")]


def test_another_property_needs_a_fresh_state(folder: Path) -> None:
    """Else the changes would not add up to the links."""
    link(folder)
    (folder / "directors.toml").write_text(DEFINITION.replace("owl:sameAs", "skos:exactMatch"))
    with pytest.raises(EvergraphError, match=r"the property of the links was <.*sameAs>"):
        link(folder)
    assert link(folder, "--fresh") == [line(1, 1, 0, 1, "full")]
    assert (folder / "changes" / "000001.rdfp").read_text() == f"TX .\nA {(folder / 'links.nt').read_text()}TC .\n"


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"format": 1'])
def test_a_damaged_state_is_told(folder: Path, text: str) -> None:
    link(folder)
    (folder / "directors.state" / "linkset.json").write_text(text)
    with pytest.raises(EvergraphError, match=r"damaged|state of another version"):
        link(folder)


def test_what_a_crash_left_unpublished_is_published(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link(folder)
    patch(folder, "imdb", 2, 'D <http://imdb.example/Tim_Burton> <http://imdb.example/name> "Tim Burton" .')
    with monkeypatch.context() as broken:

        def crash(*arguments: object) -> None:
            raise KeyboardInterrupt

        broken.setattr(running, "publish", crash)
        with pytest.raises(KeyboardInterrupt):
            eg.link(folder / "directors.toml")
    assert not (folder / "changes" / "000002.rdfp").exists()
    assert link(folder) == [line(3, 0, 0, 0, "incremental")]
    assert f"D {LINK}" in (folder / "changes" / "000002.rdfp").read_text()


def test_files_of_many_runs_become_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "RUNS_KEPT", 3)
    (folder / "directors.toml").write_text(DEFINITION + "\n[run]\nchanges = 1\n")
    name = "<http://imdb.example/Tim_Burton> <http://imdb.example/name>"
    for number in range(2, 8):
        patch(folder, "imdb", number, f'{"DA"[number % 2]} {name} "Tim Burton" .')
        link(folder)
        assert len(list((folder / "directors.state").glob("*.links.json.gz"))) <= 5
    assert link(folder)[0]["links"] == 1
    assert (folder / "links.nt").read_text().splitlines() == [LINK]


@pytest.mark.parametrize("runs", [0, 4])
def test_killed_at_any_time(folder: Path, runs: int) -> None:
    """Whatever was reached, the next run ends with the links from scratch, and the changes add up to them."""
    (folder / "directors.toml").write_text(DEFINITION + "\n[run]\nchanges = 1\n")
    name = "<http://imdb.example/Tim_Burton> <http://imdb.example/name>"
    for number in range(2, 14):
        patch(folder, "imdb", number, f'{"DA"[number % 2]} {name} "Tim Burton" .')
    command = [sys.executable, "-m", "evergraph", "link", str(folder / "directors.toml")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list((folder / "changes").glob("*"))) < runs:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    link(folder)
    assert (folder / "links.nt").read_text().splitlines() == [LINK]
    total: set[str] = set()
    files = sorted((folder / "changes").glob("*.rdfp"))
    assert [file.name for file in files] == [f"{number:06}.rdfp" for number in range(1, len(files) + 1)]
    for file in files:
        for row in file.read_text().splitlines():
            if row.startswith("A "):
                assert row[2:] not in total
                total.add(row[2:])
            elif row.startswith("D "):
                total.remove(row[2:])
    assert total == {LINK}
