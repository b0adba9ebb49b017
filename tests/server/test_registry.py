"""What is kept of subscriptions in a file."""

import time
from pathlib import Path

import pytest

from evergraph.errors import StoreError
from evergraph.server import registry as module
from evergraph.server.registry import NAME, Registry
from evergraph.server.settings import Limits
from evergraph.server.subscriptions import Subscription


def deliver(*_: object) -> None:
    raise AssertionError("nothing is maintained here")


def opened(folder: Path | None, keep: float = 1000.0, **limits: int) -> Registry:
    return Registry(folder, Limits(**limits), deliver, keep)


def subscription(user: str = "u", text: str = "ASK {}") -> Subscription:
    one = Subscription(text, user, "alias", Limits(), deliver, default_graphs=("urn:g",))
    one.resumable = True
    return one


def send(registry: Registry, one: Subscription, *changes: int) -> None:
    for change in changes:
        one.sequence += 1
        one.remember(one.sequence, change)
        registry.sent(one, one.sequence, change)
    registry.commit()


def test_what_was_sent_is_known_after_a_crash(tmp_path: Path) -> None:
    first = opened(tmp_path)
    one, other = subscription(), subscription("v", "SELECT * {}")
    for each in (one, other):
        first.begin(each)
    send(first, one, 3, 7, 8)
    first.end(other)
    first.commit()
    again = opened(tmp_path)  # the first one was not closed
    [found] = again.absent.values()
    assert (found.spuid, found.user, found.alias, found.text) == (one.spuid, "u", "alias", "ASK {}")
    assert (found.default_graphs, found.resumable) == (("urn:g",), True)
    assert [found.change_of(sequence) for sequence in (-1, 0, 1, 2, 3)] == [None, 3, 7, 8, None]
    first.close()
    again.close()


def test_a_line_that_was_cut_short_does_not_count(tmp_path: Path) -> None:
    first = opened(tmp_path)
    one = subscription()
    first.begin(one)
    send(first, one, 1, 2)
    first.close()
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes() + b'nonsense\n["n",99,1,1]\n["x"]\n["n",1,2')
    again = opened(tmp_path)
    [found] = again.absent.values()
    assert (found.sequence, found.change_of(1)) == (1, 2)
    again.close()


def test_only_the_last_notifications_are_remembered(tmp_path: Path) -> None:
    first = opened(tmp_path)
    one = subscription()
    first.begin(one)
    send(first, one, *range(5_000))
    first.close()
    again = opened(tmp_path)
    [found] = again.absent.values()
    for each in (one, found):
        assert each.change_of(10) is None
        assert [each.change_of(sequence) for sequence in (4_000, 4_999)] == [4_000, 4_999]
    again.close()


def test_those_who_stay_away_are_forgotten(tmp_path: Path) -> None:
    first = opened(tmp_path, absent_per_user=2)
    mine = [subscription() for _ in range(3)]
    for one in (*mine, subscription("v")):
        first.begin(one)
        first.gone(one)
    assert [one.spuid for one in first.absent.values() if one.user == "u"] == [one.spuid for one in mine[1:]]
    first.close()
    time.sleep(0.02)
    assert not opened(tmp_path, keep=0.01).absent


def test_a_file_that_has_grown_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGE", 10_000)
    first = opened(tmp_path)
    one = subscription()
    first.begin(one)
    for change in range(3_000):
        send(first, one, change)
    assert (tmp_path / NAME).stat().st_size < 40_000
    first.close()
    again = opened(tmp_path)
    assert again.absent[one.spuid].change_of(2_999) == 2_999
    again.close()


def test_in_memory_nothing_is_written() -> None:
    first = opened(None)
    one = subscription()
    first.begin(one)
    send(first, one, 1)
    first.gone(one)
    assert first.absent
    first.back(one)
    first.end(one)
    first.close()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        opened(tmp_path / "file")
