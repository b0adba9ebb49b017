"""RDF Patch: changes of a dataset as text, one row per line.

See https://afs.github.io/rdf-delta/rdf-patch.html. Blank nodes are named by their labels, which are stable identifiers
here: they are never renamed.
"""

from evergraph.patch.reading import Tail, read_patches, scan_patches
from evergraph.patch.rows import Patch, RawPatch
from evergraph.patch.writing import removed_and_added, transaction, write_transaction

__all__ = [
    "Patch",
    "RawPatch",
    "Tail",
    "read_patches",
    "removed_and_added",
    "scan_patches",
    "transaction",
    "write_transaction",
]
