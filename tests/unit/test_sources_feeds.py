"""Feeds: offsets, limits, what has arrived, what comes late, what a batch that is read again must be."""

import gzip
import json
import os
import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evergraph.delta import Delta, Request
from evergraph.errors import DataError, SyntaxProblem
from evergraph.patch import transaction
from evergraph.sources import open_source, write_changeset
from evergraph.sources.feeds import ALL, Feed, Limit, Offset, Settings, open_feed
from evergraph.terms import Literal, NamedNode, Quad

FOLLOW = Settings(follow=True, settle=3600)
SETTLED = Settings(follow=True, settle=0)


def quad(number: int) -> Quad:
    return Quad(NamedNode(f"urn:s{number}"), NamedNode("urn:p"), Literal(f"é {number}"))


def change(number: int) -> Delta:
    return Delta(inserted=frozenset({quad(number), quad(number + 1)}), deleted=frozenset({quad(number - 1)}))


def write_changesets(root: Path, numbers: range) -> None:
    for number in numbers:
        write_changeset(root / f"{number // 4:02}", number, change(number))


def write_patches(root: Path, numbers: range) -> None:
    root.mkdir(exist_ok=True)
    for number in numbers:
        with (root / f"{number // 4:02}.rdfp").open("ab") as out:
            out.write(transaction(change(number)))


def write_versions(root: Path, numbers: range) -> None:
    root.mkdir(exist_ok=True)
    for number in numbers:
        (root / f"{number:03}.nt").write_text("".join(f"{quad(number + more)} .\n" for more in range(3)))


KINDS = pytest.mark.parametrize("write", [write_changesets, write_patches, write_versions])
Write = Callable[[Path, range], None]


def batches(feed: Feed, limit: Limit, start: Offset | None = None) -> Iterator[tuple[Offset, Offset]]:
    at = start or feed.start()
    while (end := feed.latest(at, limit)) != at:
        yield at, end
        at = end


def requests(feed: Feed, start: Offset, end: Offset) -> dict[int, Request]:
    """What a batch asks for, change by change; pieces go through pickle, and offsets through JSON, as in Spark."""
    start, end = json.loads(json.dumps(start)), json.loads(json.dumps(end))
    found: dict[int, tuple[set[Quad], set[Quad]]] = {}
    for piece in pickle.loads(pickle.dumps(feed.pieces(start, end))):
        assert piece.size > 0
        for sequence, weight, row in piece.rows():
            found.setdefault(sequence, (set(), set()))[weight > 0].add(row)
    return {sequence: Request(frozenset(gone - came), frozenset(came)) for sequence, (gone, came) in found.items()}


@KINDS
@pytest.mark.parametrize("changes", [1, 3, 100])
def test_a_feed_says_what_its_source_says(tmp_path: Path, write: Write, changes: int) -> None:
    write(tmp_path / "in", range(1, 11))
    feed = open_feed(tmp_path / "in")
    plan = list(batches(feed, Limit(changes=changes)))
    assert [int(end["sequence"]) for _, end in plan] == [*range(changes, 10, changes), 10]
    read: dict[int, Request] = {}
    for start, end in plan:
        read |= requests(open_feed(tmp_path / "in"), start, end)
    state: set[Quad] = set()
    expected: set[Quad] = set()
    for one in open_source(tmp_path / "in").changes():
        state = (state - read[one.sequence].removed) | read[one.sequence].added
        expected = (expected - one.request.removed) | one.request.added
        assert state == expected


@KINDS
def test_a_large_change_is_a_batch_of_its_own(tmp_path: Path, write: Write) -> None:
    write(tmp_path / "in", range(1, 6))
    ends = [end["sequence"] for _, end in batches(open_feed(tmp_path / "in"), Limit(bytes=1))]
    assert ends == [1, 2, 3, 4, 5]


@KINDS
def test_a_feed_goes_on_where_it_was(tmp_path: Path, write: Write) -> None:
    write(tmp_path / "in", range(1, 6))
    feed = open_feed(tmp_path / "in", SETTLED)
    at = feed.latest(feed.start(), ALL)
    assert feed.latest(at, ALL) == at
    write(tmp_path / "in", range(6, 9))
    for reader in (feed, open_feed(tmp_path / "in", SETTLED)):
        end = reader.latest(at, ALL)
        assert end["sequence"] == 8
        assert sorted(requests(reader, at, end)) == [6, 7, 8]


@KINDS
def test_a_frozen_feed_ends(tmp_path: Path, write: Write) -> None:
    write(tmp_path / "in", range(1, 4))
    feed = open_feed(tmp_path / "in")
    feed.freeze()
    write(tmp_path / "in", range(4, 9))
    assert feed.latest(feed.start(), ALL)["sequence"] == 3


