"""The check that replicas are what their definition says, after every change of a random history."""

from random import Random

from tests.support.random_interests import RandomInterests

from evergraph.delta import Delta, Request
from evergraph.terms import Quad
from evergraph.views.replicas import Interest, Replicas, Step
from evergraph.views.replicas.oracle import interesting, potentially_interesting

Expected = dict[str, tuple[frozenset[Quad], frozenset[Quad]]]


def expectation(interests: list[Interest], quads: frozenset[Quad]) -> Expected:
    """Say from scratch what every target and every store of potentially interesting triples must hold."""
    return {one.name: (interesting(one, quads), potentially_interesting(one, quads)) for one in interests}


def check(replicas: Replicas, step: Step, before: Expected, after: Expected, where: str) -> None:
    """Compare replicas and what was said about the change with the definition."""
    assert [change.interest for change in step.changes] == list(after), where
    for change in step.changes:
        target, potential = after[change.interest]
        old = before[change.interest][0]
        about = f"{where}\ninterest {change.interest}"
        assert replicas.target(change.interest) == target, about
        assert replicas.potential(change.interest) == potential, about
        assert change.delta == Delta(inserted=target - old, deleted=old - target), about
        assert change.potential == len(potential), about
        assert replicas.sizes(change.interest) == (len(target), len(potential)), about
    held = frozenset(quad for target, potential in after.values() for quad in target | potential)
    assert replicas.candidates() == held, where


def random_request(random: Random, pool: list[Quad]) -> Request:
    """Make a change that need not be exact."""
    size = 1 if random.random() < 0.4 else random.randint(2, len(pool))
    chosen = random.sample(pool, min(size, len(pool)))
    split = random.randint(0, len(chosen))
    removed, added = frozenset(chosen[:split]), frozenset(chosen[split:])
    if random.random() < 0.2:
        removed |= frozenset(random.sample(sorted(added, key=str), len(added) // 2))
    return Request(removed, added)


def check_history(seed: int, interests: int = 1, steps: int = 8) -> None:
    """Maintain random interests over a random history; some come late, and some go."""
    random = Random(seed)
    source = RandomInterests(random)
    pool = sorted(source.pool(), key=str)
    texts = [source.interest(f"i{number}") for number in range(interests)]
    where = f"seed {seed}\n" + "\n".join(text for text, _ in texts)
    present: frozenset[Quad] = frozenset()
    replicas = Replicas(lambda: present)
    late = random.random() < 0.3
    waiting = [one for _, one in texts]
    active: list[Interest] = []
    if not late:
        active, waiting = waiting, []
        for one in active:
            replicas.add(one)
    before = expectation(active, present)
    for number in range(steps):
        if waiting and number == 2:
            for one in waiting:
                replicas.add(one)
            active, waiting = waiting, []
            before = expectation(active, present)
        request = random_request(random, pool)
        cleared = frozenset(quad.subject for quad in random.sample(pool, 1)) if random.random() < 0.15 else frozenset()
        gone = frozenset(quad for quad in present if quad.subject in cleared)
        step = replicas.apply(request, cleared)
        present = (present - gone - request.removed) | request.added
        after = expectation(active, present)
        check(replicas, step, before, after, f"{where}\nstep {number}: {request} cleared {cleared}")
        before = after
        if len(active) > 1 and random.random() < 0.1:
            gone_interest = random.choice(active)
            replicas.remove(gone_interest.name)
            active = [one for one in active if one is not gone_interest]
            before = expectation(active, present)
    for one in active:
        replicas.remove(one.name)
    assert not replicas.candidates()
