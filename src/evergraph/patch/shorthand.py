"""What RDF Patch allows beyond N-Quads: ``<_:label>`` for a blank node, and prefixed names."""

import re
from collections.abc import Iterator, Mapping

from pyoxigraph import RdfFormat, parse

# Only finds where tokens begin and end; what they mean is left to the parser.
_TOKEN = re.compile(
    r"""
      "(?:[^"\\]|\\.)*"                        # a string, whatever it holds
    | <_:(?P<label>[^<>"\s]*)>
    | <[^<>"\s]*>
    | \#.*
    | _:[^\s"<>()]*
    | @[A-Za-z0-9-]+
    | (?P<name>[^\s"<>()\#@^:\\]*:(?:(?:\\.|[^\s"<>()\#\\])*(?:\\.|[^\s"<>()\#\\.]))?)
    """,
    re.VERBOSE,
)


class Shorthand:
    """Turns rows into N-Quads with the prefixes that are declared at the time."""

    __slots__ = ("_known", "_prefixes")

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = dict(prefixes)
        self._known: dict[str, str] = {}

    def declare(self, prefix: str, iri: str | None) -> None:
        """Let a prefix stand for an IRI from now on; None takes it back."""
        self._known.clear()
        if iri is None:
            self._prefixes.pop(prefix, None)
        else:
            self._prefixes[prefix] = iri

    def expand(self, row: str) -> str:
        """Write a row in N-Quads. A name that cannot be resolved is a `SyntaxError` with its column."""
        parts: list[str] = []
        done = 0
        for start, end, text in self._replacements(row):
            parts += row[done:start], text
            done = end
        return "".join(parts) + row[done:]

    def original_column(self, row: str, column: int) -> int:
        """Tell which column of the row a column of its expansion comes from; both count from 1."""
        shift = 0
        for start, end, text in self._replacements(row):
            if column <= start + shift:
                break
            if column <= start + shift + len(text):
                return start + 1
            shift += len(text) - (end - start)
        return column - shift

    def _replacements(self, row: str) -> Iterator[tuple[int, int, str]]:
        for match in _TOKEN.finditer(row):
            if match["label"] is not None:
                yield match.start(), match.end(), f"_:{match['label']}"
            elif match["name"]:
                yield match.start(), match.end(), self._resolve(match["name"], match.start() + 1)

    def _resolve(self, name: str, column: int) -> str:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._parse_name(name, column)
        return known

    def _parse_name(self, name: str, column: int) -> str:
        prefix = name.partition(":")[0]
        if prefix not in self._prefixes:
            raise SyntaxError(f"no PA row declares the prefix {prefix!r}", (None, 1, column, None))
        try:
            # A subject, because Turtle lets nothing else follow one; an object could drag ";" or "~" along.
            text = f"PREFIX {prefix}: <{self._prefixes[prefix]}> {name} <p:p> <o:o> ."
            return str(next(parse(text, RdfFormat.TURTLE)).subject)
        except SyntaxError:
            raise SyntaxError(f"{name!r} is not a prefixed name", (None, 1, column, None)) from None
