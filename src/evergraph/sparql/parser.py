"""SPARQL text to algebra.

Two parsers read every query. The grammar here has every rule of SPARQL 1.1, builds the algebra as it reads, and says
where a text is wrong and what was expected there. pyoxigraph, whose algebra cannot be seen from Python, has the last
word on what is a query: it knows the rules besides the grammar, such as which variables BIND and SELECT may name.
"""

import re

from pyoxigraph import Store

from evergraph.errors import SyntaxProblem, nested_too_deeply
from evergraph.sparql.algebra import Query
from evergraph.sparql.grammar_queries import QueryGrammar
from evergraph.sparql.lexer import Kind, tokens

_RULE = re.compile(r"[A-Z][A-Za-z?]+ [a-z][^,\[\]]{10,}")
"""A sentence among the characters that pyoxigraph expected."""
_PLACE = re.compile(r"error at (\d+):(\d+): (.*)", re.DOTALL)


def parse_query(text: str, base: str = "") -> Query:
    """Parse a SPARQL 1.1 query; relative IRIs are resolved against ``base``. Raises `SyntaxProblem`."""
    try:
        query = QueryGrammar(text, base).query()
    except RecursionError as error:
        raise nested_too_deeply() from error
    check_syntax(text, base)
    return query


def check_syntax(text: str, base: str = "") -> None:
    """Raise a `SyntaxProblem` unless pyoxigraph takes the text for a query; nothing is evaluated or fetched."""
    try:
        # Both options at once are refused after parsing and before planning, which takes minutes for large patterns.
        Store().query(_plain_booleans(text), base_iri=base or None, use_default_graph_as_union=True, default_graph=[])
    except ValueError as error:
        if "base IRI" in str(error):
            raise _problem(str(error)) from error
    except SyntaxError as error:
        raise _problem(str(error)) from error
    else:
        raise AssertionError("a query was evaluated where it should only have been parsed")


def _plain_booleans(text: str) -> str:
    """Write TRUE and FALSE in small letters: SPARQL keywords have no case, but pyoxigraph's boolean literals have."""
    if not re.search("true|false", text, re.IGNORECASE):
        return text
    parts = list(text)
    for token in tokens(text):
        if token.kind is Kind.WORD and token.text.upper() in ("TRUE", "FALSE"):
            parts[token.start : token.start + len(token.text)] = token.text.lower()
    return "".join(parts)


def _problem(message: str) -> SyntaxProblem:
    """Word what pyoxigraph says of a text that the grammar here accepts: some rule besides the grammar is broken."""
    found = _PLACE.fullmatch(message)
    if not found:
        return SyntaxProblem(message)
    rules = _RULE.findall(found[3])
    reason = rules[0] if rules else "this breaks a rule of SPARQL"
    hint = "" if rules else "see that no variable is bound twice, or selected beside an aggregate and not grouped"
    return SyntaxProblem(reason, line=int(found[1]), column=int(found[2]), hint=hint)
