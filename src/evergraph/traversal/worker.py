"""A thread that fetches while the query is being maintained."""

import asyncio
import contextlib
from queue import Empty, SimpleQueue
from threading import Thread

from evergraph.traversal.archive import Archive
from evergraph.traversal.client import Traffic
from evergraph.traversal.fetching import Document, Fetcher, Problem
from evergraph.traversal.options import Limits, Manners


class Worker:
    """Fetches addresses that are submitted, in an event loop of its own; what comes of them can be taken."""

    def __init__(self, manners: Manners, limits: Limits, archive: Archive) -> None:
        self._settings = (manners, limits, archive)
        self._outcomes: SimpleQueue[Document | Problem | BaseException] = SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._fetcher: Fetcher | None = None
        self._thread = Thread(target=self._run, name="evergraph-traversal", daemon=True)
        self._thread.start()

    @property
    def traffic(self) -> Traffic:
        """How much has been asked and received."""
        return self._fetcher.traffic if self._fetcher is not None else Traffic()

    def submit(self, url: str, since: float) -> None:
        """Let an address be fetched."""
        self._loop.call_soon_threadsafe(self._start, url, since)

    def take(self, timeout: float) -> Document | Problem | None:
        """Return the next outcome; None if there is none in time. Raises what broke the fetching itself."""
        try:
            outcome = self._outcomes.get(timeout=timeout) if timeout else self._outcomes.get_nowait()
        except Empty:
            return None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def close(self) -> None:
        """Give up what is under way, and end the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._end())
            self._loop.close()

    def _start(self, url: str, since: float) -> None:
        task = self._loop.create_task(self._fetch(url, since))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fetch(self, url: str, since: float) -> None:
        try:
            if self._fetcher is None:
                self._fetcher = Fetcher(*self._settings)
            self._outcomes.put(await self._fetcher.fetch(url, since))
        except Exception as error:  # noqa: BLE001 - it is raised where the outcome is taken
            self._outcomes.put(error)

    async def _end(self) -> None:
        if self._fetcher is not None:
            await self._fetcher.close()
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*rest, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()
