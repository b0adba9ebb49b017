"""The results of the four query forms, and their notation (https://www.w3.org/TR/sparql11-results-json/)."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from evergraph.delta import Bag
from evergraph.sparql.algebra import (
    Ask,
    Construct,
    Describe,
    Distinct,
    OrderBy,
    Pattern,
    PatternTerm,
    Project,
    Query,
    Reduced,
    Select,
    Slice,
    TripleTemplate,
)
from evergraph.sparql.dataset import Dataset, Spo, TripleIndex
from evergraph.sparql.evaluate import Evaluator
from evergraph.sparql.expressions import Environment, Row
from evergraph.sparql.values import XSD_STRING
from evergraph.terms import BlankNode, Literal, NamedNode, Term, Triple, Variable


@dataclass(frozen=True, slots=True)
class Solutions:
    """The result of SELECT. ``sequence`` has the rows in order if the query asks for one."""

    variables: tuple[Variable, ...]
    bag: Bag[Row]
    sequence: tuple[Row, ...] | None = None


Result: TypeAlias = Solutions | bool | frozenset[Triple]
"""SELECT, ASK, and CONSTRUCT or DESCRIBE."""


def evaluate_query(query: Query, dataset: Dataset, environment: Environment | None = None) -> Result:
    """Evaluate a query from scratch."""
    active = dataset.select(query.dataset)
    evaluator = Evaluator(active, environment or Environment())
    match query:
        case Select(pattern, variables):
            if is_ordered(pattern):
                rows = evaluator.sequence(pattern)
                return Solutions(variables, Bag(rows), tuple(rows))
            return Solutions(variables, evaluator.evaluate(pattern).project(variables).rows)
        case Ask(pattern):
            return len(evaluator.evaluate(pattern).rows) > 0
        case Construct(template, pattern):
            solutions = evaluator.evaluate(pattern)
            return frozenset(construct(template, solutions.columns)(solutions.rows))
        case Describe(targets, pattern):
            solutions = evaluator.evaluate(pattern)
            slots = [solutions.columns.index(target) for target in targets if target in solutions.columns]
            described = {target for target in targets if isinstance(target, NamedNode)}
            bound = {term for row in solutions.rows for slot in slots if (term := row[slot]) is not None}
            return frozenset(describe(active.default, described | bound))
        case _:
            assert_never(query)


def is_ordered(pattern: Pattern) -> bool:
    """Tell whether a query says in which order its solutions come."""
    match pattern:
        case Slice(operand) | Distinct(operand) | Reduced(operand):
            return is_ordered(operand)
        case Project(OrderBy()):
            return True
        case _:
            return False


def construct(
    template: tuple[TripleTemplate, ...], columns: tuple[Variable, ...]
) -> Callable[[Bag[Row]], Iterable[Triple]]:
    """Compile a template to a function from solutions to triples.

    A blank node of the template is a new one for each solution, and the same one whenever the same solution comes
    again: its label is a hash of the label in the template, the solution, and which of several equal solutions it is.
    """
    slots = {column: slot for slot, column in enumerate(columns)}
    has_blank_nodes = any(isinstance(term, BlankNode) for one in template for term in (one.subject, one.object))

    def instantiate(row: Row, occurrence: int) -> Iterable[Triple]:
        def value(term: PatternTerm) -> Term | None:
            if isinstance(term, Variable):
                return row[slots[term]] if term in slots else None
            if isinstance(term, BlankNode):
                solution = "\n".join(map(str, row))
                text = f"{term.value}\0{occurrence}\0{solution}"
                return BlankNode(hashlib.sha256(text.encode()).hexdigest()[:32])
            return term

        for one in template:
            triple = as_triple(value(one.subject), value(one.predicate), value(one.object))
            if triple is not None:
                yield triple

    def build(solutions: Bag[Row]) -> Iterable[Triple]:
        for row, weight in solutions.items():
            for occurrence in range(weight if has_blank_nodes else 1):
                yield from instantiate(row, occurrence)

    return build


def as_triple(subject: Term | None, predicate: Term | None, object_: Term | None) -> Triple | None:
    """Make a triple; None where RDF does not allow one, or a member is unbound."""
    if isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode) and object_ is not None:
        return Triple(subject, predicate, object_)
    return None


def describe(graph: TripleIndex, resources: Iterable[Term]) -> Iterable[Triple]:
    """Return the concise bounded descriptions of resources in the default graph of the query.

    That is: the triples with the resource as subject, and for every blank node that is an object of one of them, its
    description too (https://www.w3.org/submissions/CBD/, without reification).
    """
    waiting = list(resources)
    seen = set(waiting)
    while waiting:
        found: list[Spo] = list(graph.match(waiting.pop(), None, None))
        for subject, predicate, object_ in found:
            triple = as_triple(subject, predicate, object_)
            assert triple is not None
            yield triple
            if isinstance(object_, BlankNode) and object_ not in seen:
                seen.add(object_)
                waiting.append(object_)


def json_term(term: Term) -> dict[str, object]:
    """Write a term in the notation of SPARQL results JSON."""
    match term:
        case NamedNode():
            return {"type": "uri", "value": term.value}
        case BlankNode():
            return {"type": "bnode", "value": term.value}
        case Literal(language=str(language)):
            return {"type": "literal", "value": term.value, "xml:lang": language}
        case Literal():
            plain: dict[str, object] = {"type": "literal", "value": term.value}
            return plain if term.datatype == XSD_STRING else plain | {"datatype": term.datatype.value}
        case Triple():
            parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
            return {"type": "triple", "value": {name: json_term(part) for name, part in parts.items()}}


def json_solutions(variables: tuple[Variable, ...], rows: Iterable[Row]) -> dict[str, object]:
    """Write rows as a SPARQL results JSON object; unbound variables are left out."""
    return {
        "head": {"vars": [variable.value for variable in variables]},
        "results": {
            "bindings": [
                {
                    variable.value: json_term(term)
                    for variable, term in zip(variables, row, strict=True)
                    if term is not None
                }
                for row in rows
            ]
        },
    }


def json_boolean(value: bool) -> dict[str, object]:
    """Write the result of ASK as a SPARQL results JSON object."""
    return {"head": {}, "boolean": value}
