"""SPARQL text to tokens (https://www.w3.org/TR/sparql11-query/#rterminals), and the reader behind the grammar rules."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import NoReturn

from evergraph.errors import SyntaxProblem
from evergraph.names import NAME_REST, NAME_START


class Kind(Enum):
    """The kinds of tokens; the names of the recommendation where it has one."""

    IRIREF = auto()
    PNAME = auto()
    BLANK_NODE_LABEL = auto()
    VAR = auto()
    LANGTAG = auto()
    STRING = auto()
    DOUBLE = auto()
    DECIMAL = auto()
    INTEGER = auto()
    WORD = auto()
    MARK = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it was written, and where it starts."""

    kind: Kind
    text: str
    start: int


_BASE, _NAME = NAME_START, NAME_REST
_LOCAL_ESCAPE = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_EXPONENT = r"[eE][+-]?[0-9]+"

_TOKENS = re.compile(
    "|".join(
        f"(?P<{kind}>{pattern})"
        for kind, pattern in (
            ("SKIP", r"[ \t\r\n]+|\#[^\r\n]*"),
            ("IRIREF", r"<(?:[^<>\"{}|^`\\\x00-\x20]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*>"),
            (
                "PNAME",
                rf"(?:[{_BASE}](?:[{_NAME}.\-]*[{_NAME}\-])?)?:"
                rf"(?:(?:[{_BASE}_:0-9]|{_LOCAL_ESCAPE})(?:(?:[{_NAME}\-.:]|{_LOCAL_ESCAPE})*(?:[{_NAME}\-:]|{_LOCAL_ESCAPE}))?)?",
            ),
            ("BLANK_NODE_LABEL", rf"_:[{_BASE}_0-9](?:[{_NAME}\-.]*[{_NAME}\-])?"),
            ("VAR", rf"[?$][{_BASE}_0-9][{_NAME}]*"),
            ("LANGTAG", r"@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*"),
            (
                "STRING",
                r'"""(?:(?:"|"")?(?:[^"\\]|\\.))*"""|'
                r"'''(?:(?:'|'')?(?:[^'\\]|\\.))*'''|"
                r'"(?:[^"\\\n\r]|\\.)*"|'
                r"'(?:[^'\\\n\r]|\\.)*'",
            ),
            ("DOUBLE", rf"[0-9]+\.[0-9]*{_EXPONENT}|\.[0-9]+{_EXPONENT}|[0-9]+{_EXPONENT}"),
            ("DECIMAL", r"[0-9]*\.[0-9]+"),
            ("INTEGER", r"[0-9]+"),
            ("WORD", r"[A-Za-z][A-Za-z0-9_]*"),
            ("MARK", r"\^\^|&&|\|\||!=|<=|>=|[{}()\[\].,;*+/|^!?<>=\-]"),
        )
    )
)


def tokens(text: str) -> Iterator[Token]:
    """Cut a text into tokens; the last one is of kind END."""
    position = 0
    while position < len(text):
        found = _TOKENS.match(text, position)
        if found is None:
            raise _problem(text, position, f"unexpected character {text[position]!r}")
        if found.lastgroup != "SKIP":
            yield Token(Kind[found.lastgroup or ""], found.group(), position)
        position = found.end()
    yield Token(Kind.END, "", len(text))


def _problem(text: str, position: int, message: str) -> SyntaxProblem:
    before = text[:position]
    return SyntaxProblem(message, line=before.count("\n") + 1, column=position - before.rfind("\n"))


class Reader:
    """A position in a list of tokens. Keywords are compared without regard to case, as SPARQL has it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(tokens(text))
        self.position = 0

    @property
    def token(self) -> Token:
        """The token that is read next."""
        return self.tokens[self.position]

    def advance(self) -> Token:
        """Take the next token."""
        token = self.token
        self.position += 1
        return token

    def at(self, *texts: str, ahead: int = 0) -> bool:
        """Tell whether the next token is one of these keywords or marks."""
        token = self.tokens[min(self.position + ahead, len(self.tokens) - 1)]
        if token.kind is Kind.WORD:
            return token.text.upper() in texts
        return token.kind is Kind.MARK and token.text in texts

    def accept(self, *texts: str) -> str:
        """Take the next token if it is one of these, in capitals; otherwise return nothing."""
        return self.advance().text.upper() if self.at(*texts) else ""

    def expect(self, *texts: str) -> str:
        """Take the next token, which has to be one of these."""
        return self.accept(*texts) or self.fail("expected " + " or ".join(texts))

    def at_kind(self, *kinds: Kind) -> bool:
        """Tell whether the next token is of one of these kinds."""
        return self.token.kind in kinds

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        """Refuse the text at a token; the next one unless told."""
        token = token or self.token
        found = f"{token.text!r}" if token.text else "the end of the text"
        raise _problem(self.text, token.start, f"{message}, found {found}")
