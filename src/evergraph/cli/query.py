"""``evergraph query``: ask a database."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from pyoxigraph import QueryBoolean, QueryResultsFormat, QuerySolutions, RdfFormat, serialize

from evergraph.cli.inputs import display_name, read_text
from evergraph.cli.options import QueryEndpoint, open_target
from evergraph.errors import QueryFailed, SyntaxProblem


def query(
    file: Annotated[str, typer.Argument(metavar="QUERY.rq", help="A SPARQL query; - is standard input.")],
    store: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of an embedded database.")] = None,
    endpoint: QueryEndpoint = None,
) -> None:
    """Run a query over the present state of a database.

    Prints SPARQL results JSON for SELECT and ASK, N-Triples for CONSTRUCT and DESCRIBE.

    **Examples**

    `evergraph query --store db people.rq`

    `echo 'SELECT * { ?s ?p ?o } LIMIT 10' | evergraph query --store db -`
    """
    text = read_text(file)
    with open_target(store, endpoint, read_only=True) as database, _failures():
        try:
            answer = database.query(text)
        except SyntaxProblem as error:
            raise error.at(display_name(file), text) from None
        if isinstance(answer, QuerySolutions | QueryBoolean):
            sys.stdout.buffer.write(answer.serialize(format=QueryResultsFormat.JSON) or b"")
            sys.stdout.buffer.write(b"\n")
        else:
            serialize(answer, sys.stdout.buffer, RdfFormat.N_TRIPLES)


@contextmanager
def _failures() -> Iterator[None]:
    """Word what goes wrong while rows come: a SERVICE that does not answer, a function that is not known."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise QueryFailed(f"the query could not be evaluated: {error}") from error
