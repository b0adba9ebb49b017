"""Queries over Linked Data that is discovered while they run."""

from evergraph.traversal.frontier import State, Visit
from evergraph.traversal.iris import F
from evergraph.traversal.links import Strategy
from evergraph.traversal.options import Limits, Manners
from evergraph.traversal.start import traverse
from evergraph.traversal.traversal import Traversal, TraversalStep

__all__ = ["F", "Limits", "Manners", "State", "Strategy", "Traversal", "TraversalStep", "Visit", "traverse"]
