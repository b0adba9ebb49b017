"""Solutions of pyoxigraph as tuples."""

from operator import itemgetter

from pyoxigraph import QuerySolutions

from evergraph.gate.operations import Rows


def rows_of(solutions: QuerySolutions) -> Rows:
    """Read solutions to their end. (Taking their values by number is twice as fast as iterating over each.)"""
    width = len(solutions.variables)
    if width > 1:
        return list(map(itemgetter(*range(width)), solutions))
    return [(row[0],) for row in solutions] if width else [() for _ in solutions]
