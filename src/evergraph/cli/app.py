"""The application: its commands, its exit codes, and how errors reach a person."""

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

import evergraph
from evergraph.cli.apply import apply
from evergraph.cli.bench import bench
from evergraph.cli.check import check
from evergraph.cli.demo import demo
from evergraph.cli.diff import diff
from evergraph.cli.explain import explain
from evergraph.cli.link import link
from evergraph.cli.load import load
from evergraph.cli.log import log
from evergraph.cli.query import query
from evergraph.cli.replicate import replicate
from evergraph.cli.run import run
from evergraph.cli.serve import serve
from evergraph.cli.traverse import traverse
from evergraph.cli.watch import watch
from evergraph.errors import EvergraphError, UsageError, nested_too_deeply

_OUTPUT_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

app = typer.Typer(
    name="evergraph",
    help="Keeps what you derive from changing RDF data up to date.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(load)
app.command()(apply)
app.command()(watch)
app.command()(serve)
app.command()(replicate)
app.command()(run)
app.command()(link)
app.command()(traverse)
app.command()(diff)
app.command()(explain)
app.command()(check)
app.command()(query)
app.command()(log)
app.command()(demo)
app.command()(bench)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evergraph {evergraph.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 done, 1 the work failed, 2 wrong usage, 130 interrupted."""
    if sys.stdout is None:  # somebody has closed it, and wants no output
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lasts
    try:
        app(args=arguments)
    except EvergraphError as error:
        typer.echo(f"evergraph: {error}", err=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except RecursionError:
        typer.echo(f"evergraph: {nested_too_deeply()}", err=True)
        sys.exit(1)
    except OSError as error:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left to be written there would fail once more
        what = f"cannot write the output: {error.strerror}" if error.errno in _OUTPUT_FULL else str(error)
        typer.echo(f"evergraph: {what}\n  hint: what was done before counts: look before you do it again", err=True)
        sys.exit(1)
