"""What is known of subscriptions over a restart: a file that only grows, and is written anew when the broker starts.

One JSON array per line: ``["s", number, {…}]`` a subscription begins, ``["n", number, sequence, change]`` a
notification is sent, ``["g", number, time]`` its connection is gone, ``["e", number]`` it has ended. A line reaches the
operating system before the notification is sent, so that it survives a crash of the broker. If a crash of the machine
loses lines, a client that comes back is given the whole result again; it is never given something wrong.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from evergraph.errors import StoreError
from evergraph.files import sync_folder
from evergraph.server.settings import Limits
from evergraph.server.subscriptions import REMEMBERED, Deliver, Subscription

NAME = "subscriptions.jsonl"
_LARGE = 64 * 2**20


class Registry:
    """The subscriptions that can be resumed, by their ids; in a file, or in memory only."""

    def __init__(self, folder: Path | None, limits: Limits, deliver: Deliver, keep_seconds: float) -> None:
        self._path = folder / NAME if folder else None
        self._limits = limits
        self._keep = keep_seconds
        self._buffer: list[str] = []
        self._numbers: dict[str, int] = {}
        self._next = 1
        self._file: int | None = None
        self._size = 0
        self.absent: dict[str, Subscription] = {}
        """Those whose connection is gone, the longest gone first."""
        self.live: dict[str, Subscription] = {}
        self._absent_of: dict[str, dict[str, Subscription]] = {}
        if self._path is not None:
            for subscription in _read(self._path, limits, deliver):
                subscription.absent_since = subscription.absent_since or time.time()
                self._put_aside(subscription)
            self.forget_old()
            self._rewrite()

    # --- what happens to subscriptions

    def begin(self, subscription: Subscription) -> None:
        """Take note of a new subscription."""
        self.live[subscription.spuid] = subscription
        self._introduce(subscription)
        self.commit()

    def sent(self, subscription: Subscription, sequence: int, change: int) -> None:
        """Note that a notification is about to be sent."""
        if self._path is not None:
            self._buffer.append(f'["n",{self._numbers[subscription.spuid]},{sequence},{change}]\n')

    def gone(self, subscription: Subscription) -> None:
        """Take note that the connection of a subscription is lost."""
        if self.live.pop(subscription.spuid, None) is None:
            return
        subscription.absent_since = time.time()
        self._put_aside(subscription)
        self._note("g", subscription, round(subscription.absent_since, 3))
        mine = self._absent_of[subscription.user]
        while len(mine) > self._limits.absent_per_user:
            self.end(next(iter(mine.values())))

    def _put_aside(self, subscription: Subscription) -> None:
        self.absent[subscription.spuid] = subscription
        self._absent_of.setdefault(subscription.user, {})[subscription.spuid] = subscription

    def _take_up(self, subscription: Subscription) -> None:
        if self.absent.pop(subscription.spuid, None) is not None:
            mine = self._absent_of[subscription.user]
            del mine[subscription.spuid]
            if not mine:
                del self._absent_of[subscription.user]

    def back(self, subscription: Subscription) -> None:
        """Take note that a subscription is resumed."""
        self._take_up(subscription)
        self.live[subscription.spuid] = subscription
        self._note("g", subscription, 0)
        self.commit()

    def end(self, subscription: Subscription) -> None:
        """Forget a subscription."""
        self.live.pop(subscription.spuid, None)
        self._take_up(subscription)
        if subscription.spuid in self._numbers:
            self._note("e", subscription)
            del self._numbers[subscription.spuid]

    def forget_old(self) -> None:
        """Forget those whose connection has been gone for too long."""
        oldest = time.time() - self._keep
        for one in [one for one in self.absent.values() if one.absent_since < oldest]:
            self.end(one)

    # --- the file

    def commit(self) -> None:
        """Let the notes leave the process."""
        if not self._buffer or self._file is None:
            return
        data = "".join(self._buffer).encode()
        self._buffer.clear()
        self._write(self._file, data)
        if self._size > _LARGE:
            self._rewrite()

    def close(self) -> None:
        """Write what is left, and close the file."""
        now = time.time()
        for subscription in list(self.live.values()):
            self._note("g", subscription, round(now, 3))
        self.commit()
        if self._file is not None:
            with suppress(OSError):
                os.fsync(self._file)
            os.close(self._file)
            self._file = None

    def _introduce(self, subscription: Subscription) -> None:
        if self._path is None:
            return
        self._numbers[subscription.spuid] = self._next
        self._next += 1
        self._note(
            "s",
            subscription,
            {
                "spuid": subscription.spuid,
                "alias": subscription.alias,
                "user": subscription.user,
                "sparql": subscription.text,
                "default": subscription.default_graphs,
                "named": subscription.named_graphs,
                "resumable": subscription.resumable,
                "first": subscription.first,
                "changes": subscription.changes[-REMEMBERED:].tolist(),
                "gone": subscription.absent_since,
            },
        )

    def _note(self, kind: str, subscription: Subscription, *rest: Any) -> None:
        if self._path is not None and subscription.spuid in self._numbers:
            line = json.dumps([kind, self._numbers[subscription.spuid], *rest], separators=(",", ":"))
            self._buffer.append(line + "\n")

    def _write(self, file: int, data: bytes) -> None:
        self._size += len(data)
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(file, view) :]
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror}", hint="free space on its disk") from error

    def _rewrite(self) -> None:
        """Write the subscriptions that there are into a new file, and put it in the place of the old one."""
        assert self._path is not None
        self._buffer.clear()
        self._numbers.clear()
        self._next = 1
        self._size = 0
        fresh = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        except OSError as error:
            raise StoreError(f"cannot write {fresh}: {error.strerror}", hint="mend its permissions") from error
        for subscription in (*self.absent.values(), *self.live.values()):
            first = max(subscription.first, subscription.first + len(subscription.changes) - REMEMBERED)
            del subscription.changes[: first - subscription.first]
            subscription.first = first
            self._introduce(subscription)
        self._write(file, "".join(self._buffer).encode())
        self._buffer.clear()
        os.fsync(file)
        fresh.replace(self._path)
        sync_folder(self._path.parent)
        if self._file is not None:
            os.close(self._file)
        self._file = file


def _read(path: Path, limits: Limits, deliver: Deliver) -> Iterable[Subscription]:
    """Read the subscriptions of a file; a last line that a crash cut short does not count."""
    found: dict[int, Subscription] = {}
    for entry in _entries(path):
        match entry:
            case ["s", int(number), dict(members)]:
                found[number] = _subscription(members, limits, deliver)
            case ["n", int(number), int(sequence), int(change)] if number in found:
                found[number].sequence = sequence
                found[number].remember(sequence, change)
            case ["g", int(number), int() | float() as since] if number in found:
                found[number].absent_since = float(since)
            case ["e", int(number)]:
                found.pop(number, None)
    return found.values()


def _entries(path: Path) -> Iterator[Any]:
    try:
        with path.open("rb") as stream:
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                with suppress(ValueError):
                    yield json.loads(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error


def _subscription(members: dict[str, Any], limits: Limits, deliver: Callable[..., None]) -> Subscription:
    one = Subscription(
        members["sparql"],
        members["user"],
        members["alias"],
        limits,
        deliver,
        spuid=members["spuid"],
        default_graphs=tuple(members["default"]),
        named_graphs=tuple(members["named"]),
    )
    one.resumable = members["resumable"]
    one.absent_since = members["gone"]
    one.first = members["first"]
    one.changes.extend(members["changes"])
    one.sequence = one.first + len(one.changes) - 1
    return one
