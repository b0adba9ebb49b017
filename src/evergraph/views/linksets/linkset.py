"""The linkset controller: holds the links of two catalogue views, and maintains them at its own pace.

A run takes all resources that changed since the run before, on either side, each once. The incremental way deletes the
pairs that touch them and matches their newest texts with the other side; the full way matches everything. Which one
is cheaper is told by what both have cost so far.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from evergraph.linking.matching import Matcher
from evergraph.linking.oracle import Links
from evergraph.linking.rules import Rule, Texts
from evergraph.views.linksets.selection import Candidates, Pair, Selection
from evergraph.views.linksets.view import Resources


class Mode(StrEnum):
    """How a run was made."""

    INCREMENTAL = "incremental"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Run:
    """What one run did. ``scores`` holds the pairs whose scores changed, None for those that match no more."""

    sequence: int
    mode: Mode
    added: frozenset[Pair]
    removed: frozenset[Pair]
    links: int
    scores: Mapping[Pair, float | None]
    changed: tuple[int, int]
    seconds: float


View = TypeVar("View", bound=Resources)


class Linkset(Generic[View]):
    """The links between the resources of two views.

    After every run they are what matching all resources of both views from scratch would give.
    """

    def __init__(
        self,
        rule: Rule,
        source: View,
        target: View,
        *,
        accept: float = 0.0,
        review: float | None = None,
        one_to_one: bool = False,
        matcher: Matcher | None = None,
    ) -> None:
        self.rule = rule
        self.views = source, target
        self.matcher = matcher or Matcher(rule)
        self.candidates = Candidates()
        self.selection = Selection(accept, review, one_to_one)
        self.sequence = 0
        self._times = [0, 0]
        self._is_new = True
        self._reselects = False

    @property
    def links(self) -> dict[Pair, float]:
        """The links, with their scores."""
        return {pair: self.candidates.scores[pair] for pair in self.selection.links}

    def restore(self, sequence: int, scores: Links) -> None:
        """Go on with the pairs of an earlier run; the views must be what they were then."""
        self.sequence = sequence
        self._times = [view.time for view in self.views]
        for side, view in enumerate(self.views):
            self.matcher.replace(side, view.resources())
        for pair, score in scores.items():
            self.candidates.put(pair, score)
        self.selection.update(self.candidates, scores)
        self._is_new = False

    def reselect(self, accept: float, review: float | None, one_to_one: bool) -> None:
        """Choose links by other thresholds from the next run on."""
        self.selection.change(accept, review, one_to_one)
        self._reselects = True

    def maintain(self, mode: Mode | None = None) -> Run:
        """Bring the links up to date with both views; ``mode`` overrides the choice."""
        begin = time.perf_counter()
        changed = [view.changed(after) for view, after in zip(self.views, self._times, strict=True)]
        counts = len(changed[0]), len(changed[1])
        chosen = Mode.FULL if self._is_new and mode is None else mode or self.choose(counts)
        for side in (0, 1):
            self.matcher.replace(side, changed[side])
        before = self._before(chosen, changed)
        after = self.matcher.full() if chosen is Mode.FULL else self._partners(changed)
        scores: dict[Pair, float | None] = {pair: None for pair in before if pair not in after}
        scores |= {pair: score for pair, score in after.items() if before.get(pair) != score}
        for pair, score in scores.items():
            self.candidates.put(pair, score)
        concerned = {*scores, *self.candidates.scores, *self.selection.links} if self._reselects else scores
        added, removed = self.selection.update(self.candidates, concerned)
        self._reselects = False
        self._times = [view.time for view in self.views]
        self._is_new = False
        self.sequence += 1
        return Run(
            self.sequence,
            chosen,
            frozenset(added),
            frozenset(removed),
            len(self.selection.links),
            scores,
            counts,
            time.perf_counter() - begin,
        )

    def choose(self, changed: tuple[int, int]) -> Mode:
        """Choose the way that is likely to cost less, by what resources have cost so far."""
        incremental, full = self.forecast(changed)
        return Mode.INCREMENTAL if incremental <= full else Mode.FULL

    def forecast(self, changed: tuple[int, int]) -> tuple[float, float]:
        """Say what both ways would cost, in seconds, for so many changed resources of each side."""
        rates, sizes = self.matcher.rates, self.matcher.sizes()
        after = [max(size, count) for size, count in zip(sizes, changed, strict=True)]
        incremental = 0.0
        for side in (0, 1):
            if changed[side]:
                incremental += changed[side] * rates.probe
                if not self.matcher.has_index(1 - side):
                    incremental += after[1 - side] * rates.index / 2  # later runs have the index, too
        smaller = 1 if after[0] >= after[1] else 0
        build = 0.0 if self.matcher.has_index(smaller) else after[smaller] * rates.index
        # What both ways have to do is left out: to prepare what changed, and to bring it into the indexes.
        return incremental, build + max(after) * rates.probe

    def _before(self, mode: Mode, changed: "list[dict[str, Texts | None]]") -> Links:
        scores = self.candidates.scores
        if mode is Mode.FULL:
            return dict(scores)
        touched = {pair for side in (0, 1) for name in changed[side] for pair in self.candidates.of(side, name)}
        return {pair: scores[pair] for pair in touched}

    def _partners(self, changed: "list[dict[str, Texts | None]]") -> Links:
        return {pair: score for side in (0, 1) for pair, score in self.matcher.partners(side, changed[side]).items()}
