"""SPARQL Update text as tokens: just enough to tell strings, IRIs, names and braces apart.

Whether a text is SPARQL is Oxigraph's to say; here a text that is SPARQL is only taken apart.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from evergraph.names import NAME_REST, NAME_START


class Kind(Enum):
    """What a token is."""

    IRI = auto()
    STRING = auto()
    VARIABLE = auto()
    NAME = auto()  # prefix:local, _:label
    WORD = auto()  # keywords, and `a`
    NUMBER = auto()
    TAG = auto()  # @en, @ar--rtl
    MARK = auto()  # punctuation and operators


class Token(NamedTuple):
    """A piece of text with its place: offsets into the text it came from."""

    kind: Kind
    text: str
    start: int
    end: int

    def is_mark(self, *marks: str) -> bool:
        """Tell whether this is one of the given punctuation marks."""
        return self.kind is Kind.MARK and self.text in marks

    def is_word(self, *words: str) -> bool:
        """Tell whether this is one of the given keywords, in any case."""
        return self.kind is Kind.WORD and self.text.upper() in words


_LOCAL = rf"(?:\.*(?:[{NAME_REST}:\-]|%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?\#@%]))*+"
_ESCAPE = r"\\(?:.|\n)"
_PATTERN = re.compile(
    rf"""
      (?:[ \t\r\n]|\#[^\r\n]*)+
    | (?P<IRI><(?:[^<>"{{}}|^`\\\x00-\x20]|\\u[0-9A-Fa-f]{{4}}|\\U[0-9A-Fa-f]{{8}})*>)
    | (?P<STRING>\"\"\"(?:[^"\\]++|{_ESCAPE}|"(?!""))*+\"\"\"|'''(?:[^'\\]++|{_ESCAPE}|'(?!''))*+'''
                |"(?:[^"\\\r\n]++|{_ESCAPE})*+"|'(?:[^'\\\r\n]++|{_ESCAPE})*+')
    | (?P<VARIABLE>[?$][{NAME_START}_0-9][{NAME_REST}]*)
    | (?P<NAME>(?:[{NAME_START}](?:\.*[{NAME_REST}\-])*+)?:{_LOCAL}|_:[{NAME_START}_0-9](?:\.*[{NAME_REST}\-])*+)
    | (?P<WORD>[{NAME_START}][{NAME_REST}]*)
    | (?P<NUMBER>(?:[0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+|[0-9]*\.?[0-9]+)
    | (?P<TAG>@[A-Za-z]+(?:--?[A-Za-z0-9]+)*)
    | (?P<MARK>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_KINDS = dict(Kind.__members__)


def tokenize(text: str) -> Iterator[Token]:
    """Yield the tokens of a text without white space and comments."""
    for match in _PATTERN.finditer(text):
        if kind := match.lastgroup:
            yield Token(_KINDS[kind], match[0], match.start(), match.end())
