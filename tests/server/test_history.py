"""The last changes that a broker keeps in memory: bounded in number and in quads."""

import random

from evergraph.delta import Change, Delta
from evergraph.server.history import CHANGES, QUADS, History
from evergraph.terms import NamedNode, Quad

NODE = NamedNode("urn:x")


def of_size(sequence: int, size: int) -> Change:
    quads = frozenset(Quad(NODE, NODE, NamedNode(f"urn:{number}")) for number in range(size))
    return Change(sequence, Delta(inserted=quads))


def test_changes_are_bounded() -> None:
    history = History(5)
    for number in range(6, CHANGES + 16):
        history.add(of_size(number, 1))
    known = history.after(15)
    assert (history.since, known is not None and len(known)) == (15, CHANGES)
    assert history.after(14) is None


def test_quads_are_bounded() -> None:
    history = History(0)
    for number in range(1, 8):
        history.add(of_size(number, QUADS // 4))
    assert history.since == 3
    history.add(of_size(8, QUADS + 1))
    assert history.after(6) is None
    assert [change.sequence for change in history.after(7) or ()] == [8]


def test_what_is_known_is_what_came_after() -> None:
    rng = random.Random(1)
    for _ in range(50):
        first, sequence = (start := rng.randrange(10)), start
        history = History(first)
        for _ in range(rng.randrange(30)):
            sequence += rng.choice((1, 1, 2))  # a replica does not change with every change of the data
            history.add(of_size(sequence, 1))
            after = rng.randrange(first, sequence + 2)
            known = history.after(after)
            assert known is not None
            assert [change.sequence for change in known] == sorted(one.sequence for one in known)
            assert all(change.sequence > after for change in known)
            assert len(known) == sum(one.sequence > after for one in history.after(first) or ())
