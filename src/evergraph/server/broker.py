"""The broker without any protocol: a database, its subscriptions, and who waits for what."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from evergraph.database import Database, UpdateRequest
from evergraph.delta import Change
from evergraph.engines.local.dictionary import ZSet
from evergraph.engines.local.views import View
from evergraph.errors import EvergraphError, StateLimit
from evergraph.server import problems
from evergraph.server.guard import check_services, check_shape
from evergraph.server.history import History
from evergraph.server.linksets import Linksets
from evergraph.server.metrics import Metrics
from evergraph.server.patterns import check_patterns
from evergraph.server.problems import Problem, problem_of
from evergraph.server.queries import Queries
from evergraph.server.registry import Registry
from evergraph.server.replay import missed_steps
from evergraph.server.replicas import Shelf
from evergraph.server.settings import Settings
from evergraph.server.subscriptions import Channel, Encoded, Subscription
from evergraph.server.writer import Delivery, Writer
from evergraph.sparql.algebra import DatasetClause, Query
from evergraph.sparql.parser import parse_query
from evergraph.terms import NamedNode

T = TypeVar("T")
_TOGETHER = 100
"""How many queries are given up at once, before others have their turn."""
_LONG = 100_000
"""From how many characters on an update is looked at in a thread of its own."""
_CLOCK = re.compile(r"\bNOW\s*\(", re.IGNORECASE)


class Broker:
    """Takes updates, queries and subscriptions of many clients. Everything but `__init__` is on one event loop."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.database.timed = True
        self.settings = settings
        self.limits = settings.limits
        self.metrics = Metrics()
        self.encoded = Encoded()
        self.channels: dict[Channel, None] = {}
        self.recent = History(database.sequence)
        """The last changes, for those who follow closely."""
        self.closing = False
        self._per_user: Counter[str] = Counter()
        self._news: set[asyncio.Event] = set()
        self._resuming: set[str] = set()
        self._queries = Queries(self.limits.queries_at_once, self.limits.queries_left_behind)
        self.writer: Writer
        self.shelf: Shelf
        self.linksets: Linksets
        self.registry: Registry

    async def start(self) -> None:
        """Begin to work."""
        self.shelf = Shelf(self.database, self.settings.folder, self.limits.replicas)
        self.linksets = Linksets(self.database, self.settings.folder, self.limits.linksets)
        self.writer = Writer(self.database, self._publish, self.limits.batch, self._observe)
        await self.writer.submit(self.shelf.restore)
        await self.writer.submit(self.linksets.restore)
        self.registry = Registry(self.settings.folder, self.limits, self.writer.deliver, self.settings.keep_seconds)
        self.metrics.gauge("subscriptions", "Subscriptions with a connection.", lambda: len(self.registry.live))
        self.metrics.gauge(
            "absent_subscriptions", "Subscriptions that can be resumed.", lambda: len(self.registry.absent)
        )
        self.metrics.gauge("connections", "Open subscription channels.", lambda: len(self.channels))
        self.metrics.gauge("jobs_waiting", "Updates and subscriptions in the queue.", lambda: self.writer.waiting)
        self.metrics.gauge("queries_left_behind", "Queries that go on after their time.", lambda: self._queries.late)
        self.metrics.gauge("sequence", "The number of the last change.", lambda: self.database.sequence)

    async def stop(self) -> None:
        """Finish what was begun, tell subscribers what they can still be told, and close the database."""
        self.closing = True
        await self.writer.stop()
        await asyncio.sleep(0)
        if self.channels:
            flushes = [asyncio.ensure_future(channel.flushed()) for channel in self.channels]
            _, late = await asyncio.wait(flushes, timeout=self.settings.drain_seconds)
            for one in late:
                one.cancel()
        for event in self._news:
            event.set()
        for channel in self.channels:
            channel.on_end()
        self._queries.close()
        self.linksets.close()
        self.registry.close()
        self.database.close()

    # --- updates and queries

    async def update(self, request: UpdateRequest) -> Change:
        """Run an update; it is durable when this returns."""
        self._refuse_if_closing()
        if self.writer.waiting >= self.limits.updates_waiting:
            raise Problem(problems.TOO_MANY, "too many updates are waiting", 429, {"Retry-After": "1"})
        try:
            check_services(request.text, self.settings.hosts)
            if len(request.text) > _LONG:
                await asyncio.to_thread(check_shape, request.text)
            else:
                check_shape(request.text)
            begin = time.perf_counter()
            change = await asyncio.shield(self.writer.update(request))
        except EvergraphError as error:
            self.metrics.count("updates_failed")
            raise problem_of(error, problems.UPDATE) from error
        self.metrics.time("update_seconds", time.perf_counter() - begin)
        return change

    async def run(self, work: Callable[[], T], stop: Callable[[], None]) -> T:
        """Run a query in a thread of its own, for as long as queries may take; then ``stop`` is called."""
        self._refuse_if_closing()
        if self._queries.waiting >= self.limits.queries_waiting:
            raise Problem(problems.TOO_MANY, "too many queries are waiting", 429, {"Retry-After": "1"})
        begin = time.perf_counter()
        query = self._queries.submit(work)
        try:
            found: T = await asyncio.wait_for(asyncio.shield(query.future), self.limits.query_seconds or None)
            return found
        except TimeoutError as error:
            self.metrics.count("queries_timed_out")
            seconds = self.limits.query_seconds
            raise Problem("query_timeout", f"the query took longer than {seconds:g} s", 503) from error
        finally:
            if not query.future.done():
                stop()
                self._queries.leave(query)
            self.metrics.time("query_seconds", time.perf_counter() - begin)

    # --- subscriptions

    async def subscribe(
        self,
        channel: Channel,
        text: str,
        alias: str | None = None,
        default_graphs: tuple[str, ...] = (),
        named_graphs: tuple[str, ...] = (),
    ) -> Subscription:
        """Begin a subscription; its first notification is the whole result."""
        one = Subscription(
            text,
            channel.user,
            alias,
            self.limits,
            self.writer.deliver,
            default_graphs=default_graphs,
            named_graphs=named_graphs,
        )
        await self._begin(channel, one)
        return one

    async def _begin(self, channel: Channel, one: Subscription) -> None:
        query = self._admit(one)
        one.resumable = self._is_resumable(one)
        self._per_user[one.user] += 1
        try:
            await asyncio.shield(self.writer.submit(lambda: self._register(one, query)))
            self.registry.begin(one)
        except BaseException as error:
            self._per_user[one.user] -= 1
            self.registry.live.pop(one.spuid, None)
            self.writer.submit(lambda: self._abandon(one))
            raise problem_of(error) if isinstance(error, EvergraphError) else error from error
        self.metrics.count("subscribed")
        self._attach(channel, one)

    def _attach(self, channel: Channel, one: Subscription) -> None:
        if channel in self.channels:
            channel.attach(one)
        else:  # the connection broke while the query was registered
            self._leave(one)

    def _admit(self, one: Subscription) -> Query:
        self._refuse_if_closing()
        if self._per_user[one.user] >= self.limits.subscriptions_per_user:
            most = self.limits.subscriptions_per_user
            raise Problem(problems.TOO_MANY, f"you have {most} subscriptions, and may have no more", 429)
        try:
            return standing_query(one)
        except EvergraphError as error:
            raise problem_of(error) from error

    def _register(self, one: Subscription, query: Query) -> None:
        """Register a query; in the thread of the writer."""
        sequence, view = self.database.follow(query, one)
        first = view.rows()
        if len(first) > self.limits.rows_per_subscription:
            self.database.unfollow(view)
            raise StateLimit(
                f"the result has {len(first)} rows; a subscription may have {self.limits.rows_per_subscription}",
                hint="make the query more selective",
            )
        one.view = view
        self.writer.deliver(one, view, sequence, first)

    def _abandon(self, one: Subscription) -> None:
        """Stop to maintain what nobody waits for any more; in the thread of the writer."""
        view, one.view = one.view, None
        if view is not None:
            self.database.unfollow(view)

    async def resume(self, channel: Channel, spuid: str, sequence: int) -> tuple[Subscription, str | None]:
        """Go on with a subscription after a notification. Returns why it had to begin anew, or None."""
        one = self.registry.absent.get(spuid) or self.registry.live.get(spuid)
        if one is None or one.user != channel.user:
            raise Problem(problems.UNKNOWN_SUBSCRIPTION, f"there is no subscription {spuid}, or it is not yours", 404)
        if spuid in self._resuming:
            raise Problem(problems.PROTOCOL, f"{spuid} is being resumed by another connection", 409)
        self._resuming.add(spuid)
        try:
            return await self._resume(one, sequence)
        finally:
            self._resuming.discard(spuid)

    async def _resume(self, one: Subscription, sequence: int) -> tuple[Subscription, str | None]:
        if one.spuid in self.registry.live:
            self._leave(one)  # the client has noticed before the broker that the old connection is lost
        query = self._admit(one)
        reason = self._why_not(one, sequence)
        self.registry.back(one)
        self._per_user[one.user] += 1
        if reason is None:
            change = one.change_of(sequence)
            assert change is not None
            one.forget_after(sequence)
            try:
                await self._catch_up(one, query, change)
            except EvergraphError as error:
                self._leave(one)
                raise problem_of(error) from error
        else:
            one.forget_after(-1)
            one.first, one.sequence = 0, -1
            try:
                await asyncio.shield(self.writer.submit(lambda: self._register(one, query)))
            except EvergraphError as error:
                self._leave(one)
                raise problem_of(error) from error
        self.metrics.count("resumed" if reason is None else "restarted")
        return one, reason

    def attach(self, channel: Channel, one: Subscription) -> None:
        """Let notifications of a resumed subscription go through a channel."""
        self._attach(channel, one)

    def _why_not(self, one: Subscription, sequence: int) -> str | None:
        change = one.change_of(sequence)
        if not one.resumable:
            return "what was missed cannot be found: there is no change log, or the query asks what time it is"
        if change is None or change > self.database.sequence:
            return f"it is not known which change notification {sequence} was about"
        if self.database.sequence - change > self.limits.replayed_changes:
            return f"more than {self.limits.replayed_changes} changes were missed"
        return None

    async def _catch_up(self, one: Subscription, query: Query, after: int) -> None:
        """Register a query, and find what it has missed without keeping writers waiting."""

        def register() -> Any:
            moment = self.database.moment(query)
            sequence, view = self.database.follow(query, one)
            assert sequence == moment.sequence
            one.view = view
            return moment

        moment = await asyncio.shield(self.writer.submit(register))
        try:
            changes = await self._changes_between(after, moment.sequence)
            steps = await asyncio.to_thread(missed_steps, moment, changes)
        except BaseException:
            self._leave(one)
            raise
        view = one.view
        assert view is not None

        def translate() -> list[tuple[int, ZSet]]:
            return [(change, view.encoded(rows)) for change, rows in steps]

        missed = await asyncio.shield(self.writer.submit(translate))
        one.pending.extendleft(reversed(missed))
        one.rows += sum(len(step) for _, step in missed)

    async def _changes_between(self, after: int, last: int) -> list[Change]:
        recent = self.recent.after(after)
        if recent is not None and len(recent) >= last - after:
            return recent[: last - after]
        logged = self.database.changes(after)
        return await asyncio.to_thread(lambda: list(islice(logged, last - after)))

    async def unsubscribe(self, channel: Channel, spuid: str) -> None:
        """End a subscription of the channel, or of its user."""
        one = channel.subscriptions.get(spuid)
        if one is None and channel.user and not channel.user.startswith("@"):
            other = self.registry.live.get(spuid) or self.registry.absent.get(spuid)
            one = other if other is not None and other.user == channel.user else None
        if one is None:
            raise Problem(problems.UNKNOWN_SUBSCRIPTION, f"there is no subscription {spuid}, or it is not yours", 404)
        self._stop(one)
        self.registry.end(one)
        self.registry.commit()
        self.metrics.count("unsubscribed")

    def open(self, channel: Channel) -> None:
        """Take note of a channel."""
        if len(self.channels) >= self.limits.connections:
            raise Problem(problems.TOO_MANY, "too many connections", 429)
        self.channels[channel] = None

    def close(self, channel: Channel) -> None:
        """Take note that the connection of a channel is gone."""
        self.channels.pop(channel, None)
        subscriptions = list(channel.subscriptions.values())
        views = [one.view for one in subscriptions if one.view is not None]
        for one in subscriptions:
            one.view = None
            self._put_aside(one)
        self.registry.commit()
        for start in range(0, len(views), _TOGETHER):
            self._unfollow(*views[start : start + _TOGETHER])

    def _leave(self, one: Subscription) -> None:
        """Stop to maintain a subscription; it may be resumed."""
        self._put_aside(one)
        self.registry.commit()

    def _put_aside(self, one: Subscription) -> None:
        self._stop(one)
        if one.resumable and one.sequence >= 0:
            self.registry.gone(one)
        else:
            self.registry.end(one)

    def _stop(self, one: Subscription) -> None:
        view, one.view = one.view, None
        if one.spuid in self.registry.live:
            self._per_user[one.user] -= 1
        if one.channel is not None:
            one.channel.detach(one)
        one.pending.clear()
        one.rows = 0
        if view is not None:
            self._unfollow(view)

    def _unfollow(self, *views: View) -> None:
        def work() -> None:
            for view in views:
                self.database.unfollow(view)

        if not self.closing:
            self.writer.submit(work)

    # --- what the writer tells

    def _observe(self, changes: list[Change]) -> None:
        """Let what is derived follow; in the thread of the writer."""
        self.shelf.take(changes)
        self.linksets.take(changes)

    def _publish(self, deliveries: list[Delivery], changes: list[Change]) -> None:
        for one, view, sequence, step in deliveries:
            if step is None:
                self._failed(one)
            elif one.view is view:  # else it is from before the subscription was resumed, or ended
                one.push(sequence, step)
        if changes:
            for change in changes:
                self.recent.add(change)
            self.metrics.count("updates", len(changes))
            self.metrics.count("quads_inserted", sum(len(change.inserted) for change in changes))
            self.metrics.count("quads_deleted", sum(len(change.deleted) for change in changes))
            for event in self._news:
                event.set()
        if deliveries:
            self.metrics.count("notified", len(deliveries))

    def _failed(self, one: Subscription) -> None:
        """Tell a subscriber that its query had to be given up."""
        view = one.view
        if view is None or view.failed is None:
            return
        problem = problem_of(view.failed)
        if one.channel is not None:
            one.channel.say(problem.text(one.alias))
        self._stop(one)
        self.registry.end(one)
        self.registry.commit()

    async def wait_for_change(self, after: int, seconds: float) -> bool:
        """Wait until there is a change after a sequence number; tell whether there is."""
        if self.database.sequence > after:
            return True
        event = asyncio.Event()
        self._news.add(event)
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except TimeoutError:
            return False
        finally:
            self._news.discard(event)
        return True

    def _is_resumable(self, one: Subscription) -> bool:
        return self.database.has_log and not _CLOCK.search(one.text)

    def _refuse_if_closing(self) -> None:
        if self.closing:
            raise Problem(problems.CLOSING, "the broker is shutting down", 503, {"Retry-After": "5"})


def standing_query(one: Subscription) -> Query:
    """Parse the query of a subscription, over the graphs that it names."""
    query = parse_query(one.text)
    check_patterns(query)
    if one.default_graphs or one.named_graphs:
        default, named = (tuple(map(NamedNode, names)) for names in (one.default_graphs, one.named_graphs))
        query = replace(query, dataset=DatasetClause(default, named))
    return query
