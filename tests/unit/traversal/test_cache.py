"""Caching, revalidation, going on after an interruption, and keeping a result fresh."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.web import Asked, Reply, Web, serve_web

from evergraph.errors import StoreError
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
