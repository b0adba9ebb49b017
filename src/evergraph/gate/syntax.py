"""The syntax of update requests: Oxigraph decides what is right; what is wrong, and where, is said here."""

import re
from collections.abc import Sequence
from itertools import pairwise

from pyoxigraph import Store

from evergraph.errors import SyntaxProblem
from evergraph.gate.tokens import Kind, Token, tokenize

NEVER_RUN = "DROP GRAPH <urn:evergraph:never>;\n"
"""Stands before an operation that is to be parsed and not run: it fails first."""

_STORE = Store()
_BAD_IRI = "IRI parsing failed"
_ABSOLUTE = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:")
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

    def problem(self, message: str, offset: int, *, hint: str = "") -> SyntaxProblem:
        """Make the error about a place in the text."""
        line, column = self._place(offset)
        return SyntaxProblem(message, where=self._where, line=line, column=column, text=self._text, hint=hint)

    def check(self, before: str, start: int, end: int) -> None:
        """Raise an error if ``before`` (whole lines) and the part of the text together are not SPARQL."""
        error = _verdict(before + self._text[start:end])
        if error is not None:
            raise self.explained(error, before, start, end)

    def explained(self, error: SyntaxError, before: str, start: int, end: int) -> SyntaxProblem:
        """Word an error of Oxigraph about ``before`` and a part of the text."""
        found = re.match(r"error at (\d+):(\d+): (?:expected )?(.*)", str(error), re.DOTALL)
        assert found, error
        line, column = int(found[1]) - before.count("\n"), int(found[2])
        lines_before = self._text[start:end].split("\n")[: line - 1]
        offset = start + sum(len(passed) + 1 for passed in lines_before) + column - 1
        parts = [part.strip() for part in found[3].replace("\n", " ").removeprefix("one of ").split(", ")]
        seen = [token for token in self._tokens if start <= token.start < end and token.start <= offset]
        return self._explained(before, seen, offset, parts)

    def _explained(self, before: str, seen: list[Token], offset: int, parts: list[str]) -> SyntaxProblem:
        """Say what is wrong, given the tokens up to where Oxigraph stopped and what it expected there."""
        sentences = [part for part in parts if re.match(r"[A-Za-z]+ [a-z]", part)]
        if not seen:
            return self.problem("there is nothing here", offset)
        last = seen[-1]
        if relative := _relative_iri(before, seen):
            return self.problem(
                f"{relative.text} is not an absolute IRI", relative.start, hint="write it in full, or declare a BASE"
            )
        if _BAD_IRI in sentences:
            return self.problem(_BAD_IRI, last.start if last.kind is Kind.IRI else offset)
        if found := _open_string(seen) or _undeclared_prefix(before, seen) or _misplaced_node(seen):
            token, message = found
            return self.problem(message, token.start)
        if sentences:
            return self.problem(sentences[0], offset)
        if last is self._tokens[-1] and last.end <= offset:
            return self._explained_at_end(seen)
        if last.start < offset <= last.end:
            # Oxigraph compares whole words and is then at the end of what it did not find.
            return self.problem(f"{last.text} does not belong here{self._unclosed(self._tokens)}", last.start)
        return self.problem(_expected(parts), offset)

    def _explained_at_end(self, seen: list[Token]) -> SyntaxProblem:
        unclosed = self._unclosed(seen)
        if not unclosed and seen[-1].is_mark("}") and any(token.is_word("WHERE", "DATA", "SELECT") for token in seen):
            return self.problem(
                "what ends here breaks a rule of SPARQL",
                len(self._text),
                hint="see that no variable is bound twice, or selected beside an aggregate and not grouped",
            )
        return self.problem("the request ends too early" + unclosed, len(self._text))

    def _unclosed(self, tokens: Sequence[Token]) -> str:
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


def _open_string(seen: list[Token]) -> tuple[Token, str] | None:
    quote = next((token for token in seen if token.is_mark('"', "'")), None)
    return quote and (quote, "this string is never closed")


def _relative_iri(before: str, seen: list[Token]) -> Token | None:
    """Find an IRI that is relative, and nobody says to what."""
    if any(token.is_word("BASE") for token in (*tokenize(before), *seen)):
        return None
    return next((token for token in seen if token.kind is Kind.IRI and not _ABSOLUTE.match(token.text)), None)


def _undeclared_prefix(before: str, seen: list[Token]) -> tuple[Token, str] | None:
    prologue = [*tokenize(before), *seen]
    declared = {"_:", *(name.text for word, name in pairwise(prologue) if word.is_word("PREFIX"))}
    for token in seen:
        prefix = token.text.split(":")[0] + ":"
        if token.kind is Kind.NAME and prefix not in declared:
            return token, f"the prefix {prefix} is not declared"
    return None


def _misplaced_node(seen: list[Token]) -> tuple[Token, str] | None:
    """Find a variable in DATA, or a blank node in what is to be deleted."""
    keywords = [token.text.upper() for token in seen[:2]]
    if "DATA" in keywords and (found := next((token for token in seen if token.kind is Kind.VARIABLE), None)):
        return found, f"a variable cannot stand in {' '.join(keywords)}"
    deleting = next((place for place, token in enumerate(seen) if token.is_word("DELETE")), len(seen))
    for token in seen[deleting:]:
        if token.is_word("INSERT", "USING") or (token.is_word("WHERE") and "WHERE" not in keywords):
            break
        if token.is_mark("[") or (token.kind is Kind.NAME and token.text.startswith("_:")):
            return token, "a blank node cannot stand in what is to be deleted"
    return None


def _expected(parts: list[str]) -> str:
    """Shorten what Oxigraph says it expected: it lists every class of characters that could continue a name."""
    words = [part for part in parts if re.fullmatch(r"[A-Z]+", part)]
    marks = [part for part in parts if re.fullmatch(r'"\S+"', part)]
    if "[_]" in parts or not (words or marks) or len(marks) > 8:
        return "this does not belong here"
    return "expected " + " or ".join(words + marks)
