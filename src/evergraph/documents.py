"""TOML documents whose mistakes are told with file, line, key and what was expected."""

import difflib
import math
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

from evergraph.errors import DataError, EvergraphError, SyntaxProblem

Address: TypeAlias = tuple[str | int, ...]
"""Where a value is: keys, and places in arrays of tables."""

Value = TypeVar("Value")

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*(?P<key>(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_VERY_CLOSE = 0.8
_NAMES = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


class DefinitionInvalid(EvergraphError):
    """A definition says something that cannot be done; nothing was started."""

    condition = "DEFINITION_INVALID"


class Table:
    """A table of a document. What is asked for is checked, and what nobody has asked for is an error at the end."""

    def __init__(self, values: Mapping[str, Any], address: Address, document: "Document") -> None:
        self._values = values
        self._asked: set[str] = set()
        self.address = address
        self.document = document

    def get(self, key: str, kind: type[Value], default: Value | None = None) -> Value | None:
        """Return the value of a key, which must be of a kind; the default if it is not there."""
        self._asked.add(key)
        if key not in self._values:
            return default
        value = self._values[key]
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            self.fail(f"expected {_NAMES[kind]}, not {_shown(value)}", key)
        if isinstance(value, float) and not math.isfinite(value):
            self.fail(f"expected a finite number, not {value}", key)
        return value

    def raw(self, key: str) -> object:
        """Return the value of a key, of whatever kind; None if it is not there."""
        self._asked.add(key)
        return self._values.get(key)

    def require(self, key: str, kind: type[Value], meaning: str) -> Value:
        """Return the value of a key that must be there."""
        value = self.get(key, kind)
        if value is None:
            self._refuse_misspelt(key)
            self.fail(f"the key '{key}' is missing: {meaning}")
        return value

    def texts(self, key: str) -> list[str]:
        """Return a list of texts; a single text is a list of one."""
        self._asked.add(key)
        value = self._values.get(key, [])
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            self.fail(f"expected a text or a list of texts, not {_shown(value)}", key)
        return values

    def table(self, key: str) -> "Table":
        """Return an inner table, empty if it is not there."""
        if key not in self._values:
            self._refuse_misspelt(key)
        return Table(self.get(key, dict) or {}, (*self.address, key), self.document)

    def tables(self, key: str) -> "Iterator[Table]":
        """Return the tables of an array of tables, ``[[key]]``."""
        values = self.get(key, list) or []
        for place, value in enumerate(values):
            if not isinstance(value, dict):
                self.fail(f"expected tables, written as [[{'.'.join([*self._names(), key])}]]", key)
            yield Table(value, (*self.address, key, place), self.document)

    def _refuse_misspelt(self, key: str) -> None:
        """Refuse a key that nobody has asked for, and that looks like one that is missing."""
        others = [other for other in self._values if other not in self._asked]
        for other in difflib.get_close_matches(key, others, 1, _VERY_CLOSE):
            self.unknown(other, {key}, f"unknown key '{other}'", other)

    def refuse_others(self) -> None:
        """Every key must have been asked for."""
        for key in self._values:
            if key not in self._asked:
                self.unknown(key, self._asked, f"unknown key '{key}'", key)

    def unknown(self, found: str, known: Collection[str], message: str, key: str = "") -> NoReturn:
        """Tell that a word is not known, and which one may have been meant."""
        close = difflib.get_close_matches(found, sorted(known), 1)
        hint = f"did you mean '{close[0]}'?" if close else f"known here: {', '.join(sorted(known))}"
        self.fail(message, key, hint=hint)

    def fail(self, message: str, key: str = "", *, hint: str = "") -> NoReturn:
        """Tell what is wrong with a key, or with the table."""
        address = (*self.address, key) if key else self.address
        name = ".".join(str(part) for part in address if isinstance(part, str))
        line = self.document.line(address)
        place = f"{self.document.path}:{line}" if line else str(self.document.path)
        raise self.document.invalid(f"{place}: {name + ': ' if name else ''}{message}", hint=hint)

    def _names(self) -> list[str]:
        return [part for part in self.address if isinstance(part, str)]


class Document:
    """A TOML file that was read. ``invalid`` is what its mistakes are raised as."""

    invalid: type[DefinitionInvalid] = DefinitionInvalid

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._text = path.read_text("utf-8-sig")
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}", hint="check the path") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: byte {error.start} is not UTF-8", hint="TOML is written in UTF-8") from error
        try:
            values = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            found = _PLACE.search(str(error))
            line, column = int(found[1] or 0) if found else 0, int(found[2] or 0) if found else 0
            if found and not line:  # at the end of the document
                line = max(1, len(self._text.splitlines()))
            message = _PLACE.sub("", str(error))
            raise SyntaxProblem(message, where=str(path), line=line, column=column, text=self._text) from None
        self.values: Mapping[str, Any] = values
        self.root = Table(values, (), self)

    def line(self, address: Address) -> int:
        """Tell the line of a value, or of the innermost table around it that has one; 0 if none has."""
        lines = dict(_addresses(self._text))
        while address and address not in lines:
            address = address[:-1]
        return lines.get(address, 0)


def _addresses(text: str) -> Iterator[tuple[Address, int]]:
    """Find the lines of headers and keys; what is inside of texts of several lines is skipped."""
    counts: dict[Address, int] = {}
    header: Address = ()
    inside = ""
    for number, line in enumerate(text.splitlines(), 1):
        if inside:
            inside = "" if inside in line else inside
            continue
        if found := _HEADER.match(line):
            header = _resolved(_keys(found[2]), counts, array=found[1] == "[[")
            yield header, number
        elif found := _KEY.match(line):
            yield (*header, *_keys(found["key"])), number
        inside = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")


def _keys(dotted: str) -> list[str]:
    return [key.strip().strip("\"'") for key in re.findall(r""""[^"]*"|'[^']*'|[^.\s]+""", dotted)]


def _resolved(keys: list[str], counts: dict[Address, int], *, array: bool) -> Address:
    """Turn the keys of a header into an address: the newest table of each array on the way."""
    address: Address = ()
    for place, key in enumerate(keys):
        address = (*address, key)
        if array and place == len(keys) - 1:
            counts[address] = counts.get(address, -1) + 1
        if address in counts:
            address = (*address, counts[address])
    return address


def _shown(value: object) -> str:
    return (
        f"{_NAMES[type(value)]} ({value!r})"
        if type(value) in (str, int, float, bool)
        else _NAMES.get(type(value), type(value).__name__)
    )
