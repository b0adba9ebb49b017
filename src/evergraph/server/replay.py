"""What a subscriber has missed, found from the change log.

Nothing is kept for a subscriber while it is away. When it comes back, its query is registered over the data of now, in
an engine of its own, and the changes since are undone one by one, the last one first. What each does to the result,
turned around, is what the change did when it was made. This costs what the missed changes cost, whatever the data.
"""

from evergraph.database import Moment
from evergraph.delta import Bag, Change
from evergraph.sparql.expressions import Row


def missed_steps(moment: Moment, changes: list[Change]) -> list[tuple[int, Bag[Row]]]:
    """Return what changes, the last of which led to this moment, did to a query, first to last."""
    steps = []
    for change in reversed(changes):
        for view, rows in moment.engine.apply(change.delta.inverse()):  # one at most
            steps.append((change.sequence, -view.changed(rows)))
        if moment.view.failed is not None:
            raise moment.view.failed
    steps.reverse()
    return steps
