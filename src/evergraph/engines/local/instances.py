"""Operators that keep a plan for each graph or for each binding. Their rules are in `evergraph.plan.nodes`."""

from collections.abc import Callable, Hashable
from typing import Protocol

from evergraph.engines.local.dictionary import Row, ZSet, add
from evergraph.engines.local.operators import Budget, Operator


class Circuit(Protocol):
    """A plan at work, with all that it has of the store."""

    def pull(self) -> ZSet:
        """Return the change since the last call."""
        ...

    def size(self) -> int:
        """Count the entries of state."""
        ...

    def close(self) -> None:
        """Give back what it has of the store."""
        ...


MakeCircuit = Callable[[Row, Callable[[], None]], Circuit]
"""Makes the circuit for a graph or for a binding; the second argument is what it calls when it has something to do."""


class _Instances:
    """Circuits by key, and which of them have something to do."""

    def __init__(self, make: MakeCircuit, touch: Callable[[], None]) -> None:
        self._make = make
        self._touch = touch
        self._circuits: dict[Row, Circuit] = {}
        self._dirty: dict[Row, None] = {}

    def start(self, key: Row) -> ZSet:
        """Make a circuit and return its whole result."""

        def touch() -> None:
            self._dirty[key] = None
            self._touch()

        circuit = self._circuits[key] = self._make(key, touch)
        return circuit.pull()

    def stop(self, key: Row) -> None:
        """Drop a circuit."""
        self._circuits.pop(key).close()
        self._dirty.pop(key, None)

    def changes(self) -> list[tuple[Row, ZSet]]:
        """Return the changes of the circuits that have any."""
        dirty, self._dirty = self._dirty, {}
        return [(key, self._circuits[key].pull()) for key in dirty if key in self._circuits]

    def close(self) -> None:
        """Drop all circuits."""
        for key in list(self._circuits):
            self.stop(key)

    def __len__(self) -> int:
        return len(self._circuits)

    def size(self) -> int:
        """Count the entries of state of all circuits."""
        return sum(circuit.size() for circuit in self._circuits.values())


class GraphOperator:
    """Graph: a circuit for each named graph."""

    def __init__(self, names: Operator, make: MakeCircuit, touch: Callable[[], None]) -> None:
        self._names = names
        self._instances = _Instances(make, touch)
        self._results: dict[Row, ZSet] = {}

    def pull(self) -> ZSet:
        """Sum the changes of the graphs that stay, the results of those that came, and less those that went."""
        names = self._names.pull()
        out: ZSet = {}
        for name, delta in self._instances.changes():
            if name not in names:
                for row, weight in delta.items():
                    add(self._results[name], row, weight)
                    add(out, row + name, weight)
        for name, weight in names.items():
            if weight > 0:
                self._results[name] = self._instances.start(name)
                result = self._results[name]
            else:
                self._instances.stop(name)
                result = self._results.pop(name)
            for row, times in result.items():
                add(out, row + name, weight * times)
        return out

    def size(self) -> int:
        """Count the state of all graphs, and their results."""
        return self._instances.size() + sum(map(len, self._results.values()))

    def __len__(self) -> int:
        return len(self._instances)

    def close(self) -> None:
        """Drop all circuits."""
        self._instances.close()


class CorrelateOperator:
    """Correlate: a circuit for each binding of the left side."""

    def __init__(
        self,
        left: Operator,
        key: Callable[[Row], Row],
        make: MakeCircuit,
        touch: Callable[[], None],
        marks: tuple[int, int],
        budget: Budget,
    ) -> None:
        self._left = left
        self._key = key
        self._instances = _Instances(make, touch)
        self._marks = marks
        self._budget = budget
        self._rows: dict[Hashable, ZSet] = {}
        self._found: dict[Row, int] = {}

    def pull(self) -> ZSet:
        """Turn the marks of bindings whose circuits became empty or ceased to be; then take the changes of the left."""
        left = self._left.pull()
        out: ZSet = {}
        for key, delta in self._instances.changes():
            before = self._found[key]
            self._found[key] = after = before + sum(delta.values())
            if bool(before) != bool(after):
                for row, weight in self._rows[key].items():
                    add(out, (*row, self._marks[bool(before)]), -weight)
                    add(out, (*row, self._marks[bool(after)]), weight)
        for row, weight in left.items():
            key = self._key(row)
            if key not in self._rows:
                self._budget.check(len(self._rows))
                self._rows[key] = {}
                self._found[key] = sum(self._instances.start(key).values())
            add(self._rows[key], row, weight)
            add(out, (*row, self._marks[bool(self._found[key])]), weight)
        for key in {self._key(row) for row in left}:
            if not self._rows[key]:
                self._instances.stop(key)
                del self._rows[key], self._found[key]
        return out

    def size(self) -> int:
        """Count the rows of the left and the state of all circuits."""
        return self._instances.size() + sum(map(len, self._rows.values()))

    def __len__(self) -> int:
        return len(self._instances)

    def close(self) -> None:
        """Drop all circuits."""
        self._instances.close()
