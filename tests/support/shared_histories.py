"""Random histories of queries that differ only in constants, which come and go while changes flow."""

from random import Random

from tests.support.histories import Follower, from_scratch, leave_out_small_ids, random_deltas
from tests.support.random_queries import RandomQueries

from evergraph.engines.local.engine import LocalEngine, View
from evergraph.engines.local.optimizer import Optimizer
from evergraph.engines.local.shared import SharedView
from evergraph.plan.templates import canonical, placeholder, with_constants
from evergraph.sparql.algebra import Query
from evergraph.sparql.parser import parse_query
from evergraph.terms import BlankNode, Literal, NamedNode, Quad, Term

PREFIX = "PREFIX : <http://example.org/> "
NEVER = NamedNode("http://example.org/never")

TEMPLATES = (
    "SELECT * { ?x :p :a }",
    "SELECT ?y { :a :p ?x . ?x :q ?y }",
    "SELECT ?y { :a :p ?x . ?x :q ?y . ?y :p :b }",
    "SELECT ?x { ?x :p ?y . ?y :q :a . ?x :q :b . ?z :p :c }",
    "SELECT ?x { ?x :p :a , :b , :c , 1 }",
    "SELECT * { :a ?p ?x . ?x ?p :a }",
    "SELECT * { :a :p :a . ?x :q ?y }",
    "SELECT * { :a ?p :b }",
    "ASK { ?x :p ?y . ?y :q :a }",
    "ASK { :a :p :b }",
    "SELECT DISTINCT ?y { ?x :p :a . ?x :q ?y }",
    "SELECT ?x ?n { ?x :p :a OPTIONAL { ?x :q ?n } }",
    "SELECT ?x ?n { ?x :p :a OPTIONAL { ?n :q :a . ?n :p ?x } }",
    "SELECT ?x ?n { ?x :p ?y OPTIONAL { ?n :q :a . ?n :p ?x } }",
    "SELECT ?x { ?x :p :a MINUS { ?x :q :a } }",
    "SELECT ?x { ?x :p :a MINUS { :a :q ?y } }",
    "SELECT ?x { ?x :p :a OPTIONAL { ?x :q ?y } MINUS { ?y :q :a } }",
    "SELECT ?x { ?x :p :a FILTER NOT EXISTS { ?x :q :b } }",
    "SELECT ?x { ?x :p :a FILTER NOT EXISTS { ?x :q :a } }",
    "SELECT ?x ?e { ?x :p :a BIND (EXISTS { :a :q ?x } AS ?e) }",
    "SELECT ?x { ?x :p :a FILTER EXISTS { :a :q ?y } }",
    "SELECT ?x { { ?x :p :a } UNION { :a :q ?x } }",
    "SELECT ?x { { ?x :p :a } UNION { :b :q ?x } }",
    "SELECT ?x { ?x :p :a { ?x :q ?y } UNION { ?y :q ?x } }",
    "SELECT ?y (COUNT(*) AS ?n) (COUNT(DISTINCT ?x) AS ?m) { ?x :p :a ; :q ?y } GROUP BY ?y",
    "SELECT (COUNT(*) AS ?n) { ?x :p :a ; :q ?y }",
    "SELECT ?x { ?x :p :a } ORDER BY ?x LIMIT 1",
    "SELECT ?x { ?x :p :a . :b :q ?x FILTER (?x != :c) }",
    "SELECT ?x ?y { ?x :p :a . ?y :q :b }",
    "SELECT ?x ?y { ?x :p :a . ?y :q :a }",
    "SELECT ?x ?y { ?x :p :a . ?x :q+ ?y }",
    "SELECT ?x { ?x :p :a . :a :q* ?x }",
    "SELECT ?x { GRAPH ?g { ?x :p :a } ?x :q :b }",
    "SELECT ?x { GRAPH :g { ?x :p :a } ?x :q :b }",
    "SELECT ?x ?g { GRAPH ?g { ?x :p :a OPTIONAL { ?x :q :b } } }",
    "SELECT ?x FROM :g FROM :h { ?x :p :a ; :q ?y }",
    "SELECT ?x { ?x :p :a { SELECT DISTINCT ?x { ?x :q :b } } }",
    "SELECT ?x { ?x :p :a OPTIONAL { ?x :q ?y FILTER EXISTS { ?y :p :a } } }",
    "SELECT ?x ?z { ?x :p :a BIND (CONCAT('a', STR(?x)) AS ?z) }",
    "SELECT ?x { VALUES ?x { :a :b } ?x :p :a }",
)


def check_shared(seed: int, steps: int = 16, most: int = 8) -> int:
    """Maintain queries of one template, and some of another, against runs from scratch; return how many shared."""
    random = Random(seed)
    source = RandomQueries(random)
    pool = source.dataset(most=50)
    if not pool:
        return 0
    text = PREFIX + random.choice(TEMPLATES) if seed % 3 else source.query()
    templates = [text, PREFIX + random.choice(TEMPLATES)]
    present: frozenset[Quad] = frozenset()
    constants = _constants(pool)
    engine = LocalEngine(
        source=lambda: present,
        optimizer=Optimizer(smallest=random.choice((1, 64)), sample=1, force=lambda: random.choice(("direct", None))),
    )
    leave_out_small_ids(engine._store.dictionary)
    followers: dict[View, Follower] = {}
    shared = 0
    for number, delta in enumerate(random_deltas(random, pool, steps)):
        for _ in range(random.randint(0, 3)):
            if len(followers) < most:
                query = _variant(random, parse_query(random.choice(templates)), constants)
                view = engine.register(query)
                shared += isinstance(view, SharedView)
                expected = from_scratch(query, present)
                where = f"seed {seed}, step {number}\n{text}\n{query}"
                assert view.result() == expected, f"{where}\nat first {view.result()}\nexpected {expected}"
                followers[view] = Follower(view, query, expected, where)
        for view in random.sample(list(followers), len(followers) // 4):
            engine.remove(view)
            del followers[view]
        if random.random() < 0.2:
            engine.forget_terms()
        changes = engine.apply(delta)
        present = (present - delta.deleted) | delta.inserted
        reported = {change[0]: change for change in changes}
        assert len(reported) == len(changes)
        for view, follower in followers.items():
            follower.check(present, reported.pop(view, None))
        assert not reported, f"seed {seed}: a removed view was reported"
    for view in followers:
        engine.remove(view)
    assert engine.is_empty(), f"seed {seed}: something is left of removed views"
    return shared


def _constants(pool: frozenset[Quad]) -> list[Term]:
    terms = {term for quad in pool for term in (quad.subject, quad.object)}
    return [*sorted((one for one in terms if isinstance(one, NamedNode | Literal | BlankNode)), key=str), NEVER]


def _variant(random: Random, query: Query, constants: list[Term]) -> Query:
    """Return a query with other constants, some of which may be the same."""
    found = canonical(query)
    if found is None:
        return query
    skeleton, own = found
    few = random.sample(constants, min(3, len(constants)))
    return with_constants(skeleton, {placeholder(number): random.choice((one, *few)) for number, one in enumerate(own)})
