"""Turns at hosts: so many requests at a time, a pause between them, and silence for as long as a host asks for it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Host:
    turns: asyncio.Semaphore
    next_start: float = 0.0
    delay: float = 0.0
    order: asyncio.Lock = field(default_factory=asyncio.Lock)


class Hosts:
    """Gives out turns, by origin."""

    def __init__(self, per_host: int, delay: float) -> None:
        self._per_host = per_host
        self._delay = delay
        self._hosts: dict[str, _Host] = {}

    @asynccontextmanager
    async def turn(self, origin: str) -> AsyncIterator[None]:
        """Wait for a turn at a host, and give it back."""
        host = self._host(origin)
        async with host.turns:
            async with host.order:  # one at a time looks at the clock, and moves it on
                while (wait := host.next_start - time.monotonic()) > 0:
                    await asyncio.sleep(wait)
                host.next_start = time.monotonic() + host.delay
            yield

    def set_delay(self, origin: str, seconds: float) -> None:
        """Let at least so many seconds pass between the starts of two requests."""
        host = self._host(origin)
        host.delay = max(host.delay, seconds)

    def silence(self, origin: str, seconds: float) -> None:
        """Start no request at a host for so many seconds."""
        host = self._host(origin)
        host.next_start = max(host.next_start, time.monotonic() + seconds)

    def _host(self, origin: str) -> _Host:
        if origin not in self._hosts:
            self._hosts[origin] = _Host(asyncio.Semaphore(self._per_host), delay=self._delay)
        return self._hosts[origin]
