"""Regular expressions of standing queries, of which one could keep everybody waiting for ever."""

import pytest
from tests.server.test_linksets import DEFINITION
from tests.support.brokers import Served, broker, http

from evergraph.errors import UnsupportedQuery
from evergraph.server.patterns import check_pattern

BAD = ("^(a+)+$", "(a|a)*b", "(a*){5,}", "((a+)b?)*", "(x{1,9}y*)+", "a*a*a*a*b", r"(a)\1", "(?:a|b)+", "(a+){30}")
GOOD = (
    "^a+$",
    "[a+]*",
    r"\(a\+\)+",
    "a*b*c*",
    "(ab)+",
    "(a|b)c",
    "a{2,5}",
    "(a{2,3})+",
    "^https?://([a-z.]+)/",
    "",
    ")(",
)


@pytest.mark.parametrize("pattern", BAD)
def test_what_could_take_long(pattern: str) -> None:
    with pytest.raises(UnsupportedQuery, match="very long"):
        check_pattern(pattern)


@pytest.mark.parametrize("pattern", GOOD)
def test_what_cannot(pattern: str) -> None:
    check_pattern(pattern)


def followed(served: Served, condition: str) -> int:
    query = f"SELECT * {{ ?s ?p ?o FILTER ({condition}) }}"
    with http().stream("GET", f"{served.url}/subscribe", params={"query": query}, timeout=20) as stream:
        return stream.status_code


def test_everywhere() -> None:
    evil = '"^(a+)+$"'
    with broker() as served:
        served.update(f"INSERT DATA {{ <urn:s> <urn:p> '{'a' * 40}!' }}")
        assert followed(served, f"REGEX(?o, {evil})") == 400
        assert followed(served, f"EXISTS {{ ?s ?q ?x FILTER (REPLACE(?x, {evil}, '') = ?o) }}") == 400
        assert followed(served, "REGEX(?o, ?o)") == 400
        assert followed(served, 'REGEX(?o, "^a+!$")') == 200
        interest = f"SELECT * {{ ?s ?p ?o FILTER (REGEX(?o, {evil})) }}"
        assert http().put(f"{served.url}/replicas/x", content=interest).status_code == 400
        view = DEFINITION.replace("<urn:year> ?y } }", "<urn:year> ?y FILTER (REGEX(?t, '(a+)+')) } }", 1)
        assert http().put(f"{served.url}/linksets/x", content=view).status_code == 400
        rule = DEFINITION.replace("max = 1", "max = 1\ntransform = [{ replace = '(a+)+', with = '' }]")
        refused = http().put(f"{served.url}/linksets/x", content=rule)
        assert (refused.status_code, "very long" in refused.text) == (400, True), refused.text
        asked = http().get(f"{served.url}/query", params={"query": f"ASK {{ ?s ?p ?o FILTER (REGEX(?o, {evil})) }}"})
        update = f"DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o FILTER (REGEX(?o, {evil})) }}"
        assert served.update(update)["deleted"] == 0
        assert asked.json()["boolean"] is False, "the store takes no longer than the text is"