@KINDS
def test_a_late_file_is_an_error_that_names_it(tmp_path: Path, write: Write) -> None:
    write(tmp_path / "in", range(8, 13))
    feed = open_feed(tmp_path / "in", SETTLED)
    at = feed.latest(feed.start(), ALL)
    feed.latest(at, ALL)
    old = time.time() - 100
    for path in (tmp_path / "in").rglob("*.*"):
        os.utime(path, (old, old))
    write(tmp_path / "in", range(4, 5))
    for reader in (feed, open_feed(tmp_path / "in", SETTLED)):
        with pytest.raises(DataError, match=r"(004|01)\..* came late: everything up to \S*(012|03)\S* has been read"):
            reader.latest(at, ALL)


def test_files_that_were_read_may_go(tmp_path: Path) -> None:
    write_changesets(tmp_path, range(4, 9))
    feed = open_feed(tmp_path)
    at = feed.latest(feed.start(), ALL)
    for path in list((tmp_path / "01").iterdir()):
        path.unlink()
    write_changesets(tmp_path, range(9, 10))
    end = open_feed(tmp_path).latest(at, ALL)
    assert end["sequence"] == 6
    assert list(requests(open_feed(tmp_path), at, end)) == [6]


class TestArrival:
    def test_half_of_a_pair_is_held_back(self, tmp_path: Path) -> None:
        write_changesets(tmp_path, range(1, 3))
        half = next((tmp_path / "00").glob("*2.removed*"))
        content = half.read_bytes()
        half.unlink()
        feed = open_feed(tmp_path, FOLLOW)
        at = feed.latest(feed.start(), ALL)
        assert at["sequence"] == 1
        assert open_feed(tmp_path).latest(at, ALL)["sequence"] == 2, "read once, everything counts"
        assert open_feed(tmp_path, SETTLED).latest(at, ALL)["sequence"] == 2, "it does not change any more"
        half.write_bytes(content)
        assert feed.latest(at, ALL)["sequence"] == 2

    def test_half_of_a_pair_counts_when_a_later_one_is_there(self, tmp_path: Path) -> None:
        write_changesets(tmp_path, range(1, 4))
        half = next((tmp_path / "00").glob("*2.removed*"))
        content = half.read_bytes()
        half.unlink()
        feed = open_feed(tmp_path, FOLLOW)
        at = feed.latest(feed.start(), ALL)
        assert at["sequence"] == 3
        half.write_bytes(content)
        with pytest.raises(DataError, match=r"2\.removed.* came late"):
            feed.latest(at, ALL)

    @pytest.mark.parametrize("ending", ["nt", "nt.gz"])
    def test_a_file_that_is_being_written_is_held_back(self, tmp_path: Path, ending: str) -> None:
        content = b"<urn:a> <urn:b> <urn:c> .\n" * 50
        content = gzip.compress(content) if ending == "nt.gz" else content
        for kind in ("removed", "added"):
            (tmp_path / f"1.{kind}.{ending}").write_bytes(content)
        whole = tmp_path / f"1.added.{ending}"
        feed = open_feed(tmp_path, FOLLOW)
        for part in (b"", content[:-5]):
            whole.write_bytes(part)
            assert feed.latest(feed.start(), ALL)["sequence"] == 0
        whole.write_bytes(content)
        assert feed.latest(feed.start(), ALL)["sequence"] == 1

    def test_a_cut_file_that_stays_so_is_an_error_that_names_it(self, tmp_path: Path) -> None:
        (tmp_path / "1.added.nt.gz").write_bytes(gzip.compress(b"<urn:a> <urn:b> <urn:c> .\n" * 50)[:-5])
        feed = open_feed(tmp_path, SETTLED)
        end = feed.latest(feed.start(), ALL)
        with pytest.raises(DataError, match=r"1\.added\.nt\.gz: damaged gzip file"):
            requests(feed, feed.start(), end)

    def test_the_end_of_a_patch_is_held_back(self, tmp_path: Path) -> None:
        path = tmp_path / "in.rdfp"
        whole = transaction(change(1)) + transaction(change(2))
        path.write_bytes(whole[:-6])
        feed = open_feed(path, FOLLOW)
        at = feed.latest(feed.start(), ALL)
        assert at["sequence"] == 1
        assert feed.latest(at, ALL) == at
        with pytest.raises(DataError, match=r"in.rdfp:6: the patch ends in the middle of the transaction"):
            open_feed(path).latest(at, ALL)
        path.write_bytes(whole)
        end = feed.latest(at, ALL)
        assert requests(feed, at, end) == {2: Request(change(2).deleted, change(2).inserted)}

    def test_a_patch_without_transactions(self, tmp_path: Path) -> None:
        path = tmp_path / "1.rdfp"
        path.write_text("A <urn:a> <urn:b> <urn:c> .\n")
        feed = open_feed(tmp_path, FOLLOW)
        assert feed.latest(feed.start(), ALL)["sequence"] == 0
        assert open_feed(tmp_path, SETTLED).latest(feed.start(), ALL)["sequence"] == 1
        (tmp_path / "2.rdfp").write_text("TX .\nTC .\n")
        end = feed.latest(feed.start(), ALL)
        assert end["sequence"] == 2
        assert len(requests(feed, feed.start(), end)[1].added) == 1


