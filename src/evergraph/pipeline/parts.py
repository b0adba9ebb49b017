"""Small parts of a run: a sink in use, a clock, and how a run is told to end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from evergraph.pipeline.sinks import SinkWriter


@dataclass(slots=True)
class Target:
    """A sink in use; ``view`` is None for the quads."""

    view: str | None
    writer: SinkWriter
    key: str = ""


@dataclass(slots=True)
class Clock:
    """How long the parts of a batch took, in seconds."""

    begin: float = field(default_factory=time.perf_counter)
    parts: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure a part."""
        start = time.perf_counter()
        yield
        self.parts[name] = round(self.parts.get(name, 0.0) + time.perf_counter() - start, 4)

    def seconds(self) -> float:
        """Tell how long all of it took."""
        return round(time.perf_counter() - self.begin, 4)


class Stopped(Exception):
    """The run is to end; a batch that was about to begin is left for the next run."""
