"""Reading changes as they come: half-written files wait, late files are noticed, damage is reported."""

import gzip
import os
import time
from os import fsdecode
from pathlib import Path

import pytest
from tests.support.replica_files import changeset

from evergraph.delta import Delta, Request
from evergraph.errors import DataError, StoreError
from evergraph.replication.reading import Reading
from evergraph.replication.state import ReplicaState, digest
from evergraph.terms import NamedNode, Quad

QUAD = Quad(NamedNode("urn:s"), NamedNode("urn:p"), NamedNode("urn:o"))
OTHER = Quad(NamedNode("urn:s"), NamedNode("urn:p"), NamedNode("urn:other"))


def age(folder: Path, seconds: float = 100) -> None:
    for path in folder.rglob("*.nt*"):
        os.utime(path, (time.time() - seconds,) * 2)


def test_following_waits_for_more_and_for_whole_files(tmp_path: Path) -> None:
    changes = tmp_path / "changes"
    changeset(changes, 1, [OTHER], [QUAD])
    idle = 0

    def nothing_left() -> None:
        nonlocal idle
        idle += 1
        match idle:
            case 1:  # a file that is still being written
                (changes / "000002.added.nt.gz").write_bytes(gzip.compress(b"<urn:a> <urn:p> <urn:b> .\n")[:-5])
            case 2:  # it is whole now, but its other half may be on its way
                (changes / "000002.added.nt.gz").write_bytes(gzip.compress(b"<urn:a> <urn:p> <urn:b> .\n"))
            case 3:
                changeset(changes, 3, [OTHER], [QUAD])
            case 4:
                raise KeyboardInterrupt

    reading = Reading(str(changes), follow=True, poll=0.001)
    seen = []
    with pytest.raises(KeyboardInterrupt):
        for change in reading.changes(0, None, nothing_left):
            seen.append((idle, change.sequence))  # noqa: PERF401 - it ends by an exception
    assert seen == [(0, 1), (3, 2), (3, 3)]


def test_a_lonely_half_counts_when_it_has_settled(tmp_path: Path) -> None:
    changeset(tmp_path / "changes", 1, [], [QUAD])
    reading = Reading(str(tmp_path / "changes"), follow=True)
    assert list(reading._present(0, None)) == []
    age(tmp_path)
    assert len(list(reading._present(0, None))) == 1


def test_a_folder_that_is_followed_may_be_empty_at_first(tmp_path: Path) -> None:
    (tmp_path / "changes").mkdir()
    reading = Reading(str(tmp_path / "changes"), follow=True)
    reading.check()
    assert list(reading._present(0, None)) == []
    changeset(tmp_path / "changes", 1, [OTHER], [QUAD])
    assert len(list(reading._present(0, None))) == 1
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match="is empty"):
        Reading(str(tmp_path / "other")).check()


def test_a_source_may_be_named_in_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changeset(tmp_path / "changes/2026", 1, [OTHER], [QUAD])
    (tmp_path / "one.rdfp").write_text("TX .\nA <urn:a> <urn:b> <urn:c> .\nTC .\n")
    monkeypatch.chdir(tmp_path)
    for name in ("changes", "one.rdfp"):
        [change] = Reading(name)._present(0, None)
        assert list(Reading(str(tmp_path / name))._present(1, change.where)) == []
        [change] = Reading(str(tmp_path / name))._present(0, None)
        assert list(Reading(f"./{name}")._present(1, change.where)) == []
    with pytest.raises(DataError, match="2026/000001"):
        list(Reading("changes")._present(1, "changes/2025/000001.removed.nt, changes/2025/000001.added.nt"))


def test_a_source_that_lost_changes_is_an_error(tmp_path: Path) -> None:
    changeset(tmp_path / "changes", 1, [], [QUAD])
    reading = Reading(str(tmp_path / "changes"))
    [change] = reading._present(0, None)
    assert list(reading._present(1, change.where)) == []
    with pytest.raises(DataError, match="fewer changes than have been taken in"):
        list(reading._present(2, change.where))


def test_the_state_is_compacted_and_knows_its_place(tmp_path: Path) -> None:
    names = {"i": digest("text")}
    state = ReplicaState(tmp_path / "state", names)
    state.begin(frozenset())
    state.filled()
    state.advance([(Delta(inserted=frozenset([QUAD])), "one")])
    state.close()
    state = ReplicaState(tmp_path / "state", names)
    assert (state.position, state.place, state.is_filled) == (1, "one", True)
    assert list(state.base()) == []
    assert list(state.changes()) == [Delta(inserted=frozenset([QUAD]))]
    state.compact([str(QUAD)])
    state.close()
    state = ReplicaState(tmp_path / "state", names)
    assert (state.position, state.place) == (1, "one")
    assert list(state.base()) == [QUAD]
    assert list(state.changes()) == []
    state.close()
    assert sorted(path.name for path in (tmp_path / "state").iterdir() if path.name != ".lock") == [
        *("base-1.nt", "log-1", "places", "state.json")
    ]


def test_changes_that_count_together_have_each_its_place(tmp_path: Path) -> None:
    names = {"i": digest("text")}
    state = ReplicaState(tmp_path / "state", names)
    state.begin([])
    state.filled()
    state.advance([(Delta(inserted=frozenset([QUAD])), "one"), (Delta(deleted=frozenset([QUAD])), "two")])
    state.close()
    [segment] = (tmp_path / "state/log-0").iterdir()
    content = segment.read_bytes()
    segment.write_bytes(content[: content.rindex(b"TX")])  # a crash: of two changes, one reached the disk
    state = ReplicaState(tmp_path / "state", names)
    assert (state.position, state.place) == (1, "one")
    state.close()


def test_what_no_interest_can_match_is_left_out_and_damage_is_not_overlooked(tmp_path: Path) -> None:
    other = Quad(QUAD.subject, NamedNode("urn:other"), QUAD.object)
    changeset(tmp_path / "changes", 1, [other], [QUAD, other])
    reading = Reading(str(tmp_path / "changes"), predicates=frozenset([QUAD.predicate]))
    [change] = reading._present(0, None)
    assert change.request == Request(added=frozenset([QUAD]))
    with (tmp_path / "changes/000001.added.nt").open("a") as out:
        out.write("<urn:a> <urn:other> broken .\n")
    with pytest.raises(DataError, match="000001"):
        list(reading._present(0, None))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1}', '{"version": 2, "interests": {}}'])
def test_a_state_that_cannot_be_read_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/state.json").write_text(content)
    with pytest.raises(StoreError, match=r"state\.json"):
        ReplicaState(tmp_path / "state", {})


def test_names_of_changes_may_be_any_bytes(tmp_path: Path) -> None:
    name = fsdecode(b"ch\xff\xc3\xa4nges/000001.added.nt")
    state = ReplicaState(tmp_path / "state", {})
    state.begin([])
    state.filled()
    state.advance([(Delta(), name)])
    state.close()
    state = ReplicaState(tmp_path / "state", {})
    assert state.place == name
    state.compact([])
    state.close()
