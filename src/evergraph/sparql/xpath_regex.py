"""XPath regular expressions (https://www.w3.org/TR/xpath-functions/#regex-syntax) as Python ones.

The two look alike and differ in what matters: ``$`` is the very end of the text, ``\\w`` has no underscore, ``\\p{…}``
names classes of Unicode, classes can be subtracted from each other; and look-around, possessive quantifiers and inline
flags do not exist. What XPath does not know is refused.
"""

import re
import sys
import unicodedata
from functools import lru_cache

_FLAGS = {"s": re.DOTALL, "m": re.MULTILINE, "i": re.IGNORECASE, "x": re.NOFLAG, "q": re.NOFLAG}
_SINGLE = {"n": "\\n", "r": "\\r", "t": "\\t"}
_LITERAL = frozenset("\\|.?*+(){}$-[]^")
_QUANTIFIER = re.compile(r"[?*+]|\{[0-9]+(?:,[0-9]*)?\}")
_NAME_START = ":A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
_NAME_START += "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
_NAME = _NAME_START + "\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040"


class RegexError(ValueError):
    """The text is not an XPath regular expression."""


@lru_cache(maxsize=1024)
def compile_regex(pattern: str, flags: str) -> re.Pattern[str]:
    """Compile a pattern; raises `RegexError`."""
    if any(flag not in _FLAGS for flag in flags):
        raise RegexError(f"unknown flags {flags!r}")
    python_flags = re.NOFLAG
    for flag in flags:
        python_flags |= _FLAGS[flag]
    if "q" in flags:
        return re.compile(re.escape(pattern), python_flags)
    if "x" in flags:
        pattern = re.sub("[ \t\r\n]+", "", pattern)
    try:
        return re.compile(_Translator(pattern, multiline="m" in flags).translate(), python_flags)
    except re.error as error:
        raise RegexError(str(error)) from error


def replacement(text: str, groups: int, *, literal: bool) -> str:
    """Translate the replacement of fn:replace: ``$N`` is a group, ``\\$`` and ``\\\\`` are characters."""
    if literal:
        return text.replace("\\", "\\\\")
    parts: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\":
            if position == len(text) or text[position] not in "\\$":
                raise RegexError("a backslash in a replacement must stand before a backslash or a dollar sign")
            parts.append("\\\\" if text[position] == "\\" else "$")
            position += 1
        elif character == "$":
            found = re.compile("[0-9]+").match(text, position)
            if found is None:
                raise RegexError("a dollar sign in a replacement must stand before a number")
            digits = found[0]
            while len(digits) > 1 and int(digits) > groups:
                digits = digits[:-1]
            parts.append(f"\\g<{int(digits)}>" if int(digits) <= groups else "")
            position += len(digits)
        else:
            parts.append(character)
    return "".join(parts)


class _Translator:
    def __init__(self, pattern: str, *, multiline: bool) -> None:
        self.pattern = pattern
        self.position = 0
        self.end = "$" if multiline else r"\Z"

    def translate(self) -> str:
        parts: list[str] = []
        while self.position < len(self.pattern):
            parts.append(self._atom())
            if quantifier := _QUANTIFIER.match(self.pattern, self.position):
                self.position = quantifier.end()
                parts.append(quantifier[0])
                if self._peek() == "?":
                    parts.append(self._next())
                if _QUANTIFIER.match(self.pattern, self.position):
                    raise RegexError("a quantifier cannot follow a quantifier")
        return "".join(parts)

    def _peek(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _next(self) -> str:
        character = self._peek()
        if not character:
            raise RegexError("the pattern ends too early")
        self.position += 1
        return character

    def _atom(self) -> str:
        character = self._next()
        match character:
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case "(":
                if self._peek() != "?":
                    return "("
                if self.pattern[self.position : self.position + 2] != "?:":
                    raise RegexError("XPath has no such group")
                self.position += 2
                return "(?:"
            case "$":
                return self.end
            case "]" | "{" | "}" | "?" | "*" | "+":
                raise RegexError(f"unexpected {character!r}")
            case "^" | "." | "|" | ")":
                return character
            case _:
                return re.escape(character)

    def _escape(self) -> str:
        character = self._peek()
        if character.isdigit() and character != "0":
            self.position += 1
            return f"(?:\\{character})"
        members, negated = self._class_escape()
        return f"[{'^' if negated else ''}{members}]"

    def _class_escape(self) -> tuple[str, bool]:
        """Read what follows a backslash: the members of a class, and whether all others are meant."""
        character = self._next()
        if character in _LITERAL:
            return "\\" + character, False
        if character in _SINGLE:
            return _SINGLE[character], False
        if character in "pP":
            return _category(self._category_name()), character == "P"
        classes = {"s": " \\t\\n\\r", "d": _category("Nd"), "i": _NAME_START, "c": _NAME}
        if character.lower() == "w":
            return _category("P") + _category("Z") + _category("C"), character == "w"
        if character.lower() not in classes:
            raise RegexError(f"XPath has no \\{character}")
        return classes[character.lower()], character.isupper()

    def _category_name(self) -> str:
        end = self.pattern.find("}", self.position)
        if self._peek() != "{" or end < 0:
            raise RegexError("expected a category in braces")
        name = self.pattern[self.position + 1 : end]
        self.position = end + 1
        return name

    def _class(self) -> str:
        """Read a class; a negated escape in it, and a subtraction, become alternatives and look-ahead."""
        negated = self._peek() == "^"
        self.position += negated
        members: list[str] = []
        others: list[str] = []
        subtracted = ""
        first = True
        while (character := self._next()) != "]" or first:
            if character == "]":
                raise RegexError("a class needs a member")
            if character == "-" and self._peek() == "[":
                self.position += 1
                subtracted = self._class()
                if self._next() != "]":
                    raise RegexError("a subtraction ends its class")
                break
            if character == "[":
                raise RegexError("a bracket in a class needs a backslash")
            if character == "\\":
                escaped, complement = self._class_escape()
                (others if complement else members).append(f"[^{escaped}]" if complement else escaped)
            else:
                members.append("-" if character == "-" and self._is_range(first) else re.escape(character))
            first = False
        choices = ([f"[{''.join(members)}]"] if members else []) + others
        positive = choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"
        if negated:
            positive = f"(?:(?!{positive})[\\s\\S])"
        return f"(?:(?!{subtracted}){positive})" if subtracted else positive

    def _is_range(self, first: bool) -> bool:
        return not first and self._peek() != "]"


@lru_cache(maxsize=64)
def _category(name: str) -> str:
    """List the characters of a category of Unicode, as members of a class."""
    if not re.fullmatch("[A-Z][a-z]?", name):
        raise RegexError(f"unknown category {name!r}")
    members: list[str] = []
    start = -1
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code)).startswith(name)
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            members.append(f"{_code(start)}-{_code(code - 1)}")
            start = -1
    if not members:
        raise RegexError(f"unknown category {name!r}")
    return "".join(members)


def _code(code: int) -> str:
    return f"\\U{code:08x}"
