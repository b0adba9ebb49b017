"""``evergraph query``: ask a database."""

import sys
from typing import Annotated

import typer
from pyoxigraph import QueryBoolean, QueryResultsFormat, QuerySolutions, RdfFormat, serialize

from evergraph.cli.inputs import read_text
from evergraph.cli.options import QueryEndpoint, Store, open_target


def query(
    file: Annotated[str, typer.Argument(metavar="QUERY.rq", help="A SPARQL query; - is standard input.")],
    store: Store = None,
    endpoint: QueryEndpoint = None,
) -> None:
    """Run a query over the present state of a database.

    Prints SPARQL results JSON for SELECT and ASK, N-Triples for CONSTRUCT and DESCRIBE.

    **Examples**

    `evergraph query --store db people.rq`

    `echo 'SELECT * { ?s ?p ?o } LIMIT 10' | evergraph query --store db -`
    """
    with open_target(store, endpoint, read_only=True) as database:
        answer = database.query(read_text(file))
        if isinstance(answer, QuerySolutions | QueryBoolean):
            sys.stdout.buffer.write(answer.serialize(format=QueryResultsFormat.JSON) or b"")
            sys.stdout.buffer.write(b"\n")
        else:
            serialize(answer, sys.stdout.buffer, RdfFormat.N_TRIPLES)
