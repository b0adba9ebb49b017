"""Random data, and requests that can be written as they came: one DELETE, INSERT and WHERE."""

from random import Random

from evergraph.terms import XSD

PROLOGUE = "PREFIX : <urn:> PREFIX ex: <http://e.org/>\n"
_TERMS = {
    "s": (":a", ":b", ":g"),
    "p": (":p", ":q"),
    "o": (":a", ":b", '"x"', '"?o"@en', '"x"@en', "1"),
    "g": (":g", ":h"),
}


def random_data(random: Random, *, blank_nodes: bool = True) -> str:
    """Write an INSERT DATA of a few quads."""
    terms = {**_TERMS, "o": (*_TERMS["o"], "_:n")} if blank_nodes else _TERMS
    rows = [[random.choice(terms[place]) for place in "spog"] for _ in range(random.randrange(12))]
    texts = (f"GRAPH {g} {{ {s} {p} {o} }}" if random.random() < 0.7 else f"{s} {p} {o} ." for s, p, o, g in rows)
    return f"{PROLOGUE} INSERT DATA {{ {' '.join(texts)} }}"


_RESTS = (
    "FILTER(?o != 'x')", "FILTER(?o = 'x')", "FILTER isIRI(?o)", "FILTER(LANG(?o) = 'en').",
    "FILTER(?o IN (:a, 'x'@EN))",
    "FILTER(?o = 1 || sameTerm(?s, ?o))", "FILTER EXISTS { GRAPH :g { ?s :p ?x } }", "FILTER NOT EXISTS { ?s :q ?o }",
    "FILTER(!EXISTS { GRAPH ?g { ?s :q ?x } })", "OPTIONAL { ?s :q ?y }", "OPTIONAL { GRAPH :h { ?s ?p ?o } }",
    "MINUS { GRAPH :g { ?s :p :a } } .", "VALUES ?s { :a :b }", "VALUES (?s ?o) { (:a 'x') (:b UNDEF) }",
    "BIND(STR(?s) AS ?z)", "BIND(IRI(CONCAT('urn:', LANG(?o))) AS ?w) FILTER(BOUND(?w))", "GRAPH :h { ?y ?p ?x }",
)  # fmt: skip


def random_request(random: Random) -> str:
    """Write a request over such data that has the same effect each time on the same data."""

    def quad() -> str:
        s, p, o, g = (random.choice((f"?{place}", f"?{place}", *_TERMS[place])) for place in "spog")
        return f"GRAPH {g} {{ {s} {p} {o} }}" if random.random() < 0.6 else f"{s} {p} {o}"

    pattern = f"{{ {quad()} }}"
    where = pattern
    if random.random() < 0.5:
        for rest in random.sample(_RESTS, random.choice((1, 1, 2))):
            parts = where[2:-2], rest
            inside = where == pattern and where.endswith("} }") and "{" not in rest and random.random() < 0.5
            where = f"{where[:-4]} {rest} }} }}" if inside else f"{{ {' '.join(parts)} }}"
    delete = random.choice(("", f"DELETE {pattern}", f"DELETE {pattern}", f"DELETE {{ {quad()} }}"))
    insert = random.choice(
        (
            f"INSERT {{ {quad()} }}",
            f'INSERT {{ ?s ?o "01"^^<{XSD}integer> . ?s ?p "x" }}',
            "INSERT { GRAPH :h { ?s ?p ?y . ?s ?p ?z . ?w ?p ?s } }",
            "" if delete else "INSERT {}",
        )
    )
    return f"{PROLOGUE}{random.choice(('', '', 'WITH :g'))} {delete} {insert} WHERE {where}"
