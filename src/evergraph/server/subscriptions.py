"""Subscriptions and the channels that they are sent through.

A subscription takes steps from the database and keeps those that its reader has not been sent yet. It numbers what it
sends: 0 is the whole result, and then 1, 2, 3 … without gaps. A reader that is too slow has steps put together, the
oldest first: the sum stays right, and so do the numbers, because they are given when a notification is sent.

Everything here happens on the event loop, but for `Subscription.take` and `Subscription.close`, which the thread that
writes calls.
"""

import asyncio
from array import array
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol
from uuid import uuid4

from evergraph.engines.local.dictionary import ZSet, add
from evergraph.engines.local.views import View, ViewChange
from evergraph.server.notifications import notification, notification_head, step_json
from evergraph.server.settings import Limits

PREFIX = "sepa://subscription/"
LARGE = 2_000
"""From how many rows on a step is written as text in a thread of its own."""
REMEMBERED = 1_024
"""For how many of the last notifications a subscription knows which change they are about."""

Deliver = Callable[["Subscription", View | None, int, ZSet | None], None]
"""Takes what a change did to a view of a subscription; no step if the view is no longer maintained."""


class Recorder(Protocol):
    """Takes note of what is sent, so that a subscription can be resumed."""

    def sent(self, subscription: "Subscription", sequence: int, change: int) -> None:
        """Note that a notification is about to be sent."""

    def commit(self) -> None:
        """Let the notes leave the process."""


class Subscription:
    """A standing query of one client."""

    __slots__ = (
        "_deliver", "absent_since", "alias", "changes", "channel", "default_graphs", "first", "head", "limits",
        "named_graphs", "pending", "resumable", "rows", "sequence", "spuid", "text", "user", "view",
    )  # fmt: skip

    def __init__(
        self,
        text: str,
        user: str,
        alias: str | None,
        limits: Limits,
        deliver: Deliver,
        *,
        spuid: str | None = None,
        default_graphs: tuple[str, ...] = (),
        named_graphs: tuple[str, ...] = (),
    ) -> None:
        self.text = text
        self.user = user
        self.alias = alias
        self.limits = limits
        self.default_graphs = default_graphs
        self.named_graphs = named_graphs
        self.spuid = spuid or f"{PREFIX}{uuid4()}"
        self.head = notification_head(self.spuid, alias)
        self.view: View | None = None
        self.channel: Channel | None = None
        self.resumable = False
        self.absent_since = 0.0
        self.pending: deque[tuple[int, ZSet]] = deque()
        self.rows = 0
        self.sequence = -1
        """The number of the last notification that was sent; -1 before the first."""
        self.first = 0
        self.changes = array("Q")
        """The changes behind the notifications ``first``, ``first + 1`` …, up to the last one that was sent."""
        self._deliver = deliver

    # --- called by the thread that writes

    def take(self, sequence: int, change: ViewChange) -> None:
        """Take what a change of the data did to the result."""
        self._deliver(self, change[0], sequence, change[1])

    def close(self) -> None:
        """Take note that the query is no longer maintained."""
        self._deliver(self, None, 0, None)

    # --- on the event loop

    def push(self, change: int, step: ZSet) -> None:
        """Keep a step for the reader."""
        pending = self.pending
        pending.append((change, step))
        self.rows += len(step)
        if len(pending) > self.limits.backlog:
            self._fold(2)
        elif self.rows > self.limits.backlog_rows and len(pending) > 1:
            self._fold(len(pending))
        if self.channel is not None:
            self.channel.wake(self)

    def _fold(self, count: int) -> None:
        """Put the oldest steps together; what cancels disappears, but for the first result."""
        total: ZSet = {}
        change = 0
        for _ in range(count):
            change, step = self.pending.popleft()
            self.rows -= len(step)
            for row, weight in step.items():
                add(total, row, weight)
        if total or self.sequence < 0:
            self.pending.appendleft((change, total))
            self.rows += len(total)

    def next_text(self, recorder: Recorder | None, encoded: "Encoded", ready: tuple[ZSet, str] | None) -> str:
        """Number the oldest step that waits, and write it as a notification; its text may be ``ready``."""
        change, step = self.pending.popleft()
        self.rows -= len(step)
        self.sequence += 1
        self.remember(self.sequence, change)
        if recorder is not None:
            recorder.sent(self, self.sequence, change)
        assert self.view is not None
        text = ready[1] if ready is not None and ready[0] is step else encoded.step(self.view, step)
        return notification(self.head, self.sequence, change, text)

    def remember(self, sequence: int, change: int) -> None:
        """Take note of the change behind a notification."""
        if not self.changes or sequence != self.first + len(self.changes):
            self.first, self.changes = sequence, array("Q")
        self.changes.append(change)
        if len(self.changes) >= 2 * REMEMBERED:
            self.first += REMEMBERED
            del self.changes[:REMEMBERED]

    def change_of(self, sequence: int) -> int | None:
        """Tell the change behind a notification, if it is known."""
        place = sequence - self.first
        return self.changes[place] if 0 <= place < len(self.changes) else None

    def forget_after(self, sequence: int) -> None:
        """Go back to a notification: what was sent after it did not arrive."""
        self.sequence = sequence
        del self.changes[sequence - self.first + 1 :]
        self.pending.clear()
        self.rows = 0


