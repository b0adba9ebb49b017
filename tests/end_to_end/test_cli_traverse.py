"""``traverse`` as users run it: what it prints, how it fails, how it ends and goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.web import Web, serve_web

from evergraph.cli import main

Run = Callable[..., tuple[int, list[Any], str]]


@pytest.fixture
def web() -> Iterator[Web]:
    with serve_web() as served:
        served.turtle("alice", ':alice :knows :bob, :charlie . :bob :name "Bobby" .')
        served.redirect("bob", "/data/bob")
        served.turtle("data/bob", ':bob :name "Bob" .', delay=0.3)
        served.turtle("charlie", ':charlie :name "Charlie" .')
        yield served


@pytest.fixture
def run(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def command(text: str, *arguments: str, allow: bool = True) -> tuple[int, list[Any], str]:
        Path("query.rq").write_text(f"PREFIX : <{web.base}> {text}")
        with pytest.raises(SystemExit) as ended:
            main(["traverse", "query.rq", *(("--allow", web.host) if allow else ()), *arguments])
        printed = capsys.readouterr()
        code = ended.value.code
        return int(code or 0), [json.loads(line) for line in printed.out.splitlines()], printed.err

    return command


NAMES = "SELECT ?x ?n { :alice :knows ?x . ?x :name ?n }"


def names(result: Any) -> list[str]:
    return [binding["n"]["value"] for binding in result["results"]["bindings"]]


def test_the_example(run: Run, web: Web) -> None:
    code, lines, err = run(NAMES)
    assert code == 0
    assert [(line["sequence"], line["document"], names(line["added"]), names(line["removed"])) for line in lines] == [
        (0, None, [], []),
        (1, web.iri("alice"), ["Bobby"], []),
        (2, web.iri("charlie"), ["Charlie"], []),
        (3, web.iri("data/bob"), ["Bob"], []),
    ]
    assert lines[1]["added"]["head"] == {"vars": ["x", "n"]}
    assert "documents fetched 3, queued 0, failed 0" in err
    assert f"{web.iri('bob')} → {web.iri('data/bob')}: text/turtle, 1 triples" in err
    assert f"found in {web.iri('alice')}" in err


def test_retractions_and_other_forms(run: Run, web: Web) -> None:
    _, lines, _ = run("SELECT ?x ?n { :alice :knows ?x OPTIONAL { ?x :name ?n } }")
    assert lines[2]["removed"]["results"]["bindings"] == [{"x": {"type": "uri", "value": web.iri("charlie")}}]
    _, lines, _ = run("ASK { :charlie :name ?n }")
    assert [(line["added"]["boolean"], (line["removed"] or {}).get("boolean")) for line in lines] == [
        (False, None),
        (True, False),
    ]
    _, lines, _ = run("CONSTRUCT { ?x :called ?n } { :alice :knows ?x . ?x :name ?n }")
    assert lines[1]["added"] == [f'<{web.base}bob> <{web.base}called> "Bobby" .']


def test_failures_are_listed_and_the_query_goes_on(run: Run, web: Web, tmp_path: Path) -> None:
    del web.routes["/charlie"]
    code, lines, err = run(NAMES, "--report", "report.jsonl", "--seed", web.iri("nobody"))
    assert code == 0
    assert len(lines) == 3
    assert f"failed  {web.iri('charlie')}: the server answers 404; found in {web.iri('alice')}" in err
    assert "fetched 2, queued 0, failed 2" in err
    report = {one["url"]: one for one in map(json.loads, (tmp_path / "report.jsonl").read_text().splitlines())}
    assert report[web.iri("nobody")]["why"] == "seed"
    assert report[web.iri("bob")]["via"] == [web.iri("bob")]
    assert report[web.iri("charlie")]["problem"] == "HTTP_STATUS"


def test_many_documents_are_one_change(run: Run, web: Web) -> None:
    web.turtle("data/bob", ':bob :name "Bob" .')
    code, lines, _ = run(NAMES, "--batch", "100", "--strategy", "all")
    assert code == 0
    assert sorted(name for line in lines for name in names(line["added"])) == ["Bob", "Bobby", "Charlie"]


def test_on_spark(web: Web, tmp_path: Path) -> None:
    """The same result, in fewer and larger steps; nothing but steps is printed, and no folder is left."""
    (tmp_path / "query.rq").write_text(f"PREFIX : <{web.base}> {NAMES}")
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "evergraph", "traverse", "query.rq", "--allow", web.host, "--engine", "spark"]
    ended = subprocess.run(
        [*command, "--report", "report.jsonl", "--cache", "cache"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    total: list[str] = []
    for line in lines:
        for name in names(line["removed"]):
            total.remove(name)
        total += names(line["added"])
    assert sorted(total) == ["Bob", "Bobby", "Charlie"]
    assert (lines[0]["sequence"], lines[0]["document"]) == (0, None)
    assert {one["state"] for one in map(json.loads, (tmp_path / "report.jsonl").read_text().splitlines())} == {
        "fetched"
    }
    assert "documents fetched 3" in ended.stderr
    assert not [path.name for path in (tmp_path / "tmp").iterdir() if path.name.startswith("evergraph")]


def test_strategies(run: Run, web: Web) -> None:
    run(NAMES, "--strategy", "query")
    assert web.paths() == ["/alice"]
    web.asked.clear()
    run(NAMES, "--strategy", "solutions")
    assert web.paths() == ["/alice", "/bob", "/data/bob"]
    web.asked.clear()
    run(NAMES, "--vocabulary", "--strategy", "query")
    assert sorted(web.paths()) == ["/alice", "/knows", "/name"]


@pytest.mark.parametrize(
    ("text", "arguments", "code", "message"),
    [
        ("SELECT", (), 1, "query.rq:1:"),
        ("SELECT * { ?s ?p ?o }", (), 2, "no IRI to start from"),
        (NAMES, ("--seed", "urn:x"), 2, "urn:x"),
        (NAMES, ("--strategy", "some"), 2, "strategy"),
        (NAMES, ("--max-documents", "-1"), 2, "max-documents"),
        (NAMES, ("--refresh", "0"), 2, "refresh"),
        (NAMES, ("--max-seconds", "0"), 2, "max-seconds"),
        ("SELECT * { SERVICE <http://localhost:1/> { ?s ?p ?o } }", (), 1, "SERVICE"),
        ("SELECT * { :alice :p ?x FILTER (RAND() < 1) }", (), 1, "RAND()"),
        ("SELECT * { :nobody :knows ?x }", (), 1, "404"),
        ("SELECT * { :alice ?p ?x . ?a ?b ?c . ?d ?e ?f }", ("--limit", "5"), 1, "more than 5 entries"),
    ],
)
def test_what_goes_wrong(run: Run, text: str, arguments: tuple[str, ...], code: int, message: str) -> None:
    ended, _, err = run(text, *arguments)
    assert ended == code, err
    assert message in err
    assert "Traceback" not in err


def test_a_report_that_cannot_be_written_is_told_of_first(run: Run, web: Web) -> None:
    code, lines, err = run(NAMES, "--report", "missing/report.jsonl")
    assert (code, lines) == (2, [])
    assert "no such folder" in err
    assert not web.asked


def test_private_addresses(run: Run, web: Web) -> None:
    code, lines, err = run(NAMES, allow=False)
    assert (code, len(lines)) == (1, 1)
    assert "not public" in err
    assert "--allow" in err
    assert web.asked == []


def test_interrupted_and_gone_on_with(web: Web, tmp_path: Path) -> None:
    """Ctrl-C ends a run cleanly; the same command asks for nothing twice."""
    web.turtle("data/bob", ':bob :name "Bob" .', delay=1.0)
    (tmp_path / "query.rq").write_text(f"PREFIX : <{web.base}> {NAMES}")
    command = [sys.executable, "-m", "evergraph", "traverse", "query.rq", "--allow", web.host, "--cache", "cache"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "the same command goes on from here" in err
    assert len(first) == 3
    time.sleep(0.1)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["sequence"], names(line["added"])) for line in lines] == [(2, ["Bobby", "Charlie"]), (3, ["Bob"])]
    assert web.paths().count("/alice") == web.paths().count("/charlie") == 1


def test_follow(web: Web, tmp_path: Path) -> None:
    web.versions("charlie", ':charlie :name "Charlie" .', ':charlie :name "Charles" .')
    (tmp_path / "query.rq").write_text(f"PREFIX : <{web.base}> {NAMES}")
    command = [sys.executable, "-m", "evergraph", "traverse", "query.rq", "--allow", web.host]
    process = subprocess.Popen(
        [*command, "--follow", "--refresh", "0.5"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = [json.loads(process.stdout.readline()) for _ in range(5)]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 0
    changed = next(line for line in lines if names(line["removed"]))
    assert (names(changed["added"]), names(changed["removed"])) == (["Charles"], ["Charlie"])
    assert changed["document"] == web.iri("charlie")
