"""Feeds of changes that clear, of events, and over HTTP: where batches end, and what is left for later."""

import gzip
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.events import WD, event, write_events
from tests.support.published import Published, publish

from evergraph.errors import DataError, SourceUnavailable
from evergraph.sources.feeds import ALL, Feed, Limit, Offset, Settings, open_feed
from evergraph.sources.feeds.http import HttpFeed
from evergraph.sources.feeds.model import ADDED, CLEARED, FORGOTTEN, REMOVED

FOLLOW = Settings(follow=True, settle=3600, poll=0, pause=0)


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Published]:
    with publish(tmp_path / "www") as made:
        yield made


def ends(feed: Feed, limit: Limit = ALL, start: Offset | None = None) -> list[tuple[int, int]]:
    """List where batches end, and whether each clears."""
    found, at = [], start or feed.start()
    while (end := json.loads(json.dumps(feed.latest(at, limit)))) != at:
        found.append((end["sequence"], end["clears"]))
        at = end
    return found


def rows(feed: Feed, start: Offset, end: Offset) -> set[tuple[int, int, str]]:
    pieces = pickle.loads(pickle.dumps(feed.pieces(start, end)))
    return {(sequence, weight, str(quad.object)) for piece in pieces for sequence, weight, quad in piece.rows()}


