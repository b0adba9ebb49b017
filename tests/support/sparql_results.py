"""Expected results of the W3C suites in all their notations, and the comparison of results."""

import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from pyoxigraph import QueryBoolean, parse_query_results
from tests.support.datasets import isomorphic
from tests.support.w3c import iri

from evergraph.delta import Bag
from evergraph.rdfio import read_quads
from evergraph.sparql.expressions import Row
from evergraph.sparql.functions import number_of
from evergraph.sparql.numbers import NumericType, to_literal
from evergraph.sparql.results import Solutions
from evergraph.terms import BlankNode, Literal, NamedNode, Quad, Term, Triple, Variable

_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"


def read_solutions(path: Path) -> Solutions | bool:
    """Read the result of a SELECT or ASK; the rows keep their order if the notation has one."""
    if path.suffix in (".ttl", ".rdf"):
        return _read_graph(path)
    if path.suffix == ".csv":
        return _read_csv(path)
    parsed = parse_query_results(path=path)
    if isinstance(parsed, QueryBoolean):
        return bool(parsed)
    variables = tuple(parsed.variables)
    return _solutions(variables, (tuple(solution[variable] for variable in variables) for solution in parsed))


def _solutions(variables: tuple[Variable, ...], rows: Iterable[Row]) -> Solutions:
    sequence = tuple(rows)
    return Solutions(variables, Bag(sequence), sequence)


def _read_csv(path: Path) -> Solutions:
    """CSV keeps texts only: every value is a string here; see `as_csv`."""
    with path.open(newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    variables = tuple(map(Variable, head))
    return _solutions(
        variables, (tuple(Literal("_:" if cell.startswith("_:") else cell) for cell in line) for line in lines)
    )


def as_csv(solutions: Solutions) -> Solutions:
    """Reduce solutions to what CSV can say; the labels of blank nodes are left out, for they say nothing."""

    def cell(term: Term | None) -> Term:
        if term is None or isinstance(term, BlankNode | Triple):
            return Literal("" if term is None else "_:")
        return Literal(term.value)

    return _solutions(solutions.variables, (tuple(map(cell, row)) for row in solutions.bag.rows()))


def _read_graph(path: Path) -> Solutions | bool:
    """Read the old notation of results as RDF (https://www.w3.org/2001/sw/DataAccess/tests/result-set)."""
    values: dict[Term, dict[str, list[Term]]] = {}
    for quad in read_quads(path, base_iri=iri(path)):
        values.setdefault(quad.subject, {}).setdefault(quad.predicate.value.removeprefix(_RS), []).append(quad.object)
    result = next(node for node in values.values() if NamedNode(_RS + "ResultSet") in node.get(_TYPE, []))
    if "boolean" in result:
        return result["boolean"][0] == Literal(True)
    variables = tuple(Variable(name.value) for name in result.get("resultVariable", []) if isinstance(name, Literal))
    rows: list[tuple[int, Row]] = []
    for solution in result.get("solution", []):
        bound = {
            _text(values[binding]["variable"][0]): values[binding]["value"][0]
            for binding in values.get(solution, {}).get("binding", [])
        }
        index = values.get(solution, {}).get("index", [Literal(0)])[0]
        rows.append((int(_text(index)), tuple(bound.get(variable.value) for variable in variables)))
    return _solutions(variables, (row for _, row in sorted(rows, key=lambda pair: pair[0])))


def _text(term: Term) -> str:
    assert isinstance(term, Literal)
    return term.value


def same_solutions(one: Solutions, other: Solutions, *, ordered: bool = False) -> bool:
    """Compare as bags, or as sequences, but for the labels of blank nodes."""
    if set(one.variables) != set(other.variables):
        return False
    variables = tuple(sorted(one.variables, key=str))
    return isomorphic(_as_quads(one, variables, ordered=ordered), _as_quads(other, variables, ordered=ordered))


def _as_quads(solutions: Solutions, variables: tuple[Variable, ...], *, ordered: bool) -> set[Quad]:
    """Write rows as quads: a row is a node with its values, and its place or its number of occurrences."""
    slots = [solutions.variables.index(variable) for variable in variables]
    if ordered:
        assert solutions.sequence is not None
        rows = [(tuple(row[slot] for slot in slots), place) for place, row in enumerate(solutions.sequence)]
    else:
        rows = list(Counter(tuple(row[slot] for slot in slots) for row in solutions.bag.rows()).items())
    quads: set[Quad] = set()
    for row, number in rows:
        node = BlankNode()
        quads.add(Quad(node, NamedNode(_RS + "number"), Literal(number)))
        for variable, term in zip(variables, row, strict=True):
            if term is not None:
                quads.add(Quad(node, NamedNode(f"urn:variable:{variable.value}"), _plain(term)))
    return quads


def _plain(term: Term) -> Term:
    """Write fractions in one way: no recommendation says how a computed 2.0 is to be written, and the suites vary."""
    number = number_of(term)
    return term if number is None or number.type is NumericType.INTEGER else to_literal(number)


def same_triples(one: Iterable[Triple], other: Iterable[Triple]) -> bool:
    """Compare graphs but for the labels of blank nodes."""
    return isomorphic(*({Quad(t.subject, t.predicate, t.object) for t in graph} for graph in (one, other)))
