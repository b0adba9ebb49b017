"""``watch``, ``check`` and ``explain`` as users run them: what they print, how they fail, how they end."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evergraph.cli import check as check_module
from evergraph.cli import main
from evergraph.cli.app import app
from evergraph.delta import Bag
from evergraph.views.queries import result_rows

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
HISTORY = f"""TX .
A <urn:a> <{LABEL}> "one"@en .
A <urn:b> <{LABEL}> "two"@en .
TC .
TX .
A <urn:a> <urn:note> "no label changes" .
TC .
TX .
D <urn:b> <{LABEL}> "two"@en .
D <urn:b> <{LABEL}> "never was there"@en .
A <urn:a> <{LABEL}> "one"@en .
A <urn:c> <{LABEL}> "three"@en .
TC .
"""
LABELS = f"SELECT ?s ?label {{ ?s <{LABEL}> ?label }}"

Run = Callable[..., "Outcome"]


class Outcome:
    """What a command printed, and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run a command in a folder with a history; files are given as keywords, with ``_`` for the dot in their names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "history.rdfp").write_text(HISTORY)

    def command(*arguments: str, **files: str) -> Outcome:
        for name, text in files.items():
            Path(name.replace("_", ".")).write_text(text)
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int | None)
        return Outcome(ended.value.code or 0, printed.out, printed.err)

    return command


def rows(result: dict[str, Any]) -> list[str]:
    return [" ".join(term["value"] for term in binding.values()) for binding in result["results"]["bindings"]]


# --- watch


def test_watch_select(run: Run) -> None:
    outcome = run("watch", "q.rq", "--changes", "history.rdfp", q_rq=LABELS)
    assert (outcome.code, outcome.err) == (0, "")
    assert [line["sequence"] for line in outcome.lines] == [0, 1, 3]
    assert [list(line) for line in outcome.lines] == [["sequence", "added", "removed"]] * 3
    assert [rows(line["added"]) for line in outcome.lines] == [[], ["urn:a one", "urn:b two"], ["urn:c three"]]
    assert [rows(line["removed"]) for line in outcome.lines] == [[], [], ["urn:b two"]]
    assert outcome.lines[0]["added"]["head"]["vars"] == ["s", "label"]


def test_watch_ask(run: Run) -> None:
    outcome = run("watch", "q.rq", "--changes", "history.rdfp", q_rq='ASK { <urn:b> ?p "two"@en }')
    assert outcome.lines == [
        {"sequence": 0, "added": {"head": {}, "boolean": False}, "removed": None},
        {"sequence": 1, "added": {"head": {}, "boolean": True}, "removed": {"head": {}, "boolean": False}},
        {"sequence": 3, "added": {"head": {}, "boolean": False}, "removed": {"head": {}, "boolean": True}},
    ]


def test_watch_construct(run: Run) -> None:
    query = f"CONSTRUCT {{ ?s <urn:name> ?label }} WHERE {{ ?s <{LABEL}> ?label }}"
    outcome = run("watch", "q.rq", "--changes", "history.rdfp", q_rq=query)
    assert outcome.lines == [
        {"sequence": 0, "added": [], "removed": []},
        {"sequence": 1, "added": ['<urn:a> <urn:name> "one"@en .', '<urn:b> <urn:name> "two"@en .'], "removed": []},
        {"sequence": 3, "added": ['<urn:c> <urn:name> "three"@en .'], "removed": ['<urn:b> <urn:name> "two"@en .']},
    ]


def test_watch_construct_is_the_same_in_every_run(run: Run) -> None:
    query = f"CONSTRUCT {{ ?s <urn:name> [ <urn:text> ?label ] }} WHERE {{ ?s <{LABEL}> ?label }}"
    first = run("watch", "q.rq", "--changes", "history.rdfp", q_rq=query)
    assert first.out == run("watch", "q.rq", "--changes", "history.rdfp").out
    assert len(first.lines[2]["removed"]) == 2


