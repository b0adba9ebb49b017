"""Replication: replicas of parts of a changing dataset, in targets of their own, and a position that never lies."""

from evergraph.replication.run import ReplicaStep, Replicated, read_interests, replicate

__all__ = ["ReplicaStep", "Replicated", "read_interests", "replicate"]
