"""robots.txt, with the examples of RFC 9309."""

import time

import pytest

from evergraph.traversal.robots import Robots, parse_robots

RFC = """
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


def allows(robots: Robots, path: str) -> bool:
    return robots.allows("http://example.com" + path)


@pytest.mark.parametrize(
    ("token", "path", "allowed"),
    [
        ("evergraph", "/a.gif", False),
        ("evergraph", "/a.gif?x", True),
        ("evergraph", "/example/x", False),
        ("evergraph", "/publications/", True),
        ("evergraph", "/", True),
        ("foobot", "/", False),
        ("foobot", "/robots.txt", True),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/page2.html", False),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("bazbot", "/example/", True),
        ("quxbot", "/example/", True),
    ],
)
def test_the_example_of_the_rfc(token: str, path: str, allowed: bool) -> None:
    assert allows(parse_robots(RFC, token), path) is allowed


def test_the_longest_rule_counts() -> None:
    robots = parse_robots("User-agent: *\nAllow: /a/b\nDisallow: /a\nDisallow: /a/b/c\nAllow: /same\nDisallow: /same")
    assert [allows(robots, path) for path in ("/a", "/a/b", "/a/b/c", "/same", "/other")] == [
        *(False, True, False, True, True)
    ]


def test_characters_have_one_meaning() -> None:
    robots = parse_robots("User-agent: *\nDisallow: /caf%C3%A9\nDisallow: /ä\nDisallow: /x%2Fy")
    assert not allows(robots, "/café")
    assert not allows(robots, "/%C3%A4")
    assert allows(robots, "/x/y")


def test_groups_of_one_agent_are_one() -> None:
    robots = parse_robots(
        "User-agent: Evergraph/1.0\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n"
        "User-agent: evergraph\nDisallow: /b # here\nCrawl-delay: 2"
    )
    assert [allows(robots, path) for path in ("/a", "/b", "/c")] == [False, False, True]
    assert robots.delay == 2


@pytest.mark.parametrize("text", ["", "nonsense", "Disallow: /", "User-agent: *\nDisallow:", "\ufeff\x00"])
def test_no_rules(text: str) -> None:
    assert allows(parse_robots(text), "/")


def test_no_rule_takes_long() -> None:
    robots = parse_robots("User-agent: *\nDisallow: /" + "*a" * 12 + "b$\nDisallow: /" + "*" * 500 + "x$")
    begin = time.monotonic()
    robots.allows("http://example.com/" + "a" * 200)
    assert time.monotonic() - begin < 1
