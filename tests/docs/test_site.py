"""The documentation as a site: nothing from other hosts, every record listed."""

import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from tools.docs_fences import on_page_markdown

REPOSITORY = Path(__file__).resolve().parents[2]


def test_pages_load_nothing_from_other_hosts(tmp_path: Path) -> None:
    build(load_config(str(REPOSITORY / "mkdocs.yml"), site_dir=str(tmp_path)))
    pages = list(tmp_path.rglob("*.html"))
    assert pages
    loaded = r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(?:https?:)?//[^"]*"|url\(["\']?(?:https?:)?//[^)]*\)'
    for file in [*pages, *tmp_path.rglob("*.css")]:
        assert re.findall(loaded, file.read_text()) == [], file


def test_every_decision_record_is_listed() -> None:
    folder = REPOSITORY / "docs" / "adr"
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text())
    assert listed == sorted(path.name for path in folder.glob("[0-9]*.md")), "docs/adr/README.md lists all records"


@pytest.mark.parametrize(
    ("written", "rendered"),
    [
        ("```python\nx\n```\n", "```python\nx\n```\n"),
        ("```python no-run\nx\n```\n", "```python\nx\n```\n"),
        ('  ```sparql title="a.ru"\n  x\n  ```\n', "  `a.ru`:\n\n  ```sparql\n  x\n  ```\n"),
    ],
)
def test_fences(written: str, rendered: str) -> None:
    assert on_page_markdown(written) == rendered
