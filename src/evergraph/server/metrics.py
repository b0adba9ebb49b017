"""Counts and times, in the text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/)."""

from bisect import bisect_left
from collections.abc import Callable

_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)

COUNTERS = {
    "requests": "HTTP requests.",
    "refused": "HTTP requests and messages that were answered with an error.",
    "updates": "Updates that were made.",
    "updates_failed": "Updates that failed.",
    "quads_inserted": "Quads that updates really inserted.",
    "quads_deleted": "Quads that updates really deleted.",
    "queries_timed_out": "Queries that took too long.",
    "subscribed": "Subscriptions that began.",
    "unsubscribed": "Subscriptions that were ended by their clients.",
    "resumed": "Subscriptions that went on where they were.",
    "restarted": "Subscriptions that were to go on and had to begin anew.",
    "notified": "Changes of results that were handed to subscriptions.",
}
TIMES = {
    "update_seconds": "From the arrival of an update to its being durable.",
    "query_seconds": "Evaluation of a query.",
}


class Metrics:
    """The numbers of one broker."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(COUNTERS, 0)
        self._buckets = {name: [0] * (len(_BOUNDS) + 1) for name in TIMES}
        self._sums = dict.fromkeys(TIMES, 0.0)
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Count something."""
        self._counts[name] += by

    def counted(self, name: str) -> int:
        """Tell a count."""
        return self._counts[name]

    def time(self, name: str, seconds: float) -> None:
        """Take note of how long something took."""
        self._buckets[name][bisect_left(_BOUNDS, seconds)] += 1
        self._sums[name] += seconds

    def gauge(self, name: str, description: str, read: Callable[[], float]) -> None:
        """Show a number that is read when it is asked for."""
        self._gauges[name] = (description, read)

    def text(self) -> str:
        """Write everything."""
        lines: list[str] = []
        for name, description in COUNTERS.items():
            lines += _head(f"{name}_total", description, "counter")
            lines.append(f"evergraph_{name}_total {self._counts[name]}")
        for name, (description, read) in self._gauges.items():
            lines += [*_head(name, description, "gauge"), f"evergraph_{name} {read()}"]
        for name, description in TIMES.items():
            lines += _head(name, description, "histogram")
            total = 0
            for bound, number in zip((*_BOUNDS, "+Inf"), self._buckets[name], strict=True):
                total += number
                lines.append(f'evergraph_{name}_bucket{{le="{bound}"}} {total}')
            lines += [f"evergraph_{name}_sum {self._sums[name]:.6f}", f"evergraph_{name}_count {total}"]
        return "\n".join(lines) + "\n"


def _head(name: str, description: str, kind: str) -> list[str]:
    return [f"# HELP evergraph_{name} {description}", f"# TYPE evergraph_{name} {kind}"]
