"""The local engine: plans in one process, for latency."""

from evergraph.engines.local.engine import LocalEngine, View, ViewChange

__all__ = ["LocalEngine", "View", "ViewChange"]
