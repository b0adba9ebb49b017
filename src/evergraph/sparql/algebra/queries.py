"""The four query forms (https://www.w3.org/TR/sparql11-query/#QueryForms)."""

from dataclasses import dataclass
from typing import TypeAlias

from evergraph.sparql.algebra.patterns import Pattern, PatternTerm
from evergraph.terms import NamedNode, Variable

TRIPLE_COLUMNS = (Variable("subject"), Variable("predicate"), Variable("object"))
"""The columns of the results of CONSTRUCT and DESCRIBE."""


@dataclass(frozen=True, slots=True)
class DatasetClause:
    """FROM and FROM NAMED (https://www.w3.org/TR/sparql11-query/#specifyingDataset)."""

    default: tuple[NamedNode, ...]
    named: tuple[NamedNode, ...]


@dataclass(frozen=True, slots=True)
class Select:
    """https://www.w3.org/TR/sparql11-query/#select."""

    pattern: Pattern
    variables: tuple[Variable, ...]
    dataset: DatasetClause | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """https://www.w3.org/TR/sparql11-query/#ask."""

    pattern: Pattern
    dataset: DatasetClause | None = None


@dataclass(frozen=True, slots=True)
class TripleTemplate:
    """A triple to build from a solution; a blank node in it is a new one for each solution."""

    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm


@dataclass(frozen=True, slots=True)
class Construct:
    """https://www.w3.org/TR/sparql11-query/#construct."""

    template: tuple[TripleTemplate, ...]
    pattern: Pattern
    dataset: DatasetClause | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """https://www.w3.org/TR/sparql11-query/#describe; Evergraph answers with concise bounded descriptions."""

    targets: tuple[NamedNode | Variable, ...]
    pattern: Pattern
    dataset: DatasetClause | None = None


Query: TypeAlias = Select | Ask | Construct | Describe
