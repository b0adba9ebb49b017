"""Changesets over HTTP, from a server on loopback that does what a test asks for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.published import Published, publish
from tests.support.replica_files import lines, rq, run

import evergraph as eg
from evergraph.errors import DataError, SourceUnavailable
from evergraph.sources.http import HttpChangesets

HOUR = "2015/06/01/12"


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Published]:
    with publish(tmp_path / "www") as made:
        yield made


def test_order_gaps_and_kinds(published: Published) -> None:
    published.add(f"{HOUR}/000009.added.nt.gz", "c")
    published.add("2015/06/01/13/000001.added.nt.gz", "d")
    published.add(f"{HOUR}/000002.removed.nt.gz", "a")
    published.add(f"{HOUR}/000002.reinserted.nt", "b")
    published.add(f"{HOUR}/000002.clear.nt", "x")
    published.add("readme.txt")
    assert published.pending() == [f"{HOUR}/000002", f"{HOUR}/000009", "2015/06/01/13/000001"]
    with HttpChangesets(published.url) as source:
        request, cleared = next(source.pending()).read()
    assert [str(quad.object) for quad in request.removed | request.added] in (
        ["<urn:a>", "<urn:b>"],
        ["<urn:b>", "<urn:a>"],
    )
    assert [str(one) for one in cleared] == ["<urn:s>"]


def test_what_is_before_the_position_is_not_looked_at(published: Published) -> None:
    for path in ("2014/01/01/00/000001", f"{HOUR}/000001", f"{HOUR}/000002", "2015/06/02/00/000000"):
        published.add(f"{path}.added.nt", "a")
    assert published.pending(f"{HOUR}/000001") == [f"{HOUR}/000002", "2015/06/02/00/000000"]
    assert not any("/2014/" in path for path in published.asked)


def test_only_what_is_published(published: Published) -> None:
    for number in (1, 2, 3):
        published.add(f"{HOUR}/00000{number}.added.nt", "a")
    published.add("2015/06/02/00/000000.added.nt", "a")
    (published.folder / "lastPublishedFile.txt").write_text("2015-06-01-12-000002")
    assert published.pending() == [f"{HOUR}/000001", f"{HOUR}/000002"]
    (published.folder / "lastPublishedFile.txt").write_text("2016-01-01-00-000017")  # ahead of the files
    assert len(published.pending()) == 4


@pytest.mark.parametrize("status", [500, 502, 503, 429, 0])
def test_errors_of_the_network_are_not_the_end(published: Published, tmp_path: Path, status: int) -> None:
    """What iRap gets wrong: it takes any failure for "no more files", and goes on with the next hour."""
    rq(tmp_path / "i.rq", "", "SELECT * { ?s ?p ?o }")
    for number in (1, 2, 3):
        published.add(f"{HOUR}/00000{number}.added.nt", str(number))
    published.add("2015/06/01/13/000001.added.nt", "4")
    published.fault = lambda path: status if "000002" in path else None
    seen: list[int] = []

    def replicate() -> eg.Replicated:
        return eg.replicate(
            tmp_path / "i.rq",
            changes=published.url,
            target=tmp_path / "t",
            on_change=lambda step: seen.append(step.sequence),
            pause=0,
        )

    with pytest.raises(SourceUnavailable, match=r"000002\.added\.nt cannot be fetched"):
        replicate()
    assert seen == [1]
    assert sum("000002" in path for path in published.asked) == 6
    failures = iter([status, status])
    published.fault = lambda path: next(failures, None) if "000002" in path else None  # it passes
    assert replicate().position == 4
    assert seen == [1, 2, 3, 4]
    assert replicate().position == 4


def test_a_listing_that_fails_is_an_error(published: Published) -> None:
    published.add(f"{HOUR}/000001.added.nt", "a")
    published.fault = lambda path: 500 if path.endswith("/12/") else None
    with pytest.raises(SourceUnavailable, match="500"):
        published.pending()
    published.fault = lambda path: 403
    with pytest.raises(SourceUnavailable, match="403"):
        published.pending()
    published.fault = lambda path: 404
    with pytest.raises(SourceUnavailable, match="must list its folders"):
        published.pending()


def test_a_damaged_file_stops_or_is_set_aside(published: Published, tmp_path: Path) -> None:
    rq(tmp_path / "i.rq", "", "SELECT * { ?s ?p ?o }")
    published.add(f"{HOUR}/000001.added.nt", "a")
    file = published.add(f"{HOUR}/000002.added.nt.gz", "b")
    published.add(f"{HOUR}/000003.added.nt", "c")
    file.write_bytes(file.read_bytes()[:-9])
    options = ("replicate", tmp_path / "i.rq", "--changes", published.url, "--target", tmp_path / "t")
    failed = run(*options, code=1)
    assert "damaged gzip" in failed.stderr
    assert [line["sequence"] for line in lines(failed)] == [1]
    skipped = run(*options, "--skip-damaged")
    assert [line["sequence"] for line in lines(skipped)] == [2, 3]
    assert "change 2 is set aside" in skipped.stderr
    assert lines(run(*options)) == []


def test_two_files_of_one_kind(published: Published) -> None:
    published.add(f"{HOUR}/000001.added.nt", "a")
    published.add(f"{HOUR}/000001.added.nt.gz", "a")
    with pytest.raises(DataError, match="two files of one kind"):
        published.pending()
