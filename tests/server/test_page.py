"""The page of the broker, in a real browser: query, update, and queries that are followed live."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.brokers import Served, broker, broker_process
from tests.support.browser import Page, browser, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "a browser is there")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as one:
        yield one


def rows(page: Page, place: str) -> list[str]:
    found: list[str] = page.run(f"[...document.querySelectorAll('{place} td')].map(one => one.textContent)")
    return found


def test_update_query_and_follow(page: Page) -> None:
    with broker() as served:
        page.problems.clear()
        page.open(served.url)
        page.wait("document.getElementById('state').innerText.includes('change 0')")
        page.write("#query", "SELECT ?who { <urn:ada> <urn:knows> ?who }")
        page.click("#follow")
        page.wait("document.querySelector('#followed .quiet').innerText.includes('0 rows')")
        page.click("#send")
        page.wait("document.getElementById('changed').innerText.includes('1 inserted')")
        assert "+ <urn:ada> <urn:knows> <urn:bea>" in page.text("#changed")
        page.wait("document.querySelectorAll('#followed td').length === 1")
        assert rows(page, "#followed") == ["<urn:bea>"]
        served.update("DELETE WHERE { ?s ?p ?o } ; INSERT DATA { <urn:ada> <urn:knows> '<b>bold</b>' }")
        page.wait("document.querySelector('#followed td')?.innerText.includes('bold')")
        assert rows(page, "#followed") == ['"<b>bold</b>"']
        assert page.run("document.querySelectorAll('#followed td b').length") == 0, "data are text, never HTML"
        assert "+1 −1" in page.text("#followed")
        page.write("#query", "SELECT ?s ?p ?o { ?s ?p ?o }")
        page.press_enter()
        page.wait("document.getElementById('count').innerText === '1 rows'")
        assert rows(page, "#result") == ["<urn:ada>", "<urn:knows>", '"<b>bold</b>"']
        page.click("#followed button")
        page.wait("document.getElementById('followed').childElementCount === 0")
        assert not page.problems


def test_other_forms_and_errors(page: Page) -> None:
    with broker() as served:
        served.update("INSERT DATA { <urn:a> <urn:p> 1 }")
        page.open(served.url)
        page.write("#query", "ASK { ?s ?p 1 }")
        page.click("#ask")
        page.wait("document.getElementById('text').innerText === 'true'")
        page.write("#query", "CONSTRUCT WHERE { ?s ?p ?o }")
        page.click("#ask")
        page.wait("document.getElementById('text').innerText.includes('<urn:p>')")
        page.write("#query", "SELECT nonsense")
        page.click("#ask")
        page.wait("document.getElementById('problem').innerText.includes('too early')")
        page.click("#follow")
        page.wait("document.querySelector('#followed .error')?.innerText.includes('expected')")
        page.write("#update", "nonsense")
        page.click("#send")
        page.wait("document.getElementById('changed').className === 'error'")


def test_a_restart(page: Page, tmp_path: Path) -> None:
    """A followed query goes on by itself when the broker is back."""

    def shows(value: int) -> str:
        return f"document.querySelector('#followed table')?.innerText.includes('{value}')"

    with broker_process(tmp_path / "db") as served:
        served.update("INSERT DATA { <urn:a> <urn:p> 41 }")
        page.open(served.url)
        page.write("#query", "SELECT ?o { <urn:a> <urn:p> ?o }")
        page.click("#follow")
        page.wait(shows(41))
        port = _port(served)
        served.kill()
        page.wait("document.getElementById('followed').innerText.includes('trying again')")
    with broker_process(tmp_path / "db", "--port", port) as served:
        served.update("INSERT DATA { <urn:a> <urn:p> 42 }")
        page.wait(f"{shows(41)} && {shows(42)}")


def _port(served: Served) -> str:
    return served.url.rsplit(":", 1)[1]
