"""Replications that are killed at every step: run as a program, it prints how many steps there were.

``python -m tests.support.replica_kills FOLDER KIND STRIDE [QUERY_URL UPDATE_URL]``, where KIND is folder, store, delta
or endpoint. A step is whatever touches the disk or the network: a file that is opened, renamed or removed, a request, a
sync. Every STRIDE-th step is tried. All work is done in processes of its own, as stores cannot be used across a fork.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any

import httpx
from tests.support.replica_files import changeset, rq, table_content, write

import evergraph as eg
from evergraph import rdfio
from evergraph.replication import run as replication_run
from evergraph.replication.state import ReplicaState, digest
from evergraph.terms import Literal, NamedNode, Quad, Term
from evergraph.views.replicas import parse_interest
from evergraph.views.replicas.oracle import interesting, potentially_interesting

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "socket.connect", "socket.sendto")
INTEREST = "SELECT * { ?a <urn:p> ?b OPTIONAL { ?b <urn:q> ?c } }"
GRAPH = "urn:replica"


def history(steps: int = 4) -> list[frozenset[Quad]]:
    """Make the states of a small dataset, the first one to begin with."""
    random = Random(7)
    nodes = [NamedNode(f"urn:n{number}") for number in range(4)]
    values: list[Term] = [*nodes, Literal("x", language="en")]
    pool = [Quad(one, NamedNode(f"urn:{name}"), value) for one in nodes for name in "pqr" for value in values]
    return [frozenset(random.sample(pool, 25)) for _ in range(steps + 1)]


class Case:
    """One replication, and what it must come to."""

    def __init__(self, folder: Path, kind: str, urls: list[str]) -> None:
        self.folder, self.kind, self.urls = folder, kind, urls
        self.text = INTEREST
        self.interest = rq(folder / "interest.rq", "", INTEREST)
        self.states = history()
        write(folder / "init.nt", self.states[0])
        for number, (before, after) in enumerate(zip(self.states, self.states[1:], strict=False), 1):
            changeset(folder / "changes", number, before - after, after - before)
        parsed = parse_interest(INTEREST)
        self.targets = [interesting(parsed, quads) for quads in self.states]
        self.potential = potentially_interesting(parsed, self.states[-1])

    @property
    def target(self) -> str:
        place = str(self.folder / "target")
        if self.kind == "endpoint":
            return self.urls[0]
        return place if self.kind == "folder" else f"{self.kind}:{place}"

    def reset(self) -> None:
        for name in ("target", "potential", "state"):
            rmtree(self.folder / name, ignore_errors=True)
        if self.kind == "endpoint":
            self._post(self.urls[1], update=f"DROP SILENT GRAPH <{GRAPH}>")

    def run(self) -> None:
        endpoint: dict[str, Any] = {"update_endpoint": self.urls[1], "graph": GRAPH} if self.urls else {}
        eg.replicate(
            self.interest,
            init=self.folder / "init.nt",
            changes=self.folder / "changes",
            target=self.target,
            potential=self.folder / "potential",
            state=self.folder / "state",
            **endpoint,
        )

    def content(self) -> frozenset[Quad] | None:
        """Read the target; None if there is none yet."""
        if self.kind == "folder":
            path = self.folder / "target/data.nt"
            return frozenset(rdfio.read_quads(path)) if path.exists() else None
        if self.kind == "store":
            if not (self.folder / "target/store").is_dir():
                return None
            with eg.open(self.folder / "target") as database:
                return frozenset(database.quads())
        if self.kind == "delta":
            return table_content(self.folder / "target")
        query = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{GRAPH}> {{ ?s ?p ?o }} }}"
        answer = self._post(self.urls[0], query=query)
        return frozenset(rdfio.parse_quads(answer.content, rdfio.FORMATS[".nt"]))

    def _post(self, url: str, **data: str) -> httpx.Response:
        headers = {"Accept": "application/n-triples", "Connection": "close"}
        with httpx.Client(trust_env=False) as client:
            return client.post(url, data=data, headers=headers).raise_for_status()

    def position(self) -> int | None:
        """Read how far the state is; None if there is none."""
        state = ReplicaState(self.folder / "state", {"interest": digest(self.text)})
        state.close()
        return state.position if state.is_filled else None

    def check_after_kill(self) -> None:
        """See that target and position agree: the target has the changes up to the position, and at most one more.

        Where changes are made safe together, it may have more.
        """
        position, content = self.position(), self.content()
        if position is None or self.kind == "folder":
            return
        ahead = len(self.targets) if self.kind == "delta" else position + 2  # changes are committed together there
        assert content in self.targets[position:ahead], f"position {position}"

    def check_end(self) -> None:
        assert self.position() == len(self.states) - 1
        assert self.content() == self.targets[-1]
        found = frozenset(rdfio.read_quads(self.folder / "potential/data.nt"))
        assert found == self.potential


def kill_at(step: int, folder: Path) -> None:
    """Let this process die before the step with this number."""
    steps = count(1)

    def tick() -> None:
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS and (event.startswith("socket") or str(folder) in str(arguments[0])):
            tick()

    def ticking(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            tick()
            return original(*arguments)

        return call

    sys.addaudithook(hook)
    os.fsync, os.fdatasync = ticking(os.fsync), ticking(os.fdatasync)


def ended(work: Callable[[], object]) -> int:
    """Do something in another process; return how that ended."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    return os.waitpid(child, 0)[1]


def steps(case: Case, stride: int) -> Iterator[int]:
    """Kill at every step, and see each time that the next run goes on rightly."""

    def run_and_die() -> None:
        kill_at(step, case.folder)
        case.run()

    def go_on() -> None:
        case.check_after_kill()
        case.run()
        case.check_end()

    for step in count(1, stride):
        case.reset()
        status = ended(run_and_die)
        if ended(go_on):
            raise SystemExit(f"killed at step {step}")
        yield step
        if not os.WIFSIGNALED(status):
            assert status == 0
            return


if __name__ == "__main__":
    replication_run._MOST = 25  # of these small changes, one or two are made safe together
    one = Case(Path(sys.argv[1]), sys.argv[2], sys.argv[4:])
    sys.stdout.write(f"{sum(1 for _ in steps(one, int(sys.argv[3])))}\n")
