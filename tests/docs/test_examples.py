"""Every example in the documentation runs and prints what it shows."""

from pathlib import Path

import pytest
from tests.support.doc_examples import run_page

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted(REPOSITORY.glob("docs/**/*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(REPOSITORY)) for page in PAGES])
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path)