def test_watch_describe(run: Run) -> None:
    outcome = run("watch", "q.rq", "--changes", "history.rdfp", q_rq="DESCRIBE <urn:a>")
    assert [line["sequence"] for line in outcome.lines] == [0, 1, 2]
    assert outcome.lines[2]["added"] == ['<urn:a> <urn:note> "no label changes" .']


def test_watch_begins_with_the_initial_data(run: Run, tmp_path: Path) -> None:
    (tmp_path / "more.nt.gz").write_bytes(gzip.compress(f'<urn:z> <{LABEL}> "last" .\n'.encode()))
    outcome = run(
        *("watch", "q.rq", "--init", "init.ttl", "--init", "more.nt.gz", "--changes", "history.rdfp"),
        q_rq=LABELS,
        init_ttl=f'<urn:b> <{LABEL}> "two"@en .',
    )
    assert rows(outcome.lines[0]["added"]) == ["urn:b two", "urn:z last"]
    assert rows(outcome.lines[1]["added"]) == ["urn:a one"]  # the other one is there already
    assert [line["sequence"] for line in outcome.lines] == [0, 1, 3]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_label_in_the_initial_data_is_the_same_node_in_changes(run: Run, tmp_path: Path, engine: str) -> None:
    (tmp_path / "init").mkdir()
    (tmp_path / "init/data.nt").write_text(f'_:a <{LABEL}> "one" .\n_:b <{LABEL}> "two" .\n')
    (tmp_path / "init/readme.txt").write_text("no data")
    outcome = run(
        *("watch", "q.rq", "--init", "init", "--changes", "changes.rdfp", "--engine", engine),
        q_rq=LABELS,
        changes_rdfp=f'TX .\nD _:a <{LABEL}> "one" .\nTC .\n',
    )
    assert rows(outcome.lines[0]["added"]) == ["a one", "b two"]
    assert rows(outcome.lines[1]["removed"]) == ["a one"]


def test_watch_keeps_multiplicities(run: Run) -> None:
    outcome = run(
        "watch", "q.rq", "--changes", "history.rdfp", q_rq=f"SELECT ?p {{ ?s ?p ?o FILTER (?p = <{LABEL}>) }}"
    )
    assert rows(outcome.lines[1]["added"]) == [LABEL, LABEL]
    assert len(outcome.lines) == 2  # one label went and another came: the bag is the same


def test_watch_numbers_the_changes_of_any_source(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "changes" / "2024"
    folder.mkdir(parents=True)
    (folder / "000007.added.nt").write_text(f'<urn:a> <{LABEL}> "one" .\n')
    (folder / "000009.removed.nt").write_text(f'<urn:a> <{LABEL}> "one" .\n')
    outcome = run("watch", "q.rq", "--changes", "changes", q_rq=LABELS)
    assert [line["sequence"] for line in outcome.lines] == [0, 1, 2]


def test_a_query_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "history.rdfp").write_text(HISTORY)
    found = evergraph(tmp_path, "watch", "-", "--changes", "history.rdfp", stdin=LABELS)
    assert (found.code, len(found.lines), found.err) == (0, 3, "")


def test_changes_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(LABELS)
    found = evergraph(tmp_path, "watch", "q.rq", "--changes", "-", stdin=HISTORY)
    assert (found.code, len(found.lines), found.err) == (0, 3, "")


def evergraph(folder: Path, *arguments: str, stdin: str) -> Outcome:
    command = [str(Path(sys.executable).with_name("evergraph")), *arguments]
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, text=True, timeout=120, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


# --- errors


