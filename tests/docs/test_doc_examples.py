"""The runner of the documentation's examples: what it accepts, and above all what it does not let through."""

import traceback
from pathlib import Path

import pytest
from tests.support.doc_examples import ExampleFailed, blocks, matches, run_page


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def run(folder: Path, *fenced: str) -> None:
    """Run a page of fenced blocks, each given by its info string and its text."""
    page = folder.parent / "page.md"
    page.write_text("# Title\n\n" + "\n\nText.\n\n".join(f"```{block}\n```" for block in fenced) + "\n")
    run_page(page, folder)


PASSES = {
    "code": ["python\nx = 1", "python\nassert x == 1"],
    "session": ["python\n>>> x = 1\n>>> x + 1\n2", "python\n>>> x\n1", "python\nassert x == 1"],
    "session with an exception": ["python\n>>> 1 / 0\nTraceback (most recent call last):\nZeroDivisionError: ..."],
    "not run": ["python no-run\nserve_for_ever()", "python no-run\n>>> serve_for_ever()"],
    "titled": ['python title="tool/hello.py"\nprint("hello")', "console\n$ python tool/hello.py\nhello"],
    "console": ["console\n$ echo a; echo b >&2\na\nb\n$ true\n$ printf c\nc"],
    "continued": ["console\n$ echo a \\\n    b\na b"],
    "one shell": ["console\n$ mkdir d && cd d\n$ x=1\n$ echo $x ${PWD##*/}\n1 d"],
    "shown failure": ["console\n$ (exit 3)\n$ echo $?\n3"],
    "ellipsis": ["console\n$ seq 9\n1\n...\n9\n$ echo took 17 ms\ntook ... ms"],
    "left running": ["console\n$ sleep 600 & echo started\nstarted"],
    "illustration": ["text\n$ rm -rf /", "sparql\nSELECT"],
    "installed command": ["console\n$ command -v evergraph\n.../evergraph"],
}


@pytest.mark.parametrize("page", PASSES.values(), ids=PASSES.keys())
def test_passes(page: list[str], folder: Path) -> None:
    run(folder, *page)


FAILS = {
    "code": ["python\nassert False"],
    "syntax": ["python no-run\nif:"],
    "syntax in a session": ["python no-run\n>>> if:"],
    "session": ["python\n>>> 1 + 1\n3"],
    "session without its output": ["python\n>>> 1 + 1"],
    "unexpected exception": ["python\n>>> 1 / 0\n1"],
    "wrong output": ["console\n$ echo a\nb"],
    "missing output": ["console\n$ echo a"],
    "too much output": ["console\n$ true\nb"],
    "output on standard error": ["console\n$ echo a >&2"],
    "spaces": ["console\n$ echo 'a  b'\na b"],
    "second command": ["console\n$ echo a\na\n$ echo b\na"],
    "hidden failure": ["console\n$ false"],
    "hidden failure before another command": ["console\n$ false\n$ true"],
    "wrong exit code": ["console\n$ (exit 3)\n$ echo $?\n2"],
    "end of the shell": ["console\n$ exit 0\n$ echo a\na"],
    "unknown command": ["console\n$ no-such-command"],
    "no command": ["console\noutput"],
    "missing file": ["console\n$ cat data.ttl\n..."],
}


@pytest.mark.parametrize("page", FAILS.values(), ids=FAILS.keys())
def test_fails(page: list[str], folder: Path) -> None:
    with pytest.raises((AssertionError, SyntaxError)):
        run(folder, *page)


def test_a_failure_names_the_line_and_shows_the_difference(folder: Path) -> None:
    with pytest.raises(ExampleFailed, match=r"page\.md:6: \$ echo b\n(.*\n)*-c\n\+b"):
        run(folder, "console\n$ echo a\na\n$ echo b\nc")


def test_a_traceback_shows_the_line_of_the_page(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError) as failure:
        run(folder, "python\nx = 0", "python\ny = 1\nz = y / x")
    assert 'page.md", line 11' in "".join(traceback.format_exception(failure.value))


def test_blocks_may_be_indented_and_nested() -> None:
    markdown = '1. Item\n\n   ```python title="a.py"\n   if x:\n       y\n   ```\n\n````text\n```python\n```\n````\n'
    first, second = blocks(markdown)
    assert (first.language, first.title, first.text, first.line) == ("python", "a.py", "if x:\n    y\n", 4)
    assert (second.language, second.text) == ("text", "```python\n```\n")


def test_an_open_fence_is_an_error() -> None:
    with pytest.raises(ExampleFailed, match=r"line 1: .* never closed"):
        list(blocks("```python\nx\n"))


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [("a...c", "abbc", True), ("a...", "a\nb\n", True), ("a.c", "abc", False), ("a", "a\n", True), ("a", "ab", False)],
)
def test_matches(expected: str, actual: str, same: bool) -> None:
    assert matches(expected, actual) is same