def fill(folder: Path) -> None:
    """Write five changes, of which the second and the third clear."""
    for name, value in (
        ("000001.added", "a"),
        ("000002.clear", "b"),
        ("000002.added", "c"),
        ("000003.clear", "d"),
        ("000004.removed", "e"),
        ("000005.reinserted", "f"),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.nt").write_text(f"<urn:s> <urn:p> <urn:{value}> .\n")


def test_a_change_that_clears_is_the_first_of_its_batch(tmp_path: Path, published: Published) -> None:
    for folder in (tmp_path / "in", published.folder / "2015/06"):
        fill(folder)
    for place in (tmp_path / "in", published.url):
        feed = open_feed(place, Settings(poll=0))
        assert ends(open_feed(place), ALL) == [(1, 0), (2, 1), (5, 1)]
        assert ends(open_feed(place), Limit(changes=2)) == [(1, 0), (2, 1), (4, 1), (5, 0)]
        at = feed.start()
        found = set()
        while (end := feed.latest(at, ALL)) != at:
            found |= rows(open_feed(place), at, end)
            at = end
        expected = [(1, ADDED, "a"), (2, CLEARED, "b"), (2, ADDED, "c"), (3, CLEARED, "d"), (4, REMOVED, "e")]
        assert found == {(one, weight, f"<urn:{value}>") for one, weight, value in [*expected, (5, ADDED, "f")]}


def test_the_last_that_is_published(tmp_path: Path) -> None:
    fill(tmp_path)
    last = tmp_path / "lastPublishedFile.txt"
    last.write_text("000003\n")
    feed = open_feed(tmp_path)
    assert ends(feed) == [(1, 0), (2, 1), (3, 1)]
    at = feed.latest(feed.start(), ALL)
    last.write_text("000099\n")
    assert ends(feed, start=at) == [(2, 1), (5, 1)]
    end = feed.latest(at, ALL)
    last.write_text("000001\n")
    with pytest.raises(DataError, match=r"fewer changes than have been taken in \(2\)"):
        feed.latest(end, ALL)
    last.write_text("yesterday\n")
    with pytest.raises(DataError, match="is not the place of a changeset"):
        feed.latest(at, ALL)


def test_events_as_a_feed(tmp_path: Path) -> None:
    import_, delete = event("import", "Q1", added=f"<{WD}Q1> <urn:p> <urn:a> ."), event("delete", "Q1")
    diff = event("diff", "Q2", added=f"<{WD}Q2> <urn:p> <urn:b> .", deleted=f"<{WD}Q2> <urn:p> <urn:c> .")
    path = write_events(tmp_path / "e.jsonl", import_, diff, delete, diff, delete)
    packed = tmp_path / "e.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for place in (path, packed):
        feed = open_feed(place)
        assert ends(feed) == [(2, 0), (4, 1), (5, 1)]
        assert ends(feed, Limit(bytes=1)) == [(1, 0), (2, 0), (3, 1), (4, 0), (5, 1)]
        first = feed.latest(feed.start(), ALL)
        second = feed.latest(first, ALL)
        expected = {(3, FORGOTTEN, f"<{WD}Q1>"), (4, ADDED, "<urn:b>"), (4, REMOVED, "<urn:c>")}
        assert rows(open_feed(place), first, second) == expected
        begun = Settings(begun=4)
        assert rows(open_feed(place, begun), first, second) == expected


def test_a_file_of_events_that_grows(tmp_path: Path) -> None:
    path = write_events(tmp_path / "e.jsonl", event("import", "Q1"))
    feed = open_feed(path, FOLLOW)
    at = feed.latest(feed.start(), ALL)
    assert feed.latest(at, ALL) == at
    whole = json.dumps(event("delete", "Q2"))
    piece = {**event("import", "Q3"), "sequence_length": 2}
    with path.open("a") as out:
        out.write(whole[:20])
    assert feed.latest(at, ALL) == at
    with path.open("a") as out:
        out.write(f"{whole[20:]}\n{json.dumps(piece)}\n")
    assert ends(feed, start=at) == [(2, 1)]
    assert ends(open_feed(path, FOLLOW), start=at) == [(2, 1)]
    with pytest.raises(DataError, match=r"e\.jsonl:3: an event of several pieces is not complete"):
        ends(open_feed(path), start=at)
    with path.open("a") as out:
        out.write(json.dumps({**piece, "sequence": 1}) + "\n")
    assert ends(feed, start=at) == [(3, 1)]
    end = feed.latest(at, ALL)
    path.write_text(path.read_text().replace("Q2", "Q9"))
    with pytest.raises(DataError, match="is not what it was when the batch was begun"):
        open_feed(path, Settings(begun=3)).pieces(at, end)
    path.write_text("{}\n")
    with pytest.raises(DataError, match="bytes of it have been read, and now it has 3"):
        open_feed(path).latest(at, ALL)
    path.write_text(json.dumps(event("import", "Q1")) + "\n[]\n")
    with pytest.raises(DataError, match=r"e\.jsonl:2: an event without entity_id"):
        ends(open_feed(path), start=at)


def test_a_server_that_publishes_more(published: Published) -> None:
    published.add("2015/06/000001.added.nt", "a")
    feed = open_feed(published.url, FOLLOW)
    at = feed.latest(feed.start(), ALL)
    assert at["place"] == "2015/06/000001"
    assert feed.latest(at, ALL) == at
    published.add("2015/07/000001.removed.nt", "b")
    assert ends(feed, start=at) == [(2, 0)]
    frozen = open_feed(published.url, FOLLOW)
    frozen.freeze()
    end = frozen.latest(at, ALL)
    published.add("2015/07/000002.removed.nt", "c")
    assert frozen.latest(end, ALL) == end, "it has been read to its end"
    published.fault = lambda path: 503
    with pytest.raises(SourceUnavailable):
        open_feed(published.url, FOLLOW).latest(at, ALL)
    published.fault = lambda path: None
    with pytest.raises(DataError, match="the files of changes 2 to 2 are not those that there were before"):
        open_feed(published.url, FOLLOW).pieces(at, {**end, "place": "2015/06/000009"})


def test_listings_are_read_as_far_as_a_batch_needs(published: Published) -> None:
    for hour in range(5):
        published.add(f"2015/{hour:02}/000001.added.nt.gz", "a")
    feed = open_feed(published.url, FOLLOW)
    assert isinstance(feed, HttpFeed)
    at = feed.latest(feed.start(), Limit(changes=1))
    asked = [path for path in published.asked if path.startswith("/2015/0")]
    assert asked == ["/2015/00/"]
    assert rows(feed, feed.start(), at) == {(1, ADDED, "<urn:a>")}
    published.asked.clear()
    feed.latest(at, Limit(changes=1))
    assert published.asked == ["/2015/01/"], "the look goes on where it was"


def test_what_is_published_late(tmp_path: Path, published: Published) -> None:
    """A batch that was planned must not begin to clear, and one that was begun must be what it was."""
    for folder in (tmp_path / "in", published.folder):
        folder.mkdir(exist_ok=True)
        (folder / "000001.added.nt").write_text("<urn:s> <urn:p> <urn:a> .\n")
    for place, folder in ((str(tmp_path / "in"), tmp_path / "in"), (published.url, published.folder)):
        feed = open_feed(place)
        end = feed.latest(feed.start(), ALL)
        (folder / "000001.clear.nt").write_text("<urn:s> <urn:p> <urn:a> .\n")
        with pytest.raises(DataError, match=r"and did not when the batch was planned|are not those that there were"):
            open_feed(place).pieces(feed.start(), end)
        (folder / "000001.clear.nt").rename(folder / "000001.removed.nt")
        assert len(open_feed(place).pieces(feed.start(), end)) == len(open_feed(place).pieces(feed.start(), end))
        with pytest.raises(DataError, match=r"not what they were when the batch was begun|not those that there were"):
            open_feed(place, Settings(begun=1)).pieces(feed.start(), end)


def test_what_is_before_something_bad_is_taken(tmp_path: Path, published: Published) -> None:
    path = write_events(tmp_path / "e.jsonl", event("import", "Q1"), event("import", "Q2"))
    with path.open("a") as out:
        out.write("{")
    feed = open_feed(path)
    end = feed.latest(feed.start(), ALL)
    assert end["sequence"] == 2
    with pytest.raises(DataError, match=r"e\.jsonl:3: not JSON"):
        feed.latest(end, ALL)
    published.add("2015/06/000001.added.nt", "a")
    published.add("2015/07/000001.added.nt", "b")
    published.fault = lambda path: 503 if "/07" in path else None
    remote, frozen = open_feed(published.url, FOLLOW), open_feed(published.url, Settings(pause=0))
    frozen.freeze()
    for reader in (remote, frozen):
        end = reader.latest(reader.start(), ALL)
        assert end["sequence"] == 1
        with pytest.raises(SourceUnavailable):
            reader.latest(end, ALL)
    published.fault = lambda path: None
    for reader in (remote, frozen):
        assert ends(reader, start=end) == [(2, 0)]


@pytest.mark.parametrize("folder", ["2015-06", "a b", "x/2015-06-01"])
def test_folders_of_any_name_on_a_server(published: Published, folder: str) -> None:
    for number in (1, 2):
        published.add(f"{folder}/{number:06}.added.nt", "a")
    assert ends(open_feed(published.url, FOLLOW), Limit(changes=1)) == [(1, 0), (2, 0)]
    assert published.pending(f"{folder}/000001") == [f"{folder}/000002"]


@pytest.mark.parametrize("wrong", [{"sequence": None}, {"sequence_length": "2"}, {"entity_id": "Q 1"}])
def test_events_with_wrong_fields(tmp_path: Path, wrong: dict[str, object]) -> None:
    path = write_events(tmp_path / "e.jsonl", event("delete", "Q1") | wrong)
    with pytest.raises(DataError, match=r"e\.jsonl:1: (sequence and|'Q 1' cannot be)"):
        ends(open_feed(path))
