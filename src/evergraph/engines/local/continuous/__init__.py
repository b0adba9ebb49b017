"""Basic graph patterns over a stream of changes, with no store behind them: each class keeps as little as it can.

`ContinuousPattern` takes quads and returns solutions. `PatternMaintainer` is the same on any values that stand for
terms, such as the ids of an engine.
"""

from evergraph.engines.local.continuous.maintainer import PatternMaintainer
from evergraph.engines.local.continuous.part import StateSize
from evergraph.engines.local.continuous.pattern import ContinuousPattern, Explanation, PartExplanation
from evergraph.engines.local.continuous.product import ProductDelta

__all__ = ["ContinuousPattern", "Explanation", "PartExplanation", "PatternMaintainer", "ProductDelta", "StateSize"]
