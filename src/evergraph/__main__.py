"""``python -m evergraph``: the command line."""

from evergraph.cli import main

main()
