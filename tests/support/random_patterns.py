"""Random basic graph patterns of every class, and random streams of messages that are not exact.

There are so few terms that everything matches everything, and names serve as nodes, predicates and graphs at once.
"""

from dataclasses import dataclass
from random import Random

from evergraph.delta import Delta, Request
from evergraph.plan.continuous import PatternClass
from evergraph.sparql.algebra import BGP, GraphContext, PatternTerm, TriplePattern
from evergraph.terms import DEFAULT_GRAPH, BlankNode, GraphName, Literal, NamedNode, Quad, Term, Variable

A, B, P, Q = (NamedNode(f"http://example.org/{name}") for name in "abpq")
BLANK = BlankNode("x")
NODES: tuple[NamedNode | BlankNode, ...] = (A, A, B, P, BLANK)
INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
LITERALS: tuple[Term, ...] = (Literal("1"), Literal("1", datatype=INTEGER), Literal("01", datatype=INTEGER))
OBJECTS: tuple[Term, ...] = (*NODES, *NODES, *LITERALS)
PREDICATES = (P, P, P, Q)
GRAPHS: tuple[GraphName, ...] = (DEFAULT_GRAPH, DEFAULT_GRAPH, DEFAULT_GRAPH, A, P, BLANK)
VARIABLES = tuple(map(Variable, "xyzuvwt"))

Message = tuple[str, Quad]


@dataclass(slots=True)
class RandomPatterns:
    """A source of patterns and streams."""

    random: Random

    def pattern(self, wanted: PatternClass) -> BGP:
        """Make a pattern that is of a class, or at least likely to be."""
        match wanted:
            case PatternClass.GROUND:
                return self._bgp([self._triple(()) for _ in range(self.random.randint(0, 3))])
            case PatternClass.SIMPLE_STAR:
                return self._bgp(self._star(VARIABLES[0]))
            case PatternClass.LOOSELY_CONNECTED:
                stars = [self._star(variable, 2) for variable in VARIABLES[: self.random.randint(1, 3)]]
                return self._bgp([*self._ground(), *(triple for star in stars for triple in star)])
            case PatternClass.CONNECTED_VARIABLE:
                return self._bgp(self._connected(VARIABLES[: self.random.randint(2, 4)], self.random.randint(1, 4)))
            case PatternClass.ANY:
                parts = [
                    self._connected(VARIABLES[:2], 2),
                    self._connected(VARIABLES[2:4], 1),
                    self._star(VARIABLES[4]),
                ]
                chosen = self.random.sample(parts, self.random.randint(1, 3))
                return self._bgp([*self._ground(), *(triple for part in chosen for triple in part)])

    def tree(self) -> BGP:
        """Make a large connected pattern, with branches that have branches."""
        links = [
            TriplePattern(*pair, DEFAULT_GRAPH)
            for n, one in enumerate(VARIABLES[1:], start=1)
            for pair in [self._link(one, VARIABLES[self.random.randrange(min(n, 3))])]
        ]
        return self._bgp(links)

    def _link(self, one: Variable, other: Variable) -> tuple[Variable, NamedNode, Variable]:
        predicate = self.random.choice((P, Q, A))
        return (one, predicate, other) if self.random.random() < 0.5 else (other, predicate, one)

    def sparse_stream(self, length: int) -> list[Message]:
        """Make messages over few quads, half of which come and go."""
        nodes, predicates = (A, B, P, Q), (P, Q, A)
        choice = self.random.choice
        quads = [Quad(choice(nodes), choice(predicates), choice(nodes)) for _ in range(self.random.randint(4, 9))]
        return [(choice(("insert", "insert", "delete")), choice(quads)) for _ in range(length)]

    def stream(self, length: int) -> list[Message]:
        """Make messages that also insert what is there and delete what is not."""
        quads = [self.quad() for _ in range(self.random.randint(3, 14))]
        weights = (3, self.random.choice((1, 2, 3)))
        kinds = self.random.choices(("insert", "delete"), weights, k=length)
        return [(kind, self.random.choice(quads)) for kind in kinds]

    def batch(self, messages: list[Message]) -> Request | Delta:
        """Put messages together into a request, in which a quad may be on both sides, or into a delta in form only."""
        added = frozenset(quad for kind, quad in messages if kind == "insert")
        removed = frozenset(quad for kind, quad in messages if kind == "delete")
        return Request(removed, added) if self.random.random() < 0.7 else Delta(added, removed - added)

    def quad(self) -> Quad:
        """Make a quad."""
        random = self.random
        return Quad(random.choice(NODES), random.choice(PREDICATES), random.choice(OBJECTS), random.choice(GRAPHS))

    def _bgp(self, triples: list[TriplePattern]) -> BGP:
        self.random.shuffle(triples)
        if triples and self.random.random() < 0.1:
            triples.append(self.random.choice(triples))
        return BGP(tuple(triples))

    def _ground(self) -> list[TriplePattern]:
        return [self._triple(()) for _ in range(self.random.choice((0, 0, 1)))]

    def _star(self, centre: Variable, most: int = 3) -> list[TriplePattern]:
        return [self._triple((centre,)) for _ in range(self.random.randint(1, most))]

    def _connected(self, variables: tuple[Variable, ...], extra: int) -> list[TriplePattern]:
        """Link each variable with one before it, in any position, then add triples over any of them."""
        links = [self._triple((one, self.random.choice(variables[:n]))) for n, one in enumerate(variables[1:], start=1)]
        more = [
            self._triple(tuple(self.random.choices(variables, k=self.random.choice((1, 1, 2, 3)))))
            for _ in range(self.random.randint(0, extra))
        ]
        return links + more

    def _triple(self, variables: tuple[Variable, ...]) -> TriplePattern:
        """Make a triple pattern with these variables, most often as subject and object, sometimes one of them twice."""
        random = self.random
        terms: list[GraphContext] = [
            random.choice(NODES[:3]),
            random.choice(PREDICATES),
            random.choice(OBJECTS),
            random.choice(GRAPHS[:5]),
        ]
        places = [0, 2]
        random.shuffle(places)
        if random.random() < 0.25:
            places = random.sample(range(4), 4)
        elif len(variables) > 2:
            places.append(random.choice((1, 3)))
        for place, variable in zip(places, variables, strict=False):
            terms[place] = variable
        if variables and random.random() < 0.1:
            terms[random.randrange(4)] = variables[0]
        subject, predicate, object_, graph = terms
        return TriplePattern(_node(subject), _node(predicate), _node(object_), graph)


def _node(term: GraphContext) -> PatternTerm:
    assert not hasattr(term, "graph_name") and term != DEFAULT_GRAPH
    return term  # type: ignore[return-value]