class Encoded:
    """Steps that were written as text lately: subscriptions to one query share them."""

    def __init__(self, room: int = 64) -> None:
        self._room = room
        self._texts: OrderedDict[tuple[int, tuple[object, ...]], tuple[ZSet, str]] = OrderedDict()

    def step(self, view: View, step: ZSet) -> str:
        """Write a step as text, or find it."""
        key = (id(step), view.variables)
        found = self._texts.get(key)
        if found is not None and found[0] is step:
            return found[1]
        text = step_json(view, step)
        if len(step) <= 1_000:
            self._texts[key] = (step, text)
            if len(self._texts) > self._room:
                self._texts.popitem(last=False)
        return text


class Channel:
    """Where notifications of some subscriptions go to, one after the other: a WebSocket or an event stream."""

    def __init__(
        self, send: Callable[[Iterable[str]], Awaitable[None]], recorder: Recorder | None, encoded: Encoded, user: str
    ) -> None:
        self.user = user
        self.subscriptions: dict[str, Subscription] = {}
        self.on_end: Callable[[], object] = lambda: None
        """Is called when the broker ends."""
        self._send = send
        self._recorder = recorder
        self._encoded = encoded
        self._messages: deque[str] = deque()
        self._waiting: dict[Subscription, None] = {}
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def say(self, text: str) -> None:
        """Send a message before the notifications that wait."""
        self._messages.append(text)
        self._wake()

    def wake(self, subscription: Subscription) -> None:
        """Take note that a subscription has something to send."""
        self._waiting[subscription] = None
        self._wake()

    def _wake(self) -> None:
        self._idle.clear()
        self._news.set()

    def attach(self, subscription: Subscription) -> None:
        """Let a subscription be sent through this channel."""
        subscription.channel = self
        self.subscriptions[subscription.spuid] = subscription
        if subscription.pending:
            self.wake(subscription)

    def detach(self, subscription: Subscription) -> None:
        """Send nothing more of a subscription."""
        self.subscriptions.pop(subscription.spuid, None)
        self._waiting.pop(subscription, None)
        if subscription.channel is self:
            subscription.channel = None

    async def pump(self) -> None:
        """Send what there is, for as long as the connection holds."""
        while True:
            await self._news.wait()
            self._news.clear()
            while texts := self._take(await self._prepared()):
                await self._send(texts)
            if not self._news.is_set():
                self._idle.set()

    async def flushed(self) -> None:
        """Wait until everything has been handed to the connection."""
        await self._idle.wait()

    async def _prepared(self) -> tuple[ZSet, str] | None:
        """Write the next step as text in a thread, if it is large: others need not wait for that."""
        one = next(iter(self._waiting), None)
        if one is None or not one.pending or one.view is None or len(one.pending[0][1]) < LARGE:
            return None
        step = one.pending[0][1]
        return step, await asyncio.to_thread(step_json, one.view, step)

    def _take(self, ready: tuple[ZSet, str] | None, most: int = 64) -> list[str]:
        texts = list(self._messages)
        self._messages.clear()
        waiting = self._waiting
        while waiting and len(texts) < most:
            subscription = next(iter(waiting))
            while subscription.pending and len(texts) < most:
                if texts and len(subscription.pending[0][1]) >= LARGE:
                    most = 0  # it is written on its own
                    break
                texts.append(subscription.next_text(self._recorder, self._encoded, ready))
            if not subscription.pending:
                del waiting[subscription]
        if texts and self._recorder is not None:
            self._recorder.commit()
        return texts
