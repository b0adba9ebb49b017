"""Values that look like the notation that answers are written in."""

import pytest
from tests.support.remote import rows, update
from tests.support.servers import Server

import evergraph as eg

pytestmark = pytest.mark.server

VALUES = ("typed-literal", "__ASK_RETVAL", '"type": "typed-literal"', '"vars": ["__ASK_RETVAL"]', "nodeID://b1")


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_moved_as_it_is(db: eg.Database, server: Server, value: str) -> None:
    quoted = value.replace('"', '\\"')
    update(db, server, f'INSERT DATA {{ GRAPH :g {{ :a :p "{quoted}" }} }}')
    moved = update(db, server, "WITH :g DELETE { ?s :p ?o } INSERT { ?s :q ?o } WHERE { ?s :p ?o }")
    assert rows(moved) == [f'+ :a :q "{quoted}" :g', f'- :a :p "{quoted}" :g']
    assert bool(db.query("ASK { GRAPH ?g { ?s ?p ?o } }"))
