"""Coroutines that ask questions, answered in rounds: all that are open at one time go into one scan."""

from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask(Generic[Q]):
    """Awaited, it gives the answer to a question."""

    question: Q

    def __await__(self) -> Generator["Ask[Q]", Any, Any]:
        return (yield self)


@dataclass(frozen=True, slots=True)
class All(Generic[T]):
    """Awaited, it runs coroutines at the same time and gives their results, in order."""

    coroutines: tuple[Coroutine[Any, Any, T], ...]

    def __await__(self) -> Generator["All[T]", Any, list[T]]:
        return (yield self) if self.coroutines else []


def every(coroutines: Iterable[Coroutine[Any, Any, T]]) -> All[T]:
    """Run coroutines at the same time."""
    return All(tuple(coroutines))


class _Group:
    """Coroutines that run at the same time for one that waits; once one of them has failed, the others do not count."""

    def __init__(self, waiting: "_Task", size: int) -> None:
        self.waiting = waiting
        self.results: list[Any] = [None] * size
        self.missing = size


class _Task:
    def __init__(self, coroutine: Coroutine[Any, Any, Any], group: _Group | None, place: int) -> None:
        self.coroutine = coroutine
        self.group = group
        self.place = place
        self.value: Any = None
        self.error: Exception | None = None

    def resume(self) -> "Ask[Any] | All[Any]":
        """Go on to the next thing to wait for."""
        error, self.error = self.error, None
        wanted: Ask[Any] | All[Any] = self.coroutine.send(self.value) if error is None else self.coroutine.throw(error)
        return wanted


def run(coroutines: Sequence[Coroutine[Any, Any, T]], answer: Callable[[list[Q]], list[A]]) -> list[T]:
    """Run coroutines to their ends; ``answer`` is called once for all questions that are open at one time."""
    results: list[Any] = [None] * len(coroutines)
    ready = deque(_Task(coroutine, None, place) for place, coroutine in enumerate(coroutines))
    asking: list[tuple[_Task, Q]] = []
    while ready:
        task = ready.popleft()
        try:
            wanted = task.resume()
        except StopIteration as end:
            if task.group is None:
                results[task.place] = end.value
            else:
                ready.extend(_finished(task.group, task.place, end.value))
        except Exception as error:
            if task.group is None:
                raise
            ready.extend(_failed(task.group, error))
        else:
            if isinstance(wanted, All):
                group = _Group(task, len(wanted.coroutines))
                ready.extend(_Task(one, group, place) for place, one in enumerate(wanted.coroutines))
            else:
                asking.append((task, wanted.question))
        if not ready and asking:
            for (waiting, _), value in zip(asking, answer([question for _, question in asking]), strict=True):
                waiting.value = value
                ready.append(waiting)
            asking = []
    return results


def _finished(group: _Group, place: int, value: Any) -> list[_Task]:
    group.results[place] = value
    group.missing -= 1
    if group.missing:
        return []
    group.waiting.value = group.results
    return [group.waiting]


def _failed(group: _Group, error: Exception) -> list[_Task]:
    if group.missing < 0:
        return []
    group.missing = -1  # from here on it only falls
    group.waiting.error = error
    return [group.waiting]
