"""How often somebody may ask: a bucket of tokens for each user, which fills at a steady rate."""

import time
from collections import OrderedDict
from collections.abc import Callable

from evergraph.server.problems import TOO_MANY, Problem

_USERS = 100_000


class RateLimit:
    """Lets each user ask so many times a second, and twice as often for a moment."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._most = max(1.0, 2 * per_second)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, user: str) -> None:
        """Count a request; raises a `Problem` if there were too many."""
        if not self._rate:
            return
        now = self._clock()
        tokens, since = self._buckets.get(user, (self._most, now))
        tokens = min(self._most, tokens + (now - since) * self._rate)
        if tokens < 1:
            seconds = max(1, round((1 - tokens) / self._rate))
            raise Problem(TOO_MANY, f"more than {self._rate:g} requests per second", 429, {"Retry-After": str(seconds)})
        self._buckets[user] = (tokens - 1, now)
        self._buckets.move_to_end(user)
        if len(self._buckets) > _USERS:
            self._buckets.popitem(last=False)
