"""Runs the examples of a Markdown page, so that what the documentation shows is what happens.

The fenced blocks of a page are run in order, in one folder and one Python namespace:

* a block with a title, such as ``sparql title="rename.ru"``, becomes a file of that name;
* a ``python`` block is executed; if it starts with ``>>>``, its output is compared too; with ``no-run`` after the
  language it is only compiled;
* a ``console`` block is run by bash: lines after ``$ `` are commands (a backslash at the end continues them), the
  others what they print to standard output and error. A command may fail only if ``$ echo $?`` comes next.

In shown output ``...`` stands for anything. Blocks in other languages are not run.
"""

import ast
import difflib
import doctest
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.noise import without_noise

TIMEOUT = 300
_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w+-]*)(?P<info>[^`]*)$")
_MARK = "\x1e"  # separates the outputs of the commands of a block


class ExampleFailed(AssertionError):
    """An example does not do what its page says."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; ``line`` is that of its first line of text, counted from 1."""

    language: str
    info: str
    text: str
    line: int

    @property
    def title(self) -> str:
        found = re.search(r'\btitle="([^"]+)"', self.info)
        return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block and the output that the page shows for it."""

    text: str
    output: str
    line: int


def run_page(page: Path, folder: Path) -> None:
    """Run all examples of a page in a folder, which must be the current one."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page.read_text()):
        if block.title:
            (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.title).write_text(block.text)
        elif block.language == "python":
            run_python(block, page, namespace)
        elif block.language == "console":
            run_console(block, page, folder)


def blocks(markdown: str) -> Iterator[Block]:
    """Find the fenced blocks of a page, indented ones too."""
    lines = iter(enumerate(markdown.splitlines(), start=1))
    for number, line in lines:
        if not (fence := _FENCE.match(line)):
            continue
        indent, closing, text = fence["indent"], fence["ticks"], []
        for _, inner in lines:
            if inner.strip().startswith(closing) and not inner.strip(" `"):
                break
            text.append(inner.removeprefix(indent))
        else:
            raise ExampleFailed(f"line {number}: the fence is never closed")
        yield Block(fence["language"], fence["info"], "".join(part + "\n" for part in text), number + 1)


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> None:
    """Run a Python block; tracebacks show the lines of the page."""
    session = block.text.startswith(">>>")
    examples = doctest.DocTestParser().get_examples(block.text) if session else []
    if "no-run" in block.info:
        for source in [example.source for example in examples] or [block.text]:
            ast.parse(source, str(page))
    elif session:
        _run_session(doctest.DocTest(examples, namespace, page.name, str(page), block.line - 1, None), namespace)
    else:
        exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), namespace)


def _run_session(test: doctest.DocTest, namespace: dict[str, object]) -> None:
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append, clear_globs=False)
    namespace.update(test.globs)
    if failed:
        raise ExampleFailed("".join(report))


def run_console(block: Block, page: Path, folder: Path) -> None:
    """Run a console block in one shell and compare what each command prints."""
    shown = list(commands(block))
    script = "".join(
        f"{command.text}\nstatus=$?; printf '{_MARK}%d{_MARK}' $status; (exit $status)\n" for command in shown
    )
    printed = _bash(script, folder).split(_MARK)
    outputs, statuses = printed[0::2], printed[1::2]
    for position, command in enumerate(shown):
        place = f"{page}:{command.line}: $ {command.text}"
        if position >= len(statuses):
            raise ExampleFailed(f"{place}\nended the shell and printed:\n{outputs[position]}")
        if not matches(command.output, outputs[position]):
            raise ExampleFailed(f"{place}\n{_difference(command.output, outputs[position])}")
        failure_is_shown = shown[position + 1 : position + 2] and shown[position + 1].text == "echo $?"
        if statuses[position] != "0" and not failure_is_shown:
            raise ExampleFailed(f"{place}\nfailed with exit code {statuses[position]}:\n{outputs[position]}")


def commands(block: Block) -> Iterator[Command]:
    """Take a console block apart into commands with their output."""
    lines = block.text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    if not starts or starts[0] != 0:
        raise ExampleFailed(f"line {block.line}: a console block starts with a command: `$ ...`")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        output = start + 1
        while lines[output - 1].endswith("\\") and output < end:
            output += 1
        text = "\n".join(lines[start:output]).removeprefix("$ ")
        yield Command(text, "\n".join(lines[output:end]), block.line + start)


def matches(expected: str, actual: str) -> bool:
    """Compare output with what the page shows, where ``...`` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in expected.rstrip("\n").split("..."))
    return re.fullmatch(pattern, actual.rstrip("\n"), re.DOTALL) is not None


def _difference(expected: str, actual: str) -> str:
    return "\n".join(difflib.unified_diff(expected.splitlines(), actual.splitlines(), "shown", "printed", lineterm=""))


def _bash(script: str, folder: Path) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment = os.environ | {"PATH": path, "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    with tempfile.TemporaryFile("w+") as output:  # not a pipe, which a server left running would keep open
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            shell.wait(TIMEOUT)
        finally:
            _end(shell)
        output.seek(0)
        return without_noise(output.read())


def _end(shell: subprocess.Popen[bytes]) -> None:
    """End what the shell left running; it leads a process group of its own."""
    with suppress(ProcessLookupError):
        os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()
