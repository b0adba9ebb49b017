"""What a linkset is: two catalogue views, a rule, a property, and where its links go. Read from TOML, and checked."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from evergraph import documents
from evergraph.documents import DefinitionInvalid, Table
from evergraph.errors import SyntaxProblem
from evergraph.linking.catalogue import Catalogue, CatalogueInvalid, catalogue
from evergraph.linking.reading import PREFIXES, Names, read_rule
from evergraph.linking.rules import Rule
from evergraph.sparql.parser import parse_query
from evergraph.terms import NamedNode

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
LINKS_ENDINGS = (".nt", ".nt.gz", ".tsv", ".tsv.gz")


class LinksetInvalid(DefinitionInvalid):
    """The definition of a linkset says something that cannot be done; nothing was started."""

    condition = "LINKSET_INVALID"


class Document(documents.Document):
    """A TOML file with the definition of a linkset."""

    invalid = LinksetInvalid


@dataclass(frozen=True, slots=True)
class Dataset:
    """One side of a linkset: a catalogue view, what is there at first, and how it changes."""

    text: str
    catalogue: Catalogue
    init: tuple[Path, ...] = ()
    changes: Path | None = None
    iri: NamedNode | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """The files of a linkset; those that are None are not written."""

    links: Path | None = None
    review: Path | None = None
    void: Path | None = None
    changes: Path | None = None
    quality: Path | None = None
    confidence: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """A checked definition; all paths are absolute. ``text`` is the document."""

    name: str
    predicate: NamedNode
    state: Path
    source: Dataset
    target: Dataset
    rule: Rule
    rule_text: str
    accept: float = 0.0
    review: float | None = None
    one_to_one: bool = False
    batch: int | None = None
    reference: Path | None = None
    output: Output = field(default_factory=Output)


def load_linkset(path: str | Path, *, alone: bool = True) -> Definition:
    """Read and check a definition.

    :param alone: whether it says itself where data come from and links go to; else it is a view of a pipeline.
    :raises LinksetInvalid: with file, line, key and what was expected.
    """
    document = Document(Path(path))
    root = document.root
    if not alone:
        _refuse_own_data(root)
    linkset, output, run, evaluate = (root.table(key) for key in ("linkset", "output", "run", "evaluate"))
    names = Names(_prefixes(root))
    name = _name(linkset, Path(path).stem)
    source, target = (_dataset(root, key, names, alone) for key in ("source", "target"))
    _refuse_different(root.table("target"), source.catalogue, target.catalogue)
    match = root.table("match")
    if "match" not in document.values:
        root.fail("the table [match] is missing: what makes two resources the same", hint=_MATCH_HINT)
    accept, review = _thresholds(linkset)
    found = Definition(
        name=name,
        predicate=names.iri(linkset, "predicate", linkset.require("predicate", str, "the property of the links")),
        state=_resolved(linkset, linkset.get("state", str) or f"{name}.state"),
        source=source,
        target=target,
        rule=read_rule(match, names, source.catalogue.properties, target.catalogue.properties),
        rule_text=repr(document.values["match"]) + repr(sorted(names.prefixes.items())),
        accept=accept,
        review=review,
        one_to_one=bool(linkset.get("one-to-one", bool, False)),
        batch=_count(run, "changes"),
        reference=_existing(evaluate, "reference", text) if (text := evaluate.get("reference", str)) else None,
        output=_output(output, evaluate),
    )
    for table in (linkset, output, run, evaluate):
        table.refuse_others()
    root.refuse_others()
    _refuse_doubles(found, output)
    return found


_MATCH_HINT = 'for example [[match.compare]] with source = "ex:name", measure = "levenshtein", max = 1'


def _prefixes(root: Table) -> dict[str, str]:
    values = root.get("prefixes", dict) or {}
    table = Table(values, ("prefixes",), root.document)
    return {**PREFIXES, **{key: table.require(key, str, "") for key in values}}


_PIPELINE_HINT = "in a pipeline, both views are of the pipeline's data, and links go to the sinks of its view"


def _refuse_own_data(root: Table) -> None:
    sides = [(root.table(side), ("init", "changes")) for side in ("source", "target")]
    for table, keys in ((root, ("output", "run", "evaluate")), (root.table("linkset"), ("state", "review")), *sides):
        for key in keys:
            if table.raw(key) is not None:
                table.fail(f"'{key}' has no meaning for a linkset in a pipeline", key, hint=_PIPELINE_HINT)


def _dataset(root: Table, key: str, names: Names, alone: bool) -> Dataset:
    table = root.table(key)
    file, inline = table.get("view", str), table.get("text", str)
    if (file is None) == (inline is None):
        table.fail(
            "expected one of 'view' and 'text'", hint="view names a file; text is the query itself, in '''quotes'''"
        )
    base, text, told = table.document.path, inline or "", "text"
    if file is not None:
        base, told = _existing(table, "view", file), "view"
        try:
            text = base.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            table.fail(f"cannot read {base}: {reason}", "view")
    try:
        view = catalogue(parse_query(text, base.resolve().as_uri()))
    except SyntaxProblem as error:
        if file is None:
            table.fail(f"the query cannot be parsed: {error.at('text', text).message}", "text")
        raise error.at(str(base), text) from None
    except CatalogueInvalid as error:
        table.fail(f"not a catalogue view: {error.message}", told, hint=error.hint)
    changes = table.get("changes", str)
    if changes == "-":
        table.fail("a linkset cannot read standard input", "changes", hint="it must be able to read the changes again")
    found = Dataset(
        text,
        view,
        tuple(_existing(table, "init", one) for one in table.texts("init")),
        _existing(table, "changes", changes) if changes else None,
        names.iri(table, "iri", iri) if (iri := table.get("iri", str)) else None,
    )
    if alone and not found.init and found.changes is None:
        table.fail("expected data: 'init', 'changes' or both", hint="init lists RDF files; changes is a change source")
    table.refuse_others()
    return found


def _refuse_different(table: Table, source: Catalogue, target: Catalogue) -> None:
    one, other = len(source.properties), len(target.properties)
    if one != other:
        key = "view" if table.get("view", str) else "text"
        table.fail(
            f"expected {one} propert{'y' if one == 1 else 'ies'} as in the view of the source, found {other}",
            key,
            hint="property k of one view is compared with property k of the other; values may be missing (OPTIONAL)",
        )


def _thresholds(table: Table) -> tuple[float, float | None]:
    accept, review = table.get("accept", float, 0.0), table.get("review", float)
    assert accept is not None
    for key, value in (("accept", accept), ("review", review)):
        if value is not None and not 0 <= value <= 1:
            table.fail(f"expected a score between 0 and 1, not {value:g}", key)
    if review is not None and review > accept:
        table.fail(f"expected at most accept, {accept:g}, not {review:g}", "review", hint=_REVIEW_HINT)
    return accept, review


_REVIEW_HINT = "scores from review up to accept are for people to look at; from accept on they are links"


def _output(table: Table, evaluate: Table) -> Output:
    def place(table: Table, key: str) -> Path | None:
        text = table.get(key, str)
        return None if text is None else _resolved(table, text)

    found = Output(
        links=place(table, "links"),
        review=place(table, "review"),
        void=place(table, "void"),
        changes=place(table, "changes"),
        quality=place(evaluate, "quality"),
        confidence=bool(table.get("confidence", bool, False)),
    )
    for key, path in (("links", found.links), ("review", found.review)):
        if path is not None and not path.name.endswith(LINKS_ENDINGS):
            table.fail(f"expected a name that ends in {', '.join(LINKS_ENDINGS)}, not '{path.name}'", key)
    return found


def _name(table: Table, default: str) -> str:
    name = table.get("name", str, default)
    assert name is not None
    if not _NAME.fullmatch(name):
        table.fail(f"'{name}' cannot be a name", "name", hint="use letters, digits, '_', '-' and '.'")
    return name


def _count(table: Table, key: str) -> int | None:
    value = table.get(key, int)
    if value is not None and value < 1:
        table.fail(f"expected a whole number from 1 on, not {value}", key)
    return value


def _existing(table: Table, key: str, text: str) -> Path:
    path = _resolved(table, text)
    if not path.exists():
        table.fail(f"no such file or folder: {path}", key, hint="paths are relative to the definition")
    return path


def _resolved(table: Table, text: str) -> Path:
    return (table.document.path.resolve().parent / Path(text).expanduser()).absolute()


def _refuse_doubles(definition: Definition, table: Table) -> None:
    """No file is used twice, and none is put into a folder that is read or that holds the state."""
    used: dict[Path, str] = {}
    for side in (definition.source, definition.target):
        used |= dict.fromkeys(side.init, "init")
        if side.changes is not None:
            used[side.changes] = "changes"
    _refuse_shared(Table({}, ("linkset",), table.document), "state", definition.state, used)
    used[definition.state] = "state"
    for key in ("links", "review", "void", "changes", "quality"):
        path = getattr(definition.output, key)
        if path is not None:
            _refuse_shared(table, key, path, used)
            used[path] = key


def _refuse_shared(table: Table, key: str, path: Path, used: dict[Path, str]) -> None:
    for other, use in used.items():
        if path == other or other in path.parents:
            table.fail(f"{path} is already used, for '{use}'", key, hint="give every file a place of its own")
        if path in other.parents and key in ("state", "changes"):
            table.fail(f"{path} holds {other}, which is used for '{use}'", key, hint="name a folder of its own")
