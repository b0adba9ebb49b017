"""The three-pattern star in Pathway, run by ``bench/standing.py`` with an interpreter that has it.

Prints the version, the median, 99th percentile and maximum of single changes from commit to callback in µs, and the
seconds that loading took.
"""

import sys
import threading
import time
from importlib.metadata import version
from random import Random

import pathway as pw  # type: ignore[import-not-found]

PERSONS = int(sys.argv[1])
CHANGES = 1_000
KIND, AGE, CITY, NAME, KNOWS = range(5)


class Triple(pw.Schema):  # type: ignore[misc]
    """A triple of numbers."""

    s: int = pw.column_definition(primary_key=True)
    p: int = pw.column_definition(primary_key=True)
    o: int = pw.column_definition(primary_key=True)


class Changes(pw.io.python.ConnectorSubject):  # type: ignore[misc]
    """Loads the data, then deletes and inserts ages, one at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = 0
        self.arrived = threading.Event()
        self.loaded = 0.0
        self.taken: list[int] = []

    def run(self) -> None:
        """Feed the graph, and take the time."""
        random = Random(1)
        ages = []
        begin = time.perf_counter()
        for number in range(PERSONS):
            ages.append(random.randrange(100))
            self.next(s=number, p=KIND, o=0)
            self.next(s=number, p=AGE, o=ages[-1])
            self.next(s=number, p=CITY, o=random.randrange(1_000))
            self.next(s=number, p=NAME, o=number)
            for other in random.sample(range(PERSONS), 6):
                self.next(s=number, p=KNOWS, o=other)
        self.commit()
        while self.rows < PERSONS:
            time.sleep(0.01)
        self.loaded = time.perf_counter() - begin
        for number in random.sample(range(PERSONS), CHANGES):
            for delete in (True, False):
                self.arrived.clear()
                start = time.perf_counter_ns()
                if delete:
                    self.delete(s=number, p=AGE, o=ages[number])
                else:
                    self.next(s=number, p=AGE, o=ages[number])
                self.commit()
                self.arrived.wait(10)
                self.taken.append(time.perf_counter_ns() - start)


changes = Changes()
triples = pw.io.python.read(changes, schema=Triple, autocommit_duration_ms=1_000)
kinds = triples.filter((pw.this.p == KIND) & (pw.this.o == 0))
ages = triples.filter(pw.this.p == AGE)
cities = triples.filter(pw.this.p == CITY)
both = kinds.join(ages, pw.left.s == pw.right.s).select(s=pw.left.s, age=pw.right.o)
star = both.join(cities, pw.left.s == pw.right.s).select(s=pw.left.s, age=pw.left.age, city=pw.right.o)


def arrive(key: object, row: object, time: int, is_addition: bool) -> None:
    """Count the rows of the result."""
    changes.rows += 1 if is_addition else -1
    changes.arrived.set()


pw.io.subscribe(star, on_change=arrive)
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
taken = sorted(changes.taken)
percentiles = [taken[len(taken) // 2], taken[len(taken) * 99 // 100], taken[-1]]
print(version("pathway"), *(one / 1000 for one in percentiles), changes.loaded)
