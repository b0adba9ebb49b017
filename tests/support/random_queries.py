"""Random datasets and random queries over the whole language, with so few terms that everything joins with everything.

The same seed gives the same texts. Literals are written in canonical form, so that a store that normalises them agrees.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from pyoxigraph import RdfFormat, parse

from evergraph.terms import Quad

PROLOGUE = "PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"

NODES = (":a", ":b", ":c", ":p")
PREDICATES = (":p", ":p", ":q")
GRAPHS = (":g", ":a")
LITERALS = (
    *("1", "2", "3", "-1", "1.5", "2.5", "true", "false"),
    *('"x"', '"y"', '"xy"', '""', '"x"@en', '"x"@fr', '"1"'),
    *('"2020-01-01"^^xsd:date', '"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2021-06-01T12:30:00"^^xsd:dateTime'),
    *('"x"^^:unknown', '"x"^^xsd:integer'),
)
VARIABLES = ("?a", "?b", "?c", "?d")
_PATHS = (":p/:q", "^:p", ":p/^:q", "!:p", "!(:p|:q)", ":p+", "(:p/:q)+", "(^:p)+")
_PATHS_OF_LENGTH_ZERO = (":p*", ":q?", "(:p|^:q)*", "(:p*)+", "(:p?/:q)*")
_ALTERNATIVES = (":p|:q", "!(:p|^:q)", ":p|^:p", "(:p|:q)/:p", "(:p|:q)/(:p|:q)")


@dataclass(frozen=True, slots=True)
class Language:
    """What queries may hold besides what engines agree on: all of it, unless told."""

    alternatives: bool = True
    """Paths with ``|`` outside of closures, whose duplicates count."""
    absent_terms: bool = True
    """Paths of length zero at a term that the graph may not hold."""
    slices: bool = True
    """ORDER BY, LIMIT and OFFSET."""
    merges: bool = True
    """A default graph of several graphs."""
    exists_anything: bool = True
    """MINUS, BIND, VALUES, sub-selects and nested filters within EXISTS."""
    order_of_anything: bool = True
    """Comparisons with ``<``, MIN and MAX of terms that have no order in SPARQL."""
    choices: bool = True
    """SAMPLE, GROUP_CONCAT and COUNT(DISTINCT *), which leave something to the engine."""
    texts_as_conditions: bool = True
    """Any value as a condition, also texts with a language."""
    graph_scope: bool = True
    """Everything within GRAPH ?g; otherwise only what is the same in each graph and in all of them."""

    @classmethod
    def common(cls) -> "Language":
        """Leave out everything special."""
        return cls(**dict.fromkeys(cls.__dataclass_fields__, False))


@dataclass(slots=True)
class RandomQueries:
    """A source of random queries and datasets."""

    random: Random
    language: Language = field(default_factory=Language)
    _fresh: int = 0

    def dataset(self, most: int = 50) -> frozenset[Quad]:
        """Make a small dataset of a default graph and named graphs; blank nodes have the same labels each time."""
        text = " ".join(self._quad() for _ in range(self.random.randint(0 if self._chance(0.1) else most // 2, most)))
        return frozenset(parse(PROLOGUE + text, RdfFormat.TRIG))

    def _quad(self) -> str:
        objects: tuple[str, ...] = self.random.choice((NODES, NODES, NODES, NODES, LITERALS, ("_:x",)))
        triple = f"{self._one((*NODES, '_:x'))} {self._one(PREDICATES)} {self._one(objects)}"
        return f"{self._one(('', '', *GRAPHS))} {{ {triple} }}"

    def query(self) -> str:
        """Make a query of any form."""
        where = self._group(2)
        form = self.random.choice(("SELECT", "SELECT", "SELECT", "SELECT", "ASK", "CONSTRUCT"))
        if form == "ASK":
            return f"{PROLOGUE}ASK {self._from()}{where}"
        if form == "CONSTRUCT":
            node = self.random.choice(("?a", "[]", "_:n", "?b"))
            template = f"{node} :made ?c . ?a {self._one((':q', '?b'))} {self._one((*VARIABLES, '_:n', '1'))}"
            return f"{PROLOGUE}CONSTRUCT {{ {template} }} {self._from()}WHERE {where}"
        return PROLOGUE + self._select(where, self._from())

    def group(self) -> str:
        """Make a group graph pattern."""
        return self._group(2)

    def _one(self, choices: tuple[str, ...]) -> str:
        return self.random.choice(choices)

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def _variable(self) -> str:
        return self._one(VARIABLES)

    def _new_variable(self) -> str:
        self._fresh += 1
        return f"?v{self._fresh}"

    def _from(self) -> str:
        if self._chance(0.9):
            return ""
        merged = GRAPHS if self.language.merges else GRAPHS[:1]
        clauses = [f"FROM {graph} " for graph in merged if self._chance(0.5)]
        return "".join(clauses) + "".join(f"FROM NAMED {graph} " for graph in GRAPHS if self._chance(0.5))

    def _select(self, where: str, dataset: str = "") -> str:
        modifier = self.random.choice(("", "", "DISTINCT "))
        if self._chance(0.25):
            return self._grouped(where, modifier, dataset)
        projection = (
            "*" if self._chance(0.3) else " ".join(sorted(self.random.sample(VARIABLES, self.random.randint(1, 3))))
        )
        if projection != "*" and self._chance(0.2):
            projection += f" ({self._expression(2)} AS {self._new_variable()})"
        values = f" {self._values()}" if self._chance(0.05) else ""
        return f"SELECT {modifier}{projection} {dataset}WHERE {where}{self._slice()}{values}"

    def _grouped(self, where: str, modifier: str, dataset: str) -> str:
        keys = sorted(self.random.sample(VARIABLES, self.random.randint(0, 2)))
        aggregates = [f"({self._aggregate()} AS {self._new_variable()})" for _ in range(self.random.randint(1, 2))]
        group = f" GROUP BY {' '.join(keys)}" if keys else ""
        having = f" HAVING ({self._aggregate()} >= 1)" if self._chance(0.2) else ""
        return f"SELECT {modifier}{' '.join([*keys, *aggregates])} {dataset}WHERE {where}{group}{having}{self._slice()}"

    def _aggregate(self) -> str:
        distinct = self._one(("", "", "DISTINCT "))
        if self._chance(0.2):
            return f"COUNT({distinct if self.language.choices else ''}*)"
        if self._chance(0.3):
            functions = ("MIN", "MAX", "SAMPLE", "GROUP_CONCAT") if self.language.choices else ("MIN", "MAX")
            return f"{self._one(functions)}({distinct}{self._comparable()})"
        return f"{self._one(('COUNT', 'SUM', 'AVG'))}({distinct}{self._variable()})"

    def _comparable(self) -> str:
        """Make an expression whose values have an order."""
        return self._expression(1) if self.language.order_of_anything else f"STRLEN(STR({self._variable()}))"

    def _slice(self) -> str:
        if not self.language.slices or self._chance(0.7):
            return ""
        order = f" ORDER BY {self._one(('', 'DESC'))}({self._variable()})" if self._chance(0.6) else ""
        return f"{order} LIMIT {self.random.randint(0, 4)}" + (f" OFFSET {self.random.randint(0, 2)}" if order else "")

    # --- patterns

    def _group(self, depth: int, *, inside: str = "") -> str:
        """Make a group; ``inside`` says what is around it, where that limits what may be in it."""
        elements = [self._triples(inside)] if inside == "graph" or self._chance(0.9) else []
        more = self.random.choice((0, 1, 1, 2)) if depth else 0
        elements.extend(self._element(depth - 1, inside) for _ in range(more))
        if self._chance(0.2):
            elements.append(self._filter(depth - 1, inside))
        return "{ " + " ".join(elements) + " }"

    def _element(self, depth: int, inside: str) -> str:
        same_everywhere: list[Callable[[], str]] = [
            lambda: self._triples(inside),
            lambda: f"OPTIONAL {self._group(depth, inside=inside)}",
            lambda: f"{self._group(depth, inside=inside)} UNION {self._group(depth, inside=inside)}",
        ]
        others: list[Callable[[], str]] = [
            lambda: f"MINUS {self._group(depth, inside=inside)}",
            lambda: f"BIND({self._expression(2)} AS {self._new_variable()})",
            self._values,
            lambda: f"{{ {self._select(self._group(depth, inside=inside))} }}",
            lambda: self._group(depth, inside=inside),
            lambda: f"GRAPH {self._one((*GRAPHS, ':absent'))} {self._group(depth, inside=self._within_graph(inside))}",
            lambda: f"GRAPH {self._graph_variable()} {self._group(depth, inside=self._within_graph(inside))}",
        ]
        limited = (inside == "exists" and not self.language.exists_anything) or inside == "graph"
        return self.random.choice(same_everywhere if limited else same_everywhere * 2 + others)()

    def _graph_variable(self) -> str:
        return self._one(("?g", "?g", "?a")) if self.language.graph_scope else "?g"

    def _within_graph(self, inside: str) -> str:
        return inside if self.language.graph_scope else "graph"

    def _triples(self, inside: str) -> str:
        return " ".join(self._triple(inside) for _ in range(self.random.choice((1, 1, 2))))

    def _triple(self, inside: str) -> str:
        subject, object_ = self.random.sample(VARIABLES, 2)
        if self._chance(0.2):
            subject = self._one((*NODES, *VARIABLES, "[]"))
        elif self._chance(0.15):
            object_ = self._one((*NODES, *NODES, *LITERALS))
        if inside == "graph" or self._chance(0.8):
            verb = self._variable() if self._chance(0.1) else self._one(PREDICATES)
            return f"{subject} {verb} {object_} ."
        if self._chance(0.5):
            return f"{subject} {self._one(_PATHS + _ALTERNATIVES * self.language.alternatives)} {object_} ."
        if self.language.absent_terms:
            return f"{subject} {self._one(_PATHS_OF_LENGTH_ZERO)} {object_} ."
        start, end = self.random.sample(VARIABLES, 2)
        guard = f"{start} {self._new_variable()} {self._new_variable()} ."
        return f"{start} {self._one(_PATHS_OF_LENGTH_ZERO)} {end} . {guard}"

    def _values(self) -> str:
        if self._chance(0.5):
            values = (self._one((*NODES, *NODES, "1", '"x"', "UNDEF")) for _ in range(self.random.randint(0, 4)))
            return f"VALUES {self._variable()} {{ {' '.join(values)} }}"
        names = " ".join(self.random.sample(VARIABLES, 2))
        rows = (f"({self._one((*NODES, 'UNDEF'))} {self._one((*NODES, '1', 'UNDEF'))})" for _ in range(2))
        return f"VALUES ({names}) {{ {' '.join(rows)} }}"

    # --- expressions

    def _filter(self, depth: int, inside: str) -> str:
        may_nest = self.language.exists_anything or not inside
        if depth > 0 and may_nest and self._chance(0.3):
            return f"FILTER {self._exists(depth)}"
        return f"FILTER({self._condition(2, depth if may_nest else 0)})"

    def _exists(self, depth: int) -> str:
        return f"{self._one(('', 'NOT '))}EXISTS {self._group(depth, inside='exists')}"

    def _condition(self, size: int, depth: int = 0) -> str:
        if size and self._chance(0.3):
            operator = self._one(("&&", "||"))
            return f"({self._condition(size - 1, depth)} {operator} {self._condition(size - 1, depth)})"
        if depth > 0 and self._chance(0.1):
            return self._exists(depth)
        one, two = self._expression(1), self._expression(1)
        tests = (
            f"{self._variable()} != {self._one((*NODES, *VARIABLES))}",
            f"{self._one(('isIRI', 'isBlank', 'BOUND', '!BOUND'))}({self._variable()})",
            f"{one} {self._one(('=', '!='))} {two}",
            f"{self._comparable()} {self._one(('<', '>', '<=', '>='))} {self._comparable()}",
            f"BOUND({self._variable()})",
            f"!({one} = {two})",
            f"{one} {self._one(('IN', 'NOT IN'))} ({two}, {self._one(NODES)}, 1)",
            f"{self._one(('isIRI', 'isLiteral', 'isBlank', 'isNumeric'))}({one})",
            f"sameTerm({one}, {two})",
            f"REGEX(STR({one}), '{self._one(('^x', 'y$', 'a|b', '[a-c]'))}')",
            f"LANGMATCHES(LANG({one}), '{self._one(('en', '*'))}')",
        )
        return one if self.language.texts_as_conditions and self._chance(0.1) else self._one(tests)

    def _expression(self, size: int) -> str:
        leaf = self._variable() if self._chance(0.6) else self._one((*LITERALS, ":a"))
        if not size or self._chance(0.4):
            return leaf
        one, two = self._expression(size - 1), self._expression(size - 1)
        return self._one(
            (
                f"({one} {self._one(('+', '-', '*'))} {two})",
                f"STR({one})",
                f"DATATYPE({one})",
                f"LANG({one})",
                f"IF({one} = {two}, {one}, {two})",
                f"COALESCE({one}, {two})",
                f"CONCAT(STR({one}), {two})",
                f"STRLEN({one})",
                f"UCASE({one})",
                f"SUBSTR({one}, 1, 1)",
                f"STRBEFORE({one}, {two})",
                f"CONTAINS({one}, {two})",
                f"ABS({one})",
                f"YEAR({one})",
                f"{self._one(('xsd:integer', 'xsd:boolean', 'xsd:decimal'))}({one})",
            )
        )
