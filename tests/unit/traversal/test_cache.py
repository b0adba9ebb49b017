"""Caching, revalidation, going on after an interruption, and keeping a result fresh."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.web import Asked, Reply, Web, serve_web

from evergraph.errors import StoreError, TraversalFailed
from evergraph.traversal import Limits, State, Traversal, traverse
from evergraph.traversal.archive import FILE, Answer, Archive
from evergraph.traversal.oracle import answer


@pytest.fixture
def web() -> Iterator[Web]:
    with serve_web() as served:
        yield served


def start(web: Web, text: str = "SELECT ?x ?v { :start :next* ?x . ?x :value ?v }", **options: Any) -> Traversal:
    options.setdefault("allow", [web.host])
    return traverse(f"PREFIX : <{web.base}> {text}", **options)


def values(traversal: Traversal) -> list[str]:
    return sorted(getattr(row[1], "value", "") for row in traversal.result().rows())


def run(web: Web, **options: Any) -> list[str]:
    with start(web, **options) as traversal:
        for _ in traversal:
            assert traversal.result() == answer(traversal.query, traversal.dataset.documents, traversal.dataset.f)
        return values(traversal)


def test_what_is_fresh_is_not_asked_for(web: Web, tmp_path: Path) -> None:
    fresh = {"Cache-Control": "max-age=600"}
    web.turtle("start", ":start :next :a .", headers=fresh)
    web.redirect("a", "/data/a", headers=fresh)
    web.turtle("data/a", ':a :value "a", [] .', headers=fresh)
    first = run(web, cache=tmp_path)
    assert len(web.paths()) == 3
    assert run(web, cache=tmp_path) == first
    assert len(web.paths()) == 3
    assert run(web, cache=tmp_path / "other") == first
    assert len(web.paths()) == 6


def test_what_is_stale_is_revalidated(web: Web, tmp_path: Path) -> None:
    web.versions("start", ':start :value "one" .', ':start :value "one" .', ':start :value "two" .')
    assert run(web, cache=tmp_path) == ["one"]
    with start(web, cache=tmp_path) as traversal:
        list(traversal)
        assert values(traversal) == ["one"]
        assert [visit.cached for visit in traversal.report()] == [True]
    conditional = [one.headers.get("if-none-match") for one in web.asked if one.path == "/start"]
    assert conditional[0] is None
    assert conditional[1]
    assert run(web, cache=tmp_path) == ["two"]


def test_a_date_revalidates_too(web: Web, tmp_path: Path) -> None:
    date = "Mon, 16 Nov 2026 10:00:00 GMT"

    def handler(asked: Asked) -> Reply:
        headers = {"Content-Type": "text/turtle", "Last-Modified": date, "Cache-Control": "no-cache"}
        if asked.headers.get("if-modified-since") == date:
            return Reply(status=304, headers={"Content-Type": "text/html"})
        return Reply(f'<{web.base}start> <{web.base}value> "one" .'.encode(), headers=headers)

    web.routes["/start"] = handler
    assert run(web, cache=tmp_path) == run(web, cache=tmp_path) == ["one"]
    assert len(web.paths()) == 2


def test_what_must_not_be_stored_is_not(web: Web, tmp_path: Path) -> None:
    web.turtle("start", ':start :value "secret" .', headers={"Cache-Control": "no-store"})
    assert run(web, cache=tmp_path) == ["secret"]
    with closing(Archive(tmp_path)) as archive:
        assert archive.answer(web.iri("start")) is None


def test_an_archive_is_used_by_one_at_a_time(tmp_path: Path) -> None:
    with closing(Archive(tmp_path)), pytest.raises(StoreError, match="in use"):
        Archive(tmp_path)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / FILE).write_bytes(b"this is no database, " * 100)
    with pytest.raises(StoreError, match="damaged"):
        Archive(tmp_path / "x")
    with pytest.raises(StoreError):
        Archive(tmp_path / FILE)


def test_a_damaged_answer_is_no_answer(tmp_path: Path) -> None:
    with closing(Archive(tmp_path)) as archive:
        archive.keep(Answer("http://a/", 200, {"etag": "x"}, b"body", 1.0))
        found = archive.answer("http://a/")
        assert found is not None
        assert (found.body, found.headers) == (b"body", {"etag": "x"})
        archive._database.execute("UPDATE answers SET body = x'00'")
        assert archive.answer("http://a/") is None


def test_an_interrupted_traversal_goes_on(web: Web, tmp_path: Path) -> None:
    """Each address is asked for once over all runs, and the sum of the steps of a run is the result."""
    for number in range(8):
        web.turtle(f"n{number}", f':n{number} :next :n{number + 1}, :n{(number + 3) % 8} ; :value "{number}" .')
    text = "SELECT ?x ?v { :n0 :next* ?x . ?x :value ?v }"
    sequences = []
    for _ in range(20):
        with start(web, text, cache=tmp_path) as traversal:
            total = traversal.result()
            for number, step in enumerate(traversal):
                total = total + step.added - step.removed
                assert total == traversal.result()
                sequences.append(step.sequence)
                if number == 2:
                    traversal.stop()
            if traversal.counts()["queued"] == 0 and traversal.counts()["under way"] == 0:
                break
    assert values(traversal) == [str(number) for number in range(8)]
    asked = [path for path in web.paths() if path != "/n8"]
    assert len(set(asked)) == 8
    assert len(asked) <= 8 + 2 * 8, "at most what was under way is asked for again"
    assert sequences == sorted(sequences)


def test_a_traversal_that_was_killed_goes_on(web: Web, tmp_path: Path) -> None:
    web.turtle("start", ':start :next :a ; :value "start" .')
    web.turtle("a", ':a :value "a" .', delay=0.5)
    with start(web, cache=tmp_path) as traversal:
        for step in traversal:
            if step.documents:
                break  # the iterator is thrown away
    with start(web, cache=tmp_path) as traversal:
        first, *others = list(traversal)
        assert len(first.added) == 1
        assert [step.documents for step in others] == [(web.iri("a"),)]
    assert web.paths().count("/start") == 1


def test_a_pause(web: Web) -> None:
    for number in range(5):
        web.turtle(f"n{number}", f':n{number} :next :n{number + 1} ; :value "{number}" .')
    with start(web, "SELECT ?x ?v { :n0 :next* ?x . ?x :value ?v }") as traversal:
        steps = []
        for step in traversal:
            steps.append(step)
            if len(steps) == 2:
                traversal.pause()
                asked = len(web.paths())
                threading.Timer(0.4, traversal.resume).start()
                paused = time.monotonic()
            elif len(steps) == 3:
                assert time.monotonic() - paused >= 0.35
                assert asked <= 2
        assert values(traversal) == ["0", "1", "2", "3", "4"]


def test_following(web: Web) -> None:
    """Changed documents are deletions and insertions; links that come up are followed; failures delete nothing."""
    web.versions(
        "start",
        ':start :value "one", "both" ; :next :a .',
        ':start :value "two", "both" ; :next :a, :b .',
        headers={"Cache-Control": "max-age=0"},
    )
    count = [0]

    def failing(asked: Asked) -> Reply:
        count[0] += 1
        if count[0] > 1:
            return Reply(status=500)
        return Reply(f'<{web.base}a> <{web.base}value> "a" .'.encode(), headers={"Content-Type": "text/turtle"})

    web.routes["/a"] = failing
    web.turtle("b", ':b :value "b" .', headers={"Cache-Control": "max-age=600"})
    changes = []
    with start(web, follow=True, refresh=0.3, limits=Limits(seconds=8)) as traversal:
        for step in traversal:
            assert traversal.result() == answer(traversal.query, traversal.dataset.documents, traversal.dataset.f)
            changes.append(
                tuple(
                    sorted(getattr(row[1], "value", "") for row in rows.rows()) for rows in (step.added, step.removed)
                )
            )
            if values(traversal) == ["a", "b", "both", "two"] and count[0] > 2:
                traversal.stop()
            elif len(changes) == 5:
                threading.Timer(1.0, traversal.stop).start()
        assert values(traversal) == ["a", "b", "both", "two"]
        failed = next(visit for visit in traversal.report() if visit.url == web.iri("a"))
        assert (failed.state, failed.problem) == (State.FAILED, "HTTP_STATUS")
    assert sorted(map(str, changes)) == sorted(
        map(str, [([], []), (["both", "one"], []), (["a"], []), (["two"], ["one"]), (["b"], [])])
    )
    assert web.paths().count("/b") == 1, "what is fresh is not asked for"


def test_following_a_redirect_that_turns(web: Web) -> None:
    targets = iter(["/old", "/new", "/new", "/new", "/new", "/new", "/new"])
    web.routes["/start"] = lambda asked: Reply(status=303, headers={"Location": next(targets)})
    web.turtle("old", ':start :value "old" .')
    web.turtle("new", ':start :value "new" .')
    with start(web, follow=True, refresh=0.2, limits=Limits(seconds=8)) as traversal:
        for _ in traversal:
            if values(traversal) == ["new"]:
                traversal.stop()
        assert values(traversal) == ["new"]
        assert [document.value for document in traversal.dataset.documents] == [web.iri("new")]


TURTLE = {"Content-Type": "text/turtle", "Cache-Control": "max-age=0"}


def scripted(web: Web, name: str, *replies: Reply | str) -> None:
    """Answer one thing after the other; the last one stays."""
    rest = list(replies)

    def handler(asked: Asked) -> Reply:
        reply = rest.pop(0) if len(rest) > 1 else rest[0]
        if isinstance(reply, str):
            return Reply(f"@prefix : <{web.base}> .\n{reply}".encode(), headers=TURTLE)
        return reply

    web.routes["/" + name] = handler


def courses(web: Web, *wanted: list[str], **options: Any) -> tuple[Traversal, list[list[str]]]:
    """Follow until the values were the wanted ones, one after the other; return what they were, step by step."""
    seen: list[list[str]] = []
    rest = list(wanted)
    with start(web, follow=True, refresh=0.1, limits=Limits(seconds=10), **options) as traversal:
        for _ in traversal:
            assert traversal.result() == answer(traversal.query, traversal.dataset.documents, traversal.dataset.f)
            seen.append(values(traversal))
            if rest and seen[-1] == rest[0]:
                del rest[0]
            if not rest:
                traversal.stop()
    assert not rest, seen
    return traversal, seen


@pytest.mark.parametrize("status", [404, 410])
def test_a_document_that_is_gone_is_a_deletion(web: Web, status: int) -> None:
    """Its quads go, its links do not; another document that says the same still does; it may come back."""
    web.turtle("start", ':start :next :a, :b ; :value "start" . :a :value "both" .', headers=TURTLE)
    scripted(web, "a", ':a :value "a", "both" .', Reply(status=status), ':a :value "new" .')
    web.turtle("b", ':b :value "b" .', headers={"Cache-Control": "max-age=600"})
    states = (["a", "b", "both", "start"], ["b", "both", "start"], ["b", "both", "new", "start"])
    traversal, _ = courses(web, *states)
    assert traversal.counts()["failed"] == 0


def test_a_failure_that_may_pass_deletes_nothing(web: Web) -> None:
    """Whatever is not 'nothing is there': the content stays, and the address is asked again."""
    html = Reply(b"<html>", headers={"Content-Type": "text/html"})
    broken = Reply(b"nonsense", headers=TURTLE)
    failures = [Reply(status=403), html, broken, Reply(status=500), Reply(status=401)]
    scripted(web, "start", ':start :value "old" .', *failures, ':start :value "new" .')
    _, seen = courses(web, ["new"])
    assert seen == [[], ["old"], ["new"]]


def test_what_redirects_to_a_gone_document_is_lost_too(web: Web) -> None:
    """If the document itself is gone, it is for all that lead to it; if only a redirect is, the document stays."""
    scripted(web, "start", ":start :next :a, :b .")
    web.redirect("a", "/data", headers={"Cache-Control": "max-age=600"})
    web.redirect("b", "/data", headers={"Cache-Control": "max-age=600"})
    scripted(web, "data", ':a :value "a" . :b :value "b" .', Reply(status=410))
    traversal, _ = courses(web, ["a", "b"], [])
    assert [document.value for document in traversal.dataset.documents] == [web.iri("start")]
    assert traversal.counts()["failed"] == 2

    web.routes.clear()
    scripted(web, "start", ":start :next :a, :b .")
    scripted(web, "a", Reply(status=303, headers={"Location": "/data"}), Reply(status=404))
    web.redirect("b", "/data")
    scripted(web, "data", ':a :value "a" . :b :value "b" .')
    with start(web, follow=True, refresh=0.1, limits=Limits(seconds=3)) as traversal:
        for _ in traversal:
            if traversal.counts()["failed"]:
                traversal.stop()
        assert values(traversal) == ["a", "b"]
        assert web.iri("a") not in {resource.value for resource in traversal.dataset.f}


def test_a_gone_document_stays_gone_after_an_interruption(web: Web, tmp_path: Path) -> None:
    scripted(web, "start", ':start :next :a ; :value "start" .')
    scripted(web, "a", ':a :value "a" .', Reply(status=404))
    with start(web, follow=True, refresh=0.2, cache=tmp_path) as traversal:
        known = False
        for _ in traversal:
            known = known or values(traversal) == ["a", "start"]
            if known and values(traversal) == ["start"]:
                traversal.stop()
    with start(web, cache=tmp_path) as traversal:
        first = next(iter(traversal))
        assert len(first.added) == 1
    with closing(Archive(tmp_path)) as archive:
        assert archive.answer(web.iri("a")) is None


def test_a_broken_document_leaves_the_one_before_after_an_interruption(web: Web, tmp_path: Path) -> None:
    scripted(web, "start", ':start :next :a ; :value "start" .')
    scripted(web, "a", ':a :value "a" .', Reply(b"nonsense", headers=TURTLE))
    failed = False

    def look(now: Traversal) -> None:
        nonlocal failed
        if any(visit.failures for visit in now.report()):
            failed = True
            now.stop()

    with start(web, follow=True, refresh=0.2, cache=tmp_path, limits=Limits(seconds=10)) as traversal:
        traversal.on_progress = look
        list(traversal)
        assert values(traversal) == ["a", "start"]
    assert failed
    with start(web, cache=tmp_path) as traversal:
        assert len(next(iter(traversal)).added) == 2


def test_following_what_was_never_there_ends(web: Web) -> None:
    with pytest.raises(TraversalFailed, match="404"), start(web, follow=True, refresh=0.1) as traversal:
        list(traversal)
