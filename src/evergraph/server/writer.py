"""The one thread that changes the database: first in, first out, updates that wait being written together.

What the database tells listeners while the thread works is collected, and handed to the event loop once everything is
durable; only then are updates acknowledged.
"""

import asyncio
import logging
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from evergraph.database import Database, UpdateRequest
from evergraph.delta import Change
from evergraph.engines.local.dictionary import ZSet
from evergraph.engines.local.views import View
from evergraph.server.logs import NAME
from evergraph.server.subscriptions import Subscription
from evergraph.server.threads import start_thread

T = TypeVar("T")


class Job(Generic[T]):
    """Something for the thread to do, and the future that has the outcome."""

    __slots__ = ("future", "task")

    def __init__(self, task: Callable[[], T] | UpdateRequest, future: "asyncio.Future[T]") -> None:
        self.task = task
        self.future = future


Delivery = tuple[Subscription, View | None, int, ZSet | None]
Publish = Callable[[list[Delivery], list[Change]], None]


class Writer:
    """Does jobs in the order of asking.

    ``observe`` is called with changes in the thread, ``publish`` with what came of them on the event loop.
    """

    def __init__(
        self, database: Database, publish: Publish, batch: int, observe: Callable[[list[Change]], None]
    ) -> None:
        self._database = database
        self._observe = observe
        self._publish = publish
        self._batch = batch
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._deliveries: list[Delivery] = []
        self._thread = start_thread(self._run, "evergraph-writer")
        self.waiting = 0
        """How many jobs have not been done yet."""

    def submit(self, task: Callable[[], T]) -> "asyncio.Future[T]":
        """Do something in its turn."""
        return self._put(task)

    def update(self, request: UpdateRequest) -> "asyncio.Future[Change]":
        """Run an update request in its turn; the future is done when it is durable."""
        return self._put(request)

    def _put(self, task: Any) -> "asyncio.Future[Any]":
        future = self._loop.create_future()
        self.waiting += 1
        self._jobs.put(Job(task, future))
        return future

    def deliver(self, subscription: Subscription, view: View | None, sequence: int, step: ZSet | None) -> None:
        """Take what a change did to the result of a subscription. Only jobs cause this, so it is in this thread."""
        self._deliveries.append((subscription, view, sequence, step))

    async def stop(self) -> None:
        """Do what was asked for so far, and end."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    # --- in the thread

    def _run(self) -> None:
        while True:
            jobs, last = self._next()
            self._do(jobs)
            if last:
                return

    def _next(self) -> tuple[list[Job[Any]], bool]:
        """Wait for a job, and take those that wait behind it too."""
        first = self._jobs.get()
        if first is None:
            return [], True
        jobs = [first]
        while len(jobs) < self._batch:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
            if job is None:
                return jobs, True
            jobs.append(job)
        return jobs, False

    def _do(self, jobs: list[Job[Any]]) -> None:
        place = 0
        while place < len(jobs):
            end = place
            while end < len(jobs) and isinstance(jobs[end].task, UpdateRequest):
                end += 1
            if end > place:
                self._update(jobs[place:end])
                place = end
            else:
                self._call(jobs[place])
                place += 1

    def _update(self, jobs: list[Job[Any]]) -> None:
        outcomes: list[Any]
        try:
            requests = [job.task for job in jobs if isinstance(job.task, UpdateRequest)]
            outcomes = list(self._database.update_all(requests))
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            outcomes = [error] * len(jobs)
        changes = [outcome for outcome in outcomes if isinstance(outcome, Change)]
        self._observe(changes)
        self._hand_over(jobs, outcomes, changes)

    def _call(self, job: Job[Any]) -> None:
        outcome: Any
        try:
            assert not isinstance(job.task, UpdateRequest)
            outcome = job.task()
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            outcome = error
        self._hand_over([job], [outcome], [])

    def _hand_over(self, jobs: list[Job[Any]], outcomes: list[Any], changes: list[Change]) -> None:
        deliveries, self._deliveries = self._deliveries, []
        self._loop.call_soon_threadsafe(self._finish, jobs, outcomes, changes, deliveries)

    # --- on the event loop

    def _finish(
        self,
        jobs: list[Job[Any]],
        outcomes: list[Any],
        changes: list[Change],
        deliveries: list[Delivery],
    ) -> None:
        self.waiting -= len(jobs)
        try:
            self._publish(deliveries, changes)
        except Exception:  # whoever waits for an update is told in any case
            logging.getLogger(NAME).exception("subscribers could not be told of a change")
        for job, outcome in zip(jobs, outcomes, strict=True):
            if job.future.done():
                continue  # whoever asked has gone away
            if isinstance(outcome, Exception):
                job.future.set_exception(outcome)
                job.future.exception()  # it counts as seen, even if nobody waits any more
            else:
                job.future.set_result(outcome)