@pytest.mark.parametrize(
    "command", [("watch", "--changes", "history.rdfp"), ("check", "--changes", "history.rdfp"), ("explain",)]
)
def test_a_wrong_query_says_where(run: Run, command: tuple[str, ...]) -> None:
    outcome = run(command[0], "q.rq", *command[1:], q_rq="SELECT *\n{ ?s rdfs:label ?o }")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("evergraph: q.rq:2:6: the prefix rdfs: is not declared")
    assert "  | { ?s rdfs:label ?o }\n  |      ^" in outcome.err


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT (UUID() AS ?u) {}", "UUID() has another value each time"),
        ("SELECT * { SERVICE <urn:x> { ?s ?p ?o } }", "SERVICE <urn:x> cannot be maintained"),
        ("SELECT * { ?s ?p ?o FILTER (<urn:f>(?o)) }", "urn:f"),
    ],
)
def test_what_is_refused(run: Run, query: str, message: str) -> None:
    outcome = run("watch", "q.rq", "--changes", "history.rdfp", q_rq=query)
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
    explained = run("explain", "q.rq")
    assert explained.code == 0
    assert message in explained.out.partition("Refused")[2]


def test_a_query_over_its_limit_stops_the_watch(run: Run) -> None:
    query = "SELECT DISTINCT ?s { ?s ?p ?o }"
    outcome = run("watch", "q.rq", "--changes", "history.rdfp", "--limit", "1", q_rq=query)
    assert outcome.code == 1
    assert [line["sequence"] for line in outcome.lines] == [0]
    assert "more than 1 entries of state" in outcome.err


