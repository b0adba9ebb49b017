"""Interest-based replicas: the part of a changing dataset that an interest describes, kept in step with it."""

from evergraph.views.replicas.interest import Interest, interest_of, parse_interest
from evergraph.views.replicas.local import ReplicaChange, Replicas, Step

__all__ = ["Interest", "ReplicaChange", "Replicas", "Step", "interest_of", "parse_interest"]
