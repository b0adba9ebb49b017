"""The command line: one module per command."""

from evergraph.cli.app import main

__all__ = ["main"]
