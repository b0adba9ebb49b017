"""The change log behaves like a list that is on the disk."""

import tempfile
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.support.rdf_strategies import quads

from evergraph.delta import Change, Delta
from evergraph.log import ChangeLog

some_quads = st.frozensets(quads, max_size=2)
deltas = st.builds(lambda inserted, deleted: Delta(inserted, deleted - inserted), some_quads, some_quads)
steps = st.lists(deltas | st.sampled_from(["append and take back", "reopen"]), max_size=10)


@given(steps, st.integers(1, 1_000))
def test_any_history_reads_back_from_anywhere(steps: list[Delta | str], segment_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = ChangeLog(Path(folder), sync=False, segment_bytes=segment_bytes)
        expected: list[Change] = []
        for step in steps:
            if isinstance(step, Delta):
                expected.append(Change(len(expected) + 1, step))
                log.append(expected[-1])
            elif step == "reopen":
                log.close()
                log = ChangeLog(Path(folder), sync=False, segment_bytes=segment_bytes)
            else:
                log.append(Change(len(expected) + 1))
                log.take_back()
            assert log.last == len(expected)
        log.close()
        for after in range(len(expected) + 2):
            assert list(log.read(after)) == expected[after:]
        segments = [(int(path.stem), path.stat().st_size) for path in sorted(Path(folder).iterdir())]
        for (first, size), (following, _) in pairwise(segments):
            assert size <= segment_bytes or following == first + 1
