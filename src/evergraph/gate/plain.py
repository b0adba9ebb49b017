"""The commonest requests, read without tokens; each function returns the operation and where in the text it begins."""

import re
from itertools import accumulate

from pyoxigraph import RdfFormat, parse

from evergraph.gate.operations import DeleteData, InsertData, Modify, Original, QuadTemplate, Rest, Where
from evergraph.gate.own import OWN
from evergraph.gate.templates import VARIABLE, as_template, compares_no_objects, is_matched
from evergraph.terms import NamedNode, Variable

DEEPEST = 200
"""How deep brackets may nest: Oxigraph reads by recursion, and the stack of the process is finite."""
_IRI = r"<[^<>\"{}|^`\\\x00-\x20]*>"
_S = r"[ \t\r\n]"
_PLAIN_DATA = re.compile(
    rf"((?:{_S}*PREFIX{_S}+[A-Za-z]?\w*:{_S}*{_IRI})*){_S}*(INSERT|DELETE){_S}+DATA{_S}*"
    rf"(?:(\{{[^{{}}]*\}})|\{{{_S}*(GRAPH{_S}*{_IRI}{_S}*\{{[^{{}}]*\}}){_S}*\}}){_S}*+;?{_S}*+",
    re.IGNORECASE,
)


def plain_data(text: str, base: str | None) -> tuple[InsertData | DeleteData, int] | None:
    """Read the commonest request of all without tokens: one DATA operation on one graph.

    Between one pair of braces that holds no other brace, the triples of SPARQL and of TriG are written alike. A text
    that TriG refuses goes the long way, which finds out whether SPARQL refuses it too.
    """
    match = _PLAIN_DATA.fullmatch(text)
    if not match:
        return None
    prologue, keyword, default, named = match.groups()
    insert = keyword.upper() == "INSERT"
    if not insert and ("_:" in text or "[" in text or "(" in text):
        return None
    if text.count("[") + text.count("(") > DEEPEST and _may_be_deep(text):
        return None
    try:
        quads = frozenset(
            parse(
                f"{prologue}\n{default or named}",
                format=RdfFormat.TRIG,
                base_iri=base,
                rename_blank_nodes=insert,
            )
        )
    except (SyntaxError, ValueError):
        return None
    is_nameless = "_:" in text or "[" in text or "(" in text  # a blank node would be another one each time
    original = None if base or is_nameless else Original(text, None, is_data=True)
    return (InsertData(quads, original) if insert else DeleteData(quads, original)), match.start(2)


_NAME = r"(?:[A-Za-z][\w\-]*+)?:\w[\w\-]*+"
_STRING = rf"\"[^\"\\\r\n]*+\"(?!\")(?:@[A-Za-z]++(?:-[A-Za-z0-9]++)*+|\^\^(?:{_IRI}|{_NAME}))?+"
_VARIABLE = r"[?$]\w++"
_RESOURCE = rf"(?:{_IRI}|{_VARIABLE}|{_NAME})"
_TRIPLES = rf"(?:{_S}|[.;,]|{_RESOURCE}|{_STRING}|a(?![\w\-:]))*+"
_GAP = rf"(?:{_S}++|(?=[<?$]))"
_VARIABLES = re.compile(rf"{_IRI}|\"[^\"]*+\"|({_VARIABLE})", re.ASCII)
_BETWEEN = NamedNode(OWN + "between")
_MARK = f"{_BETWEEN} {_BETWEEN}"


def _quads(name: str) -> str:
    """Write the expression for triples in braces, in a graph or not."""
    inside = rf"GRAPH{_GAP}(?P<{name}_graph>{_RESOURCE}){_S}*+\{{(?P<{name}_inside>{_TRIPLES})\}}{_S}*+"
    return rf"\{{(?:(?P<{name}>{_TRIPLES})|{_S}*+{inside})\}}{_S}*+"


