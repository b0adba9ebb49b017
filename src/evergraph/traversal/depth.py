"""Documents that are nested so deeply that to read them would take all memory, or the whole process, are refused first.

Of 540 kB of nested JSON-LD the parser makes more than 7 GB, and a triple term of 20,000 triple terms ends the process.
"""

import re
from xml.parsers import expat

from pyoxigraph import RdfFormat

from evergraph.errors import DataError

DEEPEST = 200
"""Levels that a document may have: objects of JSON, elements of XML, triple terms."""

_JSON = re.compile(rb'"(?:[^"\\]|\\.)*"|([{\[])|([}\]])', re.DOTALL)
_TERMS = re.compile(
    rb'"""(?:[^"\\]|\\.|"(?!""))*"""'
    rb"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    rb'|"(?:[^"\\\n]|\\.)*"'
    rb"|'(?:[^'\\\n]|\\.)*'"
    rb"|(<<)|(>>)|<[^<>\s]*>|#[^\n]*",
    re.DOTALL,
)


def refuse_deep(body: bytes, syntax: RdfFormat, where: str) -> None:
    """Raise `DataError` for a document with more than `DEEPEST` levels; what is broken is left to the parser."""
    if syntax == RdfFormat.JSON_LD:
        deep = _depth(_JSON, body)
    elif syntax == RdfFormat.RDF_XML:
        deep = _xml_depth(body)
    else:
        deep = _depth(_TERMS, body) if body.count(b"<<") > DEEPEST else 0
    if deep > DEEPEST:
        raise DataError(f"{where}: more than {DEEPEST} levels are nested in each other")


def _depth(tokens: re.Pattern[bytes], body: bytes) -> int:
    depth = deepest = 0
    for found in tokens.finditer(body):
        if found.lastindex == 1:
            depth += 1
            if depth > deepest:
                deepest = depth
                if deepest > DEEPEST:
                    break
        elif found.lastindex == 2:
            depth -= 1
    return deepest


class _TooDeep(Exception):
    pass


def _xml_depth(body: bytes) -> int:
    depth = 0

    def begin(name: str, attributes: object) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise _TooDeep

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    try:
        parser.Parse(body, True)
    except _TooDeep:
        return DEEPEST + 1
    except expat.ExpatError:
        pass
    return 0
