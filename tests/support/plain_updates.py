"""Random data and plain requests: one DELETE, INSERT and WHERE, each of triples in one graph."""

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


def random_request(random: Random) -> str:
    """Write a plain request over such data."""

    def block() -> str:
        s, p, o, g = (random.choice((f"?{place}", f"?{place}", *_TERMS[place])) for place in "spog")
        return f"{{ GRAPH {g} {{ {s} {p} {o} }} }}" if random.random() < 0.6 else f"{{ {s} {p} {o} }}"

    pattern = block()
    delete = random.choice(("", f"DELETE {pattern}", f"DELETE {block()}"))
    insert = random.choice(
        (f"INSERT {block()}", f'INSERT {{ ?s ?o "01"^^<{XSD}integer> . ?s ?p "x" }}', "" if delete else "INSERT {}")
    )
    return f"{PROLOGUE}{random.choice(('', '', 'WITH :g'))} {delete} {insert} WHERE {pattern}"
