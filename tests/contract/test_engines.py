"""One algebra, two engines: every operator and every class of queries gives the same changes on both."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, parse
from pyspark.sql import SparkSession
from tests.support.engines import BothEngines

from evergraph.delta import Request
from evergraph.engines.spark.costs import Way
from evergraph.engines.spark.views import SparkView
from evergraph.sparql.parser import parse_query
from evergraph.terms import Quad

PREFIX = "PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"

QUERIES = {
    "ground": "SELECT * { :ann :knows :bob }",
    "star": "SELECT * { ?x :name ?n ; :age ?a ; :city ?c }",
    "path": "SELECT ?x ?z { ?x :knows ?y . ?y :knows ?z . ?z :city ?c }",
    "triangle": "SELECT * { ?x :knows ?y . ?y :knows ?z . ?z :knows ?x }",
    "self": "SELECT * { ?x :knows ?x }",
    "any predicate": "SELECT ?p { :ann ?p ?o }",
    "product": "SELECT * { ?x :city :rome . ?y :age 7 }",
    "filter": 'SELECT ?x ?n { ?x :name ?n ; :age ?a FILTER(?a > 5 && ?n != "Bob" && ?x != :eve) }',
    "bind": "SELECT ?x ?b { ?x :age ?a BIND(?a * 2 AS ?b) }",
    "optional": "SELECT * { ?x :name ?n OPTIONAL { ?x :age ?a FILTER(?a > 5) OPTIONAL { ?x :city ?c } } }",
    "optional then join": "SELECT * { ?x :name ?n OPTIONAL { ?x :city ?c } ?y :city ?c }",
    "union": "SELECT ?x ?v { { ?x :name ?v } UNION { ?x :city ?v } UNION { ?x :age ?w } }",
    "minus": "SELECT ?x { ?x :name ?n MINUS { ?x :city :rome } }",
    "minus unbound": "SELECT * { ?x :name ?n OPTIONAL { ?x :city ?c } MINUS { ?y :city ?c } }",
    "exists": "SELECT ?x { ?x :name ?n FILTER EXISTS { ?x :knows ?y . ?y :city ?c } }",
    "not exists": "SELECT ?x ?y { ?x :knows ?y FILTER NOT EXISTS { ?y :knows ?x } }",
    "exists in or": "SELECT ?x { ?x :age ?a FILTER(?a > 30 || EXISTS { ?x :city :rome }) }",
    "values": "SELECT * { VALUES (?x ?c) { (:ann UNDEF) (:bob :rome) } ?x :city ?c }",
    "distinct": "SELECT DISTINCT ?c { ?x :city ?c ; :knows ?y }",
    "count all": "SELECT (COUNT(*) AS ?n) (SUM(?a) AS ?s) { ?x :age ?a }",
    "groups": "SELECT ?c (COUNT(DISTINCT ?x) AS ?n) (AVG(?a) AS ?m) (MAX(?a) AS ?o) (GROUP_CONCAT(?n) AS ?t)"
    " { ?x :city ?c ; :age ?a ; :name ?n } GROUP BY ?c HAVING(COUNT(*) > 0)",
    "group by optional": "SELECT ?c (COUNT(*) AS ?n) { ?x :name ?m OPTIONAL { ?x :city ?c } } GROUP BY ?c",
    "group by unbound": "SELECT ?c ?u (COUNT(*) AS ?n) { ?x :city ?c } GROUP BY ?c ?u",
    "sub-select": "SELECT ?x ?m { ?x :age ?m { SELECT (MAX(?a) AS ?m) { ?y :age ?a } } }",
    "first": "SELECT ?x ?a { ?x :age ?a } ORDER BY DESC(?a) ?x LIMIT 2",
    "page": "SELECT DISTINCT ?c { ?x :city ?c } ORDER BY ?c LIMIT 1 OFFSET 1",
    "one or more": "SELECT ?x { ?x :knows+ :eve }",
    "zero or more": "SELECT * { ?x :knows* ?y }",
    "path expression": "SELECT * { ?x (:knows/^:knows)|!(:name|:age) ?y }",
    "graph": "SELECT * { GRAPH ?g { ?x :city ?c } }",
    "closure by graph": "SELECT * { GRAPH ?g { ?x :knows+ ?y } }",
    "graph names": "SELECT ?g { GRAPH ?g { } }",
    "graph by graph": "SELECT * { GRAPH ?g { ?x :name ?n MINUS { ?x :city :rome } } }",
    "from": "SELECT * FROM :g FROM :h { ?x :city ?c }",
    "from named": "SELECT * FROM NAMED :g { GRAPH ?g { ?x :city ?c } }",
    "ask": "ASK { ?x :age 7 }",
    "construct": "CONSTRUCT { ?x :lives ?c . ?c a :City } WHERE { ?x :city ?c }",
    "construct nodes": "CONSTRUCT { ?x :at [ :in ?c ] } WHERE { ?x :city ?c }",
    "describe": "DESCRIBE ?x WHERE { ?x :city :rome }",
}

HISTORY = (
    (
        '+:ann :name "Ann" ; :age 7 ; :city :rome ; :knows :bob . :bob :name "Bob" ; :age 33 ; :knows :cid .',
        '+:cid :name "Cid" ; :knows :ann, :eve . :eve :name "Eve" ; :city :oslo . GRAPH :g { :ann :city :rome }',
    ),
    ("-:ann :city :rome . :bob :knows :cid .", "+:ann :city :oslo . GRAPH :h { :ann :city :rome . :a :knows :b }"),
    ("+:bob :city :rome ; :age 7 . :eve :knows :eve, :ann . GRAPH :g { :b :knows :c . :a :name 'a' . :a :knows :b }",),
    (
        '-:eve :knows :eve . :ann :age 7 . :bob :age 33 . GRAPH :g { :ann :city :rome } :nobody :name "there" .',
        "+:ann :age 7 . :ann :age 41 . GRAPH :g { :c :knows :a }",
        "-:ann :age 41 . GRAPH :h { :ann :city :rome . :a :knows :b }",
    ),
)


def _quads(text: str) -> Iterator[Quad]:
    return iter(
        parse(
            f"{PREFIX.replace('PREFIX', '@prefix').replace('> ', '> . ').replace('#>', '#> .')}{text}", RdfFormat.TRIG
        )
    )


def requests(texts: tuple[str, ...]) -> list[Request]:
    """Read changes: those that begin with + add, those with - remove."""
    return [
        Request(added=frozenset(_quads(text[1:]))) if text[0] == "+" else Request(removed=frozenset(_quads(text[1:])))
        for text in texts
    ]


@pytest.mark.parametrize("way", Way)
def test_same_changes(spark: SparkSession, tmp_path: Path, way: Way) -> None:
    queries = {name: parse_query(PREFIX + text) for name, text in QUERIES.items()}
    if way is Way.SHARES:
        queries = {name: query for name, query in queries.items() if SparkView(name, query).centre is not None}
    both = BothEngines(spark, tmp_path / "quads", queries, way)
    history: tuple[tuple[str, ...], ...] = HISTORY
    if way is Way.INCREMENTAL:
        history = (*HISTORY[:2], HISTORY[2] + HISTORY[3])
    if way is Way.DIRECT:  # there is no state that a longer history could spoil
        history = (HISTORY[0] + HISTORY[1], HISTORY[2] + HISTORY[3])
    for batch, texts in enumerate(history, 1):
        both.check(requests(texts), batch)
    if way in (Way.DIRECT, Way.WHOLE):
        both.check_initial()
    ways = {choice.chosen for choice in both.spark.costs.choices}
    assert ways == {way}