@pytest.mark.parametrize("query", ["SELECT * { ?a ?p ?b . ?c ?q ?d }", "SELECT * { ?s ?p ?o }"])
def test_the_result_of_a_lone_pattern_counts_against_the_limit(run: Run, query: str) -> None:
    outcome = run("watch", "q.rq", "--changes", "history.rdfp", "--limit", "1", q_rq=query)
    assert outcome.code == 1
    assert "more than 1 entries of state" in outcome.err


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(LABELS)
    (tmp_path / "history.rdfp").write_text(HISTORY)
    command = [sys.executable, "-m", "evergraph", "watch", "q.rq", "--changes", "history.rdfp"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 1
    assert "cannot write the output: No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_chains_that_are_too_long_for_the_stack(run: Run) -> None:
    for length in (600, 5_000):
        query = f"SELECT * {{ ?s ?p ?o FILTER ({' + '.join(['?o'] * length)} > 0) }}"
        outcome = run("watch", "q.rq", "--changes", "history.rdfp", q_rq=query)
        assert (outcome.code, outcome.out) == (1, "")
        assert "nested too deeply" in outcome.err


def test_missing_files(run: Run) -> None:
    assert run("watch", "none.rq", "--changes", "history.rdfp").code == 1
    outcome = run("watch", "q.rq", "--changes", "none", q_rq=LABELS)
    assert outcome.code == 1
    assert "none: no such file or folder" in outcome.err
    assert run("watch", "q.rq", "--changes", "history.rdfp", "--init", "none.nt").code == 1


def test_damaged_changes_stop_the_watch_after_what_was_whole(run: Run) -> None:
    damaged = HISTORY.replace('"three"@en .', '"three@en .')
    outcome = run("watch", "q.rq", "--changes", "damaged.rdfp", q_rq=LABELS, damaged_rdfp=damaged)
    assert outcome.code == 1
    assert [line["sequence"] for line in outcome.lines] == [0, 1]
    assert outcome.err.startswith("evergraph: damaged.rdfp:12:")


@pytest.mark.parametrize(
    "arguments",
    [
        ("watch",),
        ("watch", "q.rq"),
        ("watch", "q.rq", "--changes", "history.rdfp", "--engine", "abacus"),
        ("watch", "q.rq", "--changes", "-", "--engine", "spark"),
        ("check", "q.rq", "--changes", "history.rdfp", "--every", "-1"),
        ("explain",),
    ],
)
def test_wrong_usage(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments, q_rq=LABELS).code == 2


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    """``evergraph watch … | head -1``."""
    (tmp_path / "q.rq").write_text(LABELS)
    (tmp_path / "history.rdfp").write_text(
        "".join(f'TX .\nA <urn:{number}> <{LABEL}> "{"long" * 100}" .\nTC .\n' for number in range(2000))
    )
    script = f"'{Path(sys.executable).with_name('evergraph')}' watch q.rq --changes history.rdfp | head -1 | wc -l"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "1"
    assert "Traceback" not in done.stderr


# --- check


def test_check(run: Run) -> None:
    assert run("check", "q.rq", "--changes", "history.rdfp", q_rq=LABELS).lines == [
        {"ok": True, "changes": 3, "compared": 1, "rows": 2}
    ]
    assert run("check", "q.rq", "--changes", "history.rdfp", "--every", "1").lines[0]["compared"] == 5


def test_check_of_what_depends_on_the_time(run: Run) -> None:
    """NOW() is the same moment for what is maintained and for the run from scratch."""
    outcome = run("check", "q.rq", "--changes", "history.rdfp", q_rq="SELECT ?s (NOW() AS ?now) { ?s ?p ?o }")
    assert (outcome.code, outcome.lines[0]["ok"]) == (0, True)


@pytest.mark.parametrize("every", ["0", "1"])
def test_check_shows_a_difference(run: Run, monkeypatch: pytest.MonkeyPatch, every: str) -> None:
    """A run from scratch that forgets one row and invents another, as a wrong engine would."""
    right = result_rows

    def wrong(*arguments: Any) -> Bag[Any]:
        found = right(*arguments)
        forgotten = [row for row in found if "three" in str(row)]
        return found - Bag(forgotten) + Bag([(row[1], row[0]) for row in forgotten])

    monkeypatch.setattr(check_module, "result_rows", wrong)
    outcome = run("check", "q.rq", "--changes", "history.rdfp", "--every", every, q_rq=LABELS)
    assert outcome.code == 1
    (report,) = outcome.lines
    assert (report["ok"], report["changes"], report["sequence"]) == (False, 3, 3)
    assert rows(report["added"]) == ["urn:c three"]
    assert rows(report["removed"]) == ["three urn:c"]


# --- explain


def test_explain(run: Run) -> None:
    text = run("explain", "q.rq", q_rq=LABELS)
    assert text.code == 0
    assert text.out.startswith("SELECT ?s ?label\n\nGraph patterns\n")
    assert "\x1b" not in text.out
    document = json.loads(run("explain", "q.rq", "--json").out)
    assert document["plan"]["operator"] == "BGP"
    assert document["patterns"][0]["class"] == "connected variables"


GROUPS = "SELECT ?o (COUNT(*) AS ?n) { ?s <urn:p> ?o } GROUP BY ?o"


def many_quads(count: int) -> str:
    return "".join(f"<urn:s{number}> <urn:p> <urn:o{number % 7}> .\n" for number in range(count))


def test_explain_with_data(run: Run) -> None:
    explained = run("explain", "q.rq", "--init", "d.nt", q_rq=GROUPS, d_nt=many_quads(500))
    assert "  now: 21 entries, the result included" in explained.out
    assert "\nLarge changes\n  100 changes: " in explained.out
    document = json.loads(run("explain", "q.rq", "--init", "d.nt", "--json").out)
    assert document["entries"] == 21
    assert document["large_changes"][-1]["changes"] == 1_000_000
    nothing = run("explain", "q.rq", "--init", "d.nt", d_nt="<urn:s> <urn:other> <urn:o> .\n")
    assert "Large changes" not in nothing.out


def test_watch_tells_decisions(run: Run) -> None:
    files = {"q_rq": GROUPS, "d_nt": many_quads(500)}
    watched = run("watch", "q.rq", "--init", "d.nt", "--changes", "history.rdfp", "--decisions", **files)
    assert watched.err.startswith("batch 1: 500 matches of 500 changes; incremental ")
    assert len(watched.err.splitlines()) == 1
    assert not run("watch", "q.rq", "--init", "d.nt", "--changes", "history.rdfp").err


def test_every_command_has_help_with_an_example() -> None:
    for command in ("watch", "check", "explain"):
        shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"})
        assert shown.exit_code == 0
        assert f"evergraph {command}" in shown.output
