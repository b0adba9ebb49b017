"""Random interests and data, with so few terms that everything joins with everything."""

from dataclasses import dataclass
from random import Random

from pyoxigraph import RdfFormat, parse

from evergraph.errors import UnsupportedInterest
from evergraph.terms import Quad
from evergraph.views.replicas import Interest, parse_interest

PROLOGUE = "PREFIX : <http://example.org/>\n"
NODES = (":a", ":b", ":c")
PREDICATES = (":p", ":p", ":q", ":r")
OBJECTS = (*NODES, *NODES, "1", "2", '"x"@en', '"x"@fr', "_:x")
VARIABLES = ("?a", "?b", "?c", "?d")
PATHS = (
    ":p/:q",
    "^:p",
    ":p|:q",
    "!:p",
    "!(:p|^:q)",
    ":p+",
    ":q*",
    ":r?",
    "(:p/:q)+",
    "(:p|^:q)+",
    "(:p/:r?)*",
    ":p/:q+",
)
CONDITIONS = (
    "isIRI({0})",
    "{0} != {1}",
    "{0} = 1",
    'lang({0}) = "en"',
    "bound({0})",
    "!bound({0})",
    "bound({0}) || {1} = :a",
    "{0} IN (:a, :b, 2)",
    "COALESCE({0}, {1}) != :c",
)


@dataclass(slots=True)
class RandomInterests:
    """A source of interests and triples; the same seed gives the same."""

    random: Random

    def pool(self, most: int = 24) -> frozenset[Quad]:
        """Make triples that interests may be about."""
        text = " ".join(self._statement() for _ in range(self.random.randint(most // 2, most)))
        return frozenset(parse(PROLOGUE + text, RdfFormat.TRIG, rename_blank_nodes=False))

    def _statement(self) -> str:
        triple = f"{self._one((*NODES, '_:x'))} {self._one(PREDICATES)} {self._one(OBJECTS)}"
        return f"{{ {triple} }}" if self._chance(0.95) else f":graph {{ {triple} }}"

    def interest(self, name: str = "interest") -> tuple[str, Interest]:
        """Make an interest; patterns that nothing connects are tried again."""
        while True:
            text = self._text()
            try:
                return text, parse_interest(text, name)
            except UnsupportedInterest as error:
                assert "connected" in str(error), text

    def _text(self) -> str:
        triples = [self._triple() for _ in range(self.random.choice((1, 1, 2, 2, 3)))]
        where = " . ".join(triples) + self._rest(2)
        if self._chance(0.15):
            kept = self.random.sample(triples, self.random.randint(1, len(triples)))
            return f"{PROLOGUE}CONSTRUCT {{ {' . '.join(kept)} }} WHERE {{ {where} }}"
        if self._chance(0.15):
            where = where.replace(self._one((":p ", ":q ")), self._one(PATHS) + " ", 1)
        return f"{PROLOGUE}SELECT * {{ {where} }}"

    def _rest(self, depth: int) -> str:
        text = ""
        for _ in range(self.random.choice((0, 0, 1, 1, 2)) if depth else 0):
            text += " " + self._clause(depth)
        return text

    def _clause(self, depth: int) -> str:
        inner = f"{{ {self._triple()}{self._rest(depth - 1)} }}"
        kind = self.random.random()
        if kind < 0.1:
            new = self._one(("?c", "?d"))
            condition = self._one(CONDITIONS).format(new, self._variable())
            return f"OPTIONAL {{ ?a {self._one(PREDICATES)} {new} }} FILTER ({condition})"
        if kind < 0.5:
            return f"OPTIONAL {inner}"
        if kind < 0.7:
            return f"FILTER ({self._one(CONDITIONS).format(self._variable(), self._variable())})"
        if kind < 0.78:
            return f"FILTER {self._one(('', 'NOT '))}EXISTS {{ {self._triple()} }}"
        if kind < 0.84:
            return f"{{ {self._triple()} }} UNION {inner}"
        if kind < 0.9:
            return f"MINUS {{ {self._triple()} }}"
        if kind < 0.95:
            return f"VALUES {self._variable()} {{ :a 1 }}"
        return f". {self._variable()} {self._one(PATHS)} {self._one((*VARIABLES, ':a'))}"

    def _triple(self) -> str:
        predicate = self._one((*PREDICATES, *PREDICATES, self._variable()))
        return f"{self._one((*VARIABLES, '?a', ':a'))} {predicate} {self._one((*VARIABLES, *VARIABLES, ':b', '1'))}"

    def _variable(self) -> str:
        return self._one(VARIABLES)

    def _one(self, choices: tuple[str, ...]) -> str:
        return self.random.choice(choices)

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability
