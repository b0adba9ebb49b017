"""Feeds that set damaged changes aside: which these are, what an offset says, and what a mended file changes."""

import gzip
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.events import event, write_events
from tests.support.published import Published, publish

from evergraph.errors import DataError, SourceUnavailable, SyntaxProblem
from evergraph.replication.reading import Reading
from evergraph.sources.feeds import ALL, Feed, Limit, Offset, Settings, open_feed, set_aside

SKIP = Settings(skip_damaged=True, poll=0, pause=0)
TRIPLE = "<urn:s> <urn:p> <urn:{}> .\n"


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Published]:
    with publish(tmp_path / "www") as made:
        yield made


@pytest.fixture(params=["folder", "server"])
def source(request: pytest.FixtureRequest, tmp_path: Path, published: Published) -> tuple[str, Path]:
    """A place of changesets, and the folder that its files are in."""
    fill(published.folder)
    if request.param == "server":
        return published.url, published.folder
    return str(published.folder), published.folder


def fill(folder: Path) -> None:
    """Write six changes: the second is cut off, of the third one half, and the fourth cannot clear."""
    for name in ("1.added", "2.removed", "3.removed", "4.added", "5.added", "6.reinserted"):
        (folder / f"00000{name}.nt").write_text(TRIPLE.format(name))
    (folder / "000002.added.nt.gz").write_bytes(gzip.compress(TRIPLE.format("x").encode() * 99)[:-9])
    (folder / "000003.added.nt").write_text(f"{TRIPLE.format('x')}{TRIPLE.format('y')}oh\n")
    (folder / "000004.clear.nt").write_text("oh\n")


def batches(feed: Feed, limit: Limit = ALL) -> list[tuple[Offset, Offset]]:
    """Plan all batches; offsets go through JSON, as in Spark."""
    found, at = [], feed.start()
    while (end := json.loads(json.dumps(feed.latest(at, limit)))) != at:
        assert all(isinstance(value, int | str) for value in end.values())
        found.append((at, end))
        at = end
    return found


def read(feed: Feed, start: Offset, end: Offset) -> set[tuple[int, str]]:
    pieces = pickle.loads(pickle.dumps(feed.pieces(start, end)))
    return {(sequence, quad.object.value) for piece in pieces for sequence, _, quad in piece.rows()}


def told(place: str) -> list[str]:
    """List what the local engine says about the same source."""
    found: list[str] = []
    for _ in Reading(place, skip_damaged=True, report=found.append, pause=0).changes(0, None, lambda: None):
        pass
    return found


@pytest.mark.parametrize("limit", [ALL, Limit(changes=1), Limit(changes=3)])
def test_what_is_set_aside_and_what_is_left(source: tuple[str, Path], limit: Limit) -> None:
    place, _ = source
    plan = batches(open_feed(place, SKIP), limit)
    damaged = {number: problem for _, end in plan for number, problem in set_aside(end).items()}
    assert [f"change {number} is set aside: {problem}" for number, problem in damaged.items()] == told(place)
    assert list(damaged) == [2, 3, 4]
    assert plan[-1][1]["sequence"] == 6
    assert not any(end["clears"] for _, end in plan), "what is set aside clears nothing"
    found = set().union(*(read(open_feed(place), *batch) for batch in plan))
    assert found == {(1, "urn:1.added"), (5, "urn:5.added"), (6, "urn:6.reinserted")}


def test_a_mended_file_changes_no_batch_that_was_planned(source: tuple[str, Path]) -> None:
    place, folder = source
    [first, second] = batches(open_feed(place, SKIP))
    begun = Settings(begun=int(first[1]["sequence"]))
    before = read(open_feed(place, begun), *first)
    (folder / "000003.added.nt").write_text(TRIPLE.format("mended"))
    for settings in (Settings(), SKIP, begun):
        assert read(open_feed(place, settings), *first) == before
    assert read(open_feed(place), *second) == {(5, "urn:5.added"), (6, "urn:6.reinserted")}
    (folder / "000003.added.nt").unlink()
    (folder / "000003.removed.nt").unlink()
    with pytest.raises(DataError, match=r"files came late or are gone|are not those that there were before"):
        open_feed(place).pieces(*first)


def test_without_the_option_damage_is_told_when_it_is_read(source: tuple[str, Path]) -> None:
    place, _ = source
    feed = open_feed(place, Settings(pause=0))
    end = feed.latest(feed.start(), Limit(changes=2))
    assert "damaged" not in end
    with pytest.raises(DataError, match=r"000002\.added\.nt\.gz: damaged gzip file"):
        read(feed, feed.start(), end)
    again = feed.latest(end, Limit(changes=1))
    with pytest.raises(SyntaxProblem, match=r"000003\.added\.nt:3"):
        read(feed, end, again)


def test_a_file_that_arrives_in_parts_is_not_damaged(tmp_path: Path) -> None:
    fill(tmp_path)
    follow = Settings(follow=True, settle=3600, skip_damaged=True)
    feed = open_feed(tmp_path, follow)
    assert [end["sequence"] for _, end in batches(feed)] == [1], "the second may still be on its way"
    settled = open_feed(tmp_path, Settings(follow=True, settle=0, skip_damaged=True))
    assert [end["sequence"] for _, end in batches(settled)] == [3, 6]


def test_a_server_that_does_not_answer_has_no_damaged_files(published: Published) -> None:
    for number in (1, 2):
        published.add(f"00000{number}.added.nt", f"v{number}")
    published.fault = lambda path: 503 if "000002" in path else None
    feed = open_feed(published.url, SKIP)
    end = feed.latest(feed.start(), ALL)
    assert end["sequence"] == 1
    with pytest.raises(SourceUnavailable):
        feed.latest(end, ALL)
    published.fault = lambda path: None
    again = feed.latest(end, ALL)
    assert (again["sequence"], set_aside(again)) == (2, {})
    assert read(feed, end, again) == {(2, "urn:v2")}


def test_only_changesets_are_set_aside(tmp_path: Path) -> None:
    """Events, patches and versions depend on what is before them: damage stops them, as on the local engine."""
    events = write_events(tmp_path / "e.jsonl", event("import", "Q1"))
    with events.open("a") as out:
        out.write("{\n")
    (tmp_path / "p.rdfp").write_text("TX .\nA <urn:a> <urn:b> <urn:c> .\nTC .\nTX .\noh\n")
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions/1.nt").write_text("oh\n")
    for place in (events, tmp_path / "p.rdfp", tmp_path / "versions"):
        with pytest.raises((DataError, SyntaxProblem)):
            list(Reading(str(place), skip_damaged=True).changes(0, None, lambda: None))
        feed = open_feed(place, SKIP)
        with pytest.raises((DataError, SyntaxProblem)):
            for batch in batches(feed):
                read(feed, *batch)
