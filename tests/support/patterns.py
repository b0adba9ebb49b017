"""Basic graph patterns and quads from text, for tests that people read."""

from pyoxigraph import RdfFormat, parse

from evergraph.sparql.algebra import BGP, Project, Select
from evergraph.sparql.parser import parse_query
from evergraph.terms import Quad

PREFIXES = "PREFIX : <http://example.org/> PREFIX foaf: <http://xmlns.com/foaf/0.1/>\n"


def bgp(text: str, prefixes: str = "") -> BGP:
    """Parse what stands between the braces of a query."""
    query = parse_query(f"{PREFIXES}{prefixes}SELECT * {{ {text} }}")
    assert isinstance(query, Select)
    pattern = query.pattern.operand if isinstance(query.pattern, Project) else query.pattern
    assert isinstance(pattern, BGP), pattern
    return pattern


def quads(text: str) -> list[Quad]:
    """Parse TriG; the last dot may be left out."""
    dot = "" if not text or text.endswith((".", "}")) else " ."
    return list(parse(f"{PREFIXES}{text}{dot}", RdfFormat.TRIG))


def quad(text: str) -> Quad:
    """Parse one triple, or one graph with one."""
    [one] = quads(text)
    return one
