"""Traversals over a hostile web: the query goes on, and the report says what was wrong."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import RdfFormat
from tests.support.web import Asked, Reply, Web, serve_web, zipped

from evergraph.errors import TraversalFailed, UsageError
from evergraph.traversal import Limits, Manners, State, Traversal, Visit, traverse
from evergraph.traversal.oracle import answer

TURTLE = {"Content-Type": "text/turtle"}
QUICK = Manners(timeout=1.0, retries=1, longest_wait=2.0)


@pytest.fixture
def web() -> Iterator[Web]:
    with serve_web() as served:
        served.turtle("start", ":start :next :a .")
        yield served


def run(web: Web, **options: Any) -> tuple[Traversal, list[str]]:
    """Follow ``:next`` from ``:start``, and collect the values that nodes have."""
    text = f"PREFIX : <{web.base}> SELECT ?x ?v {{ :start :next* ?x . ?x :value ?v }}"
    options.setdefault("allow", [web.host])
    options.setdefault("manners", QUICK)
    with traverse(text, **options) as traversal:
        for _ in traversal:
            assert traversal.result() == answer(traversal.query, traversal.dataset.documents, traversal.dataset.f)
        return traversal, sorted(getattr(row[1], "value", "") for row in traversal.result().rows())


def visit(web: Web, traversal: Traversal, name: str) -> Visit:
    return next(one for one in traversal.report() if one.url == web.iri(name))


BROKEN = {
    "not RDF": (Reply(b"<html></html>", headers={"Content-Type": "text/html"}), "BROKEN_DOCUMENT"),
    "lies about its type": (Reply(b"<html><p>Hello</html>", headers=TURTLE), "BROKEN_DOCUMENT"),
    "no type": (Reply(b"<urn:a> <urn:b> <urn:c> ."), "BROKEN_DOCUMENT"),
    "plain text": (Reply(b"<urn:a> <urn:b> <urn:c> .", headers={"Content-Type": "text/plain"}), "BROKEN_DOCUMENT"),
    "cut off in the text": (Reply(b":a :value ", headers=TURTLE), "BROKEN_DOCUMENT"),
    "cut off on the wire": (Reply(b"<urn:a> <urn:b> <urn:c> .", headers=TURTLE, truncate=True), "CONNECTION"),
    "not found": (Reply(status=404), "HTTP_STATUS"),
    "gone": (Reply(status=410), "HTTP_STATUS"),
    "server error": (Reply(status=500), "HTTP_STATUS"),
    "no content": (Reply(status=204), "HTTP_STATUS"),
    "slow": (Reply(b"", headers=TURTLE, delay=3), "TIMEOUT"),
    "drop by drop": (Reply(b"<urn:a> <urn:b> <urn:c> ." * 9, headers=TURTLE, drip=0.05), "TIMEOUT"),
    "endless": (Reply(b"<urn:a> <urn:b> <urn:c> .\n", headers=TURTLE, endless=True), "TOO_LARGE"),
    "huge": (Reply(b"#" * 200_000, headers=TURTLE), "TOO_LARGE"),
    "a bomb": (Reply(zipped(b"#" * 50_000_000), headers=TURTLE | {"Content-Encoding": "gzip"}), "TOO_LARGE"),
    "cut off while compressed": (
        Reply(zipped(b"#" * 5_000)[:-9], headers=TURTLE | {"Content-Encoding": "gzip"}),
        "BROKEN_DOCUMENT",
    ),
    "compressed otherwise": (Reply(b"x", headers=TURTLE | {"Content-Encoding": "br"}), "BROKEN_DOCUMENT"),
    "not compressed": (Reply(b"plain", headers=TURTLE | {"Content-Encoding": "gzip"}), "BROKEN_DOCUMENT"),
    "an unknown encoding": (Reply(b"\xff", headers={"Content-Type": "text/turtle; charset=x-none"}), "BROKEN_DOCUMENT"),
    "a redirect to nowhere": (Reply(status=303), "BAD_REDIRECT"),
    "a redirect to a file": (Reply(status=303, headers={"Location": "file:///etc/passwd"}), "BAD_REDIRECT"),
    "a redirect to a script": (Reply(status=303, headers={"Location": "javascript:1"}), "BAD_REDIRECT"),
    "a redirect to half an address": (Reply(status=303, headers={"Location": "http://[bad"}), "BAD_REDIRECT"),
    "a redirect to itself": (Reply(status=302, headers={"Location": "/a"}), "REDIRECT_LOOP"),
    "a redirect inside": (Reply(status=303, headers={"Location": "http://localhost:9/x"}), "REFUSED_ADDRESS"),
    "a redirect to the cloud": (Reply(status=303, headers={"Location": "http://169.254.169.254/"}), "REFUSED_ADDRESS"),
    "waits too long": (Reply(status=503, headers={"Retry-After": "3600"}), "RETRY_AFTER"),
    "a remote context": (
        Reply(b'{"@context": "http://127.0.0.1:9/c", "p": 1}', headers={"Content-Type": "application/ld+json"}),
        "BROKEN_DOCUMENT",
    ),
    "many laughs": (
        Reply(
            b'<!DOCTYPE r [<!ENTITY a "'
            + b"x" * 1000
            + b'">'
            + b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 20) for n in range(8))
            + b']><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><r:Description>'
            + b"<p xmlns='urn:'>&i;</p></r:Description></r:RDF>",
            headers={"Content-Type": "application/rdf+xml"},
        ),
        "BROKEN_DOCUMENT",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_query_goes_on(web: Web, name: str) -> None:
    reply, problem = BROKEN[name]
    web.turtle("start", ':start :next :a, :b . :start :value "start" .')
    web.reply("a", reply)
    web.turtle("b", ':b :value "b" .')
    traversal, values = run(web, limits=Limits(document_bytes=100_000))
    assert values == ["b", "start"]
    failed = visit(web, traversal, "a")
    assert (failed.state, failed.problem) == (State.FAILED, problem), failed.reason
    assert failed.reason


def test_redirects_in_a_circle_end(web: Web) -> None:
    web.redirect("a", "/b")
    web.redirect("b", "/c")
    web.redirect("c", "/b")
    traversal, _ = run(web)
    assert visit(web, traversal, "a").problem == "REDIRECT_LOOP"


def test_redirects_without_end_end(web: Web) -> None:
    for number in range(30):
        web.redirect(f"r{number}", f"/r{number + 1}")
    web.turtle("start", ":start :next :r0 .")
    traversal, _ = run(web)
    assert visit(web, traversal, "r0").problem == "REDIRECT_LOOP"


def test_a_web_without_end_ends(web: Web) -> None:
    """A server that makes up a new document behind every link: the limits end it."""

    def more(asked: Asked) -> Reply:
        number = int(asked.path.removeprefix("/n"))
        text = f"<{web.base}n{number}> <{web.base}next> <{web.base}n{number + 1}> ."
        return Reply(text.encode(), headers=TURTLE)

    web.routes |= {f"/n{number}": more for number in range(100)}
    web.turtle("start", ":start :next :n0 .")
    traversal, _ = run(web, limits=Limits(documents=7))
    assert len(web.paths()) == 7
    left = [one for one in traversal.report() if one.state is State.SKIPPED]
    assert [one.reason for one in left] == ["the limit of 7 documents"]
    web.asked.clear()
    traversal, _ = run(web, limits=Limits(depth=3))
    assert web.paths() == ["/start", "/n0", "/n1", "/n2"]
    assert [one.problem for one in traversal.report() if one.state is State.SKIPPED] == ["DEPTH"]
    web.asked.clear()
    run(web, limits=Limits(per_host=5))
    assert len(web.paths()) == 5
    traversal, _ = run(web, limits=Limits(known=3))
    assert (len(traversal.report()), traversal.unlisted) == (3, 1)
    traversal, _ = run(web, limits=Limits(bytes=300))
    assert "300 bytes" in " ".join(one.reason for one in traversal.report())
    assert {one.state for one in traversal.report()} == {State.FETCHED, State.SKIPPED}
    slow = Manners(delay=0.2)
    traversal, _ = run(web, limits=Limits(seconds=1.0), manners=slow)
    assert traversal.counts()["fetched"] <= 6
    assert "1 seconds" in " ".join(one.reason for one in traversal.report())


@pytest.mark.parametrize(
    "syntax",
    [
        RdfFormat.TURTLE,
        RdfFormat.N_TRIPLES,
        RdfFormat.N_QUADS,
        RdfFormat.TRIG,
        RdfFormat.RDF_XML,
        RdfFormat.JSON_LD,
        RdfFormat.N3,
        None,
    ],
    ids=str,
)
def test_all_syntaxes(web: Web, syntax: RdfFormat | None) -> None:
    web.negotiated("a", ':a :value "a", "ä", [ :value "inner" ] ; :next [ :value "blank" ] .', only=syntax)
    _, values = run(web)
    assert len(values) == 4
    accepted = web.asked[-1].headers["accept"]
    assert all(
        one in accepted for one in ("text/turtle", "application/ld+json", "application/rdf+xml", "application/trig")
    )


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects(web: Web, status: int) -> None:
    web.redirect("a", "/data/a?x=1#there", status)
    web.turtle("data/a", ':a :value "a" .')
    traversal, values = run(web)
    assert values == ["a"]
    found = visit(web, traversal, "a")
    assert (found.document, found.via) == (web.iri("data/a?x=1"), (web.iri("a"),))


LINKS = {
    '</data/a>; rel="alternate"; type="text/turtle"': True,
    '</style.css>; rel=stylesheet, <data/a>;type=text/turtle;rel="nofollow Alternate"': True,
    '</data/a>; rel="alternate"; type="text/html"': False,
    '</data/a>; rel="describedby"; type="text/turtle"': False,
    "</data/a": False,
}


@pytest.mark.parametrize("link", LINKS)
def test_pages_that_say_where_their_rdf_is(web: Web, link: str) -> None:
    web.reply("a", Reply(b"<html></html>", headers={"Content-Type": "text/html", "Link": link}))
    web.turtle("data/a", ':a :value "a" .')
    traversal, values = run(web)
    assert values == (["a"] if LINKS[link] else [])
    assert visit(web, traversal, "a").document == (web.iri("data/a") if LINKS[link] else None)


def test_killed_and_gone_on_with(web: Web, tmp_path: Path) -> None:
    """A run that was killed has lost nothing that it printed, and the next one asks for none of it again."""
    for number in range(12):
        web.turtle(f"n{number}", f':n{number} :next :n{number + 1} ; :value "{number}" .', delay=0.02)
    text = f"PREFIX : <{web.base}> SELECT ?x ?v {{ :n0 :next* ?x . ?x :value ?v }}"
    (tmp_path / "query.rq").write_text(text)
    command = [sys.executable, "-m", "evergraph", "traverse", "query.rq", "--allow", web.host, "--cache", "cache"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    for _ in range(6):
        process.stdout.readline()
    process.kill()
    process.communicate()
    with traverse(text, allow=[web.host], cache=tmp_path / "cache") as traversal:
        first, *others = list(traversal)
    assert len(first.added) >= 5
    assert [step.sequence for step in others] == list(range(first.sequence + 1, 13))
    assert len(traversal.result()) == 12
    assert len(web.paths()) <= 13 + 1, "at most the one that was under way is asked for again"


def test_iris_with_the_same_address_share_a_document(web: Web) -> None:
    web.turtle("start", ":start :next <doc#a>, <doc#b>, <other> .")
    web.turtle("doc", '<doc#a> :value "a" . <doc#b> :value "b" .')
    web.redirect("other", "/doc")
    traversal, values = run(web)
    assert values == ["a", "b"]
    assert sorted(web.paths()) == ["/doc", "/other", "/start"]
    assert len(traversal.dataset.f) == 4
    assert len(traversal.dataset.documents) == 2


@pytest.mark.parametrize("name", ["x.ttl", "x.nt"])
def test_endings_tell_what_servers_do_not(web: Web, name: str) -> None:
    web.turtle("start", f":start :next <{name}> .")
    text = f'<{web.base}{name}> <{web.base}value> "x" .'
    web.reply(name, Reply(text.encode(), headers={"Content-Type": "application/octet-stream"}))
    assert run(web)[1] == ["x"]


def test_robots(web: Web) -> None:
    web.reply("robots.txt", Reply(b"User-agent: *\nDisallow: /private\nAllow: /private/open\n"))
    web.turtle("start", ":start :next <private/a>, <private/open> .")
    web.turtle("private/a", '<private/a> :value "secret" .')
    web.turtle("private/open", ':start :value "open" .')
    traversal, values = run(web)
    assert values == ["open"]
    assert visit(web, traversal, "private/a").problem == "ROBOTS"
    assert "/private/a" not in web.paths()
    assert [one.path for one in web.asked].count("/robots.txt") == 1
    traversal, values = run(web, manners=Manners(robots=False))
    assert "/private/a" in web.paths()


def test_a_host_that_cannot_tell_its_rules_is_left_alone(web: Web) -> None:
    web.reply("robots.txt", Reply(status=500))
    with pytest.raises(TraversalFailed, match=r"robots\.txt"):
        run(web)
    assert web.paths() == []


def test_retry_after(web: Web) -> None:
    """While a host wants silence, nobody asks it anything."""
    times: list[float] = []

    def busy(asked: Asked) -> Reply:
        times.append(asked.at)
        if len(times) == 1:
            return Reply(status=429, headers={"Retry-After": "1"})
        return Reply(f'<{web.base}a> <{web.base}value> "a" .'.encode(), headers=TURTLE)

    web.routes["/a"] = busy
    _, values = run(web)
    assert values == ["a"]
    assert times[1] - times[0] >= 0.95


def test_few_requests_at_a_time(web: Web) -> None:
    names = [f"n{number}" for number in range(12)]
    web.turtle("start", f":start :next {', '.join(':' + name for name in names)} .")
    for name in names:
        web.turtle(name, f':{name} :value "{name}" .', delay=0.05)
    _, values = run(web, manners=Manners(per_host=3))
    assert values == sorted(names)
    assert web.busiest <= 3
    web.asked.clear()
    begin = time.monotonic()
    run(web, manners=Manners(delay=0.1), limits=Limits(documents=5))
    assert time.monotonic() - begin >= 0.4  # five documents and robots.txt: five pauses
    starts = [one.at for one in web.asked]
    assert starts[-1] - starts[0] >= 0.35, "a busy machine may deliver a request late, but not all of them early"


def test_a_crawl_delay_is_kept(web: Web) -> None:
    web.reply("robots.txt", Reply(b"User-agent: evergraph\nCrawl-delay: 0.3\n"))
    web.turtle("a", ':a :value "a" .')
    begin = time.monotonic()
    run(web)
    assert time.monotonic() - begin >= 0.3


def test_private_addresses_are_refused(web: Web) -> None:
    with pytest.raises(TraversalFailed, match="not public") as failure:
        run(web, allow=[])
    assert "--allow" in str(failure.value)
    assert web.asked == []
    with pytest.raises(TraversalFailed):
        run(web, allow=["127.0.0.1:1"])  # another port of the same host
    assert web.asked == []
    assert run(web, allow=["127.0.0.1"])[0].counts()["fetched"] == 1


def test_seeds_must_be_addresses(web: Web) -> None:
    with pytest.raises(UsageError, match="urn:x"):
        traverse("SELECT * { ?s ?p ?o }", ["urn:x"])
    with pytest.raises(UsageError, match="no IRI to start from"):
        traverse("SELECT * { ?s a <http://example.org/C> }")
    with pytest.raises(UsageError, match="no strategy"):
        traverse("SELECT * { ?s ?p ?o }", ["http://example.org/"], strategy="some")
