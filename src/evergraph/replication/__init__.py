"""Replication: replicas of parts of a changing dataset, in targets of their own, and a position that never lies."""

from evergraph.replication.filling import PAGE
from evergraph.replication.run import (
    PAPER,
    Places,
    ReplicaStep,
    Replicated,
    listed_places,
    read_interests,
    replicate,
)

__all__ = ["PAGE", "PAPER", "Places", "ReplicaStep", "Replicated", "listed_places", "read_interests", "replicate"]
