"""The broker over loopback, with durable writes: updates per second, and the time from an update to its notifications.

A broker runs as a process of its own with its data on disk; clients are one other process, so that what they cost is in
the numbers too. Subscriptions are ``SELECT ?v { <sensor> :value ?v }`` with one sensor for each thousand subscriptions
(one, if there are fewer), over one WebSocket for each ten thousand. An update gives one sensor one more value: it
touches one subscription in a thousand, and at least one.

* "throughput" has as many writers as there are, each sending one update after the other, until so many are answered;
* "latency" sends updates at a steady pace, and takes the time from sending one until its first and its last
  notification has arrived; the median, and the 99th percentile over updates of the last;
* "untouched" updates what only one subscription of another kind follows: what the others cost that are not touched. It
  is compared with the smallest number of subscriptions that has a hundred; the target is at most 1.5;
* "naive" is the algorithm of the paper in the same run: after each update every subscription is evaluated again over
  the store, and compared with what it was. It runs in one process without any network, which favours it.

* "disk" writes a line and waits for the disk, at the same pace, and does nothing else;
* "no disk" is the broker with the number of subscriptions of the target and its data in memory that looks like a disk:
  what of a time is not the disk's.

Targets: 1,000 updates per second and a 99th percentile of 10 ms with 10,000 subscriptions.

``evergraph bench broker`` runs all of it. ``EVERGRAPH_BENCH_SUBSCRIPTIONS=1,100`` takes other numbers of subscriptions;
``EVERGRAPH_BENCH_HOURS=1`` loads a broker for so long instead, and reports its memory every minute, after four million
changes that fill the caches of the store.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from pyoxigraph import QuerySolutions, Store
from websockets.asyncio.client import ClientConnection, connect

from bench.report import Report

COUNTS = (1, 100, 10_000, 100_000)
PER_SENSOR = 1_000
PER_SOCKET = 10_000
UPDATES = 3_000
WRITERS = 64
PACED = 300
PACE = 0.02
VALUE = "http://sensors.example/value"
OTHER = "http://sensors.example/other"
NAIVE_SECONDS = 10.0
TARGET = 10_000
MEMORY = Path("/dev/shm")
SOAK_VALUES = 5_000
FILL = 4_000_000
FILL_QUADS = 200


@contextmanager
def broker(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Run a broker; gives its host, its port, and the id of its process."""
    command = [sys.executable, "-m", "evergraph", "serve", "--store", str(folder), "--port", "0"]
    command += ["--subscriptions-per-user", "1000000", "--requests-per-second", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = line.split("http://")[1].strip()
        host, _, port = address.partition(":")
        try:
            yield host, int(port), process.pid
        finally:
            process.terminate()
            process.wait(60)


def memory(process: int) -> int:
    """Tell the memory of a process, in bytes."""
    text = Path(f"/proc/{process}/status").read_text()
    [line] = [line for line in text.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


class Http:
    """A connection that sends updates and does nothing else, so that the client costs as little as possible."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def update(self, text: str) -> None:
        """Send an update, and wait until it is durable."""
        body = text.encode()
        self._writer.write(
            b"POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-update\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await self._reader.readexactly(length)


@asynccontextmanager
async def http(host: str, port: int) -> AsyncIterator[Http]:
    """Open a connection."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        yield Http(reader, writer)
    finally:
        writer.close()


class Listener:
    """Sockets with subscriptions, and when notifications of which value arrived."""

    def __init__(self) -> None:
        self.sockets: list[ClientConnection] = []
        self.arrived: dict[str, list[float]] = {}
        self.other: dict[str, list[float]] = {}
        self.count = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def subscribe(self, url: str, queries: list[str]) -> None:
        """Open a socket with some subscriptions, and listen."""
        socket = await connect(url, max_size=None, compression=None, ping_interval=None)
        self.sockets.append(socket)
        for start in range(0, len(queries), 100):
            some = queries[start : start + 100]
            for query in some:
                await socket.send(json.dumps({"subscribe": {"sparql": query}}))
            begun = 0
            while begun < len(some):
                begun += json.loads(await socket.recv())["notification"]["sequence"] == 0
        self._tasks.append(asyncio.create_task(self._listen(socket)))

    async def _listen(self, socket: ClientConnection) -> None:
        async for text in socket:
            now = time.perf_counter()
            self.count += 1
            # Parsing would measure the client: the value of an update is found by its mark.
            assert isinstance(text, str)
            at = text.find("!")
            kind, value = text[at + 1], text[at + 1 : text.find("!", at + 1)]
            (self.other if kind == "o" else self.arrived).setdefault(value, []).append(now)

    async def heard(self, count: int) -> None:
        """Wait until so many notifications have arrived."""
        end = time.perf_counter() + 60
        while self.count < count:
            assert time.perf_counter() < end, f"{count - self.count} notifications are missing"
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        """Close all sockets."""
        for task in self._tasks:
            task.cancel()
        for socket in self.sockets:
            await socket.close()


def sensor(number: int) -> str:
    """Name a sensor."""
    return f"http://sensors.example/{number}"


def queries(count: int) -> list[str]:
    """Make subscriptions."""
    sensors = max(1, min(count, PER_SENSOR))
    return [f"SELECT ?v {{ <{sensor(number % sensors)}> <{VALUE}> ?v }}" for number in range(count)]


def touched(count: int) -> int:
    """Tell how many subscriptions an update touches."""
    return max(1, count // PER_SENSOR)


async def throughput(host: str, port: int, count: int, label: str) -> float:
    """Send updates as fast as they are answered; return how many per second."""
    sensors = max(1, min(count, PER_SENSOR))
    waiting = iter(range(UPDATES))

    async def write() -> None:
        async with http(host, port) as one:
            for number in waiting:
                await one.update(f'INSERT DATA {{ <{sensor(number % sensors)}> <{VALUE}> "!v{label}{number}!" }}')

    begin = time.perf_counter()
    await asyncio.gather(*(write() for _ in range(WRITERS)))
    return UPDATES / (time.perf_counter() - begin)


async def latency(
    host: str, port: int, listener: Listener, count: int, label: str, *, is_other: bool
) -> tuple[list[float], list[float]]:
    """Send updates at a steady pace; return the times until the first and the last notification, in ms."""
    sensors = max(1, min(count, PER_SENSOR))
    expected, arrived = (1, listener.other) if is_other else (touched(count), listener.arrived)
    predicate, mark = (OTHER, "o") if is_other else (VALUE, "v")
    sent: dict[str, float] = {}
    async with http(host, port) as one:
        start = time.perf_counter()
        for number in range(PACED):
            await asyncio.sleep(max(0.0, start + number * PACE - time.perf_counter()))
            value = f"{mark}{label}{number}"
            sent[value] = time.perf_counter()
            await one.update(f'INSERT DATA {{ <{sensor(number % sensors)}> <{predicate}> "!{value}!" }}')
    end = time.perf_counter() + 30
    while any(len(arrived.get(value, ())) < expected for value in sent) and time.perf_counter() < end:
        await asyncio.sleep(0.01)
    missing = [value for value in sent if len(arrived.get(value, ())) != expected]
    assert not missing, f"{len(missing)} updates have not been told to everybody"
    firsts = [1000 * (min(arrived[value]) - begin) for value, begin in sent.items()]
    lasts = [1000 * (max(arrived[value]) - begin) for value, begin in sent.items()]
    return firsts, lasts


def percentile(times: list[float], part: float) -> float:
    """Return a percentile."""
    return sorted(times)[min(len(times) - 1, int(part * len(times)))]


async def measure(count: int, report: Report, first: dict[str, float], place: Path | None = None) -> None:
    """Measure a broker with so many subscriptions; its data are in a folder below ``place``."""
    with tempfile.TemporaryDirectory(dir=place) as folder, broker(Path(folder) / "db") as (host, port, process):
        url = f"ws://{host}:{port}/subscribe"
        listener = Listener()
        before = memory(process)
        texts = queries(count)
        begin = time.perf_counter()
        for start in range(0, count, PER_SOCKET):
            await listener.subscribe(url, texts[start : start + PER_SOCKET])
        registered = 1e6 * (time.perf_counter() - begin) / count
        each = (memory(process) - before) / count
        await listener.subscribe(url, [f"SELECT ?s ?v {{ ?s <{OTHER}> ?v }}"])
        await latency(host, port, listener, count, "warm", is_other=True)
        _, untouched = await latency(host, port, listener, count, "paced", is_other=True)
        firsts, lasts = await latency(host, port, listener, count, "paced", is_other=False)
        told = listener.count + touched(count) * UPDATES
        rate = await throughput(host, port, count, "fast")
        await listener.heard(told)
        await listener.close()
    base = first.setdefault("untouched", statistics.median(untouched)) if count >= 100 else 0.0
    report.add(
        "evergraph" if place is None else "evergraph, no disk", count, touched(count), rate,
        statistics.median(firsts), statistics.median(lasts), percentile(lasts, 0.99),
        statistics.median(untouched), statistics.median(untouched) / base if base else "—",
        registered, round(each) if count >= 100 else "—",
    )  # fmt: skip


def naive(count: int, report: Report) -> None:
    """Evaluate every subscription again after each update, as the paper's engine does."""
    store = Store()
    texts = queries(count)
    results: list[set[str]] = [set() for _ in texts]
    times: list[float] = []
    end = time.perf_counter() + NAIVE_SECONDS
    number = 0
    while number < UPDATES and (not times or time.perf_counter() < end):
        begin = time.perf_counter()
        store.update(f'INSERT DATA {{ <{sensor(number % PER_SENSOR)}> <{VALUE}> "{number}" }}')
        for place, text in enumerate(texts):
            found = store.query(text)
            assert isinstance(found, QuerySolutions)
            rows = {str(row["v"]) for row in found}
            added, removed = rows - results[place], results[place] - rows
            if added or removed:
                results[place] = rows
        times.append(1000 * (time.perf_counter() - begin))
        number += 1
    rate = 1000 * len(times) / sum(times)
    median = statistics.median(times)
    blank = "—"
    report.add(
        "naive", count, touched(count), rate, median, median, percentile(times, 0.99), blank, blank, blank, blank
    )


def disk(report: Report) -> None:
    """Write a line and wait for the disk, at the pace of the updates: no notification of a durable update is faster."""
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "file").open("wb", buffering=0) as out:
        for _ in range(PACED):
            begin = time.perf_counter()
            out.write(b"x" * 200)
            os.fdatasync(out.fileno())
            times.append(1000 * (time.perf_counter() - begin))
            time.sleep(PACE)
    median = statistics.median(times)
    blank = "—"
    rate = 1000 * len(times) / sum(times)
    report.add("disk", 0, 0, rate, median, median, percentile(times, 0.99), blank, blank, blank, blank)


async def soak(hours: float, report: Report) -> None:
    """Load a broker for long, with subscribers that come and go, and report its memory."""
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder) / "db") as (host, port, process):
        url = f"ws://{host}:{port}/subscribe"
        begin = end = 0.0
        done = 0

        async def fill() -> None:
            """Insert and delete the same quads, until the caches of the store have what they may have."""
            async with http(host, port) as one:
                for request in range(FILL // FILL_QUADS):
                    keyword = "INSERT" if request % 2 == 0 else "DELETE"
                    first = request // 2 * FILL_QUADS
                    numbers = range(first, first + FILL_QUADS)
                    quads = " ".join(f'<{sensor(n % PER_SENSOR)}> <{VALUE}> "!v{n % SOAK_VALUES}!" .' for n in numbers)
                    await one.update(f"{keyword} DATA {{ {quads} }}")

        async def write() -> None:
            nonlocal done
            async with http(host, port) as one:
                while time.monotonic() < end:
                    name, value = sensor(done % PER_SENSOR), f'"!v{done % SOAK_VALUES}!"'
                    keyword = "INSERT" if (done // SOAK_VALUES) % 2 == 0 else "DELETE"
                    done += 1
                    await one.update(f"{keyword} DATA {{ <{name}> <{VALUE}> {value} }}")
                    await asyncio.sleep(PACE)

        async def come_and_go() -> None:
            while time.monotonic() < end:
                listener = Listener()
                await listener.subscribe(url, queries(200))
                await asyncio.sleep(5)
                await listener.close()

        async def tell() -> None:
            while time.monotonic() < end:
                report.add(round(time.monotonic() - begin), done, memory(process) / 2**20)
                print(*report.rows[-1], flush=True)
                await asyncio.sleep(min(60.0, 360 * hours))

        print(f"{memory(process) >> 20} MiB before the caches are filled", flush=True)
        await fill()
        begin = time.monotonic()
        end = begin + 3600 * hours
        await asyncio.gather(*(write() for _ in range(8)), come_and_go(), come_and_go(), tell())
    report.show()


def main() -> None:
    """Run everything and write the results."""
    if hours := os.environ.get("EVERGRAPH_BENCH_HOURS"):
        asyncio.run(soak(float(hours), Report("broker_hours", ("seconds", "updates", "MiB"))))
        return
    chosen = os.environ.get("EVERGRAPH_BENCH_SUBSCRIPTIONS")
    counts = tuple(map(int, chosen.split(","))) if chosen else COUNTS
    columns = (
        "system", "subscriptions", "touched", "updates/s",
        "first p50 ms", "last p50 ms", "last p99 ms", "untouched p50 ms", "×", "register µs", "bytes each",
    )  # fmt: skip
    report = Report("broker", columns, packages=("evergraph", "pyoxigraph", "uvicorn", "websockets"))
    first: dict[str, float] = {}
    disk(report)
    for count in counts:
        asyncio.run(measure(count, report, first))
        if count == TARGET and MEMORY.is_dir():
            asyncio.run(measure(count, report, first, MEMORY))
        naive(count, report)
    report.show()


if __name__ == "__main__":
    main()
