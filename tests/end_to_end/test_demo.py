"""The chapters of the demonstration, without the one on Spark: pipelines have tests of their own."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from evergraph.demo import CHAPTERS, Chapter, pipeline


@pytest.mark.parametrize(
    "show", [pytest.param(show, id=title) for title, show in CHAPTERS if show is not pipeline.show]
)
def test_chapter(show: Chapter, tmp_path: Path) -> None:
    out = StringIO()
    show(Console(file=out, width=200), tmp_path / "chapter")
    assert len(out.getvalue().splitlines()) > 10
