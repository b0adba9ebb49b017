"""Which of the pairs that match are links: by their score, and one to one where that is asked for."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

Pair: TypeAlias = tuple[str, str]


class Candidates:
    """Pairs that match, with their scores, by source and by target."""

    def __init__(self) -> None:
        self.scores: dict[Pair, float] = {}
        self._by: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})

    def put(self, pair: Pair, score: float | None) -> None:
        """Set the score of a pair; None takes it out."""
        if score is None:
            if self.scores.pop(pair, None) is not None:
                for side in (0, 1):
                    partners = self._by[side][pair[side]]
                    partners.discard(pair[1 - side])
                    if not partners:
                        del self._by[side][pair[side]]
            return
        self.scores[pair] = score
        for side in (0, 1):
            self._by[side].setdefault(pair[side], set()).add(pair[1 - side])

    def of(self, side: int, name: str) -> Iterator[Pair]:
        """Return the pairs of a resource."""
        for other in self._by[side].get(name, ()):
            yield (name, other) if side == 0 else (other, name)

    def connected(self, pairs: Iterable[Pair]) -> set[Pair]:
        """Return all pairs that hang together with the resources of some pairs."""
        waiting = [(side, pair[side]) for pair in pairs for side in (0, 1)]
        seen = set(waiting)
        found: set[Pair] = set()
        while waiting:
            side, name = waiting.pop()
            for pair in self.of(side, name):
                found.add(pair)
                other = (1 - side, pair[1 - side])
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return found


class Selection:
    """The links among the candidates.

    A candidate is accepted with a score from ``accept`` on, and one for review from ``review`` on. One to one: the
    accepted ones are taken from the highest score down, by name where scores are equal, if neither resource has a link
    yet. Pairs that do not hang together do not matter to each other, so only what hangs together with a change is
    chosen anew.
    """

    def __init__(self, accept: float, review: float | None, one_to_one: bool) -> None:
        self.links: set[Pair] = set()
        self.change(accept, review, one_to_one)

    def change(self, accept: float, review: float | None, one_to_one: bool) -> None:
        """Choose by other thresholds from the next update on, which must then be about all pairs."""
        self._accept = accept
        self._review = review
        self._one_to_one = one_to_one

    def update(self, candidates: Candidates, changed: Iterable[Pair]) -> tuple[set[Pair], set[Pair]]:
        """Choose anew after the scores of some pairs changed; return the links that came and those that went."""
        changed = set(changed)
        if not self._one_to_one:
            before = changed & self.links
            after = {pair for pair in changed if self._accepted(candidates, pair)}
        else:
            concerned = candidates.connected(changed) | changed
            before = concerned & self.links
            after = self._matched(candidates, concerned)
        added, removed = after - before, before - after
        self.links -= removed
        self.links |= added
        return added, removed

    def for_review(self, candidates: Candidates) -> Iterator[Pair]:
        """Return the pairs that are not accepted and that people should look at."""
        if self._review is None:
            return
        for pair, score in candidates.scores.items():
            if self._review <= score < self._accept:
                yield pair

    def _accepted(self, candidates: Candidates, pair: Pair) -> bool:
        score = candidates.scores.get(pair)
        return score is not None and score >= self._accept

    def _matched(self, candidates: Candidates, pairs: set[Pair]) -> set[Pair]:
        taken: tuple[set[str], set[str]] = (set(), set())
        chosen = set()
        accepted = [pair for pair in pairs if self._accepted(candidates, pair)]
        for pair in sorted(accepted, key=lambda pair: (-candidates.scores[pair], pair)):
            if pair[0] not in taken[0] and pair[1] not in taken[1]:
                chosen.add(pair)
                taken[0].add(pair[0])
                taken[1].add(pair[1])
        return chosen
