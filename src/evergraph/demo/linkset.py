"""A linkset: two lists of places that were made apart, and links between them that follow the changes of both."""

from pathlib import Path

from pyoxigraph import RdfFormat, parse
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from evergraph.delta import Request
from evergraph.sources import write_changeset
from evergraph.views.linksets.running import link

_SHIPS = """\
@prefix : <http://harbour.example/> .
:p1 a :Port ; :name "Ostia" ; :lat 41.76 ; :long 12.29 .
:p2 a :Port ; :name "Puteoli" ; :lat 40.83 ; :long 14.12 .
:p3 a :Port ; :name "Massalia" ; :lat 43.30 ; :long 5.37 .
"""
_PLACES = """\
@prefix : <http://gazetteer.example/> .
:1 a :Place ; :title "OSTIA" ; :lat 41.75 ; :long 12.29 .
:2 a :Place ; :title "Puteoli " ; :lat 40.83 ; :long 14.12 .
:3 a :Place ; :title "Massilia" ; :lat 43.30 ; :long 5.38 .
"""
_TITLE = "<http://gazetteer.example/{}> <http://gazetteer.example/title> {} ."
_CHANGES = (
    {"added": _TITLE.format(4, '"Carthago"')},
    {"removed": _TITLE.format(3, '"Massilia"'), "added": _TITLE.format(3, '"Marseille"')},
)
_DEFINITION = '''\
[linkset]
predicate = "http://www.w3.org/2004/02/skos/core#closeMatch"

[prefixes]
ex = "http://example.org/compare#"

[source]
init = "ports.ttl"
text = """
PREFIX : <http://harbour.example/> PREFIX ex: <http://example.org/compare#>
CONSTRUCT { ?x a :Port ; ex:name ?n ; ex:point ?p }
WHERE { ?x a :Port { ?x :name ?n }
        UNION { ?x :lat ?a ; :long ?o BIND(CONCAT(STR(?a), " ", STR(?o)) AS ?p) } }"""

[target]
init = "places.ttl"
changes = "gazetteer"
text = """
PREFIX : <http://gazetteer.example/> PREFIX ex: <http://example.org/compare#>
CONSTRUCT { ?x a :Place ; ex:name ?n ; ex:point ?p }
WHERE { ?x a :Place { ?x :title ?n }
        UNION { ?x :lat ?a ; :long ?o BIND(CONCAT(STR(?a), " ", STR(?o)) AS ?p) } }"""

[[match.compare]]
source = "ex:name"
measure = "levenshtein"
max = 1
transform = ["lower", "trim"]

[[match.compare]]
source = "ex:point"
measure = "geo"
max = 5

[output]
links = "links.nt"
'''


def show(out: Console, folder: Path) -> None:
    """Match once, change one place, and match only that again."""
    folder.mkdir()
    for name, text in (("ports.ttl", _SHIPS), ("places.ttl", _PLACES), ("links.toml", _DEFINITION)):
        (folder / name).write_text(text)
    _write_change(folder, 1)
    rule = _DEFINITION[_DEFINITION.index("[[match") : _DEFINITION.index("[output]")].rstrip()
    out.print(Text("Ports of the harbour and places of a gazetteer are the same if", style="bold"))
    out.print(Syntax(rule, "toml", background_color="default"))
    _run(out, folder, "The first run matches everything:")
    _write_change(folder, 2)
    _run(out, folder, "A place is renamed, from Massilia to Marseille. Only what changed is matched again:")


def _write_change(folder: Path, number: int) -> None:
    quads = {kind: frozenset(parse(text, RdfFormat.N_TRIPLES)) for kind, text in _CHANGES[number - 1].items()}
    write_changeset(folder / "gazetteer", number, Request(**quads))


def _run(out: Console, folder: Path, title: str) -> None:
    out.print(Text(f"\n{title}", style="bold"))
    for run in link(folder / "links.toml"):
        out.print(Text(f"   {run.mode}: +{len(run.added)} -{len(run.removed)}, {run.links} links"))
    for line in sorted((folder / "links.nt").read_text().splitlines()):
        out.print(Text(f"   {line}", style="cyan"), soft_wrap=True)
