"""Definitions of other tools: Silk-LSL and LIMES files become TOML, with a list of what could not be expressed."""

import json
import re
import xml.etree.ElementTree as Xml
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evergraph.errors import DataError, SyntaxProblem

NAMESPACE = "urn:evergraph:compare:"


@dataclass(slots=True)
class Side:
    """One dataset: the pattern that restricts its resources, and its property paths in the order of their use."""

    restriction: str = ""
    paths: list[str] = field(default_factory=list)

    def number(self, path: str) -> int:
        """Return the number of a path, a new one if it was not used before."""
        if path not in self.paths:
            self.paths.append(path)
        return self.paths.index(path)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A comparison: properties of both sides by number, and the lines that TOML has for the rest."""

    source: int
    target: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """A group, with the lines that TOML has for it."""

    combine: str
    parts: "tuple[Leaf | Tree, ...]"
    lines: tuple[str, ...] = ()


@dataclass(slots=True)
class Converted:
    """What was read. ``problems`` lists what could not be expressed: if there is any, the rule is not the same."""

    predicate: str = "http://www.w3.org/2002/07/owl#sameAs"
    prefixes: dict[str, str] = field(default_factory=dict)
    source: Side = field(default_factory=Side)
    target: Side = field(default_factory=Side)
    rule: Leaf | Tree | None = None
    accept: float | None = None
    review: float | None = None
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def toml(self) -> str:
        """Write the definition; where the data are is left to fill in."""
        count = max(len(self.source.paths), len(self.target.paths))
        head = ["[linkset]", f"predicate = {_quoted(self.predicate)}"]
        head += [f"{key} = {value:g}" for key, value in (("accept", self.accept), ("review", self.review)) if value]
        text = [*head, "", "[prefixes]", f"compare = {_quoted(NAMESPACE)}"]
        for name, side in (("source", self.source), ("target", self.target)):
            text += ["", f"[{name}]", 'init = "…" # RDF files', 'changes = "…" # a change source', "text = '''"]
            text += [*self._view(side, count), "'''"]
        if self.rule is not None:
            text += ["", *_rule(self.rule)]
        return "\n".join([*(f"# {note}" for note in self.notes), *text]) + "\n"

    def _view(self, side: Side, count: int) -> Iterator[str]:
        for prefix, iri in sorted(self.prefixes.items()):
            yield f"PREFIX {prefix}: <{iri}>"
        properties = "".join(f" ; <{NAMESPACE}{number}> ?value{number}" for number in range(count))
        yield f"CONSTRUCT {{ ?x a <{NAMESPACE}Resource>{properties} }}"
        yield "WHERE {"
        yield f"  {side.restriction or '?x ?anything ?atall .'}"
        branches = [f"{{ ?x {path} ?value{number} }}" for number, path in enumerate(side.paths)]
        yield "  " + " UNION ".join(branches)
        yield "}"


def convert(path: str | Path) -> Converted:
    """Read a Silk-LSL or LIMES file.

    :raises DataError: if it is neither.
    """
    from evergraph.linking import limes, silk

    try:
        root = Xml.fromstring(Path(path).read_bytes())  # entities are not resolved
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", hint="check the path") from error
    except Xml.ParseError as error:
        line, column = error.position
        raise SyntaxProblem(f"not XML: {error.msg}", where=str(path), line=line, column=column + 1) from None
    match root.tag.rpartition("}")[2].lower():
        case "silk":
            return silk.read(root)
        case "limes":
            return limes.read(root)
        case other:
            raise DataError(f"{path}: neither Silk-LSL nor LIMES: the root is <{other}>", hint="<Silk> or <LIMES>")


def _rule(node: Leaf | Tree) -> Iterator[str]:
    if isinstance(node, Leaf):
        node = Tree("and", (node,))
    yield from _group(node, "match", top=True)


def _group(node: Tree, address: str, *, top: bool = False) -> Iterator[str]:
    yield f"[{address}]" if top else f"[[{address}]]"
    yield f"combine = {_quoted(node.combine)}"
    yield from node.lines
    for part in node.parts:
        if isinstance(part, Leaf):
            yield ""
            yield f"[[{address}.compare]]"
            yield f"source = {_quoted(f'compare:{part.source}')}"
            yield f"target = {_quoted(f'compare:{part.target}')}"
            yield from part.lines
    for part in node.parts:
        if isinstance(part, Tree):
            yield ""
            yield from _group(part, f"{address}.group")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def quoted(text: str) -> str:
    """Write a text for TOML."""
    return _quoted(text)


def variable_renamed(pattern: str, variable: str) -> str:
    """Call the variable of a pattern ``?x``."""
    name = re.escape(variable.lstrip("?$"))
    return re.sub(rf"[?$]{name}\b", "?x", pattern) if name else pattern
