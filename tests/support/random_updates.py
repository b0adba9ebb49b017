"""Random datasets and random update requests, over so few terms that everything collides with everything.

The same seed gives the same texts. Requests are right by the grammar and free to fail when they run.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from pyoxigraph import Store

from evergraph.terms import Quad

PROLOGUE = "PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"

_NODES = (":a", ":b", ":c")
_PREDICATES = (":p", ":q")
_GRAPHS = (":g1", ":g2", ":g3")
_LITERALS = (
    *('"x"', '"x"@en', '"x"@en-GB', "'''}'{'''", '"GRAPH # {"', "true"),
    *("1", "01", "-1", "1.0", "1.50", "1e0", "1.E0"),
    *('"1"^^xsd:int', '"01"^^xsd:integer', '"+1"^^xsd:byte', '"one"^^xsd:integer', '"1"^^:unknown'),
    *('"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T00:00:00.0+00:00"^^xsd:dateTime', '"PT24H"^^xsd:duration'),
)
_VARIABLES = ("?s", "?p", "?o", "?x", "?y")
_PATHS = (":p", ":q", ":p/:q", ":p*", "^:p", ":p|:q", "!:p", ":q?")
_EXPRESSIONS = ("?o", "STR(?o)", "?o + 1", "IF(isIRI(?x), ?x, ?o)", "STRDT('01', xsd:int)", "COALESCE(?y, :c)", ":g1")
_CONDITIONS = ("?x = ?y", "?o > 0", "isIRI(?o)", "BOUND(?x)", "sameTerm(?o, ?y)", "isBlank(?s)", "LANG(?o) = 'en'")
_DEPTH = 2


@dataclass(frozen=True, slots=True)
class RandomUpdates:
    """A source of random texts."""

    random: Random
    literals: tuple[str, ...] = _LITERALS
    expressions: tuple[str, ...] = _EXPRESSIONS
    conditions: tuple[str, ...] = _CONDITIONS
    paths: tuple[str, ...] = _PATHS
    elements: tuple[int, ...] = tuple(range(10))
    """Which of the patterns in `_element` may appear."""
    triple_terms: bool = True
    _count: list[int] = field(default_factory=lambda: [0])

    def dataset(self) -> frozenset[Quad]:
        """Make a small dataset with some blank nodes."""
        store = Store()
        store.update(f"{PROLOGUE} INSERT DATA {{ {self._quads(self._data_triple, most=16)} }}")
        return frozenset(store)

    def request(self) -> tuple[str, ...]:
        """Make a request, as the texts of its operations."""
        return tuple(self._operation() for _ in range(self.random.choice((1, 1, 2, 3, 4))))

    # --- operations

    def _operation(self) -> str:
        modify: list[Callable[[], str]] = [self._modify] * 6
        data = [self._insert_data, self._delete_data, self._delete_where] * 2
        graphs = [self._clear_or_drop, self._create, self._transfer, self._transfer, self._load]
        return self.random.choice(modify + data + graphs)()

    def _insert_data(self) -> str:
        self._count[0] += 1  # two operations must not share labels of blank nodes
        return f"INSERT DATA {{ {self._quads(self._data_triple, most=4)} }}"

    def _delete_data(self) -> str:
        return f"DELETE DATA {{ {self._quads(self._ground_triple, most=6)} }}"

    def _delete_where(self) -> str:
        return f"DELETE WHERE {{ {self._quads(self._triple_pattern, most=2, graph_variable=True)} }}"

    def _modify(self) -> str:
        delete = self._quads(self._template_triple, most=3, graph_variable=True)
        insert = self.random.choice((delete, self._quads(self._making_triple, most=3, graph_variable=True), ""))
        clauses = self.random.choice(
            (f"DELETE {{ {delete} }}", f"INSERT {{ {insert} }}", f"DELETE {{ {delete} }} INSERT {{ {insert} }}")
        )
        with_graph = f"WITH {self._graph()} " if self._chance(0.3) else ""
        return f"{with_graph}{clauses} {self._using()}WHERE {self._group(_DEPTH)}"

    def _using(self) -> str:
        if self._chance(0.7):
            return ""
        return "".join(
            f"USING {self.random.choice(('', 'NAMED '))}{self._graph()} " for _ in range(self.random.randint(1, 3))
        )

    def _clear_or_drop(self) -> str:
        target = self.random.choice(("DEFAULT", "NAMED", "ALL", *(f"GRAPH {name}" for name in _GRAPHS * 2)))
        return f"{self.random.choice(('CLEAR', 'DROP'))} {self._silent()}{target}"

    def _create(self) -> str:
        return f"CREATE {self._silent()}GRAPH {self._graph()}"

    def _transfer(self) -> str:
        source, target = (self.random.choice(("DEFAULT", *_GRAPHS)) for _ in range(2))
        return f"{self.random.choice(('ADD', 'COPY', 'MOVE'))} {self._silent()}{source} TO {target}"

    def _load(self) -> str:
        return f"LOAD {self._silent()}<nowhere:document> INTO GRAPH {self._graph()}"

    def _silent(self) -> str:
        return "SILENT " if self._chance(0.7) else ""

    # --- quads

    def _quads(self, triple: Callable[[], str], *, most: int, graph_variable: bool = False) -> str:
        return " ".join(self._blocks(triple, self.random.randint(1, most), graph_variable))

    def _blocks(self, triple: Callable[[], str], count: int, graph_variable: bool) -> Iterator[str]:
        for _ in range(count):
            if self._chance(0.5):
                yield f"{triple()} ."
            else:
                name = self.random.choice(("?g", "?x")) if graph_variable and self._chance(0.6) else self._graph()
                yield f"GRAPH {name} {{ {triple()} }}"

    def _ground_triple(self) -> str:
        return f"{self._pick(_NODES)} {self._pick(_PREDICATES)} {self._pick(_NODES, self.literals)}"

    def _data_triple(self) -> str:
        if self._chance(0.6):
            return self._ground_triple()
        label = f"_:{self.random.choice('xyz')}{self._count[0]}"
        choices = (
            f"{label} {self._pick(_PREDICATES)} {self._pick(_NODES, self.literals, (label,))}",
            f"{self._pick(_NODES)} {self._pick(_PREDICATES)} {label}",
            f"{self._pick(_NODES)} {self._pick(_PREDICATES)} <<( {self._ground_triple()} )>>",
        )
        return self.random.choice(choices if self.triple_terms else choices[:2])

    def _template_triple(self) -> str:
        if self._chance(0.3):
            return "?s ?p ?o"
        variables = (*_VARIABLES, "?b", "?never")
        subject = self._pick(_NODES, variables, variables, ('"subject"@en', "-1"))
        triple_term = (f"<<( {self._pick(_VARIABLES)} :p ?o )>>",)
        value = self._pick(_NODES, self.literals, variables, variables, triple_term if self.triple_terms else (":a",))
        return f"{subject} {self._pick(_PREDICATES, _PREDICATES, ('?p', '?x'))} {value}"

    def _making_triple(self) -> str:
        """Make a template that may make blank nodes, shared among its triples or not."""
        return self.random.choice(
            (
                self._template_triple(),
                self._template_triple(),
                f"_:t :p {self._pick(_VARIABLES)} , _:u",
                f"{self._pick(_VARIABLES)} :q _:t",
                f"{self._pick(_VARIABLES)} :q [ :p {self._pick(_VARIABLES)} ] , ( :a ?o )",
                "( ?s 1 )",
            )
        )

    # --- patterns

    def _group(self, depth: int) -> str:
        return f"{{ {' '.join(self._element(depth) for _ in range(self.random.choice((1, 1, 1, 2, 3))))} }}"

    def _element(self, depth: int) -> str:
        if not depth or self._chance(0.5):
            return f"{self._triple_pattern(paths=True)} ."
        inner = depth - 1
        match self.random.choice(self.elements):
            case 0 | 1 | 2:
                return f"GRAPH {self.random.choice(('?g', self._graph()))} {self._group(inner)}"
            case 3:
                return f"OPTIONAL {self._group(inner)}"
            case 4:
                return f"{self._group(inner)} UNION {self._group(inner)}"
            case 5:
                return f"MINUS {self._group(inner)}"
            case 6:
                exists = f"{self.random.choice(('', 'NOT '))}EXISTS {self._group(inner)}"
                return f"FILTER({self._pick(self.conditions, (exists,) * 3)})"
            case 7:
                return f"{{ {self._group(inner)} BIND({self._pick(self.expressions)} AS {self._new_variable(depth)}) }}"
            case 8:
                rows = " ".join(self._pick(_NODES, self.literals, _GRAPHS, ("UNDEF",)) for _ in range(2))
                return f"VALUES {self._pick(_VARIABLES, ('?g',))} {{ {rows} }}"
            case _:
                count = f"?s (COUNT(*) AS {self._new_variable(depth)})"
                chosen = self.random.choice(("?s ?o", "DISTINCT ?x ?o", count, "*"))
                grouped = " GROUP BY ?s" if chosen is count else ""
                return f"{{ SELECT {chosen} WHERE {self._group(inner)}{grouped} }}"

    def _triple_pattern(self, *, paths: bool = False) -> str:
        if self._chance(0.4):
            return "?s ?p ?o"
        predicate = self._pick(_PREDICATES * 2, ("?p",) * 4, self.paths if paths else ())
        value = self._pick(_VARIABLES * 6, _NODES, (self._pick(self.literals),))
        return f"{self._pick(_VARIABLES * 2, _NODES)} {predicate} {value}"

    def _new_variable(self, depth: int) -> str:
        """Name a variable that nothing else in its group binds; templates know the outermost ones."""
        self._count[0] += 1
        return "?b" if depth == _DEPTH else f"?b{self._count[0]}"

    # --- choices

    def _graph(self) -> str:
        return self.random.choice(_GRAPHS)

    def _pick(self, *pools: tuple[str, ...]) -> str:
        return self.random.choice([term for pool in pools for term in pool])

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability
