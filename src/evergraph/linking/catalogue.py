"""Catalogue views: CONSTRUCT queries that say what is known of each resource of a dataset, for matching.

The template has one triple ``?x rdf:type C``, and for each property one triple ``?x P ?value``; the WHERE clause says
where the values come from.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from evergraph.errors import EvergraphError
from evergraph.linking.rules import Texts
from evergraph.sparql.algebra import Construct, Query, TripleTemplate
from evergraph.terms import BlankNode, Literal, NamedNode, Term, Variable

RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_EXAMPLE = "CONSTRUCT { ?x a ex:Person ; ex:name ?name } WHERE { … }"


class CatalogueInvalid(EvergraphError):
    """A query is not a catalogue view."""

    condition = "CATALOGUE_INVALID"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A catalogue view. A value of property k of a resource is a triple with ``properties[k]``."""

    query: Construct
    type: NamedNode
    properties: tuple[NamedNode, ...]

    def texts(self, triples: Iterable[tuple[Term | None, ...]]) -> dict[str, Texts]:
        """Collect the texts of all resources that the triples are about; without its type, a resource is not there.

        Blank nodes are left out: nobody can link to them.
        """
        numbers = {predicate: number for number, predicate in enumerate(self.properties)}
        found: dict[str, list[list[str]]] = {}
        typed: set[str] = set()
        for subject, predicate, value in triples:
            if not isinstance(subject, NamedNode) or not isinstance(predicate, NamedNode):
                continue
            name = str(subject)
            if predicate == RDF_TYPE and value == self.type:
                typed.add(name)
            number = numbers.get(predicate)
            if number is not None and value is not None:
                found.setdefault(name, [[] for _ in numbers])[number].append(text(value))
        nothing = tuple(() for _ in numbers)
        return {
            name: tuple(tuple(sorted(set(several))) for several in found[name]) if name in found else nothing
            for name in typed
        }


def text(term: Term) -> str:
    """Return what is compared of a term: the text of a literal, without language and datatype, or an IRI."""
    return term.value if isinstance(term, NamedNode | Literal | BlankNode) else str(term)


def catalogue(query: Query) -> Catalogue:
    """Check that a query is a catalogue view."""
    if not isinstance(query, Construct):
        raise CatalogueInvalid(
            f"expected a CONSTRUCT query, not {type(query).__name__.upper()}", hint=f"for example {_EXAMPLE}"
        )
    types = [triple for triple in query.template if triple.predicate == RDF_TYPE]
    others = [triple for triple in query.template if triple.predicate != RDF_TYPE]
    if len(types) != 1:
        count = "no triple" if not types else f"{len(types)} triples"
        raise CatalogueInvalid(
            f"expected one triple ?x rdf:type CLASS in the template, found {count}", hint=f"for example {_EXAMPLE}"
        )
    subject, class_ = types[0].subject, types[0].object
    if not isinstance(subject, Variable) or not isinstance(class_, NamedNode):
        raise CatalogueInvalid(
            f"expected ?x rdf:type CLASS with a variable and an IRI, found {_shown(types[0])}",
            hint=f"for example {_EXAMPLE}",
        )
    properties: dict[NamedNode, None] = {}
    for triple in others:
        if triple.subject != subject or not isinstance(triple.predicate, NamedNode):
            raise CatalogueInvalid(
                f"expected {subject} PROPERTY ?value in the template, found {_shown(triple)}",
                hint="every triple of the template is about the resource that has the class",
            )
        properties[triple.predicate] = None
    if not properties:
        raise CatalogueInvalid(
            "the template has no property to compare", hint=f"add a triple {subject} PROPERTY ?value to it"
        )
    return Catalogue(query, class_, tuple(properties))


def _shown(triple: TripleTemplate) -> str:
    return f"{triple.subject} {triple.predicate} {triple.object}"
