"""The files of a linkset: links, pairs for review, a VoID description, the change of each run, and its quality."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from evergraph.delta import Delta
from evergraph.files import open_output
from evergraph.linking.definition import Definition
from evergraph.patch import write_transaction
from evergraph.rdfio import read_quads, write_quads
from evergraph.sources.folders import make_folder
from evergraph.terms import XSD, Literal, NamedNode, Quad
from evergraph.views.linksets.linkset import Linkset, View
from evergraph.views.linksets.selection import Pair

_VOID = "http://rdfs.org/ns/void#"
_ALIGN = "http://knowledgeweb.semanticweb.org/heterogeneity/alignment#"
_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


@dataclass(frozen=True, slots=True)
class Quality:
    """How links compare with reference links. Without links, precision is 1; without reference links, recall is."""

    correct: int
    links: int
    reference: int

    @property
    def precision(self) -> float:
        """The share of the links that are in the reference."""
        return self.correct / self.links if self.links else 1.0

    @property
    def recall(self) -> float:
        """The share of the reference that was found."""
        return self.correct / self.reference if self.reference else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def report(self) -> dict[str, float]:
        """Return all of it, rounded, for JSON."""
        rates = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {**{name: round(rate, 4) for name, rate in rates.items()}, **asdict(self)}


def quality(links: Iterable[Pair], reference: Iterable[Pair]) -> Quality:
    """Compare links with reference links."""
    found, wanted = set(links), set(reference)
    return Quality(len(found & wanted), len(found), len(wanted))


def read_reference(path: Path) -> set[Pair]:
    """Read reference links: the subjects and objects of all triples of a file, whatever the property."""
    return {(str(quad.subject), str(quad.object)) for quad in read_quads(path)}


def publish(definition: Definition, linkset: Linkset[View], added: frozenset[Pair], removed: frozenset[Pair]) -> None:
    """Write all files that the definition asks for, each wholly or not at all."""
    output, links = definition.output, linkset.links
    for path in (output.links, output.review, output.void, output.quality):
        if path is not None:
            make_folder(path.parent)
    if output.links is not None:
        _write_links(output.links, definition, links)
    if output.review is not None:
        review = {pair: linkset.candidates.scores[pair] for pair in linkset.selection.for_review(linkset.candidates)}
        _write_links(output.review, definition, review)
    if output.void is not None:
        write_quads(output.void, _void(definition, len(links)))
    if output.changes is not None:
        make_folder(output.changes)
        with open_output(output.changes / f"{linkset.sequence:06}.rdfp") as out:
            quads = [frozenset(_quad(definition, pair) for pair in pairs) for pairs in (added, removed)]
            write_transaction(out, Delta(inserted=quads[0], deleted=quads[1]))
    if output.quality is not None and definition.reference is not None:
        report = quality(links, read_reference(definition.reference)).report()
        with open_output(output.quality) as out:
            out.write(json.dumps(report).encode() + b"\n")


def _write_links(path: Path, definition: Definition, links: dict[Pair, float]) -> None:
    if ".tsv" in path.name:
        lines = ["source\ttarget\tconfidence\n"]
        lines += [f"{source}\t{target}\t{score:.6g}\n" for (source, target), score in sorted(links.items())]
    else:
        lines = sorted(f"{source} {definition.predicate} {target} .\n" for source, target in links)
        if definition.output.confidence:
            lines += [f"{quad} .\n" for item in sorted(links.items()) for quad in _cell(definition, *item)]
    with open_output(path) as out:
        out.write("".join(lines).encode())


def _quad(definition: Definition, pair: Pair) -> Quad:
    return Quad(NamedNode(pair[0][1:-1]), definition.predicate, NamedNode(pair[1][1:-1]))


def _cell(definition: Definition, pair: Pair, score: float) -> list[Quad]:
    """Describe a link with its confidence, as the Alignment API does."""
    identity = hashlib.sha256(f"{pair[0]} {definition.predicate} {pair[1]}".encode()).hexdigest()[:32]
    cell = NamedNode(f"urn:evergraph:link:{identity}")
    source, target = (NamedNode(name[1:-1]) for name in pair)
    measure = Literal(f"{score:.6g}", datatype=NamedNode(XSD + "decimal"))
    return [
        Quad(cell, _TYPE, NamedNode(_ALIGN + "Cell")),
        Quad(cell, NamedNode(_ALIGN + "entity1"), source),
        Quad(cell, NamedNode(_ALIGN + "entity2"), target),
        Quad(cell, NamedNode(_ALIGN + "relation"), Literal(definition.predicate.value)),
        Quad(cell, NamedNode(_ALIGN + "measure"), measure),
    ]


def _void(definition: Definition, count: int) -> list[Quad]:
    linkset = NamedNode(f"urn:evergraph:linkset:{definition.name}")
    targets = {
        "subjectsTarget": definition.source.iri or NamedNode(f"{linkset.value}:source"),
        "objectsTarget": definition.target.iri or NamedNode(f"{linkset.value}:target"),
    }
    quads = [
        Quad(linkset, _TYPE, NamedNode(_VOID + "Linkset")),
        Quad(linkset, NamedNode(_VOID + "linkPredicate"), definition.predicate),
        Quad(linkset, NamedNode(_VOID + "triples"), Literal(str(count), datatype=NamedNode(XSD + "integer"))),
    ]
    for name, target in targets.items():
        quads.append(Quad(linkset, NamedNode(_VOID + name), target))
        quads.append(Quad(target, _TYPE, NamedNode(_VOID + "Dataset")))
    return quads
