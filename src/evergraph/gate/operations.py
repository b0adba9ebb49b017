"""The operations of SPARQL 1.1 Update, as data: a closed set.

Each class links to its definition in https://www.w3.org/TR/sparql11-update/.
"""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from evergraph.terms import DefaultGraph, GraphName, NamedNode, Quad, Term, Variable

Row: TypeAlias = tuple[Term | None, ...]
"""One solution of a WHERE clause: the values of the variables that were asked for, None where unbound."""

Rows: TypeAlias = list[Row]

DatasetGraphs: TypeAlias = tuple[tuple[NamedNode, ...], tuple[NamedNode, ...]]
"""What the default graph of a dataset is made of, and its named graphs."""


@dataclass(frozen=True, slots=True)
class TripleTemplate:
    """A triple term inside a template, with variables or template blank nodes somewhere in it."""

    subject: "Slot"
    predicate: "Slot"
    object: "Slot"


Slot: TypeAlias = Term | DefaultGraph | Variable | TripleTemplate


@dataclass(frozen=True, slots=True)
class QuadTemplate:
    """A quad with variables; blank nodes in it stand for a fresh node per solution."""

    subject: Slot
    predicate: Slot
    object: Slot
    graph: Slot

    def slots(self) -> tuple[Slot, Slot, Slot, Slot]:
        """Return the four places of the quad."""
        return self.subject, self.predicate, self.object, self.graph


Template: TypeAlias = tuple[QuadTemplate, ...]


@dataclass(frozen=True, slots=True)
class Where:
    """A WHERE clause as text, with the dataset that it is to be evaluated over.

    ``using`` and ``using_named`` are None where the request has no USING clause; then ``with_graph`` takes the place of
    the default graph, if given, and all named graphs can be reached.
    """

    prologue: str
    pattern: str
    with_graph: NamedNode | None = None
    using: tuple[NamedNode, ...] | None = None
    using_named: tuple[NamedNode, ...] | None = None
    only: QuadTemplate | None = field(default=None, compare=False)
    """The one quad that the clause consists of, if it is known to be nothing else; its variables differ."""


class Rest(Enum):
    """What there is in a WHERE clause besides the triples that all of its solutions match."""

    NOTHING = auto()
    CONDITIONS = auto()  # on what the triples match
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Original:
    """The text of a request that is one operation and nothing else, and does the same each time on the same data."""

    text: str
    graphs: frozenset[NamedNode] | None
    """The graphs that it reads and writes, if it names all of them."""
    is_data: bool = False
    """Whether it is a list of quads, and so may be of any length."""
    rest: Rest = Rest.NOTHING
    deletes_plainly: bool = True
    """Whether all it deletes was matched, and no objects had to be compared for it."""


@dataclass(frozen=True, slots=True)
class InsertData:
    """https://www.w3.org/TR/sparql11-update/#insertData."""

    quads: frozenset[Quad]
    original: Original | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DeleteData:
    """https://www.w3.org/TR/sparql11-update/#deleteData."""

    quads: frozenset[Quad]
    original: Original | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Modify:
    """https://www.w3.org/TR/sparql11-update/#deleteInsert, and DELETE WHERE, its short form."""

    delete: Template
    insert: Template
    where: Where
    deletes_matches: bool = False
    """Whether everything to delete was matched by the WHERE clause as it is, and so is surely there."""
    matches_plainly: bool = False
    """Whether besides that the WHERE clause is quads and conditions on them, and compares no objects.

    Then there is no question what makes objects equal; nor what a variable without a value means, of which Virtuoso has
    ideas of its own.
    """
    original: Original | None = field(default=None, compare=False)
    """Only if the WHERE clause has the same solutions each time, and no WITH changes what its graphs are."""


@dataclass(frozen=True, slots=True)
class Load:
    """https://www.w3.org/TR/sparql11-update/#load."""

    source: NamedNode
    into: GraphName
    silent: bool


class Graphs(Enum):
    """The targets of CLEAR and DROP that are not one graph."""

    NAMED = "NAMED"
    ALL = "ALL"


@dataclass(frozen=True, slots=True)
class Clear:
    """https://www.w3.org/TR/sparql11-update/#clear."""

    target: GraphName | Graphs
    silent: bool


@dataclass(frozen=True, slots=True)
class Drop:
    """https://www.w3.org/TR/sparql11-update/#drop."""

    target: GraphName | Graphs
    silent: bool


@dataclass(frozen=True, slots=True)
class Create:
    """https://www.w3.org/TR/sparql11-update/#create."""

    graph: NamedNode
    silent: bool


@dataclass(frozen=True, slots=True)
class Add:
    """https://www.w3.org/TR/sparql11-update/#add."""

    source: GraphName
    destination: GraphName
    silent: bool


@dataclass(frozen=True, slots=True)
class Copy:
    """https://www.w3.org/TR/sparql11-update/#copy."""

    source: GraphName
    destination: GraphName
    silent: bool


@dataclass(frozen=True, slots=True)
class Move:
    """https://www.w3.org/TR/sparql11-update/#move."""

    source: GraphName
    destination: GraphName
    silent: bool


Operation: TypeAlias = InsertData | DeleteData | Modify | Load | Clear | Drop | Create | Add | Copy | Move


def template_variables(*templates: Template) -> tuple[str, ...]:
    """List the variables of templates, each once, in order of appearance."""
    found: dict[str, None] = {}

    def visit(slot: Slot) -> None:
        if isinstance(slot, Variable):
            found[slot.value] = None
        elif isinstance(slot, TripleTemplate):
            for part in (slot.subject, slot.predicate, slot.object):
                visit(part)

    for template in templates:
        for quad in template:
            for slot in quad.slots():
                visit(slot)
    return tuple(found)
