"""``evergraph bench``: the benchmarks of a source checkout."""

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from evergraph.errors import UsageError


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Some benchmarks; default: all of them.")
    ] = None,
) -> None:
    """Run the benchmarks, with peers where they are installed.

    Prints a table, and writes JSON to `bench/results/`. The benchmarks are part of the source, not of the package: run
    this at the top of a checkout.

    **Examples**

    `evergraph bench standing many`

    `evergraph bench`
    """
    folder = Path("bench")
    known = sorted(path.stem for path in folder.glob("*.py") if "def main()" in path.read_text())
    if not known:
        raise UsageError("there are no benchmarks here", hint="run this at the top of a source checkout")
    for name in names or ():
        if name not in known:
            raise UsageError(f"no benchmark is called {name!r}", hint=f"there are {', '.join(known)}")
    sys.path.insert(0, str(Path.cwd()))
    for one in names or known:
        importlib.import_module(f"bench.{one}").main()
