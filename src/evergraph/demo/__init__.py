"""The demonstration: the main job on built-in data, told step by step."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.rule import Rule

from evergraph.demo import broker, linkset, pipeline, replica, updates

Chapter = Callable[[Console, Path], None]

CHAPTERS: tuple[tuple[str, Chapter], ...] = (
    ("Exact changes, and a standing query that follows them", updates.show),
    ("A replica of what somebody is interested in", replica.show),
    ("A linkset that stays right", linkset.show),
    ("A broker, and a subscription", broker.show),
    ("A pipeline with four views, on Spark", pipeline.show),
)


def run_demo(console: Console | None = None) -> None:
    """Run the demonstration; it works in a temporary folder and leaves nothing behind."""
    out = console or Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="evergraph-demo-") as folder:
        for number, (title, show) in enumerate(CHAPTERS, 1):
            out.print(Rule(title, style="bold"))
            show(out, Path(folder, str(number)))
            out.print()


__all__ = ["CHAPTERS", "run_demo"]