_PLAIN_MODIFY = re.compile(
    rf"(?P<prologue>(?:{_S}*+PREFIX{_S}++[A-Za-z]?\w*+:{_S}*+{_IRI})*+){_S}*+(?P<start>)"
    rf"(?:DELETE{_S}++(?P<short>WHERE{_S}*+)|(?:WITH{_GAP}(?P<with>{_IRI}|{_NAME}){_S}*+)?+(?=DELETE|INSERT)"
    rf"(?:DELETE{_S}*+{_quads('delete')})?+(?:INSERT{_S}*+{_quads('insert')})?+WHERE{_S}*+)"
    rf"(?P<pattern>{_quads('where')});?{_S}*+",
    re.IGNORECASE | re.ASCII,
)


def plain_modify(text: str) -> tuple[Modify, int] | None:
    """Read the commonest of the other requests without tokens: one DELETE, INSERT and WHERE, of one graph each.

    They hold nothing but IRIs, names, variables and short strings. What stands between the braces then are triples,
    which SPARQL and TriG write alike once variables are IRIs. All of them are parsed at once. A text that TriG refuses
    goes the long way, which finds out whether SPARQL refuses it too.
    """
    match = _PLAIN_MODIFY.fullmatch(text)
    if not match:
        return None
    found, graph = match.groupdict(), match["with"]
    blocks = [_block(found, name, graph) for name in ("delete", "insert", "where")]
    same = bool(match["short"]) or blocks[0] == blocks[2]
    between = f"{{ {_MARK} {graph or '<urn:g>'} }}"
    trig = _VARIABLES.sub(_variable, between.join(["", *blocks[1:]] if same else blocks))
    try:
        quads = list(parse(f"{match['prologue']}\n{trig}", format=RdfFormat.TRIG))
    except (SyntaxError, ValueError):
        return None
    first, second = (place for place, quad in enumerate(quads) if quad.subject == _BETWEEN)
    insert, pattern = as_template(quads[first + 1 : second]), as_template(quads[second + 1 :])
    delete = pattern if same else as_template(quads[:first])
    with_graph = quads[first].object if graph else None
    assert with_graph is None or isinstance(with_graph, NamedNode)
    only = pattern[0] if len(pattern) == 1 and _has_different_variables(pattern[0]) else None
    where = Where(f"{match['prologue']}\n", match["pattern"], with_graph, only=only)
    matched = bool(delete) and is_matched(delete, pattern)
    names = {quad.graph for quad in (*delete, *insert, *pattern)}
    graphs = frozenset(name for name in names if isinstance(name, NamedNode))
    plainly = matched and compares_no_objects(pattern)
    named = graphs if len(graphs) == len(names) else None
    rest = Rest.NOTHING if pattern else Rest.OTHER
    original = None if graph else Original(text, named, rest=rest, deletes_plainly=plainly or not delete)
    return Modify(delete, insert, where, matched, plainly, original), match.start("start")


def _variable(seen: re.Match[str]) -> str:
    return f"<{VARIABLE}{seen[1][1:]}>" if seen[1] else seen[0]


def _block(found: dict[str, str | None], name: str, graph: str | None) -> str:
    """Write one of the parts of a request as TriG."""
    if (inside := found[f"{name}_inside"]) is not None:
        return f"GRAPH {found[f'{name}_graph']} {{{inside}}}"
    return f"GRAPH {graph} {{{found[name] or ''}}}" if graph else f"{{{found[name] or ''}}}"


def _has_different_variables(quad: QuadTemplate) -> bool:
    names = [slot.value for slot in quad.slots() if isinstance(slot, Variable)]
    return len(names) == len(set(names))


def _may_be_deep(text: str) -> bool:
    """Tell whether brackets could nest too deeply, those in strings counted too."""
    steps = (1 if bracket in "[(" else -1 for bracket in re.findall(r"[\[\]()]", text))
    return max(accumulate(steps)) > DEEPEST
