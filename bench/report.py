"""What every benchmark shares: timing, a table for people, a JSON file for machines."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


@dataclass(slots=True)
class Report:
    """The rows of one benchmark, with what is needed to read them later."""

    name: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]] = field(default_factory=list)
    packages: tuple[str, ...] = ("evergraph", "pyoxigraph")

    def add(self, *values: object) -> None:
        """Add a row."""
        assert len(values) == len(self.columns)
        self.rows.append(values)

    def show(self) -> None:
        """Print the table and write ``bench/results/NAME.json``."""
        table = Table(*self.columns, title=self.name)
        for row in self.rows:
            table.add_row(*(f"{value:,.2f}" if isinstance(value, float) else str(value) for value in row))
        Console().print(table)
        RESULTS.mkdir(exist_ok=True)
        machine = {
            "python": platform.python_version(),
            "system": platform.system(),
            "cpus": os.cpu_count(),
            **{name: version(name) for name in self.packages},
        }
        content = {"machine": machine, **asdict(self)}
        (RESULTS / f"{self.name}.json").write_text(json.dumps(content, indent=1) + "\n")


def median_ms(actions: Iterable[Callable[[], object]]) -> float:
    """Run each action once and return the median time in milliseconds."""
    times = []
    for action in actions:
        begin = time.perf_counter()
        action()
        times.append(1000 * (time.perf_counter() - begin))
    return statistics.median(times)
