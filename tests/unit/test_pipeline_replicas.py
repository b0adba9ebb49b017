"""Interests as views of pipelines."""

from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, parse

from evergraph.pipeline import PipelineInvalid, load_pipeline
from evergraph.pipeline.replicas import _write_difference
from evergraph.sparql.dataset import Dataset
from evergraph.sparql.results import evaluate_query
from evergraph.terms import Triple
from evergraph.views.replicas import parse_interest
from evergraph.views.replicas.oracle import interesting

INTEREST = "SELECT ?a { ?a <urn:p> ?b OPTIONAL { ?b <urn:q> <urn:c> } }"
DEFINITION = """
[source]
changes = "changes"

[[view]]
name = "part"
interest = "interest.rq"

[[view.sink]]
kind = "changesets"
path = "out"
"""


def define(folder: Path, interest: str) -> Path:
    (folder / "changes").mkdir()
    (folder / "changes/000001.added.nt").write_text("")
    (folder / "interest.rq").write_text(interest)
    path = folder / "pipeline.toml"
    path.write_text(DEFINITION)
    return path


def test_the_rows_of_an_interest_are_the_triples_of_its_target(tmp_path: Path) -> None:
    [view] = load_pipeline(define(tmp_path, INTEREST)).views
    text = "<urn:a> <urn:p> <urn:b>, <urn:c> . <urn:b> <urn:q> <urn:c> . <urn:d> <urn:q> <urn:c> ."
    quads = frozenset(parse(text, RdfFormat.TURTLE))
    expected = interesting(parse_interest(INTEREST), quads)
    assert len(expected) == 3
    triples = frozenset(Triple(quad.subject, quad.predicate, quad.object) for quad in expected)
    assert evaluate_query(view.query, Dataset(quads)) == triples


def test_what_is_no_interest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineInvalid, match=r"interest\.rq: an interest cannot have ASK"):
        load_pipeline(define(tmp_path, "ASK { ?s ?p ?o }"))


@pytest.mark.parametrize(
    ("all_lines", "without", "left"), [("a b c d", "b d", "a c"), ("a b", "", "a b"), ("", "a", ""), ("b", "a b c", "")]
)
def test_difference_of_sorted_files(tmp_path: Path, all_lines: str, without: str, left: str) -> None:
    for name, content in (("all", all_lines), ("without", without)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in content.split()))
    _write_difference(tmp_path / "all", tmp_path / "without", tmp_path / "left")
    assert (tmp_path / "left").read_text().split() == left.split()
