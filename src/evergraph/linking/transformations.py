"""Transformations: what is done to the values of a property before they are compared.

A transformation takes a text and returns any number of texts; those that are empty are no values. Before the first
and after the last one a text is brought to Unicode's form C.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from evergraph.linking.values import nfc
from evergraph.linking.words import ENGLISH_STOP_WORDS

Transformation: TypeAlias = Callable[[str], Iterable[str]]
Argument: TypeAlias = str | int | list[str]


def _one(function: Callable[[str], str]) -> Transformation:
    return lambda text: (function(text),)


def without_accents(text: str) -> str:
    """Take the combining marks off: é becomes e, but ø and ß stay."""
    if text.isascii():
        return text
    plain = "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))
    return unicodedata.normalize("NFC", plain)


def without_punctuation(text: str) -> str:
    """Replace every sign that is neither letter, mark, digit nor white space by a space, and squeeze the spaces."""
    kept = "".join(sign if unicodedata.category(sign)[0] in "LMN" or sign.isspace() else " " for sign in text)
    return " ".join(kept.split())


def _only(categories: str) -> Callable[[str], str]:
    return lambda text: "".join(sign for sign in text if unicodedata.category(sign)[0] in categories)


def last_part(text: str) -> str:
    """Return what comes after the last ``/``, ``#`` or ``:``, with ``_`` as spaces: the name in an IRI."""
    return re.split(r"[/#:]", text.rstrip("/#"))[-1].replace("_", " ")


def _without(words: Iterable[str]) -> Callable[[str], str]:
    stop = frozenset(word.casefold() for word in words)
    return lambda text: " ".join(word for word in text.split() if word.casefold() not in stop)


PLAIN: dict[str, Transformation] = {
    "lower": _one(str.lower),
    "upper": _one(str.upper),
    "fold": _one(str.casefold),
    "trim": _one(str.strip),
    "spaces": _one(lambda text: " ".join(text.split())),
    "punctuation": _one(without_punctuation),
    "accents": _one(without_accents),
    "letters": _one(_only("LM")),
    "digits": _one(_only("N")),
    "last-part": _one(last_part),
    "tokens": lambda text: text.split(),
    "sort-tokens": _one(lambda text: " ".join(sorted(text.split()))),
    "stop-words": _one(_without(ENGLISH_STOP_WORDS)),
}
"""The transformations without arguments, by name."""


def stop_words(words: Argument) -> Transformation:
    """Leave words out, whatever their case."""
    return _one(_without(words.split() if isinstance(words, str) else _texts(words)))


def replace(pattern: Argument, replacement: str = "") -> Transformation:
    """Replace every match of a regular expression; groups are ``\\1``, ``\\2``…"""
    compiled = re.compile(_text(pattern))
    compiled.sub(replacement, "")  # a group that is not there is told now
    return lambda text: (compiled.sub(replacement, text),)


def extract(pattern: Argument) -> Transformation:
    """Return every match of a regular expression, or its first group if it has one, as a value of its own."""
    compiled = re.compile(_text(pattern))
    group = 1 if compiled.groups else 0
    return lambda text: (found[group] or "" for found in compiled.finditer(text))


def split(separator: Argument) -> Transformation:
    """Return the parts between separators as values of their own."""
    compiled = re.compile(_text(separator))
    return lambda text: (part for part in compiled.split(text) if part)


def begin(length: Argument) -> Transformation:
    """Return the first code points of a text."""
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        raise ValueError("expected a whole number from 1 on")
    return lambda text: (text[:length],)


WITH_ARGUMENT: dict[str, Callable[[Argument], Transformation]] = {
    "stop-words": stop_words,
    "replace": replace,
    "extract": extract,
    "split": split,
    "begin": begin,
}
"""The transformations with an argument, by name. ``replace`` takes a second one, ``with``."""


def apply(transformations: tuple[Transformation, ...], text: str) -> tuple[str, ...]:
    """Return what a chain of transformations makes of a text: values in form C, each once, none of them empty."""
    if not transformations:
        return (nfc(text),) if text else ()
    values: Iterable[str] = (nfc(text),)
    for transformation in transformations:
        values = _flat(transformation, values)
    return tuple(dict.fromkeys(nfc(value) for value in values if value))


def _flat(transformation: Transformation, values: Iterable[str]) -> Iterator[str]:
    for value in values:
        yield from transformation(value)


def _text(argument: Argument) -> str:
    if not isinstance(argument, str):
        raise ValueError("expected a text")
    return argument


def _texts(argument: Argument) -> list[str]:
    if not isinstance(argument, list) or not all(isinstance(one, str) for one in argument):
        raise ValueError("expected a text or a list of texts")
    return argument
