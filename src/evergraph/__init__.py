"""Evergraph keeps what you derive from changing RDF data up to date.

>>> import evergraph as eg
>>> db = eg.open()
>>> change = db.update('INSERT DATA { <urn:a> <urn:b> "c" }')
>>> change.sequence, [str(quad) for quad in change.inserted]
(1, ['<urn:a> <urn:b> "c"'])
"""

from evergraph.bulk import diff
from evergraph.database import Database, connect
from evergraph.database import open_database as open
from evergraph.delta import Bag, Change, Delta, Request
from evergraph.errors import EvergraphError
from evergraph.pipeline import run
from evergraph.pipeline.replicas import replicate
from evergraph.replication import ReplicaStep, Replicated
from evergraph.traversal import Traversal, TraversalStep, traverse
from evergraph.views.linksets import link

__version__ = "0.1.0"

__all__ = [
    "Bag",
    "Change",
    "Database",
    "Delta",
    "EvergraphError",
    "ReplicaStep",
    "Replicated",
    "Request",
    "Traversal",
    "TraversalStep",
    "connect",
    "diff",
    "link",
    "open",
    "replicate",
    "run",
    "traverse",
]
