"""The syntax of update requests: Oxigraph decides what is right; what is wrong, and where, is said here."""

import re
from collections.abc import Sequence

from pyoxigraph import Store

from evergraph.errors import SyntaxProblem
from evergraph.gate.tokens import Kind, Token, tokenize

NEVER_RUN = "DROP GRAPH <urn:evergraph:never>;\n"
"""Stands before an operation that is to be parsed and not run: it fails first."""

_STORE = Store()
_CLOSING = {"{": "}", "(": ")", "[": "]"}


def is_sparql(text: str) -> bool:
    """Tell whether a text is a SPARQL Update request. It must begin with `NEVER_RUN` or hold no operation."""
    return _verdict(text) is None


def _verdict(text: str) -> SyntaxError | None:
    try:
        _STORE.update(text)
    except SyntaxError as error:
        return error
    except RuntimeError:
        return None
    return None


class Judge:
    """Checks parts of a request, and words the errors."""

    def __init__(self, text: str, tokens: Sequence[Token], where: str) -> None:
        self._text = text
        self._tokens = tokens
        self._where = where

    def problem(self, message: str, offset: int) -> SyntaxProblem:
        """Make the error about a place in the text."""
        line, column = self._place(offset)
        return SyntaxProblem(message, where=self._where, line=line, column=column, text=self._text)

    def check(self, before: str, start: int, end: int) -> None:
        """Raise an error if ``before`` (whole lines) and the part of the text together are not SPARQL."""
        error = _verdict(before + self._text[start:end])
        if error is None:
            return
        found = re.match(r"error at (\d+):(\d+): (?:expected )?(.*)", str(error), re.DOTALL)
        assert found, error
        line, column = int(found[1]) - before.count("\n"), int(found[2])
        lines_before = self._text[start:end].split("\n")[: line - 1]
        offset = start + sum(len(passed) + 1 for passed in lines_before) + column - 1
        seen = [token for token in self._tokens if start <= token.start < end and token.start <= offset]
        raise self._explained(before, seen, offset, found[3])

    def _explained(self, before: str, seen: list[Token], offset: int, expectation: str) -> SyntaxProblem:
        """Say what is wrong, given the tokens up to where Oxigraph stopped and what it expected there."""
        parts = [part.strip() for part in expectation.replace("\n", " ").removeprefix("one of ").split(", ")]
        if sentences := [part for part in parts if re.match(r"[A-Za-z]+ [a-z]", part)]:
            return self.problem(sentences[0], offset)
        if len(seen) > 1 and seen[1].is_word("DATA"):
            for token in seen:
                if token.kind is Kind.VARIABLE:
                    return self.problem(f"a variable cannot stand in {seen[0].text.upper()} DATA", token.start)
        declared = {"_:", *(token.text for token in tokenize(before) if token.kind is Kind.NAME)}
        for token in seen:
            if token.is_mark('"', "'"):
                return self.problem("this string is never closed", token.start)
            prefix = token.text.split(":")[0] + ":"
            if token.kind is Kind.NAME and prefix not in declared:
                return self.problem(f"the prefix {prefix} is not declared", token.start)
        last = seen[-1]
        if last is self._tokens[-1] and last.end <= offset:
            return self.problem("the request ends too early" + self._unclosed(seen), len(self._text))
        if last.kind is Kind.WORD and last.start < offset <= last.end:
            # Oxigraph compares whole words and is then at the end of what it did not find.
            return self.problem(f"{last.text} does not belong here", last.start)
        return self.problem(_expected(parts), offset)

    def _unclosed(self, tokens: list[Token]) -> str:
        opened: list[Token] = []
        for token in tokens:
            if token.is_mark(*_CLOSING):
                opened.append(token)
            elif opened and token.is_mark(_CLOSING[opened[-1].text]):
                opened.pop()
        if not opened:
            return ""
        line, column = self._place(opened[-1].start)
        return f": the {opened[-1].text} of line {line}, column {column} is never closed"

    def _place(self, offset: int) -> tuple[int, int]:
        return self._text.count("\n", 0, offset) + 1, offset - self._text.rfind("\n", 0, offset)


def _expected(parts: list[str]) -> str:
    """Shorten what Oxigraph says it expected: it lists every class of characters that could continue a name."""
    words = [part for part in parts if re.fullmatch(r"[A-Z]+", part)]
    marks = [part for part in parts if re.fullmatch(r'"\S+"', part)]
    if "[_]" in parts or not (words or marks) or len(marks) > 8:
        return "this does not belong here"
    return "expected " + " or ".join(words + marks)