class TestPatches:
    def test_prefixes_last_from_batch_to_batch(self, tmp_path: Path) -> None:
        path = tmp_path / "in.rdfp"
        path.write_text("PA ex <urn:x:> .\nTX .\nA ex:a ex:p ex:a .\nTC .\nTX .\nA ex:b ex:p ex:b .\nTC .\n")
        feed = open_feed(path)
        read = [requests(feed, start, end) for start, end in batches(feed, Limit(changes=1))]
        assert [str(row.subject) for one in read for change in one.values() for row in change.added] == [
            "<urn:x:a>",
            "<urn:x:b>",
        ]

    def test_rows_after_the_transactions_are_an_error(self, tmp_path: Path) -> None:
        path = tmp_path / "in.rdfp"
        path.write_bytes(transaction(change(1)))
        feed = open_feed(path)
        at = feed.latest(feed.start(), ALL)
        with path.open("a") as out:
            out.write("A <urn:a> <urn:b> <urn:c> .\n")
        with pytest.raises(SyntaxProblem, match=r"in.rdfp:6:1: a row outside of a transaction"):
            feed.latest(at, ALL)

    def test_errors_have_the_line_in_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "in.rdfp"
        path.write_bytes(transaction(change(1)) + b"TX .\nA <urn:a> oh .\nTC .\n")
        feed = open_feed(path)
        at = feed.latest(feed.start(), Limit(changes=1))
        with pytest.raises(SyntaxProblem, match=r"in.rdfp:7:"):
            requests(feed, at, feed.latest(at, ALL))

    def test_a_patch_that_shrinks_is_an_error(self, tmp_path: Path) -> None:
        path = tmp_path / "in.rdfp"
        path.write_bytes(transaction(change(1)) * 2)
        feed = open_feed(path)
        at = feed.latest(feed.start(), ALL)
        path.write_bytes(transaction(change(1)))
        with pytest.raises(DataError, match="bytes of it have been read"):
            feed.latest(at, ALL)

    def test_compressed(self, tmp_path: Path) -> None:
        path = tmp_path / "in.rdfp.gz"
        path.write_bytes(gzip.compress(b"".join(transaction(change(number)) for number in range(1, 6))))
        feed = open_feed(path, FOLLOW)
        plan = list(batches(feed, Limit(changes=2)))
        assert [sorted(requests(feed, start, end)) for start, end in plan] == [[1, 2], [3, 4], [5]]


@pytest.mark.parametrize("write", [write_changesets, write_patches])
def test_a_batch_that_was_begun_must_be_as_it_was(tmp_path: Path, write: Write) -> None:
    write(tmp_path / "in", range(1, 3))
    feed = open_feed(tmp_path / "in")
    end = feed.latest(feed.start(), ALL)
    again = Settings(begun=int(end["sequence"]))
    assert requests(open_feed(tmp_path / "in", again), feed.start(), end) == requests(feed, feed.start(), end)
    file = max((tmp_path / "in" / "00").iterdir()) if write is write_changesets else tmp_path / "in" / "00.rdfp"
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    # Sizes tell for files that are read whole, contents for patches, which may have grown meanwhile.
    changed = text.replace(b"urn:s2", b"urn:s20000000000000" if write is write_changesets else b"urn:s7")
    file.write_bytes(gzip.compress(changed) if file.suffix == ".gz" else changed)
    with pytest.raises(DataError, match=r"(was|were) when the batch was begun"):
        open_feed(tmp_path / "in", again).pieces(feed.start(), end)
    if write is write_changesets:
        assert requests(open_feed(tmp_path / "in"), feed.start(), end), "nothing of it was written yet"


def test_files_of_a_planned_batch_that_are_gone(tmp_path: Path) -> None:
    write_changesets(tmp_path, range(1, 3))
    feed = open_feed(tmp_path)
    end = feed.latest(feed.start(), ALL)
    for path in list((tmp_path / "00").glob("*1.*")):
        path.unlink()
    with pytest.raises(DataError, match="1 changes up to 00/000002 where there were 2"):
        open_feed(tmp_path).pieces(feed.start(), end)


def test_a_version_needs_the_one_before(tmp_path: Path) -> None:
    write_versions(tmp_path, range(1, 3))
    feed = open_feed(tmp_path)
    at = feed.latest(feed.start(), ALL)
    write_versions(tmp_path, range(3, 4))
    (tmp_path / "002.nt").unlink()
    with pytest.raises(DataError, match=r"the version before 003\.nt is gone"):
        open_feed(tmp_path).pieces(at, open_feed(tmp_path).latest(at, ALL))


def test_standard_input_is_no_feed() -> None:
    with pytest.raises(DataError, match="cannot be read twice"):
        open_feed("-")


def test_a_listing_sees_what_comes_at_once(tmp_path: Path) -> None:
    feed = None
    for number in range(1, 30):
        write_changesets(tmp_path, range(number, number + 1))
        feed = feed or open_feed(tmp_path)
        assert feed.latest(feed.start(), ALL)["sequence"] == number
